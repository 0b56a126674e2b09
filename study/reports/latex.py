"""The table of results in LaTeX, in the layout of the published ones.

The columns are the keys of the rows, then success rate ± interval, solved at (median, mean ± interval) and means of
metrics ± interval: as many as fit a paper's column, or those asked for. The best values are bold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from operator import add
from typing import Any

from study import words
from study.plugins.vocabulary import vocabulary
from study.reports import metric_columns, table
from study.reports.latex_table import body_line, fitting, tabular
from study.reports.text_table import Column, select
from study.summaries.rows import ResultRows

_NONE = "--"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
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
_NUMBER = re.compile(r"([+−]?(?:\d+(?:,\d{3})*(?:\.\d+)?|∞))(k|M|e-?\d+|)")
"""A number in the notation of `study.words`, and its unit."""
_POWERS = {"k": 3, "M": 6}
_PLAIN = str.maketrans({",": "", "−": "-", "∞": "Infinity"})
_PUBLISHED = "as published"
_COUNTS = ("seeds", "solved", "finished", "stopped", "diverged", "failed")


def latex(rows: ResultRows, *, command: str, names: Sequence[str] = ()) -> str:
    """Return the table of results as a tabular, ready to be put into a table environment.

    Args:
        rows: the summaries, in order. With several keys, rows with equal first values are grouped under one rule, if
            all of them are neighbours.
        command: the command that makes the file again.
        names: the statistics to write, named as in cells.csv, in this order. Empty for the usual ones that fit a
            column of a two-column paper, or for all usual ones beside published numbers.

    Raises:
        InputError: if the table has no such statistic, a package's vocabulary can't be imported, or two packages offer
            one of the same name.
    """
    written = {column.name: column for column in table.summaries_table(rows, is_full=True).columns[len(rows.keys) :]}
    usual, keys = _usual_columns(rows, written), key_columns(rows, range(len(rows.values)))
    columns, left_out = usual, ""
    if names:
        columns = select([*usual, *_more_columns(rows, written, {column.name for column in usual})], names)
    elif rows.as_published is None:
        # The median and the mean of solved-at are added together if both fit, else the median before other columns.
        times = [column for column in usual if column.name in ("solved_at_median", "solved_at_mean")]
        rates = [[column] for column in usual if column.name == "success_rate"]
        columns = fitting(keys, usual, [*rates, times, *([column] for column in (*times, *usual))])
        left_out = ", ".join(column.name for column in usual if column not in columns)
    comments = [command, _intervals(rows)]
    comments += [f"Omitted because it would be too wide: {left_out}. --columns selects others."] if left_out else []
    is_complete = all(s.complete for s in rows.summaries)
    note = "" if is_complete else f"${_DAGGER}$ seeds that have a result, of all that are planned"
    return tabular([*keys, *columns], _body(rows, [*keys, *columns]), comments=comments, note=note)


def escape(text: str) -> str:
    r"""Escape a text for LaTeX, with white space as single spaces.

    Example:
        >>> print(escape("50% of a_b {c}"))
        50\% of a\_b \{c\}
    """
    return " ".join(text.split()).translate(_ESCAPED)


def latex_value(key: str, value: Any, text: str | None = None) -> str:
    r"""Typeset a value of a hyperparameter or a column.

    Args:
        key: the hyperparameter or column.
        value: the value to typeset.
        text: the text of the value in other tables; None for the usual one. A LaTeX symbol of the value replaces it.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> print(latex_value("model", "NAC-mul"), latex_value("operation", "mul"), latex_value("schedule", "50%"))
        $\mathrm{NAC}_{\bullet}$ $\times$ 50\%
    """
    symbols = vocabulary().latex_symbols.get(key, {})
    name = words.model_name(value) if key == "model" and isinstance(value, str) else value
    if isinstance(name, str) and name in symbols:
        return symbols[name]
    text = words.format_value(key, name) if text is None else text
    if key.endswith("_range") and re.fullmatch(r"[-\d.,e+\[\]|]+", text):
        return "$" + text.replace("|", r" \cup ") + "$"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "$" + text.replace(",", "{,}") + "$"
    return escape(text)


def key_columns(rows: ResultRows, indices: Iterable[int]) -> list[Column]:
    """Typeset the keys of the rows with the given indices; an index may repeat.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return [
        replace(
            column,
            title=vocabulary().latex_titles.get(column.name) or heading(column.title),
            texts=tuple(map(partial(latex_value, column.name), column.values, column.texts)),
        )
        for column in table.key_columns(rows, indices)
    ]


def number_column(
    column: Column, title: str, below: str = "", *, unit: str = "", is_rate: bool = False, is_scaled: bool = True
) -> Column:
    """Typeset a column of numbers from another table; its best estimates are bold.

    Args:
        column: the column; its texts are counts, estimates, or an en dash. `` up to LIMIT`` after an estimate is kept.
        title: the title, as plain text.
        below: the column's own title below a shared one, as plain text.
        unit: the unit, as plain text.
        is_rate: whether to write percentages.
        is_scaled: whether a power of ten that all numbers share moves to the unit, except in columns of counts;
            thousands and smaller numbers are then all in thousands.
    """
    powers = {_power(text) for text in column.texts if text != words.NONE and "∞" not in text.partition(" ")[0]}
    # Columns with thousands and smaller numbers are scaled to thousands.
    has_power = column.name not in _COUNTS and is_scaled and (len(powers) == 1 or powers == {0, 3})
    power = max(powers) if has_power else None
    parts = (text.partition(" up to ") for text in column.texts)
    texts = tuple(
        (f"${number}$" if column.name in _COUNTS else estimate(number, row in column.best, is_rate, power))
        + up_to
        + limit
        for row, (number, up_to, limit) in enumerate(parts)
    )
    units = [f"$10^{{{power}}}$" if power else "", r"\%" if is_rate else escape(unit).replace(" ", "~")]
    unit = "~".join(filter(None, units))
    return Column(heading(title), texts, below=heading(below), unit=unit, name=column.name)


def heading(text: str) -> str:
    r"""Typeset a title; it is capitalised unless it has at most two characters, or an underscore.

    Example:
        >>> heading("success rate"), heading("h"), heading("batch_size")
        ('Success rate', 'h', 'batch\\_size')
    """
    is_word = len(text) > 2 and "_" not in text
    return escape(text[:1].upper() + text[1:] if is_word else text).replace("−", "$-$")


def _power(text: str) -> int:
    """Return the power of ten in the text of an estimate, such as 3 for ``13.7k``; 0 without one."""
    (_, unit), *_ = _NUMBER.findall(text)
    return _POWERS.get(unit) or int(unit.removeprefix("e") or 0)


def _usual_columns(rows: ResultRows, written: Mapping[str, Column]) -> list[Column]:
    """Typeset the statistics of the published tables, from the columns of the terminal's table by name."""
    columns = []
    if rows.has_rates:
        rates = number_column(written["success_rate"], "success rate", is_rate=True)
        ended = ("" if s.complete else f" (${s.ended}/{s.seeds}{_DAGGER}$)" for s in rows.summaries)
        columns.append(replace(rates, texts=tuple(map(add, rates.texts, ended))))
    times = ("median", "solved_at_median"), ("mean", "solved_at_mean"), (_PUBLISHED, "as_published_solved_at_mean")
    for below, name in times if rows.has_times else ():
        columns += [number_column(written[name], "solved at iteration", below)] if name in written else []
    for metric in metric_columns.names_to_show(rows):
        means = ("mean", f"{metric}_mean"), (_PUBLISHED, f"as_published_{metric}_mean")
        columns += [_metric_column(rows, metric, below, written[name]) for below, name in means if name in written]
    return columns


def _metric_column(rows: ResultRows, name: str, below: str, column: Column) -> Column:
    metric = rows.metrics[name]
    return number_column(column, words.metric_title(name, replace(metric, unit="")), below, unit=metric.unit)


def _more_columns(rows: ResultRows, written: Mapping[str, Column], usual: Collection[str]) -> list[Column]:
    """Typeset the columns that the usual tables omit, such as counts, times to success and seconds."""
    statistics = {
        f"{name}_{field}": (name, below)
        for name in metric_columns.names_to_show(rows)
        for below, field, _ in metric_columns.STATISTICS
    }
    return [
        _metric_column(rows, *statistics[name], column) if name in statistics else number_column(column, column.title)
        for name, column in written.items()
        if name not in usual
    ]


def estimate(text: str, is_best: bool = False, is_rate: bool = False, power: int | None = None) -> str:
    r"""Typeset an estimate written by `study.words`, with the distances to the ends of its interval.

    If the interval doesn't contain the estimate, or has an infinite end, its ends are typeset instead. Plus signs are
    left out.

    Args:
        text: the estimate, and its interval in brackets if it has one; or an en dash.
        is_best: whether to set the estimate in bold, without its interval.
        is_rate: whether to write a percentage, without the sign.
        power: the power of ten in the column's unit; None to write the estimate's own.

    Example:
        >>> print(estimate("0.90 [0.83, 0.94]", is_rate=True), estimate("4.2e-7 [3.9e-7, 4.5e-7]"))
        $90\;{}^{+4}_{-7}$ $(4.2 \pm 0.3) \cdot 10^{-7}$
        >>> print(estimate("1.42M", is_best=True), estimate("1.5 [1.2, ∞]"), estimate("−1,234"), estimate("–"))
        $\mathbf{1.42 \cdot 10^{6}}$ $1.5\;[1.2, \infty]$ $-1{,}234$ --
        >>> print(estimate("14.0k [12.1k, 16.3k]", power=3), estimate("850", power=3))
        $14.0\;{}^{+2.3}_{-1.9}$ $0.850$
    """
    if text == words.NONE:
        return _NONE
    own = _power(text)
    scale = (2 if is_rate else 0) + (0 if power is None else own - power)
    value, *ends = (Decimal(digits.translate(_PLAIN)).scaleb(scale) for digits, _ in _NUMBER.findall(text))
    factor = f" \\cdot 10^{{{own}}}" if own and power is None else ""
    printed = f"{_digits(value)}{'' if ends else factor}"
    shown = f"\\mathbf{{{printed}}}" if is_best else printed
    if not ends:
        return f"${shown}$"
    low, high = ends
    if low <= value <= high and low.is_finite() and high.is_finite():
        below, above = (_digits(reach) for reach in (value - low, high - value))
        reach = f" \\pm {above}" if below == above else f"\\;{{}}^{{+{above}}}_{{-{below}}}"
    else:
        reach = f"\\;[{_digits(low)}, {_digits(high)}]"
    return f"$({shown}{reach}){factor}$" if factor else f"${shown}{reach}$"


def _digits(number: Decimal) -> str:
    return f"{number:,f}".replace(",", "{,}").replace("Infinity", "\\infty")


def _intervals(rows: ResultRows) -> str:
    solved_titles = metric_columns.titles_of_solved(rows)
    verb = "is" if len(solved_titles) == 1 else "are"
    return "Intervals are at 95%" + (
        f"; {words.join_and(solved_titles)} {verb} of the solved seeds." if solved_titles else "."
    )


def _body(rows: ResultRows, columns: Sequence[Column]) -> list[str]:
    """Write the rows; with several keys, a first value that adjacent rows share is written once, below a rule.

    If rows with the same first value aren't all adjacent, each row has its own.
    """
    lines: list[str] = []
    firsts = [values[0] if values else None for values in rows.values]
    # Group only if equal values are adjacent and at least two are equal.
    changes = 1 + sum(1 for a, b in pairwise(firsts) if a != b)
    is_grouped = len(rows.keys) > 1 and changes == len(set(firsts)) < len(firsts)
    for i, texts in enumerate(zip(*(column.texts for column in columns), strict=True)):
        is_repeated = is_grouped and i > 0 and firsts[i] == firsts[i - 1]
        lines += ["\\midrule"] if is_grouped and i and not is_repeated else []
        lines.append(body_line(["" if is_repeated else texts[0], *texts[1:]]))
    return lines
