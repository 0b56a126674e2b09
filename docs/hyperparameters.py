"""Tables of hyperparameters in docs/reference/study-file.md, from the declarations of built-in tasks and own training.

python -m docs.hyperparameters
"""

from __future__ import annotations

import re

from docs.marks import ROOT
from study.interface.packed_family import TRAINING
from tasks.arithmetic.hyperparameters import HYPERPARAMETERS

PAGE = ROOT / "docs" / "reference" / "study-file.md"
_TABLE = re.compile(r"(<!-- hyperparameters: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def table(name: str) -> str:
    """Write the rows of a table's hyperparameters.

    Args:
        name: the table of the file that they stand in; ``training`` for those of built-in tasks that stand in none;
            ``own`` for those of tasks of one's own.
    """
    tables = {key: one.table or "training" for key, one in HYPERPARAMETERS.items()}
    declared = TRAINING if name == "own" else {key: one for key, one in HYPERPARAMETERS.items() if tables[key] == name}
    rows = [f"| `{key}`{_short(key, name)} | {one.meaning} | {one.otherwise} |\n" for key, one in declared.items()]
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
