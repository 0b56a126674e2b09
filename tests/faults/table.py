"""The table of docs/explanation/faults.md, made from tasks/docs/results/faults.csv.

python -m tests.faults.table
"""

from __future__ import annotations

import csv
import os
from dataclasses import asdict, fields
from pathlib import Path

from tests.faults.laws import Cost
from tests.faults.nodes import ROOT
from tests.faults.strikes import FAULTS

OUT = "STUDY_FAULTS_CSV"
"""Environment variable with the file for the costs; without it, they aren't stored."""


def keep(name: str, cost: Cost) -> None:
    """Store a line in the file, in place of the fault's earlier one."""
    if OUT not in os.environ:
        return
    path = Path(os.environ[OUT])
    rows = read(path) | {name: {key: _text(value) for key, value in asdict(cost).items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["name", *(field.name for field in fields(Cost))], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"name": key} | rows[key] for key in FAULTS if key in rows)


def read(path: Path) -> dict[str, dict[str, str]]:
    """Read the file's lines by their fault's name."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row.pop("name"): row for row in csv.DictReader(file)}


def _text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def table(rows: dict[str, dict[str, str]]) -> str:
    """Return the counts of lost and duplicated results and the table of the faults, in Markdown."""
    lost, duplicated = (sum(int(row[name]) for row in rows.values()) for name in ("lost", "duplicated"))
    counts = f"Over all {len(rows)} faults, {lost} results were lost and {duplicated} duplicated."
    columns = {"fault": "fault", "again_s": "again, s", "recovered_s": "recovered, s", "told": "what the user read"}
    lines = [list(columns.values()), ["---", "--:", "--:", "---"]]
    lines += [[row[name] for name in columns] for row in rows.values()]
    return "\n".join([counts, "", *(f"| {' | '.join(line)} |" for line in lines)])


if __name__ == "__main__":
    page = ROOT / "docs" / "explanation" / "faults.md"
    begin, end = "<!-- table -->\n", "<!-- end -->"
    before, _, remainder = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = remainder.partition(end)
    rows = read(ROOT / "tasks" / "docs" / "results" / "faults.csv")
    page.write_text(f"{before}{begin}{table(rows)}\n{end}{after}", encoding="utf-8")
