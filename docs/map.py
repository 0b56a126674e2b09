"""The rows of docs/architecture.md: every file with the first line of its docstring.

python -m docs.map
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("study", "tasks", "units")
BEGIN, END = "<!-- map -->\n", "<!-- end -->\n"


def first_line(module: Path) -> str:
    """Read the first line of a module's docstring, as Markdown for a cell of a table.

    Example:
        >>> first_line(ROOT / "units" / "nau.py")
        'Neural addition unit: sums and differences of chosen inputs.'
    """
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`").replace("|", "\\|")


def folders() -> Iterator[Path]:
    """List the folders that hold code, each before those in it."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("__init__.py"), key=lambda file: file.parent):
            yield file.parent


def section(folder: Path) -> str:
    """Write what a folder is for, by the first line of its `__init__.py`, and a row for each of its files."""
    title = f"### {folder.relative_to(ROOT)}/\n\n{first_line(folder / '__init__.py')}\n"
    files = sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")
    rows = [f"| `{file.relative_to(ROOT)}` | {first_line(file)} |\n" for file in files]
    return title + ("\n| file | what it holds |\n| --- | --- |\n" + "".join(rows) if rows else "")


def updated(page: str) -> str:
    """Return the page with the rows as the files have them now, between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(map(section, folders())) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
