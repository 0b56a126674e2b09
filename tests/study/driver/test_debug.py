"""`study run FILE --debug`: one trial on the terminal, with a debugger at its failure."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from study.cli import main
from study.plan.plan import make_plan
from tests.study.lab import STUDY, lab, study_of

__all__ = ["lab"]


@pytest.fixture
def file(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the study of a user's function whose seed 1 fails, and change to its folder."""
    import yaml

    path = lab / "mine.yaml"
    path.write_text(yaml.safe_dump(STUDY | {"fixed": {"fail": "raise"}}))
    monkeypatch.chdir(lab)
    return path


def trial_of(lab: Path, seed: int) -> str:
    plan = make_plan(study_of(lab, fixed={"fail": "raise"}))
    return next(trial.id for trial in plan.trials if trial.seed == seed)


def test_a_trial_prints_its_steps_and_stores_nothing(lab: Path, file: Path) -> None:
    """Without an id the first trial runs and prints its steps; nothing is stored."""
    done = CliRunner().invoke(main, ["run", str(file), "--debug"])
    assert done.exit_code == 0
    first, *steps = done.output.splitlines()
    assert first == f"trial {trial_of(lab, 0)}: width 1, rate 0.5, fail raise, seed 0; nothing is stored"
    assert [step.split(":")[0] for step in steps] == [f"step {number}" for number in range(5)]
    assert "loss 0.5" in steps[0]
    assert not (lab / "studies").exists()


def test_a_failure_is_shown_with_the_users_file(lab: Path, file: Path) -> None:
    done = CliRunner().invoke(main, ["run", str(file), "--debug", "--trial", trial_of(lab, 1)[:10]])
    assert done.exit_code == 1
    assert 'File "mylab/training.py", line 15, in train' in done.output
    assert done.output.count("RuntimeError: no luck") == 1


def test_a_program_has_the_terminal(tmp_path: Path) -> None:
    """The program has the terminal, and runs in a temporary folder; the files that it wrote are named."""
    (tmp_path / "train.sh").write_text('read line; echo "heard $line, seed $1"; echo {} > metrics.json; exit "$1"')
    content = {"study": "p", "command": "sh train.sh {seed}", "results": "metrics.json", "metrics": {"a": "lower"}}
    (tmp_path / "p.yaml").write_text(str(content | {"seeds": [3]}))
    words = [sys.executable, "-m", "study", "run", "p.yaml", "--debug"]
    done = subprocess.run(words, cwd=tmp_path, input="me\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    first, second, heard, last = done.stdout.splitlines()
    assert first.endswith("seed 3; nothing is stored")
    assert second.endswith("train.sh 3")
    assert heard == "heard me, seed 3"
    assert last == "it ended with exit code 3, and wrote metrics.json"
    assert not (tmp_path / "studies").exists()


def test_in_a_terminal_a_debugger_opens(lab: Path, file: Path) -> None:
    """The debugger has the variables of the user's function."""
    terminal, child_side = pty.openpty()
    words = [sys.executable, "-m", "study", "run", str(file), "--debug", "--trial", trial_of(lab, 1)]
    with subprocess.Popen(words, stdin=child_side, stdout=child_side, stderr=child_side, cwd=lab) as process:
        os.close(child_side)
        os.write(terminal, b"p seed + 41\nq\n")
        output = b""
        try:
            while data := os.read(terminal, 4096):
                output += data
        except OSError:  # a closed terminal raises this
            pass
        process.wait()
    os.close(terminal)
    assert b"(Pdb) " in output
    assert b"\r\n42\r\n" in output
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mine.yaml", "--trial", "a"), "--trial needs --debug"),
        (("mine.yaml", "--debug", "--trial", "zz"), "no trial of this file has that id"),
        (("mine.yaml", "--debug", "--trial", ""), "trial ids begin with it; give more letters"),
        (("demo", "--debug"), "needs a training function or a program"),
    ],
)
def test_invalid_options_are_errors(file: Path, words: tuple[str, ...], message: str) -> None:
    refused = CliRunner().invoke(main, ["run", *words])
    assert refused.exit_code == 2
    assert message in refused.output
