"""Short names of a study's cells from the varying hyperparameters, used for runs in MLflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from study.plugins.vocabulary import vocabulary
from study.records import Cell, Labels, format_range, is_pairs, value
from study.summaries import questions

_CHARACTERS = 60  # limit for one value
_ID_CHARACTERS = 6


def cell_names(cells: Sequence[Cell], labels: Labels) -> dict[str, str]:
    """Name cells by hyperparameters that distinguish them (`questions.keys`), with their values in short.

    None is left out, a model loses its import path, and a value is cut to 60 characters. If several cells get the same
    name, or one gets none, the first six characters of the cell's id are added.

    A label replaces all hyperparameters that change with it, and follows the model. Keys that are usually swept, such
    as those on the x axis of figures, come last.

    Args:
        cells: all cells of a study.
        labels: the names of points on axes of the grid.

    Returns:
        The name of each cell by its id; all different, unless ids begin alike. Empty without cells.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> points = [(h, v, start) for start in (1000, 5000) for v in (0.05, 0.1) for h in (2, 10)]
        >>> keys = ("hidden_size", "init_variance", "sparsity_start")
        >>> cells = [Cell("simple", "NMU", dict(zip(keys, point))) for point in points]
        >>> labels = {cell.id: {"schedule": "early" if cell in cells[:4] else "late"} for cell in cells}
        >>> list(cell_names(cells, labels).values())[:5]
        ['NMU early v0.05 h2', 'NMU early v0.05 h10', 'NMU early v0.1 h2', 'NMU early v0.1 h10', 'NMU late v0.05 h2']
        >>> list(cell_names([Cell("function", "lab:train", {"width": n, "rate": 0.1}) for n in (2, 4)], {}).values())
        ['width 2', 'width 4']
    """
    if not cells:
        return {}
    keys = questions.keys(cells, labels)
    axes = questions.axes(keys, labels)
    first = [*(key for key in keys if key == "model"), *axes]
    last = [key for key in keys if key in vocabulary().swept_first]
    order = [*first, *(key for key in keys if key not in (*first, *last)), *last]
    texts = [" ".join(filter(None, (_text(key, value(cell, key, labels), axes) for key in order))) for cell in cells]
    counts = Counter(texts)
    names = [
        text if text and counts[text] == 1 else f"{text} {cell.id[:_ID_CHARACTERS]}".strip()
        for text, cell in zip(texts, cells, strict=True)
    ]
    return {cell.id: name for cell, name in zip(cells, names, strict=True)}


def _text(key: str, content: Any, axes: Sequence[str]) -> str:
    """Return a value as part of a name, with its key unless it is clear alone; empty for None."""
    if content is None:
        return ""
    if key == "model":
        return str(content).rpartition(":")[2]
    text = _value_text(content)
    if key in vocabulary().short:
        return f"{vocabulary().short[key]}{text}"
    return text if key in axes or key in vocabulary().self_explanatory else f"{key} {text}"


def _value_text(content: Any) -> str:
    """Return a value as text in one line, shortened to the limit."""
    if isinstance(content, float):
        text = repr(content).removesuffix(".0")
    elif is_pairs(content):
        text = format_range(content)
    else:
        text = str(content)
    text = " ".join(text.split())
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
