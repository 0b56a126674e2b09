"""When a study ends, the command of the user's own settings is run; nothing of the study depends on it."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest

import study
from study.console import Console
from study.driver import notify
from study.errors import StudyError
from study.run import Ending
from study.settings import user_file
from tests.commands import CHECKPOINT, DEADLINE_S, blow, invoke, starting
from tests.engines import ENGINES, use_engines
from tests.study.cluster.crashing import Crashing

# Warnings of MLflow and what it imports are theirs to mend.
pytestmark = pytest.mark.filterwarnings("ignore")

LITTLE = {
    "study": "little",
    "question": "Does it learn?",
    "task": {"name": "simple"},
    "models": ["NMU", "linear"],
    "seeds": 2,
    "fixed": {"batch_size": 16},
    "protocol": {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 50},
}
WRITE = """
import json, os, sys
from tests.engines import ENGINES, use_engines
variables = {name: os.environ.get(name) for name in ("STUDY_NAME", "STUDY_ENDING", "STUDY_FINDING", "STUDY_REPORT")}
with open(sys.argv[1], "a") as file:
    print(json.dumps([sys.argv[2:], variables]), file=file)
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    user_file().parent.mkdir(parents=True)


def name_command(*words: str, file: Path | None = None) -> None:
    (file or user_file()).write_text(f"notify = {json.dumps(list(words))}\n")


def writing(log: Path) -> tuple[str, ...]:
    """Return a command that writes what it is given into a file."""
    return (sys.executable, "-c", WRITE, str(log), "{study}: {ending}", "{finding}", "{report}", "$(touch here); `x`")


def train(store: Path) -> tuple[Ending, str]:
    console = Console(file=io.StringIO(), width=300)
    ending = study.load(LITTLE, store=store, tracking_uri="off").train(console, local=True)
    return ending, console.file.getvalue()


def news_in(log: Path) -> list[tuple[list[str], dict[str, str]]]:
    return [(words, variables) for words, variables in map(json.loads, log.read_text().splitlines())]


def test_the_command_learns_how_a_study_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures, then the finish: as words and variables, through no shell; a run with nothing to do is no news."""
    log = tmp_path / "log"
    name_command(*writing(log))
    use_engines(monkeypatch, {"crashing": Crashing()})
    assert train(Path("studies"))[0] is Ending.FAILURES
    use_engines(monkeypatch, ENGINES)
    study.load(LITTLE, store=Path("studies"), tracking_uri="off").run(local=True)
    assert train(Path("studies"))[0] is Ending.FINISHED
    page = tmp_path / "work" / "studies" / "little" / "report" / "report.html"
    finding = study.open("little", store=Path("studies")).finding
    failures, finish = news_in(log)
    assert failures[0][0] == "little: failures"
    assert finish[0] == ["little: finished", finding, str(page), "$(touch here); `x`"]
    assert finish[1] == {
        "STUDY_NAME": "little",
        "STUDY_ENDING": "finished",
        "STUDY_FINDING": finding,
        "STUDY_REPORT": str(page),
    }
    assert [path.name for path in Path.cwd().iterdir()] == ["studies"]


def test_an_error_is_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that ends a run is still raised, and the command learns of it; one before the start is not news."""
    log = tmp_path / "log"
    name_command(*writing(log))
    loaded = study.load(LITTLE, store=tmp_path / "studies", tracking_uri="off")
    with pytest.raises(StudyError):
        loaded.run(local=True, engine="none")
    assert not log.exists()
    monkeypatch.setattr("study.run.Run.publish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loaded.run(local=True)
    [(words, _)] = news_in(log)
    assert words[:3] == ["little: error", "division by zero", ""]


def test_an_interrupted_study_is_news(tmp_path: Path) -> None:
    """After SIGTERM in mid-study, once checkpoints are kept."""
    log = tmp_path / "log"
    name_command(*writing(log))
    long = LITTLE | {"protocol": {"iterations": 10_000, "evaluate_every": 500, "evaluation_rows": 50}}
    Path("little.yaml").write_text(json.dumps(long))
    with starting(Path.cwd()) as start:
        words = ("run", "little.yaml", "--local", "--tracking-uri", "off", "--checkpoint-every-s", "0")
        driver = start(*words, **blow(tmp_path / "struck", CHECKPOINT, signal.SIGTERM))
        output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 130, output
    [(words_, _)] = news_in(log)
    assert words_[:2] == ["little: interrupted", "no trial is done yet"]


def test_a_folder_runs_nothing(tmp_path: Path) -> None:
    """A command that only the working folder's file names isn't run, and that is said."""
    log = tmp_path / "log"
    name_command(*writing(log), file=Path("study.toml"))
    ending, text = train(tmp_path / "studies")
    assert ending is Ending.FINISHED
    assert "notify in this folder's study.toml isn't run" in text
    assert str(user_file()) in text
    assert not log.exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such-command-here",), "No such file or directory"),
        ((sys.executable, "-c", "import sys; sys.exit('no server: {study}')"), "exit code 1: no server: little"),
        (
            (sys.executable, "-c", "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"),
            "longer",
        ),
    ],
)
def test_a_command_that_fails_or_hangs_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    """It is warned of, with the reason; the study has finished all the same, and no process is left."""
    monkeypatch.setattr(notify, "_TIMEOUT_S", 2.0)
    name_command(*words)
    ending, text = train(tmp_path / "studies")
    assert ending is Ending.FINISHED
    assert f"notify: {words[0]} failed: " in text
    assert reason in text
    if Path("pid").exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(Path("pid").read_text()), 0)


@pytest.mark.parametrize("value", ['"notify-send"', "[]", "[1]", '["notify-send", "{name}"]', '["a", ""]'])
def test_a_mistake_in_the_command_is_said_before_anything_starts(tmp_path: Path, value: str) -> None:
    """It is a mistake of the settings, with an example, from the command line and from Python."""
    user_file().write_text(f"notify = {value}\n")
    with pytest.raises(StudyError, match=r"notify: .*(must be a command|there are \{study\})"):
        train(tmp_path / "studies")
    assert not (tmp_path / "studies" / "little").exists()
    done = invoke("list", "--store", str(tmp_path / "studies"))
    assert done.exit_code == 2
    assert "notify: " in done.output
