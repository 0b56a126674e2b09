r"""The table of results in LaTeX, in the layout of the published ones; it needs the package booktabs.

The columns are those of the rows' keys, success rate ± interval, solved at (median, mean ± interval), and metrics ±
interval, as far as there are any, or those that are asked for; the best value of each question is bold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from study import words
from study.analysis import rows as result_rows
from study.analysis.aggregate import published_error
from study.analysis.metrics import MetricSummary
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval
from study.reports import metric_columns, table
from study.reports.text_table import Column, select
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


def latex(rows: ResultRows, *, command: str, names: Sequence[str] = ()) -> str:
    """Write a tabular, to be put into a table environment as it is.

    Args:
        rows: the summaries, in order. Neighbouring rows with equal first values are grouped under one rule.
        command: the command that makes the file again.
        names: the statistics to write, as in cells.csv, in this order; none for the usual ones.

    Raises:
        InputError: if there is no such statistic.
    """
    usual = _usual(rows)
    columns = select([*usual, *_others(rows, {column.name for column in usual})], names) if names else usual
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


def _usual(rows: ResultRows) -> list[_Statistic]:
    """Write the columns of statistics that published tables have."""
    some = rows.summaries

    def estimates(name: str, show: Callable[[float], str], interval: str | None = None) -> tuple[str, ...]:
        bold = set(result_rows.best(rows, name, show))
        return tuple(
            estimate(getattr(s, name), getattr(s, interval) if interval else None, show, row in bold)
            for row, s in enumerate(some)
        )

    columns = []
    if rows.has_rates:
        rates = zip(estimates("success_rate", percent, "success_rate_interval"), some, strict=True)
        texts = tuple(text + _of(s) for text, s in rates)
        columns.append(_Statistic("success_rate", "Success rate", "", texts))
    if rows.has_times:
        title, mean = "Solved at iteration", estimates("solved_at_mean", number, "solved_at_interval")
        columns.append(_Statistic("solved_at_median", title, "Median", estimates("solved_at_median", number)))
        columns.append(_Statistic("solved_at_mean", title, "Mean", mean))
        columns += _as_published(rows, title, "solved_at", "solved_at")
    for name in metric_columns.names_to_show(rows):
        columns += _metric(rows, name)
        if name == published_error(rows.metrics):
            columns += _as_published(rows, columns[-1].title, name, "error")
    return columns


def _metric(rows: ResultRows, name: str) -> list[_Statistic]:
    metric = rows.metrics[name]
    is_mean_alone = metric.interval == "beta"
    show = number if is_mean_alone else measure
    columns = metric_columns.columns(rows, name)
    of_rows = [s.metrics.get(name, MetricSummary(metric=metric)) for s in rows.summaries]
    fields = metric_columns.STATISTICS[:1] if is_mean_alone else metric_columns.STATISTICS
    return [
        _Statistic(
            column.name,
            escape(_capital(words.metric_title(name, metric))),
            _capital(title),
            tuple(
                estimate(getattr(of, field), getattr(of, interval), show, row in column.best)
                for row, of in enumerate(of_rows)
            ),
        )
        for column, (title, field, interval) in zip(columns, fields, strict=True)
    ]


def _as_published(rows: ResultRows, title: str, name: str, field: str) -> list[_Statistic]:
    """Write the numbers of the published estimator, if there are any."""
    texts = tuple(
        estimate(getattr(of, f"{field}_mean"), getattr(of, f"{field}_interval"), number, False)
        for of in rows.as_published or ()
    )
    return [_Statistic(f"as_published_{name}_mean", title, "As published", texts)] if texts else []


def _others(rows: ResultRows, usual: Collection[str]) -> list[_Statistic]:
    """Write what other tables have and published ones don't: counts, times to success, seconds."""
    columns = table.summaries_table(rows, is_full=True).columns[len(rows.keys) :]
    return [
        _Statistic(column.name, escape(_capital(column.title)), "", _texts(rows, column))
        for column in columns
        if column.name not in usual
    ]


def _texts(rows: ResultRows, column: Column) -> tuple[str, ...]:
    """Write a column of another table: means as estimates, with their limits if those differ; counts as they are."""
    if not column.name.endswith("_mean"):
        return tuple(f"${text}$" for text in column.texts)
    name = column.name.removesuffix("_mean")
    lines = zip(
        column.values, (getattr(s, f"{name}_interval", None) for s in rows.summaries), column.texts, strict=True
    )
    return tuple(
        estimate(value, interval, number, row in column.best) + escape("".join(text.partition(" up to ")[1:]))
        for row, (value, interval, text) in enumerate(lines)
    )


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


def _header(rows: ResultRows, columns: Sequence[_Statistic]) -> tuple[str, str, str]:
    """Write the two lines of the header, and the rules between them."""
    titles = [LATEX_TITLES.get(key) or escape(_capital(words.title(key))) for key in rows.keys]
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
