"""The tables of hyperparameters in docs/study-file.md, as the arithmetic family declares them.

python -m docs.hyperparameters
"""

from __future__ import annotations

import re

from docs.map import ROOT
from tasks.arithmetic_family import HYPERPARAMETERS

PAGE = ROOT / "docs" / "study-file.md"
_TABLE = re.compile(r"(<!-- hyperparameters: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def table(name: str) -> str:
    """Write the rows of those hyperparameters that stand in a table of the file, or, for ``training``, in none."""
    rows = [
        f"| `{key}`{_short(key, name)} | {one.meaning} | {one.otherwise} |\n"
        for key, one in HYPERPARAMETERS.items()
        if (one.table or "training") == name
    ]
    return "| name | value | if it isn't given |\n| --- | --- | --- |\n" + "".join(rows)


def updated(page: str) -> str:
    """Return the page with the tables as they are declared now, each between its two marks."""
    return _TABLE.sub(lambda match: f"{match[1]}\n{table(match[2])}\n{match[3]}", page)


def _short(key: str, name: str) -> str:
    """Return how a key is written in its own table, if it is called otherwise there."""
    short = key.removeprefix(f"{name}_")
    return "" if short == key else f" (`{name}: {{{short}: ...}}`)"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
