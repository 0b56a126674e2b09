"""Checks of the documents: links, commands, targets, examples and the map of tests."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import click
import pytest

from study.cli import main
from study.errors import SpecError
from study.interface.packed_family import TRAINING
from study.plan.plan import make_plan
from study.spec import parse_spec, schema
from tasks.arithmetic.hyperparameters import HYPERPARAMETERS
from tests.pages import lay_out

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(
        part.startswith(".") or part in ("build", "studies", "site-packages") for part in path.relative_to(ROOT).parts
    )
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_MINIMAL = {"study": "fragment", "task": "{name: arithmetic}", "models": "[NMU]", "seeds": "1"}


def code(text: str) -> list[str]:
    """Return the code of a Markdown text: whole blocks, indented lines, and words between backticks."""
    blocks, remainder = [block for _, block in _FENCE.findall(text)], _FENCE.sub("", text)
    lines = [re.sub(r"\s+#.*", "", line) for line in _INDENTED.findall(remainder)]
    return blocks + lines + re.findall(r"`([^`\n]+)`", _INDENTED.sub("", remainder))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ +(.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def matching(pattern: str, text: str) -> set[tuple[str, str]]:
    """Return the pairs of groups that a pattern matches in the code of a text."""
    return {groups for part in code(text) for groups in re.findall(pattern, part, re.MULTILINE)}


def options(command: click.Command) -> set[str]:
    """Return the options of a command, and of its subcommands."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    own = {option for param in command.params for option in param.opts} | {"--help"}
    return own.union(*(options(subcommand) for subcommand in below))


def yaml_blocks() -> dict[str, tuple[Path, str, str | None]]:
    """Return study files and fragments of documents by place, each with its page and the error shown below, or None."""
    blocks = {}
    for path, name in zip(DOCUMENTS, NAMES, strict=True):
        text = path.read_text(encoding="utf-8")
        for block in _FENCE.finditer(text):
            if block[1] == "yaml":
                below = _FENCE.match(text[block.end() :].lstrip("\n"))
                error = below[2] if below and below[1] == "text" else None
                blocks[f"{name}:{text[: block.start()].count(chr(10)) + 1}"] = (path, block[2], error)
    return blocks


YAML_BLOCKS = yaml_blocks()


@every_document
def test_links_have_targets(path: Path) -> None:
    """Every relative link leads to a file, and its anchor to a heading."""
    text = path.read_text(encoding="utf-8")
    for link in _LINK.findall(_FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), link
        assert linked.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), link


@every_document
def test_commands_exist(path: Path) -> None:
    """Every `study` command in a document exists, with its options, and so does every make target."""
    text = path.read_text(encoding="utf-8")
    for command, arguments in matching(r"^(?:\$ )?(?:\S*/)?study ([a-z][a-z-]*)\b(.*)$", text):
        assert command in main.commands
        own = re.sub(r"'[^']*'", "", arguments)  # ignores quoted commands of programs
        assert set(re.findall(r"(?<!\S)(--[a-z-]+)", own)) <= options(main.commands[command]), command
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    assert {target for target, _ in matching(r"^(?:\$ )?(?:\w+=\S+ )*make ([a-z][a-z-]*)\b(.*)$", text)} <= targets


def test_indented_commands_are_read() -> None:
    """Commands in blocks, indented lines and backticks are checked."""
    text = "```text\n$ study plan F\n```\n\n    study run F --yes   # --no\n\nor `study show N`"
    assert matching(r"^(?:\$ )?study ([a-z]+)\b(.*)$", text) == {("plan", " F"), ("run", " F --yes"), ("show", " N")}


def test_every_command_is_explained() -> None:
    """The page on commands names every command, and pages name only existing options."""
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {command for command, _ in matching(r"^study ([a-z]+)(.*)$", text)} == set(main.commands)
    existing = set().union(*(options(command) for command in main.commands.values()))
    for page in (*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert {option for option, _ in matching(r"^(--[a-z-]+)(.*)$", text)} <= existing, page


def test_named_tests_exist() -> None:
    """Every test named in a document exists; names of metrics on the page of the tasks are allowed."""
    functions = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for path in DOCUMENTS:
        if path.name == "tasks.md":
            continue
        named = {name for name, _ in matching(r"^(test_\w+)($)", path.read_text(encoding="utf-8"))}
        assert named <= functions, path


def test_each_file_of_the_map_has_a_quick_test(is_only_slow) -> None:
    """`make test` runs a test of each file in the map, except those of the fault campaign."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if is_only_slow(name) and "/faults/" not in name] == []


@pytest.mark.parametrize(("page", "text", "error"), YAML_BLOCKS.values(), ids=YAML_BLOCKS)
def test_study_files_in_documents_load_or_fail_as_shown(
    page: Path, text: str, error: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study file in a document loads and has trials, or gives exactly the mistakes shown below it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = lay_out(page, tmp_path)
    keys = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    keys |= {"task", "models"} if keys & {"train", "command"} else set()
    remainder = "".join(f"{key}: {value}\n" for key, value in _MINIMAL.items() if key not in keys)
    if error is None:
        planned = make_plan(parse_spec(text + remainder, source="study.yaml", folder=folder))
        assert planned.trials_count > 0 or planned.spec.search is not None
        return
    with pytest.raises(SpecError) as caught:
        parse_spec(text, source="study.yaml", folder=folder)
    same = doctest.OutputChecker().check_output(error, f"{caught.value}\n", doctest.ELLIPSIS)
    assert same, str(caught.value)


def test_every_hyperparameter_is_explained() -> None:
    """docs/reference/study-file.md has a row for every hyperparameter and every key."""
    text = (ROOT / "docs" / "reference" / "study-file.md").read_text(encoding="utf-8")
    shapes = [shape["properties"] for shape in schema()["$defs"].values() if "study" in shape.get("properties", ())]
    keys = {key for shape in shapes for key in shape}
    rows = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE))))
    assert keys > {"train", "task", "isolation"}
    assert rows >= {*HYPERPARAMETERS, *TRAINING, *keys}
