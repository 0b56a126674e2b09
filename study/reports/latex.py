r"""The table of results in LaTeX, in the layout of the published ones; it needs the package booktabs.

The columns are those of the rows' keys, success rate ± interval, solved at (median, mean ± interval), and metrics ±
interval, as far as there are any, or those that are asked for; the best value of each question is bold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

from study import words
from study.plugins.vocabulary import vocabulary
from study.reports import metric_columns, table
from study.reports.text_table import Column, select
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

_NONE = "--"
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
_NUMBER = re.compile(r"([+−]?(?:\d+(?:,\d{3})*(?:\.\d+)?|∞))(k|M|e-?\d+|)")
"""A number as `study.words` writes it, and its unit."""
_POWERS = {"k": "3", "M": "6"}
_COUNTS = ("seeds", "solved", "finished", "stopped", "diverged", "failed")


def latex(rows: ResultRows, *, command: str, names: Sequence[str] = ()) -> str:
    """Write a tabular, to be put into a table environment as it is.

    Args:
        rows: the summaries, in order. Neighbouring rows with equal first values are grouped under one rule.
        command: the command that makes the file again.
        names: the statistics to write, as in cells.csv, in this order; none for the usual ones.

    Raises:
        InputError: if there is no such statistic.
    """
    written = {column.name: column for column in table.summaries_table(rows, is_full=True).columns[len(rows.keys) :]}
    usual = _usual(rows, written)
    columns = select([*usual, *_others(written, {column.name for column in usual})], names) if names else usual
    statistics = [column.texts for column in columns]
    keys = rows.keys
    head, below, rules = _header(rows, columns)
    body = _body(rows, statistics)
    shape = "".join("r" if number else "l" for number in rows.is_number) + "r" * len(statistics)
    lines = [
        f"% {_comment(command)}",
        f"% Needs \\usepackage{{booktabs}}. {_intervals(rows)}",
        f"\\begin{{tabular}}{{{shape}}}",
        "\\toprule",
        head,
        *([rules, below] if rules else []),
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


def latex_value(key: str, value: Any) -> str:
    r"""Write a value of a hyperparameter or a column.

    Example:
        >>> print(latex_value("model", "NAC-mul"), latex_value("operation", "mul"), latex_value("schedule", "50%"))
        $\mathrm{NAC}_{\bullet}$ $\times$ 50\%
    """
    if value is not None and key == "model":
        name = words.model_name(str(value))
        return vocabulary().latex_symbols.get("model", {}).get(name) or escape(words.symbol(name))
    if isinstance(value, str) and value in vocabulary().latex_symbols.get(key, {}):
        return vocabulary().latex_symbols[key][value]
    text = words.format_value(key, value)
    if key.endswith("_range") and re.fullmatch(r"[-\d.,e+\[\]|]+", text):
        return "$" + text.replace("|", r" \cup ") + "$"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "$" + text.replace(",", "{,}") + "$"
    return escape(text)


@dataclass(frozen=True)
class _Statistic:
    """A column of statistics; neighbours of one title stand under it together.

    Args:
        name: its name in cells.csv.
        title: the title.
        below: its own title below that; empty for none.
        texts: one a row.
    """

    name: str
    title: str
    below: str
    texts: tuple[str, ...]


def _usual(rows: ResultRows, written: Mapping[str, Column]) -> list[_Statistic]:
    """Typeset the columns of statistics that published tables have.

    Args:
        rows: the rows.
        written: the columns of the table of the terminal and the page, by name.
    """
    columns = []
    if rows.has_rates:
        texts = zip(_texts(written["success_rate"], is_rate=True), rows.summaries, strict=True)
        columns.append(_Statistic("success_rate", "Success rate", "", tuple(text + _of(s) for text, s in texts)))
    places = []
    if rows.has_times:
        places += [
            ("Solved at iteration", "Median", "solved_at_median"),
            ("Solved at iteration", "Mean", "solved_at_mean"),
        ]
        places.append(("Solved at iteration", "As published", "as_published_solved_at_mean"))
    for name in metric_columns.names_to_show(rows):
        title = escape(_capital(words.metric_title(name, rows.metrics[name])))
        places += [(title, _capital(below), f"{name}_{field}") for below, field, _ in metric_columns.STATISTICS]
        places.append((title, "As published", f"as_published_{name}_mean"))
    columns += [
        _Statistic(name, title, below, _texts(written[name])) for title, below, name in places if name in written
    ]
    return columns


def _others(written: Mapping[str, Column], usual: Collection[str]) -> list[_Statistic]:
    """Typeset the columns that published tables don't have: counts, times to success, seconds."""
    return [
        _Statistic(name, escape(_capital(column.title)), "", _texts(column))
        for name, column in written.items()
        if name not in usual
    ]


def _texts(column: Column, *, is_rate: bool = False) -> tuple[str, ...]:
    """Typeset a column of another table: means with their limits, if those differ; counts as they are."""
    if column.name in _COUNTS:
        return tuple(f"${text}$" for text in column.texts)
    texts = (text.partition(" up to ") for text in column.texts)
    return tuple(
        estimate(number, is_best=row in column.best, is_rate=is_rate) + up_to + limit
        for row, (number, up_to, limit) in enumerate(texts)
    )


def estimate(text: str, *, is_best: bool = False, is_rate: bool = False) -> str:
    r"""Typeset an estimate that `study.words` wrote, with the reach of its printed interval below and above.

    An interval that doesn't hold the estimate, or has an infinite end, is typeset by its ends.

    Args:
        text: the estimate, and its interval in brackets if it has one.
        is_best: whether it is bold.
        is_rate: whether to write per cent.

    Example:
        >>> print(estimate("0.90 [0.83, 0.94]", is_rate=True), estimate("4.2e-7 [3.9e-7, 4.5e-7]"))
        $90\%\;{}^{+4\%}_{-7\%}$ $(4.2\;\pm 0.3) \cdot 10^{-7}$
        >>> print(estimate("1.42M", is_best=True), estimate("1.5 [1.2, ∞]"), estimate("−1,234"), estimate("–"))
        $\mathbf{1.42 \cdot 10^{6}}$ $1.5\;[1.2, \infty]$ $-1{,}234$ --
    """
    if text == words.NONE:
        return _NONE
    found = _NUMBER.findall(text)
    unit = r"\%" if is_rate else ""
    value, *ends = (_decimal(digits).scaleb(2 if is_rate else 0) for digits, _ in found)
    power = _POWERS.get(found[0][1]) or found[0][1].removeprefix("e")
    factor = f" \\cdot 10^{{{power}}}" if power else ""
    printed = f"{_digits(value)}{unit}{'' if ends else factor}"
    shown = f"\\mathbf{{{printed}}}" if is_best else printed
    if not ends:
        return f"${shown}$"
    low, high = ends
    if low <= value <= high and low.is_finite() and high.is_finite():
        below, above = (f"{_digits(reach)}{unit}" for reach in (value - low, high - value))
        reach = f"\\pm {above}" if below == above else f"{{}}^{{+{above}}}_{{-{below}}}"
    else:
        reach = f"[{_digits(low)}{unit}, {_digits(high)}{unit}]"
    return f"$({shown}\\;{reach}){factor}$" if power else f"${shown}\\;{reach}$"


def _decimal(digits: str) -> Decimal:
    return Decimal(digits.replace(",", "").replace("−", "-").replace("∞", "Infinity"))


def _digits(number: Decimal) -> str:
    return f"{number:,f}".replace(",", "{,}").replace("Infinity", "\\infty")


def _of(s: Summary) -> str:
    return "" if s.complete else f" (${s.ended}/{s.seeds}{_DAGGER}$)"


def _header(rows: ResultRows, columns: Sequence[_Statistic]) -> tuple[str, str, str]:
    """Write the two lines of the header, and the rules between them."""
    titles = [vocabulary().latex_titles.get(key) or escape(_capital(words.title(key))) for key in rows.keys]
    head, below, rules = list(titles), [""] * len(titles), ""
    for title, group in groupby(columns, lambda column: column.title):
        own = [column.below for column in group]
        if any(own):
            head.append(f"\\multicolumn{{{len(own)}}}{{c}}{{{title}}}")
            rules += f"\\cmidrule(lr){{{len(below) + 1}-{len(below) + len(own)}}}"
        else:
            head.append(title)
        below += own
    return " & ".join(head) + " \\\\", " & ".join(below).strip() + " \\\\", rules


def _intervals(rows: ResultRows) -> str:
    of_solved = ["solved at"] if rows.has_times else []
    of_solved += [
        words.metric_title(n, m) for n, m in rows.single_metrics.items() if m.of == "solved" and rows.has_rates
    ]
    verb = "is" if len(of_solved) == 1 else "are"
    return "Intervals are at 95%" + (f"; {words.join_and(of_solved)} {verb} of the solved seeds." if of_solved else ".")


def _body(rows: ResultRows, statistics: Sequence[Sequence[str]]) -> list[str]:
    """Write the rows; where there are several keys, a value of the first is written once, below a rule."""
    lines: list[str] = []
    last: Any = None
    is_grouped = len(rows.keys) > 1 and _are_neighbours([row[0] for row in rows.values])
    for i, values in enumerate(rows.values):
        texts = [latex_value(key, value) for key, value in zip(rows.keys, values, strict=True)]
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
