r"""The table of results in LaTeX, in the layout of the published ones; it needs the package booktabs.

The columns are those of the rows' keys, success rate ± interval, solved at (median, mean ± interval), and metrics ±
interval, as far as there are any; the best value of each question is bold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from study import words
from study.analysis import rows as result_rows
from study.analysis.aggregate import published_error
from study.analysis.metrics import MetricSummary
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval
from study.reports import metric_columns
from tasks.symbols import LATEX_SYMBOLS, LATEX_TITLES

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


def latex(rows: ResultRows, *, command: str) -> str:
    """Write a tabular, to be put into a table environment as it is.

    Args:
        rows: the summaries, in order. Neighbouring rows with equal first values are grouped under one rule.
        command: the command that makes the file again.
    """
    columns = _columns(rows)
    statistics = [column for one in columns for column in one.columns]
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
        return LATEX_SYMBOLS["model"].get(name) or escape(words.symbol(name))
    if isinstance(value, str) and value in LATEX_SYMBOLS.get(key, {}):
        return LATEX_SYMBOLS[key][value]
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


def percent(value: float) -> str:
    r"""Write a rate.

    Example:
        >>> print(percent(0.5))
        50\%
    """
    return words.percent(value).replace("%", r"\%")


@dataclass(frozen=True)
class _Columns:
    """Columns of statistics under a common title; a single column may have no title of its own."""

    title: str
    titles: tuple[str, ...]
    columns: tuple[list[str], ...]


def _columns(rows: ResultRows) -> list[_Columns]:
    """Write the columns of statistics."""
    some = rows.summaries

    def estimates(name: str, show: Callable[[float], str], interval: str | None = None) -> list[str]:
        bold = set(result_rows.best(rows, name, show))
        return [
            estimate(getattr(s, name), getattr(s, interval) if interval else None, show, row in bold)
            for row, s in enumerate(some)
        ]

    columns = []
    if rows.has_rates:
        rate = estimates("success_rate", percent, "success_rate_interval")
        columns.append(_Columns("Success rate", ("",), ([text + _of(s) for text, s in zip(rate, some, strict=True)],)))
    if rows.has_times:
        median, mean = estimates("solved_at_median", number), estimates("solved_at_mean", number, "solved_at_interval")
        columns.append(
            _with_published(_Columns("Solved at iteration", ("Median", "Mean"), (median, mean)), rows, "solved_at")
        )
    for name in metric_columns.names_to_show(rows):
        one = _metric(rows, name)
        is_published = name == published_error(rows.metrics)
        columns.append(_with_published(one, rows, "error") if is_published else one)
    return columns


def _metric(rows: ResultRows, name: str) -> _Columns:
    metric = rows.metrics[name]
    is_mean_alone = metric.interval == "beta"
    show = number if is_mean_alone else measure
    columns = metric_columns.columns(rows, name)
    of_rows = [s.metrics.get(name, MetricSummary(metric=metric)) for s in rows.summaries]
    fields = metric_columns.STATISTICS[:1] if is_mean_alone else metric_columns.STATISTICS
    return _Columns(
        escape(_capital(words.metric_title(name, metric))),
        tuple(_capital(title) for title, *_ in fields),
        tuple(
            [
                estimate(getattr(of, field), getattr(of, interval), show, row in column.best)
                for row, of in enumerate(of_rows)
            ]
            for column, (_, field, interval) in zip(columns, fields, strict=True)
        ),
    )


def _with_published(one: _Columns, rows: ResultRows, name: str) -> _Columns:
    """Add the numbers of the published estimator, if there are any."""
    if not rows.as_published:
        return one
    texts = [
        estimate(getattr(of, f"{name}_mean"), getattr(of, f"{name}_interval"), number, False)
        for of in rows.as_published
    ]
    return _Columns(one.title, (*one.titles, "As published"), (*one.columns, texts))


def measure(value: float) -> str:
    r"""Write any number, as mathematics.

    Example:
        >>> print(measure(4.2056e-7))
        4.21 \cdot 10^{-7}
    """
    text = words.measure(value).replace(",", "{,}").replace("−", "-")
    mantissa, _, power = text.partition("e")
    return f"{mantissa} \\cdot 10^{{{power}}}" if power else text


def estimate(value: float | None, interval: Interval | None, show: Callable[[float], str], is_best: bool) -> str:
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
    return "" if s.complete else f" (${s.ended}/{s.seeds}{_DAGGER}$)"


def _header(rows: ResultRows, columns: Sequence[_Columns]) -> tuple[str, str, str]:
    """Write the two lines of the header, and the rules between them."""
    titles = [LATEX_TITLES.get(key) or escape(_capital(words.title(key))) for key in rows.keys]
    head, below, rules, place = list(titles), [""] * len(titles), "", len(titles)
    for one in columns:
        count = len(one.columns)
        if any(one.titles):
            head.append(f"\\multicolumn{{{count}}}{{c}}{{{one.title}}}")
            rules += f"\\cmidrule(lr){{{place + 1}-{place + count}}}"
        else:
            head.append(one.title)
        below += one.titles
        place += count
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
