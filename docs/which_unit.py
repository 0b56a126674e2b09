"""Tables of tasks/docs/which-unit.md and of success by hidden units, from the cells of tasks/docs/results.

python -m docs.which_unit
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence

from docs.marks import ROOT
from tasks.arithmetic.symbols import SYMBOLS

RESULTS = ROOT / "tasks" / "docs" / "results"
PAGES = (ROOT / "tasks" / "docs" / "which-unit.md", RESULTS / "hidden-units" / "README.md")
_TABLE = re.compile(r"(<!-- (best|all|sizes): (\S+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_VARIED = {"operation": "", "label_range": "range", "model": "model", "label_schedule": "λ", "init_signs": "signs"}
"""Columns that label the lines of a table by hidden size, if they vary, and their headings."""

Row = Mapping[str, str]


def cells(file: str) -> list[Row]:
    """Read the cells of a CSV file whose trials have all ended, as texts by column.

    Args:
        file: path below tasks/docs/results.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    with (RESULTS / file).open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["complete"] == "true"]


def best(rows: Sequence[Row]) -> str:
    """Return a table of the most solved trials for each range and operation, with the interval and the units.

    Of several units, the fastest is first, and the interval is that one's. Each unit is followed by the median
    iteration at which a trial first met the criterion, in thousands. A cell is ``none`` if no trial was solved.

    Raises:
        ValueError: if a range has no row of an operation.

    Example:
        >>> row = {"label_range": "U[1,2]", "operation": "mul", "model": "NMU", "seeds": "25", "solved": "24"}
        >>> row |= {"success_rate_lower": "0.8", "success_rate_upper": "0.99", "solved_at_median": "2000.0"}
        >>> print(best([row, row | {"model": "NRU", "solved_at_median": "1000.0"}]))
        | | × |
        | --- | --- |
        | U[1,2] | 24/25 [0.80, 0.99]: NRU 1k, NMU 2k |
    """
    operations = list(dict.fromkeys(row["operation"] for row in rows))
    lines = []
    for label in dict.fromkeys(_label(row) for row in rows):
        there = [row for row in rows if _label(row) == label]
        lines.append([label, *(_best_of([row for row in there if row["operation"] == name]) for name in operations)])
    return _table(["", *(_text("operation", name) for name in operations)], lines)


def every(rows: Sequence[Row]) -> str:
    """Return a table of the trials solved for each operation, unit and range; a dash means that none was trained.

    Example:
        >>> row = {"label_range": "U[1,2]", "operation": "mul", "model": "NMU", "seeds": "25", "solved": "24"}
        >>> print(every([row]))
        | | unit | U[1,2] |
        | --- | --- | --- |
        | × | NMU | 24 |
    """
    labels = list(dict.fromkeys(_label(row) for row in rows))
    lines = _lines(rows, ["operation", "model"], labels, _label, lambda row: row["solved"])
    return _table(["", "unit", *labels], lines)


def by_size(rows: Sequence[Row]) -> str:
    """Return a table of the trials solved by number of hidden units, for at least one row.

    There is a line for each combination of the labels that vary, see `_VARIED`. A number of trials is followed by the
    median iteration at which one first met the criterion, in thousands.

    Example:
        >>> row = {"model": "NMU", "hidden_size": "2", "solved": "18", "solved_at_median": "14000.0"}
        >>> print(by_size([row, row | {"hidden_size": "10", "solved": "0", "solved_at_median": ""}]))
        | model | 2 hidden units | 10 |
        | --- | --- | --- |
        | NMU | 18, 14k | 0 |
    """
    sizes = sorted({row["hidden_size"] for row in rows}, key=int)
    varied = [name for name in _VARIED if len({row.get(name) for row in rows}) > 1] or ["model"]
    lines = _lines(rows, varied, sizes, lambda row: row["hidden_size"], _solved_when)
    return _table([*(_VARIED[name] for name in varied), f"{sizes[0]} hidden units", *sizes[1:]], lines)


def _lines(
    rows: Sequence[Row],
    names: Sequence[str],
    columns: Sequence[str],
    column_of: Callable[[Row], str],
    text_of: Callable[[Row], str],
) -> list[list[str]]:
    """Return a line for each combination of values of `names` that occurs, in the order in which values first occur.

    A line has these values, then the `text_of` the row of each of `columns`, as `column_of` names it, or a dash.
    """
    values = {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: [values[name].index(row[name]) for name in names]):
        lines.setdefault(tuple(_text(name, row[name]) for name in names), {})[column_of(row)] = text_of(row)
    return [[*heads, *(texts.get(column, "–") for column in columns)] for heads, texts in lines.items()]


def updated(page: str) -> str:
    """Return the page with its current tables, each between its two marks.

    Raises:
        FileNotFoundError: if a mark names a file that doesn't exist.
        ValueError: as for `best`.
        IndexError: if a table by hidden size has no cell whose trials have all ended.
    """
    writers = {"best": best, "all": every, "sizes": by_size}
    return _TABLE.sub(lambda match: f"{match[1]}\n{writers[match[2]](cells(match[3]))}\n\n{match[4]}", page)


def _best_of(rows: Sequence[Row]) -> str:
    most = max(int(row["solved"]) for row in rows)
    if most == 0:
        return "none"
    first = sorted((row for row in rows if int(row["solved"]) == most), key=lambda row: float(row["solved_at_median"]))
    low, high = (float(first[0][f"success_rate_{end}"]) for end in ("lower", "upper"))
    units = [f"{_text('model', row['model'])} {_thousands(row)}" for row in first]
    return f"{most}/{first[0]['seeds']} [{low:.2f}, {high:.2f}]: {', '.join(units)}"


def _solved_when(row: Row) -> str:
    return row["solved"] if row["solved"] == "0" else f"{row['solved']}, {_thousands(row)}"


def _thousands(row: Row) -> str:
    return f"{float(row['solved_at_median']) / 1000:.0f}k"


def _label(row: Row) -> str:
    return row.get("label_range") or row["label_set"]


def _text(column: str, value: str) -> str:
    if column == "operation":
        return SYMBOLS.value_symbols["operation"][value]
    if column == "init_signs":
        return f"`{value}`" if value else "drawn"
    return SYMBOLS.model_symbols.get(value, value) if column == "model" else value


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in (head, rule, *lines))


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
