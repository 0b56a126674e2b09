"""The notification command of the user's settings: it runs at the end of a study, and can't affect the study."""

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

# MLflow and its imports must fix their own warnings.
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
variables = {name: os.environ.get(name) for name in ("STUDY_NAME", "STUDY_ENDING", "STUDY_FINDING", "STUDY_REPORT")}
with open(sys.argv[1], "a") as file:
    print(json.dumps([sys.argv[2:], variables]), file=file)
"""


@pytest.fixture(autouse=True)
def _user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    user_file().parent.mkdir(parents=True)


def name_command(*words: str, file: Path | None = None) -> None:
    (file or user_file()).write_text(f"notify = {json.dumps(list(words))}\n")


def writing(log: Path) -> tuple[str, ...]:
    """Return a command that appends its arguments and variables to a file."""
    return (sys.executable, "-c", WRITE, str(log), "{study}: {ending}", "{finding}", "{report}", "$(touch here); `x`")


def train(store: Path) -> tuple[Ending, str]:
    console = Console(file=io.StringIO(), width=300)
    ending = study.load(LITTLE, store=store, tracking_uri="off").train(console, local=True)
    return ending, console.file.getvalue()


def news_in(log: Path) -> list[tuple[list[str], dict[str, str]]]:
    return [(words, variables) for words, variables in map(json.loads, log.read_text().splitlines())]


def test_the_command_gets_the_ending_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command gets each ending as arguments and variables, without a shell; a run without work doesn't notify."""
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


def test_an_error_notifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that ends a run is still raised, and notifies; an error before the start doesn't."""
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


def test_an_interrupted_study_notifies(tmp_path: Path) -> None:
    """SIGTERM in mid-study notifies once checkpoints are saved."""
    log = tmp_path / "log"
    name_command(*writing(log))
    long = LITTLE | {"protocol": {"iterations": 10_000, "evaluate_every": 500, "evaluation_rows": 50}}
    Path("little.yaml").write_text(json.dumps(long))
    with starting(Path.cwd()) as start:
        arguments = ("run", "little.yaml", "--local", "--tracking-uri", "off", "--checkpoint-every-s", "0")
        driver = start(*arguments, **blow(tmp_path / "struck", CHECKPOINT, signal.SIGTERM))
        output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 130, output
    [(words, _)] = news_in(log)
    assert words[:2] == ["little: interrupted", "no trial is done yet"]


def test_the_command_of_a_folder_is_not_run(tmp_path: Path) -> None:
    """A command that only the working folder's file names isn't run, and the run says so."""
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
def test_a_command_that_fails_or_hangs_does_not_affect_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    """A warning gives the reason; the study finishes, and no process is left."""
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
def test_a_mistake_in_the_command_is_an_error_before_the_start(tmp_path: Path, value: str) -> None:
    """A mistake is an error of the settings with an example, on the command line and in Python."""
    user_file().write_text(f"notify = {value}\n")
    with pytest.raises(StudyError, match=r"notify: .*(must be a command|choose from \{study\})"):
        train(tmp_path / "studies")
    assert not (tmp_path / "studies" / "little").exists()
    done = invoke("list", "--store", str(tmp_path / "studies"))
    assert done.exit_code == 2
    assert "notify: " in done.output
