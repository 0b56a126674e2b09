"""The map of the repository is what its files say of themselves, and its floors are those of the import rule."""

from __future__ import annotations

import re
import tomllib

from docs import map as file_map

MODULES = sorted(file for package in file_map.PACKAGES for file in (file_map.ROOT / package).rglob("*.py"))
TEXT = file_map.PAGE.read_text(encoding="utf-8")


def test_the_rows_are_those_of_the_files() -> None:
    """docs/architecture.md has a row for each file, with its docstring's first line, and no other."""
    assert file_map.updated(TEXT) == TEXT, "the map is stale: run `python -m docs.map`"
    rows = re.findall(r"^\| `(\S+\.py)` \|", TEXT.partition(file_map.BEGIN)[2], re.MULTILINE)
    files = {str(file.relative_to(file_map.ROOT)) for file in MODULES if file.name != "__init__.py"}
    assert sorted(rows) == sorted(files)


def test_a_changed_row_is_stale() -> None:
    """A row that isn't its file's, or is missing, is put right; what stands outside the marks is left alone."""
    row = f"| `units/nau.py` | {file_map.first_line(file_map.ROOT / 'units' / 'nau.py')} |\n"
    assert row in TEXT
    for changed in (row.replace("nau.py", "new.py"), row.replace(".", "!"), ""):
        assert file_map.updated(TEXT.replace(row, changed)) == TEXT
    assert file_map.updated("# Title\n\n" + TEXT) == "# Title\n\n" + TEXT


def test_every_file_begins_with_a_row() -> None:
    """The first line of every module's docstring is a sentence, and fits into a line of code."""
    lines = {str(module.relative_to(file_map.ROOT)): file_map.first_line(module) for module in MODULES}
    is_row = re.compile(r"[A-Z`].{10,105}\.")
    assert {name: line for name, line in lines.items() if not is_row.fullmatch(line)} == {}


def test_the_floors_are_those_of_the_import_rule() -> None:
    """The table of floors names what stands on each, from the top to the bottom, as the rule does that checks it."""
    settings = tomllib.loads((file_map.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    rules = settings["importlinter"]["contracts"]
    [layers] = [rule["layers"] for rule in rules if rule.get("containers") == ["study"]]
    table = TEXT.partition("\n## The floors\n")[2].partition("\n| library |")[0]
    floors = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [set(re.findall(r"`(\w+)(?:/|\.py)`", floor)) for floor in floors]
    assert named == [set(layer.replace(" ", "").split("|")) for layer in layers]
