"""User-supplied column roles: metrics and success."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.errors import InputError
from study.outcomes import Outcomes, gather, read_source, wanted
from tests.study.builders import summarised_by

RUNS = "width,seed,val_mse,note\n8,0,0.1,x\n8,1,0.3,y\n16,0,,z\n16,1,inf,v\n16,2,-0.2,w\n"


def read(path, text=RUNS, metrics=(), success=None, by=None) -> Outcomes:
    """Read a file with this text and these column roles."""
    path.write_text(text, encoding="utf-8")
    say = wanted(metrics, success)
    return gather([read_source(path, metrics=say.columns)], by, say)


@pytest.mark.parametrize(
    ("success", "outcomes"),
    [
        ("val_mse < 0.3", ["solved", "unsolved", "diverged", "diverged", "solved"]),
        ("val_mse<=0.3", ["solved", "solved", "diverged", "diverged", "solved"]),
        ("val_mse > 1e-1", ["unsolved", "solved", "diverged", "diverged", "unsolved"]),
        (" val_mse >= 1e-1 ", ["solved", "solved", "diverged", "diverged", "unsolved"]),
    ],
)
def test_success_is_judged_by_a_column(tmp_path, success, outcomes):
    """A finite number is solved or unsolved; any other value has diverged."""
    table_read = read(tmp_path / "a.csv", success=success)
    assert table_read.table["outcome"].to_pylist() == outcomes
    assert table_read.by == ("width",)
    assert table_read.metrics == {}


def test_a_metric_alone_gives_finished_or_diverged_trials(tmp_path):
    """Without a criterion, trials with a finite number have finished, others diverged, and the rate is missing."""
    table_read = read(tmp_path / "a.csv", metrics=["val_mse"])
    assert table_read.table["outcome"].to_pylist() == ["finished", "finished", "diverged", "diverged", "finished"]
    first, second = summarised_by(table_read.table, table_read.by, table_read.metrics)
    assert (first.metrics["val_mse"].mean, first.metrics["val_mse"].count) == (0.2, 2)
    assert (second.metrics["val_mse"].count, second.ended, second.success_rate) == (1, 3, None)


def test_trials_that_failed_stay_failed(tmp_path):
    """A trial that the file marks as failed has no result, whatever the column holds."""
    text = "seed,outcome,loss\n0,failed,0.1\n1,unsolved,0.1\n2,FAILED,\n"
    table_read = read(tmp_path / "a.csv", text, success="loss < 1")
    assert table_read.table["outcome"].to_pylist() == ["failed", "solved", "failed"]


def test_outcomes_of_the_file_count_without_a_criterion(tmp_path):
    """With a column of outcomes, a metric is averaged beside the success rate."""
    table_read = read(tmp_path / "a.csv", "seed,solved,wait\n0,true,3\n1,false,5\n", metrics=["wait:lower"])
    (group,) = summarised_by(table_read.table, table_read.by, table_read.metrics)
    assert (group.success_rate, group.metrics["wait"].mean) == (0.5, 4.0)


@pytest.mark.parametrize(
    ("metric", "success", "is_higher_better"),
    [
        ("acc", None, True),
        ("acc:higher", None, True),
        ("acc:lower", "acc > 0.9", False),
        ("acc", "acc > 0.9", True),
        ("acc", "acc <= 0.9", False),
        ("acc", "loss > 0.9", True),
    ],
)
def test_the_direction_is_given_or_follows_from_success(metric, success, is_higher_better):
    """The direction comes from a suffix, else from success on the same column, else from the metric's name."""
    assert wanted([metric], success).metrics["acc"].higher_is_better == is_higher_better


def test_an_unknown_direction_must_be_given(tmp_path):
    """A loss is better if lower; for an unknown name the user must give the direction."""
    assert not wanted(["val_mse"]).metrics["val_mse"].higher_is_better
    text = "seed,quality\n0,3\n1,5\n"
    with pytest.raises(
        InputError, match=r"which values of quality are better.*--metric quality:higher or quality:lower"
    ):
        read(tmp_path / "a.csv", text, metrics=["quality"])
    assert read(tmp_path / "a.csv", text, metrics=["quality:higher"]).metrics["quality"].higher_is_better


@given(
    column=st.text("abc xyz_:.-", min_size=1).filter(lambda name: name.strip() == name),
    operator=st.sampled_from(["<", "<=", ">", ">="]),
    threshold=st.floats(allow_nan=False, allow_infinity=False),
    spaces=st.sampled_from(["", " ", "  "]),
)
def test_success_reads_back(column, operator, threshold, spaces):
    """Column, operator and number round-trip, with any spaces."""
    success = wanted(success=f"{spaces}{column}{spaces}{operator}{spaces}{threshold!r}{spaces}").success
    assert (success.column, success.operator, success.threshold) == (column, operator, threshold)


@pytest.mark.parametrize("text", ["", "val_mse", "val_mse < ", "< 3", "val_mse = 3", "val_mse < nan", "val_mse < low"])
def test_success_that_cannot_be_read_is_refused(text):
    """A success criterion that can't be parsed is refused with the required format."""
    with pytest.raises(InputError, match="must be a column, one of < <= > >=, and a number"):
        wanted(success=text)


def test_possible_metrics_are_named(tmp_path):
    """A file without outcomes is refused with a list of its numeric columns, without hyperparameters."""
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.csv")
    assert "--success 'val_mse < 0.01'" in str(caught.value)
    assert str(caught.value).endswith("its columns of numbers are val_mse")


def test_metrics_with_few_values_are_recognised(tmp_path):
    """Columns that differ between two seeds are metrics, even with few values; columns crossed with seeds aren't."""
    rows = [(width, seed, width / (3 + seed), int(width + seed > 12)) for width in (8, 12) for seed in (0, 1)]
    text = "\n".join(["width,seed,loss,errors", *(",".join(map(str, row)) for row in rows)])
    with pytest.raises(InputError, match=r"its columns of numbers are loss, errors$"):
        read(tmp_path / "a.csv", text)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"metrics": ["val_mes"]}, "no column val_mes; did you mean val_mse?"),
        ({"success": "qqq < 3"}, "no column qqq; choose from width, seed, val_mse, note"),
        ({"metrics": ["note"]}, "row 1: note: 'x' isn't a number"),
        ({"success": "note < 3"}, "row 2: note: 'y' isn't a number"),
    ],
)
def test_columns_that_cannot_be_metrics_are_refused(tmp_path, roles, words):
    """A missing or non-numeric column is named with the nearest name or the fault."""
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.csv", **roles)
    assert words in str(caught.value)


def test_an_export_of_mlflow_has_its_metrics(tmp_path):
    """A metric of an MLflow export is found by its name without the prefix."""
    text = "run_id,params.seed,params.width,metrics.val_acc\nr1,0,8,0.5\nr2,1,8,0.75\n"
    table_read = read(tmp_path / "a.csv", text, metrics=["val_acc:higher"])
    assert table_read.table["val_acc"].to_pylist() == [0.5, 0.75]
