"""Versions: those that must agree among machines, and the report of a difference."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from study.environment import difference, labelled, versions

ROOT = Path(__file__).resolve().parents[2]
ASK = "from study.environment import versions; print(versions()['code'])"


def code_of(folder: Path) -> str:
    completed = subprocess.run(
        [sys.executable, "-P", "-c", ASK],
        env={"PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


def test_the_code_tells_checkouts_apart(tmp_path):
    """Equal checkouts have equal digests; a changed line or template, a moved or a new file changes the digest."""
    for folder in ("study", "units", "tasks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    digests = {code_of(tmp_path)}
    assert digests == {versions()["code"]}
    for name in ("units/nmu.py", "study/reports/page.html.j2"):
        changed = tmp_path / name
        changed.write_text(changed.read_text() + "\n")
        digests.add(code_of(tmp_path))
    (tmp_path / "units" / "more.py").touch()
    digests.add(code_of(tmp_path))
    (tmp_path / "units" / "more.py").rename(tmp_path / "tasks" / "more.py")
    digests.add(code_of(tmp_path))
    assert len(digests) == 5


def test_a_difference_names_both():
    """Every differing version is named with both values, also if only one side has it."""
    message = difference({"ray": "1", "torch": "2", "numpy": "3"}, {"ray": "1", "torch": "4", "numba": "5"})
    assert message == "torch 2 here, 4 there; numpy 3 here, missing there; numba missing here, 5 there"
    assert difference(versions(), dict(versions())) is None


def test_a_stored_provenance_may_have_any_json():
    """A list `original` that isn't one, or has other entries than objects, isn't an error of a reader."""
    assert labelled({"original": 5}) == {"original": 5}
    assert labelled({"original": [1, {"git_commit": "a"}]}) == {"original": [{"service_git_commit": "a"}]}
