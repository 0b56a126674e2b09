"""Tables of hyperparameters in docs/reference/study-file.md, from the declarations in the code.

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
    """Return the Markdown table of the hyperparameters in one table of the study file; without any, its head only.

    Args:
        name: the table of the study file; ``training`` for hyperparameters of built-in tasks outside tables;
            ``own`` for those of user-defined tasks.
    """
    tables = {key: note.table or "training" for key, note in HYPERPARAMETERS.items()}
    declared = (
        TRAINING if name == "own" else {key: note for key, note in HYPERPARAMETERS.items() if tables[key] == name}
    )
    rows = [f"| `{key}`{_short(key, name)} | {note.meaning} | {note.otherwise} |\n" for key, note in declared.items()]
    return "| name | value | if it isn't given |\n| --- | --- | --- |\n" + "".join(rows)


def updated(page: str) -> str:
    """Return the page with the current tables, each between its two marks; without marks, the page is unchanged."""
    return _TABLE.sub(lambda match: f"{match[1]}\n{table(match[2])}\n{match[3]}", page)


def _short(key: str, name: str) -> str:
    """Return the key's short form in the table `name` as a text in parentheses; empty if the key hasn't that prefix."""
    short = key.removeprefix(f"{name}_")
    return "" if short == key else f" (`{name}: {{{short}: ...}}`)"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
