"""Commands: output, exit codes and written files."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import torch

from tests.commands import invoke

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: little
task: {name: simple}
models: [NMU]
seeds: 2
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""
MISTAKEN = """
study: ../away
task: {name: simpel}
models: [NMUU]
grid: {hidden_size: []}
seeds: 0
"""


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with two study files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STUDY_STORE", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "little.yaml").write_text(SPEC)
    (tmp_path / "mistaken.yaml").write_text(MISTAKEN)
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("command", ["plan", "run"])
def test_one_message_lists_five_mistakes(working_folder, command):
    """One message lists every mistake of a file; the exit code is 2 and nothing is written."""
    result = invoke(command, "mistaken.yaml")
    assert result.exit_code == 2
    for word in ("5 mistakes", "../away", "simple", "NMU", "hidden_size", "seeds"):
        assert word in result.output
    assert names(working_folder) == {"little.yaml", "mistaken.yaml"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "no.yaml"), "presets are"),
        (("run", "dmo"), "demo"),
        (("show", "nothing"), "no study 'nothing'"),
        (("report", "nothing"), "no study 'nothing'"),
        (("sync", "nothing"), "no study 'nothing'"),
        (("run", "little.yaml", "--engine", "fast", "--local"), "fused, fused-gpu, torch"),
        (("report", "x", "--from", "mlflow", "--tracking-uri", "off"), "--tracking-uri is 'off'"),
        (("run", "little.yaml", "--local", "--tracking-uri", "none"), "must be an address, or 'off' for none"),
        (("ui", "--tracking-uri", "http://127.0.0.1:9"), "there is no store at studies"),
        (("sync", "x", "--tracking-uri", "http://me:secret@host"), "must not hold a password"),
        (("ui", "--tracking-uri", "postgresql://host/d?password=secret"), "MLFLOW_TRACKING_USERNAME"),
    ],
)
def test_bad_input_is_reported_in_words(working_folder, words, message):
    """A wrong name or option ends with exit code 2 and a sentence, never a traceback."""
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize(
    "words", [("--device", "cuda"), ("--engine", "fast"), ("--engine", "fused", "--device", "cuda")]
)
def test_an_unavailable_engine_or_device_writes_nothing(working_folder, words):
    """An unavailable engine or device ends with exit code 2 before anything is written."""
    result = invoke("run", "little.yaml", "--local", *words)
    assert result.exit_code == 2
    assert names(working_folder) == {"little.yaml", "mistaken.yaml"}


def test_an_address_without_a_cluster_is_an_error(working_folder):
    """An address without a cluster is reported at once."""
    result = invoke("run", "little.yaml", "--tracking-uri", "off", "--address", "127.0.0.1:9")
    assert result.exit_code == 1
    assert "no Ray cluster answers at 127.0.0.1:9" in result.output


@pytest.mark.parametrize("content", [b"study: [", b"\xff\xfe"])
def test_an_unreadable_study_is_listed_with_the_others(working_folder, content):
    """A study with an unreadable file is listed with the reason, beside the others."""
    for name, text in (("broken", content), ("fine", SPEC.replace("little", "fine").encode())):
        (working_folder / "studies" / name).mkdir(parents=True)
        (working_folder / "studies" / name / "spec.yaml").write_bytes(text)
    result = invoke("list")
    assert result.exit_code == 0, result.output
    assert "can't be read" in result.output
    assert "fine" in result.output
    assert invoke("plan", "little.yaml").exit_code == 0
    assert invoke("show", "broken").exit_code in (1, 2)


def test_plan_writes_nothing(working_folder):
    """`study plan` names cells, trials, packs, engine and time, and leaves no file behind."""
    result = invoke("plan", "little.yaml")
    assert result.exit_code == 0, result.output
    for word in ("1 cell", "2 trials", "0 done already", "fused", "MiB", "about"):
        assert word in result.output
    assert names(working_folder) == {"little.yaml", "mistaken.yaml"}


def test_plan_names_the_reason_against_an_engine(working_folder):
    """`study plan` names each model that the preferred engine can't train, the reason and the engine that trains it."""
    text = (working_folder / "little.yaml").read_text(encoding="utf-8")
    (working_folder / "little.yaml").write_text(text.replace("[NMU]", "[NMU, NMU-normalized]"), encoding="utf-8")
    output = invoke("plan", "little.yaml").output.replace("\n", " ")
    assert "NMU-normalized is trained by the torch engine, not by fused: it has no gradient" in output
    assert "NMU is trained by" not in output


def test_from_file_to_report(working_folder):
    """Run, list, show, report, plan and sync give the right output for the same study."""
    result = invoke("run", "little.yaml", "--local")
    assert result.exit_code == 0, result.output
    assert "report:" in result.output
    assert "2/2 trials" in result.output
    assert "dashboard: http://127.0.0.1:5000/#/experiments/" in result.output
    assert (working_folder / "studies" / "little" / "report" / "report.html").is_file()
    assert "little" in invoke("list").output
    assert "NMU" in invoke("show", "little").output
    assert invoke("report", "little").exit_code == 0
    report = invoke("report", "little", "--tracking-uri", "http://127.0.0.1:9")  # no server listens there
    assert report.exit_code == 0
    assert "dashboard" not in report.output
    assert "nothing is left to do" in invoke("plan", "little.yaml").output
    assert "0 trials published" in invoke("sync", "little").output


def test_list_of_an_empty_store(working_folder):
    """An empty store is listed as empty; a missing store is an error; presets are listed in both cases."""
    result = invoke("list")
    assert result.exit_code == 2
    assert "there is no store at studies" in result.output
    assert "hidden-size" in result.output
    (working_folder / "studies").mkdir()
    result = invoke("list")
    assert result.exit_code == 0
    assert "hidden-size" in result.output


@pytest.mark.parametrize(
    "words",
    [("list",), ("show", "x"), ("report", "x"), ("report", "x", "--by", "model"), ("report", "x", "y", "--out", "o"),
     ("sync", "x"), ("ui",), ("report", "x", "--compare", "y")],
)  # fmt: skip
def test_a_mistyped_store_is_an_error_and_is_not_created(working_folder, words):
    """A command that reads a missing store ends with an error and writes nothing."""
    result = invoke(*words, "--store", "typo")
    assert result.exit_code == 2, result.output
    assert "no store at typo" in result.output or "no folder" in result.output
    assert names(working_folder) == {"little.yaml", "mistaken.yaml"}


def test_a_busy_port_is_an_error(working_folder):
    """If its port is busy, `study ui` ends with exit code 2 and prints no address."""
    (working_folder / "studies").mkdir()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = invoke("ui", "--port", str(port))
    assert result.exit_code == 2
    assert f"can't listen on port {port} of this machine: another program listens there" in result.output
    assert "--port 0" in result.output
    assert "http://" not in result.output
    assert not names(working_folder / "studies")


def test_schema_is_json(working_folder):
    """The schema is JSON that names the models."""
    assert "NAC-mul-sigma" in json.dumps(json.loads(invoke("schema").output))
