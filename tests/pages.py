"""Contents of a page: files, commands with their output, and tables of results."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands import DEADLINE_S

SCRIPT = Path(sys.executable).with_name("study")

NEEDED = {"lightning": "lightning", "huggingface": "transformers", "hydra": "hydra"}
"""The module of another library that an example needs, by the name of its folder."""

_FILE = re.compile(r"`([\w./-]+\.(?:py|sh|yaml|csv))`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_VERDICT = re.compile(r"^\d+\. ((?:shown|refuted|undecided): .*?) \(", re.MULTILINE)
_ESTIMATE = re.compile(r"(\S+) \[(\S+), (\S+)\]")


def files_shown(text: str) -> dict[str, str]:
    r"""Return the files in a page's blocks, by the names above them.

    Example:
        >>> files_shown('and `a.yaml`:\n\n```yaml\nstudy: a\n```\n')
        {'a.yaml': 'study: a\n'}
    """
    return dict(_FILE.findall(text))


def sessions(text: str) -> list[tuple[str, str]]:
    r"""Return the commands of a page's console blocks, each with its output.

    Example:
        >>> sessions('```console\n$ study show a\nsolved\n$ study list\n```\n')
        [('study show a', 'solved\n'), ('study list', '')]
    """
    return [command for block in _CONSOLE.findall(text) for command in _COMMAND.findall(block)]


def trains(command: str) -> bool:
    """Return True if a command is `study run` or `study search`."""
    return shlex.split(command)[1] in ("run", "search")


def lay_out(page: Path, folder: Path) -> Path:
    """Write a page's files into a folder, and copy an example's own files.

    The test is skipped if the example's library isn't installed.
    """
    if find_spec(NEEDED.get(page.parent.name, "study")) is None:
        pytest.skip(f"{NEEDED[page.parent.name]} isn't installed, see CONTRIBUTING.md")
    if page.parents[1].name == "examples":
        shutil.copytree(page.parent, folder, dirs_exist_ok=True)
    for name, content in files_shown(page.read_text(encoding="utf-8")).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in a folder, as a user does; copies of code are unpacked beside it."""
    name, *words = shlex.split(command)
    assert name == "study"
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(
        [SCRIPT, *words],
        cwd=folder,
        env=inherited | {"XDG_CACHE_HOME": str(folder.parent / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def verdicts(text: str) -> list[str]:
    """Return the verdicts on claims in a command's output.

    Example:
        >>> verdicts("1. shown: adam: success rate exceeds that of sgd (40 trials, 9 s of training)")
        ['shown: adam: success rate exceeds that of sgd']
    """
    return _VERDICT.findall(text)


@dataclass(frozen=True)
class Estimate:
    """A number in a table, with its interval."""

    value: float
    low: float
    high: float


def estimates(text: str) -> dict[tuple[str, ...], Estimate]:
    r"""Return the first estimate of each row of a printed table, by the row's text before the seeds.

    The table of evidence for claims is left out.

    Example:
        >>> estimates("model  width  seeds       success rate  ...\na:b        4     20  0.50 [0.30, 0.70]  ...")
        {('a:b', '4'): Estimate(value=0.5, low=0.3, high=0.7)}
        >>> estimates("width  seeds       success rate  ...\n    4     20  0.50 [0.30, 0.70]  ...")
        {('4',): Estimate(value=0.5, low=0.3, high=0.7)}
        >>> estimates("claim  cell  seeds              estimate\n    1  a        20  +0.67 [−0.09, +0.97]")
        {}
    """
    rows: dict[tuple[str, ...], Estimate] = {}
    names: list[str] = []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if "seeds" in cells:
            names = [] if cells[0] == "claim" else cells
        elif names and len(cells) > names.index("seeds") + 1 and (match := _ESTIMATE.search(line)):
            value, low, high = (float(number.replace("−", "-")) for number in match.groups())
            rows[tuple(cells[: names.index("seeds")])] = Estimate(value, low, high)
    return rows
