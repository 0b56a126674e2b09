"""Literal output of external texts to a terminal: no markup, no control sequences."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from study.cli import main
from study.cli.standings import checks_table
from study.console import Console
from study.doctor.nodes import Check
from study.driver.progress import waiting
from study.store import Store
from study.visible import visible

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("study", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py"))
ROUGH = "Is x in [/a/b] [bold]larger[/]? \x1b[2J\x1b]0;title\x07\x9b1m\u202e :smile:"
SPEC = """
study: rough
question: "Is x in [/a/b] larger? \\e[2J\\e]0;title\\a"
task: {name: simple}
models: [NMU]
seeds: 1
"""


def printed(*renderables: object, is_terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=300, force_terminal=is_terminal, color_system=None)
    for renderable in renderables:
        console.print(renderable)
    return out.getvalue()


def table(text: str) -> Table:
    content = Table(title=text, caption=text, box=None)
    content.add_column(text)
    content.add_row(text)
    content.add_row(Text(text))
    return content


@pytest.mark.parametrize(
    "renderable", [ROUGH, Text(ROUGH, style="bold"), table(ROUGH), checks_table([Check(ROUGH, "failed", ROUGH, ROUGH)])]
)
def test_a_text_is_printed_literally(renderable):
    """In texts and tables, brackets are kept, and escape sequences are printed as visible characters."""
    output = printed(renderable)
    assert r"Is x in [/a/b] [bold]larger[/]? \x1b[2J\x1b]0;title\x07\x9b1m\u202e :smile:" in output.replace(
        r"title\x9b",
        r"title\x07\x9b",  # rich itself drops the bell of a Text
    )
    assert not set(output) & set("\x1b\x07\x9b\u202e")


@given(st.text(st.characters(), max_size=40))
def test_control_characters_are_made_visible(text):
    """Only tabs and line ends are kept of unprintable characters; printing the output again gives the same text."""
    output = visible(text)
    assert all(c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000) for c in output)
    assert visible(output) == output
    assert output == text or not text.isprintable()


def test_the_line_of_a_wait_is_printed_literally():
    """The line of a wait prints a name with brackets unchanged."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with waiting(console, "stopping [/a]"):
        pass


def test_a_rough_question_is_listed(tmp_path):
    """A study whose question has markup or escape sequences is listed."""
    Store(tmp_path).study("rough").write_spec(SPEC)
    result = CliRunner().invoke(main, ["list", "--store", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "[/a/b]" in result.output
    assert "\x1b" not in result.output


def test_a_rough_name_is_printed(tmp_path, monkeypatch):
    """An error prints a file name with markup unchanged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a\x1b[2J[b].csv").write_text("")
    result = CliRunner().invoke(main, ["report", "a\x1b[2J[b].csv"])
    assert result.exit_code == 2
    assert r"a\x1b[2J[b].csv is empty" in result.output


def markup_in(tree: ast.AST) -> list[str]:
    """Return the calls that could read an external text as markup."""
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
            names = {alias.name for alias in node.names}
            wrong += [ast.unparse(node)] if names & {"Console", "print", "escape", "render"} else []
            wrong += [ast.unparse(node)] if (node.module or "") in ("rich.markup", "rich.prompt", "rich.panel") else []
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            switched = {word.arg for word in node.keywords} & {"markup", "emoji"}
            literal = bool(node.args) and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
            if name.endswith(("from_markup", ".rule")) or switched or (name.endswith(".status") and literal):
                wrong.append(ast.unparse(node))
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_prints_with_markup(path):
    """Only study/console.py constructs consoles, and no code enables markup."""
    calls = markup_in(ast.parse(path.read_text(encoding="utf-8")))
    assert calls == [] or path == ROOT / "study" / "console.py"


@pytest.mark.parametrize(
    "line",
    [
        "from rich.console import Console",
        "from rich import print",
        "from rich.markup import escape",
        "console.print(f'{a}', markup=True)",
        "Text.from_markup(a)",
        "console.status(f'{a}')",
    ],
)
def test_markup_is_detected(line):
    """The check detects code that enables markup."""
    assert markup_in(ast.parse(line)) != []
