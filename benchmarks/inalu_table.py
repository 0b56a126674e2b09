"""The tables of docs/results/README.md on iNALU's own experiment, from the CSV file of `benchmarks.inalu`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import Row, markdown

SIGNS = {"add": "+", "sub": "-", "mul": "×", "div": "÷"}
_ALL = "all"


def inalu_table(rows: Sequence[Row]) -> str:
    """Give one line an operation with all trials of each arm, then one an arm and operation by distribution."""
    return f"{_totals([row for row in rows if row['distribution'] == _ALL])}\n\n{_by_distribution(rows)}"


def _totals(rows: Sequence[Row]) -> str:
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    cells = {(row["arm"], row["operation"]): row for row in rows}
    lines = []
    for operation in dict.fromkeys(row["operation"] for row in rows):
        line = [SIGNS[operation]]
        for arm in arms:
            row = cells[arm, operation]
            line += [_rate(row), f"{row['published_solved']}/{row['published_trials']}", _p(row["p"])]
        lines.append(line)
    return markdown(["", *(text for arm in arms for text in (arm, "published", "p"))], lines, 1)


def _by_distribution(rows: Sequence[Row]) -> str:
    names = [name for name in dict.fromkeys(row["distribution"] for row in rows) if name != _ALL]
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["distribution"] != _ALL:
            line = lines.setdefault((row["arm"], row["operation"]), [])
            line.append(f"{row['solved']}, {row['published_solved']}")
    table = [[arm, SIGNS[operation], *line] for (arm, operation), line in lines.items()]
    return markdown(["here, published", "", *names], table, 2)


def _rate(row: Row) -> str:
    return f"{row['solved']}/{row['trials']} [{float(row['low']):.2f}, {float(row['high']):.2f}]"


def _p(text: str) -> str:
    """Write p with two digits, or as less than a thousandth.

    Example:
        >>> _p("0.04231"), _p("1"), _p("3.2e-07")
        ('0.042', '1', '< 0.001')
    """
    return "< 0.001" if float(text) < 1e-3 else f"{float(text):.2g}"
