"""Results of programs: numbers by step, from growing files and from output."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.engine.program.results import OutputReader, Reader, ResultsError, Steps, reader_of
from study.interface.program import Results, ResultsKind

METRICS = ("loss", "accuracy")


class Written:
    """A program's files or output, and the numbers read from them.

    Args:
        folder: the trial's folder.
        results: description of its results.
    """

    def __init__(self, folder: Path, results: Results) -> None:
        self.folder, self.path = folder, folder / results.where
        self.steps = Steps()
        self.reader: Reader = reader_of(results, folder, self.steps)

    def write(self, text: str | bytes, mode: str = "ab") -> Written:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open(mode) as file:
            file.write(text.encode() if isinstance(text, str) else text)
        return self

    def print(self, text: str | bytes) -> Written:
        assert isinstance(self.reader, OutputReader)
        self.reader.feed(text.encode() if isinstance(text, str) else text)
        return self

    def so_far(self) -> dict[int, dict[str, float]]:
        """Read while the program runs."""
        self.reader.read(has_ended=False)
        return self.steps.numbers

    def at_the_end(self) -> dict[int, dict[str, float]]:
        """Read after the program has ended."""
        self.reader.read(has_ended=True)
        return self.steps.numbers

    def mistake(self) -> str:
        with pytest.raises(ResultsError) as caught:
            self.at_the_end()
        return str(caught.value)


Make = Callable[..., Written]


@pytest.fixture
def results(tmp_path: Path) -> Make:
    """Return a function that makes a folder with results: ``results("csv", "log.csv", step="epoch")``."""

    def make(kind: ResultsKind, location: str, step: str = "") -> Written:
        return Written(tmp_path, Results(kind, location, step))

    return make


# --- Steps


def complete(steps: Steps, *metrics: str) -> list[tuple[int, dict[str, float], dict[str, float]]]:
    return list(steps.complete(metrics or METRICS))


def test_numbers_are_merged_by_step() -> None:
    """Numbers are merged by step in any order; a later number replaces an earlier one of its step."""
    steps = Steps()
    steps.add(2, {"loss": 0.5})
    steps.add(1, {"accuracy": 0.1, "loss": 3.0})
    steps.add(2, {"accuracy": 0.2, "rate": 9.0})
    steps.add(1, {"loss": 2.0})
    assert complete(steps) == [
        (1, {"loss": 2.0, "accuracy": 0.1}, {}),
        (2, {"loss": 0.5, "accuracy": 0.2}, {"rate": 9.0}),
    ]


def test_values_are_carried_forward() -> None:
    """A rarely measured metric keeps its value until its next one; steps are those of the first metric.

    A step counts only once every metric has a value, and later values don't apply to earlier steps.
    """
    steps = Steps()
    for step in range(5):
        steps.add(step, {"loss": 1.0 - step / 10})
    steps.add(1, {"accuracy": 0.1})
    steps.add(3, {"accuracy": 0.3})
    steps.add(9, {"accuracy": 0.9})
    assert [(step, numbers["accuracy"]) for step, numbers, _ in complete(steps)] == [
        (1, 0.1), (2, 0.1), (3, 0.3), (4, 0.3)
    ]  # fmt: skip
    assert [step for step, _, _ in complete(steps, "accuracy")] == [1, 3, 9]
    assert complete(steps, "loss", "nosuch") == []
    assert (steps.missing(["loss", "nosuch"]), steps.missing(METRICS)) == (["nosuch"], [])


def test_repeated_numbers_begin_a_step() -> None:
    """Without step numbers, a repeated metric begins the next step."""
    steps = Steps()
    steps.add(None, {"loss": 1.0})
    steps.add(None, {"accuracy": 0.1})
    assert not steps.are_numbered
    steps.add(None, {"loss": 0.5})
    steps.add(None, {"accuracy": 0.2})
    assert steps.are_numbered
    assert complete(steps) == [(0, {"loss": 1.0, "accuracy": 0.1}, {}), (1, {"loss": 0.5, "accuracy": 0.2}, {})]


# --- JSON


def test_an_object_of_json_is_one_result(results: Make) -> None:
    """The file is read at the end; only numbers and booleans count, and nested names are joined by dots."""
    written = results("file", "out/metrics.json")
    assert written.at_the_end() == {}
    content = {"loss": 0.5, "test": {"accuracy": 1, "by": {"a": 2}}, "best": True, "name": "x", "none": None}
    written.write(json.dumps(content))
    assert written.so_far() == {}
    assert written.at_the_end() == {0: {"loss": 0.5, "test.accuracy": 1.0, "test.by.a": 2.0, "best": 1.0}}
    assert not written.steps.are_numbered


def test_an_object_of_json_may_have_a_step(results: Make) -> None:
    """An object with a step is one result rather than a curve."""
    written = results("file", "metrics.json").write('{"loss": 1, "step": 7}')
    assert (written.at_the_end(), written.steps.are_numbered) == ({7: {"loss": 1.0}}, False)


@pytest.mark.parametrize(
    ("text", "step", "numbers"),
    [
        ('[{"loss": 2}, {"loss": 1}]', "", {0: {"loss": 2.0}, 1: {"loss": 1.0}}),
        ('[{"step": 5, "loss": 2}, {"step": 9, "loss": 1}]', "", {5: {"loss": 2.0}, 9: {"loss": 1.0}}),
        (
            '{"loss": [2, 1], "accuracy": [0, 1]}',
            "",
            {0: {"loss": 2.0, "accuracy": 0.0}, 1: {"loss": 1.0, "accuracy": 1.0}},
        ),
        ('{"loss": [2, 1], "epoch": [1, 2], "name": "a"}', "epoch", {1: {"loss": 2.0}, 2: {"loss": 1.0}}),
        ('{"loss": []}', "", {}),
        ("[]", "", {}),
        ('{"loss": NaN, "other": -Infinity}', "", {0: {"loss": math.nan, "other": -math.inf}}),
        ('{"loss": 1e999, "n": 1' + "0" * 400 + "}", "", {0: {"loss": math.inf, "n": math.inf}}),
        ('{"loss": [2, 1], "accuracy": [0]}', "", {}),
    ],
)
def test_json_may_have_curves(results: Make, text: str, step: str, numbers: dict[int, Any]) -> None:
    """A list of objects, or an object of lists of equal length, is a curve."""
    written = results("file", "metrics.json", step).write(text)
    assert str(written.at_the_end()) == str(numbers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"loss": 0.', "metrics.json isn't valid JSON: Expecting ',' delimiter: line 1 column "),
        ("", "metrics.json isn't valid JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff{}", "metrics.json isn't valid JSON: 'utf-8' codec can't decode byte 0xff in position 0: "
         "invalid start byte"),
        ("0.5", "metrics.json must be an object of numbers, or a list of such objects"),
        ("[1, 2]", "metrics.json must be an object of numbers, or a list of such objects"),
        ("[" * 100_000, "metrics.json isn't valid JSON: maximum recursion depth exceeded"),
        ('{"step": 0.5, "loss": 1}', "metrics.json has step 0.5, but steps must be integers of at least 0"),
        ('{"step": -1, "loss": 1}', "metrics.json has step -1, but steps must be integers of at least 0"),
        ('{"step": NaN, "loss": 1}', "metrics.json has step nan, but steps must be integers of at least 0"),
    ],
)  # fmt: skip
def test_invalid_json_is_an_error(results: Make, text: str | bytes, message: str) -> None:
    assert results("file", "metrics.json").write(text).mistake().startswith(message)


def test_a_missing_step_is_an_error(results: Make) -> None:
    """The error lists the present names."""
    written = results("file", "metrics.json", "epoch").write('{"loss": 1, "Epoch": 2}')
    assert written.mistake() == "metrics.json has no epoch, the step according to results; it has loss, Epoch"


# --- files that grow


def test_lines_of_json_are_read_while_they_are_written(results: Make) -> None:
    """A line counts once it is complete, and the last one at the end; blank lines are ignored."""
    written = results("file", "log.jsonl")
    assert written.so_far() == {}
    assert written.write('{"step": 0, "loss": 2}\r\n\n{"step": 1, "lo').so_far() == {0: {"loss": 2.0}}
    assert written.write('ss": 1}').so_far() == {0: {"loss": 2.0}}
    assert written.at_the_end() == {0: {"loss": 2.0}, 1: {"loss": 1.0}}
    assert written.write("\n{}\n").at_the_end() == {0: {"loss": 2.0}, 1: {"loss": 1.0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"loss": 1', "line 2 of log.ndjson isn't JSON: Expecting ',' delimiter"),
        ("loss 1", "line 2 of log.ndjson isn't JSON: Expecting value"),
        ("[1]", "line 2 of log.ndjson must be an object of numbers"),
        (b"\xe9", "line 2 of log.ndjson isn't UTF-8: unexpected end of data at byte 0"),
    ],
)
def test_an_invalid_line_of_json_is_an_error(results: Make, line: str | bytes, message: str) -> None:
    assert results("file", "log.ndjson").write('{"loss": 2}\n').write(line).mistake().startswith(message)


def test_columns_of_a_csv_file_are_numbers(results: Make) -> None:
    """Columns have the names of the header; texts and empty values are ignored."""
    written = results("csv", "logs/**/metrics.csv")
    written.path = written.folder / "logs" / "version_0" / "metrics.csv"
    written.write('\ufeffepoch, step ,loss,"test, best",name\n0,10,2,,a\n1,')
    assert written.so_far() == {10: {"epoch": 0.0, "loss": 2.0}}
    written.write('20,nan,"0.5","b, c"\n,30,inf,1e-3,')
    assert str(written.at_the_end()) == str({
        10: {"epoch": 0.0, "loss": 2.0},
        20: {"epoch": 1.0, "loss": math.nan, "test, best": 0.5},
        30: {"loss": math.inf, "test, best": 0.001},
    })  # fmt: skip
    assert written.reader.where == "logs/**/metrics.csv"


def test_a_column_may_be_named_as_the_step(results: Make) -> None:
    """Without a step column, rows are counted; a missing column is an error."""
    rows = "epoch,loss\n5,2\n6,1\n"
    assert results("csv", "a.csv", "epoch").write(rows).at_the_end() == {5: {"loss": 2.0}, 6: {"loss": 1.0}}
    assert list(results("csv", "b.csv").write(rows).at_the_end()) == [0, 1]
    assert list(results("csv", "blank.csv").write("\n" + rows).at_the_end()) == [0, 1]
    message = results("csv", "c.csv", "Epoch").write(rows).mistake()
    assert message == "line 2 of c.csv has no Epoch, the step according to results; it has epoch, loss"


def test_rows_of_two_kinds_are_merged_by_step(results: Make) -> None:
    """Rows of training and of validation, as Lightning writes them, are merged by step."""
    rows = "accuracy,step,loss\n,1,2.0\n0.5,1,\n,2,1.0\n0.6,2,\n"
    written = results("csv", "metrics.csv").write(rows)
    assert written.at_the_end() == {1: {"loss": 2.0, "accuracy": 0.5}, 2: {"loss": 1.0, "accuracy": 0.6}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step,loss\n1,2\n3\n", "line 3 of log.csv has 1 value, and the header 2 columns"),
        ("step,loss\n1,2,3\n", "line 2 of log.csv has 3 values, and the header 2 columns"),
        ("step,loss\n1.5,2\n", "line 2 of log.csv has step 1.5, but steps must be integers of at least 0"),
        (
            "step,loss\n1,0.5\r0.4\n",
            "line 2 of log.csv isn't a row of comma-separated values: new-line character seen in unquoted field - "
            "do you need to open the file in universal-newline mode?",
        ),
        ("loss,größe\n1,2\n".encode("latin-1"), "line 1 of log.csv isn't UTF-8: invalid start byte at byte 7"),
        ("loss\n1\n".encode("utf-16"), "line 1 of log.csv isn't UTF-8: invalid start byte at byte 0"),
    ],
)  # fmt: skip
def test_a_broken_row_is_an_error(results: Make, text: str | bytes, message: str) -> None:
    assert results("csv", "log.csv").write(text).mistake() == message


def test_a_rewritten_file_is_read_again(results: Make) -> None:
    """Earlier content of a rewritten file is dropped, including its header."""
    written = results("csv", "log.csv").write("step,loss\n0,2\n1,1\n2,0")
    assert written.so_far() == {0: {"loss": 2.0}, 1: {"loss": 1.0}}
    assert written.write("loss,step\n3,7\n", "wb").so_far() == {7: {"loss": 3.0}}
    assert written.write("4,8").at_the_end() == {7: {"loss": 3.0}, 8: {"loss": 4.0}}
    written.path.unlink()
    assert list(written.so_far()) == [7, 8]


@given(st.lists(st.integers(1, 20), max_size=30))
def test_a_file_is_read_the_same_in_any_pieces(tmp_path_factory: pytest.TempPathFactory, pieces: list[int]) -> None:
    written = Written(tmp_path_factory.mktemp("grows"), Results("csv", "log.csv"))
    text = "step,loss\r\n" + "".join(f"{step},{step / 8}\r\n" for step in range(20))
    for size in pieces:
        written.write(text[:size]).so_far()
        text = text[size:]
    assert written.write(text).at_the_end() == {step: {"loss": step / 8} for step in range(20)}


def test_a_pattern_must_name_one_file(results: Make) -> None:
    """Two matches are an error; folders don't match."""
    written = results("file", "**/metrics.json")
    for name in ("a", "b", "metrics.json"):
        (written.folder / name).mkdir()
    written.path = written.folder / "a" / "metrics.json"
    assert written.write('{"loss": 1}').at_the_end() == {0: {"loss": 1.0}}
    other = Written(written.folder, Results("file", "**/metrics.json"))
    other.path = written.folder / "b" / "metrics.json"
    message = "**/metrics.json matches 2 files, such as a/metrics.json, b/metrics.json: name exactly one"
    assert other.write("{}").mistake() == message


# --- output


def test_lines_of_json_among_other_output(results: Make) -> None:
    """Other lines are ignored; a line may arrive in pieces, and the last one needs no line end."""
    written = results("lines", "json")
    assert written.print('starting {x}\n{"step": 1, "loss": 2}\n  {"step": 2,').so_far() == {1: {"loss": 2.0}}
    assert written.print(b' "loss": 1}\r\n\xff\xfe\n{"step": 3, "loss": 0.5}').so_far()[2] == {"loss": 1.0}
    assert written.reader.where == "the lines of JSON in its output"
    assert written.print(b"").at_the_end()[3] == {"loss": 0.5}


def test_a_line_that_only_looks_like_json_is_ignored(results: Make) -> None:
    """If results are missing, the description of the output quotes such a line, for example a printed dict."""
    written = results("lines", "json").print("{'loss': 1}\n{not json}\n")
    assert written.at_the_end() == {}
    assert written.reader.where == "its output, whose line \"{'loss': 1}\" isn't JSON"


def test_a_pattern_finds_numbers_in_lines(results: Make) -> None:
    """Each match counts, with its groups as names; groups without a match are ignored."""
    written = results("pattern", r"epoch (?P<step>\d+)|loss[=:] ?(?P<loss>[-+.\w]+)(?: acc (?P<accuracy>\S+))?")
    assert written.reader.where == "its output: no line matches the pattern"
    written.print("loss=2 acc 0.5\nnothing\nloss: nan loss=-1e-3\n")
    assert str(written.at_the_end()) == str({
        0: {"loss": 2.0, "accuracy": 0.5}, 1: {"loss": math.nan}, 2: {"loss": -0.001}
    })  # fmt: skip
    assert written.reader.where == "its output"


def test_progress_bars_are_lines(results: Make) -> None:
    """A carriage return ends a line, so that each update of a progress bar counts."""
    written = results("pattern", r"(?P<step>\d+)/9 .*loss (?P<loss>\S+)$")
    written.print("1/9 [#  ] loss 2\r2/9 [## ] loss 1\r3/9 [###]")
    assert written.so_far() == {1: {"loss": 2.0}, 2: {"loss": 1.0}}
    assert written.print(" loss 0.5").at_the_end()[3] == {"loss": 0.5}


def test_a_group_that_matches_no_number_is_an_error(results: Make) -> None:
    """The error has the line and a remedy for the pattern."""
    written = results("pattern", r"loss=(?P<loss>\S+)").print("epoch 1 loss=0.5, acc=1\n")
    assert written.mistake() == (
        "the pattern's group loss matched '0.5,', which isn't a number, in the line 'epoch 1 loss=0.5, acc=1': make "
        "the group narrower, such as [-+.0-9e]+"
    )


def test_steps_of_a_pattern_have_a_name(results: Make) -> None:
    written = results("pattern", r"(?P<epoch>\d+): (?P<loss>\S+)", "epoch").print("5: 2\n6: 1\n")
    assert written.at_the_end() == {5: {"loss": 2.0}, 6: {"loss": 1.0}}
    other = results("pattern", r"(?P<loss>\d+)", "epoch").print("5\n")
    assert other.mistake() == "the line '5' has no epoch, the step according to results; it has loss"


def test_output_without_line_ends_is_bounded(results: Make) -> None:
    """Output that is too long for a line is dropped, and later lines count."""
    written = results("lines", "json")
    for _ in range(4):
        written.print("x" * 2**20).so_far()
    assert written.print('{"loss": 1}\n').at_the_end() == {0: {"loss": 1.0}}


# --- folders


def test_scalars_of_tensorboard_are_read(results: Make) -> None:
    """Scalars of torch's writer are read by tag and step from a growing file; other events are ignored."""
    from torch.utils.tensorboard import SummaryWriter

    written = results("tensorboard", "runs")
    assert (written.so_far(), written.reader.where) == ({}, "the folder runs")
    with SummaryWriter(written.folder / "runs" / "now") as writer:
        writer.add_scalar("loss/train", 2.0, 1)
        writer.add_scalar("accuracy", 0.5, 1)
        writer.add_text("config", "lr 0.1")
        writer.flush()
        assert written.so_far() == {1: {"loss/train": 2.0, "accuracy": 0.5}}
        assert written.so_far() == {1: {"loss/train": 2.0, "accuracy": 0.5}}
        writer.add_scalar("loss/train", 1.0, 2)
        writer.add_scalar("loss/train", 0.5, 3, new_style=True)
    with SummaryWriter(written.folder / "runs" / "test") as writer:
        writer.add_scalar("accuracy", 0.75, 3)
    assert written.at_the_end() == {
        1: {"loss/train": 2.0, "accuracy": 0.5}, 2: {"loss/train": 1.0}, 3: {"loss/train": 0.5, "accuracy": 0.75}
    }  # fmt: skip


def test_an_incomplete_event_is_read_later(results: Make) -> None:
    """An incomplete event of a growing file is read once it is complete."""
    from torch.utils.tensorboard import SummaryWriter

    written = results("tensorboard", ".")
    with SummaryWriter(written.folder / "whole") as writer:
        writer.add_scalar("loss", 2.0, 1)
        writer.flush()
        (source,) = (written.folder / "whole").iterdir()
        size = source.stat().st_size
        writer.add_scalar("loss", 1.0, 2)
    content = source.read_bytes()
    source.unlink()
    written.path = written.folder / source.name
    assert written.write(content[: size + 9]).so_far() == {1: {"loss": 2.0}}
    assert written.write(content[size + 9 :]).at_the_end() == {1: {"loss": 2.0}, 2: {"loss": 1.0}}


MLFLOW = """
import mlflow
with mlflow.start_run():
    mlflow.log_param("lr", 0.1)
    for step in range(3):
        mlflow.log_metric("loss", 1 / (1 + step), step=step)
    mlflow.log_metrics({"test/accuracy": 0.5, "nan": float("nan")}, step=2)
"""


def test_metrics_of_mlflow_are_read(results: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics are read from the files that MLflow writes for a run."""
    written = results("mlflow", ".")
    assert (written.so_far(), written.reader.where) == ({}, "its folder")
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": str(written.folder / "mlruns"), "MLFLOW_ALLOW_FILE_STORE": "true"
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", MLFLOW], env=environment, cwd=written.folder, check=True, capture_output=True)
    numbers = {0: {"loss": 1.0}, 1: {"loss": 0.5}, 2: {"loss": 1 / 3, "test/accuracy": 0.5, "nan": math.nan}}
    by_name = {step: dict(sorted(step_numbers.items())) for step, step_numbers in written.so_far().items()}
    assert str(by_name) == str({step: dict(sorted(step_numbers.items())) for step, step_numbers in numbers.items()})
    (loss,) = written.folder.glob("mlruns/*/*/metrics/loss")
    with loss.open("a") as file:
        file.write("1700000000000 0.25 3\n1700000000000 0.1")
    assert written.at_the_end()[3] == {"loss": 0.25}


@pytest.mark.parametrize("line", ["1 0.5", "1 x 2", "1 0.5 x", "1 0.5 -1", "1 0.5 99999999999999999999", "\xff"])
def test_a_line_that_mlflow_does_not_write_is_an_error(results: Make, line: str) -> None:
    written = results("mlflow", ".")
    written.path = written.folder / "mlruns" / "0" / "a" / "meta.yaml"
    written.write("run_id: a\n").path = written.path.parent / "metrics" / "loss"
    assert written.write(f"1 0.5 1\n{line}\n").mistake() == (
        "mlruns/0/a/metrics/loss must have a time, a value and a step of at least 0 on each line, as MLflow writes "
        f"them, but has {line!r}"
    )
