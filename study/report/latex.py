r"""The table of results in LaTeX, in the layout of the published ones; it needs the package booktabs.

The columns are Op, Model, Success rate ± interval, Solved at (median, mean ± interval), Sparsity error ± interval; the
best value of each operation is bold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from study import words
from study.analysis import rows as result_rows
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval

_NONE = "--"
_TITLES = {
    "operation": "Op",
    "model": "Model",
    "sparsity_strength": r"$\hat{\lambda}$",
    "sparsity_start": r"$\lambda$ start",
    "sparsity_end": r"$\lambda$ end",
}
_OPERATIONS = {
    "add": "$+$",
    "sub": "$-$",
    "mul": r"$\times$",
    "div": r"$\div$",
    "squared": "$a^2$",
    "root": r"$\sqrt{a}$",
}
_MODELS = {
    "NAC-add": r"$\mathrm{NAC}_{+}$",
    "NAC-mul": r"$\mathrm{NAC}_{\bullet}$",
    "NAC-mul-sigma": r"$\mathrm{NAC}_{\bullet,\sigma}$",
    "NAC-mul-NMU": r"$\mathrm{NAC}_{\bullet,\mathrm{NMU}}$",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "•": r"$\bullet$",
    "σ": r"$\sigma$",
    "λ": r"$\lambda$",
    "×": r"$\times$",
    "₊": "$_{+}$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_ESCAPED = str.maketrans(_SPECIAL)
_DAGGER = r"{}^{\dagger}"


def latex(rows: ResultRows, *, command: str) -> str:
    """Write a tabular, to be put into a table environment as it is.

    Args:
        rows: the summaries, in order. Neighbouring rows with equal first values are grouped under one rule.
        command: the command that makes the file again.
    """
    statistics = _columns(rows)
    keys = rows.keys
    head, below, rules = _header(rows, len(keys))
    body = _body(rows, statistics)
    shape = "".join("r" if number else "l" for number in rows.is_number) + "r" * len(statistics)
    lines = [
        f"% {_comment(command)}",
        "% Needs \\usepackage{booktabs}. Intervals are at 95%; solved at and sparsity error are of the solved seeds.",
        f"\\begin{{tabular}}{{{shape}}}",
        "\\toprule",
        head,
        rules,
        below,
        "\\midrule",
        *body,
        "\\bottomrule",
    ]
    if not all(s.complete for s in rows.summaries):
        width = len(keys) + len(statistics)
        note = f"${_DAGGER}$ seeds that have a result, of all that are planned"
        lines.append(f"\\multicolumn{{{width}}}{{l}}{{\\footnotesize {note}}} \\\\")
    return "\n".join([*lines, "\\end{tabular}"]) + "\n"


def escape(text: str) -> str:
    r"""Escape a text, so that it isn't read as markup.

    Example:
        >>> print(escape("50% of a_b {c}"))
        50\% of a\_b \{c\}
    """
    return " ".join(text.split()).translate(_ESCAPED)


def show_value(key: str, value: Any) -> str:
    r"""Write a value of a hyperparameter or a column.

    Example:
        >>> print(show_value("model", "NAC-mul"), show_value("operation", "mul"), show_value("schedule", "50%"))
        $\mathrm{NAC}_{\bullet}$ $\times$ 50\%
    """
    if value is not None and key == "model":
        name = words.model_name(str(value))
        return _MODELS.get(name) or escape(words.symbol(name))
    if value in _OPERATIONS and key == "operation":
        return _OPERATIONS[value]
    text = words.show_value(key, value)
    if key.endswith("_range") and re.fullmatch(r"[-\d.,e+\[\]|]+", text):
        return "$" + text.replace("|", r" \cup ") + "$"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "$" + text.replace(",", "{,}") + "$"
    return escape(text)


def number(value: float) -> str:
    r"""Write a number to two digits, as mathematics.

    Example:
        >>> print(number(1434500), number(4.2e-07), number(0.4537), number(850), number(0))
        1.4 \cdot 10^{6} 4.2 \cdot 10^{-7} 0.45 850 0
    """
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    power = int(exponent)
    if -2 <= power < 0:
        return f"{value:.{1 - power}f}"
    if 0 <= power < 3:
        return f"{value:.{max(0, 1 - power)}f}"
    return f"{mantissa} \\cdot 10^{{{power}}}"


def _percent(value: float) -> str:
    return words.percent(value).replace("%", r"\%")


def _columns(rows: ResultRows) -> list[list[str]]:
    """Write each column of statistics."""
    some = rows.summaries

    def estimates(
        name: str, show: Callable[[float], str], interval: str | None, of: Sequence[Any] | None = None
    ) -> list[str]:
        bold = set() if of else set(result_rows.best(rows, name, show))
        return [
            _estimate(getattr(s, name), getattr(s, interval) if interval else None, show, row in bold)
            for row, s in enumerate(of or some)
        ]

    rate = estimates("success_rate", _percent, "success_rate_interval")
    solved_at = estimates("solved_at_mean", number, "solved_at_interval")
    error = estimates("sparsity_error_mean", number, "sparsity_error_interval")
    columns = [[text + _of(s) for text, s in zip(rate, some, strict=True)]]
    columns += [estimates("solved_at_median", number, None), solved_at]
    if rows.as_published:
        columns.append(estimates("solved_at_mean", number, "solved_at_interval", rows.as_published))
    columns.append(error)
    if rows.as_published:
        columns.append(estimates("sparsity_error_mean", number, "sparsity_error_interval", rows.as_published))
    return columns


def _estimate(value: float | None, interval: Interval | None, show: Callable[[float], str], is_best: bool) -> str:
    """Write an estimate with the reach of its interval below and above; with the interval's ends if it lies outside."""
    if value is None:
        return _NONE
    text = f"\\mathbf{{{show(value)}}}" if is_best else show(value)
    if interval is None:
        return f"${text}$"
    low, high = interval
    if not low <= value <= high:
        return f"${text}\\;[{show(low)}, {show(high)}]$"
    below, above = show(value - low), show(high - value)
    reach = f"\\pm {above}" if below == above else f"{{}}^{{+{above}}}_{{-{below}}}"
    return f"${text}\\;{reach}$"


def _of(s: Summary) -> str:
    return "" if s.complete else f" (${s.finished}/{s.seeds}{_DAGGER}$)"


def _header(rows: ResultRows, keys: int) -> tuple[str, str, str]:
    """Write the two lines of the header, and the rules between them."""
    titles = [_TITLES.get(key) or escape(_capital(words.title(key))) for key in rows.keys]
    published = rows.as_published is not None
    wide = {"Solved at iteration": 3 if published else 2, "Sparsity error": 2 if published else 1}
    spans = [f"\\multicolumn{{{n}}}{{c}}{{{title}}}" for title, n in wide.items()]
    places = list(pairwise([keys + 2, keys + 2 + wide["Solved at iteration"], keys + 2 + sum(wide.values())]))
    rules = "".join(f"\\cmidrule(lr){{{first}-{after - 1}}}" for first, after in places)
    below = ["Median", "Mean", *(["As published"] if published else []), "Mean"]
    below += ["As published"] if published else []
    head = " & ".join([*titles, "Success rate", *spans])
    return f"{head} \\\\", " & ".join([*[""] * (keys + 1), *below]).strip() + " \\\\", rules


def _body(rows: ResultRows, statistics: Sequence[Sequence[str]]) -> list[str]:
    """Write the rows; where there are several keys, a value of the first is written once, below a rule."""
    lines: list[str] = []
    last: Any = None
    is_grouped = len(rows.keys) > 1 and _are_neighbours([row[0] for row in rows.values])
    for i, values in enumerate(rows.values):
        texts = [show_value(key, value) for key, value in zip(rows.keys, values, strict=True)]
        if is_grouped and i and values[0] == last:
            texts[0] = ""
        elif is_grouped and i:
            lines.append("\\midrule")
        last = values[0] if values else None
        lines.append(" & ".join([*texts, *(column[i] for column in statistics)]) + " \\\\")
    return lines


def _are_neighbours(values: Sequence[Any]) -> bool:
    """Return whether all equal values are neighbours, and some values are equal."""
    changes = 1 + sum(1 for a, b in pairwise(values) if a != b)
    return changes == len(set(values)) < len(values)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _comment(text: str) -> str:
    return " ".join(text.split())
