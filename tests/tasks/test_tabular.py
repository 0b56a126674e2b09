"""The tabular task: splits, scales and metrics of a table, and refusals of unsuitable tables."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from study.interface.data import provide_data
from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.tabular.example import NOISE, OUTPUTS, example_table
from tasks.tabular.split import PARTS, extrapolating_split, labelled_split, random_split
from tasks.tabular.task import Tabular
from units.nalu import NALU

RAW = {"inputs_scale": "none", "outputs_scale": "none"}


def digest(numbers: np.ndarray) -> str:
    return sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]


def tabular(folder: Path, content: str, **fields: Any) -> Tabular:
    """Write a file, and return a task that uses it."""
    path = folder / "ingots.csv"
    path.write_text(content)
    name = f"sha256:{sha256(content.encode()).hexdigest()}"
    provide_data(name, path)
    return Tabular(**({"file": name, "outputs": ("y",), "batch_size": 1} | fields))


def rows(task: Tabular, part: str) -> dict[str, torch.Tensor]:
    purpose = Purpose[part.upper()]
    return task.evaluation(evaluation_stream(purpose), purpose)


# --- the example ---------------------------------------------------------------------------------------


def test_the_example_has_the_same_bits_everywhere() -> None:
    """The example's numbers never change, since results are stored under the name `example`."""
    table = example_table()
    assert digest(np.stack(list(table.numbers.values()), 1)) == "ca0c5b12b18acc10"


def test_the_example_follows_its_formula() -> None:
    """Inputs fill [1, 5), and outputs are the formula plus independent noise of 1 %."""
    x = example_table().numbers
    exact = {"sum": x["x1"] + x["x2"] + x["x3"], "product": x["x1"] * x["x4"], "quotient": x["x1"] / x["x5"]}
    inputs = np.stack([x[f"x{i + 1}"] for i in range(28)])
    assert (inputs.min() >= 1, inputs.max() < 5) == (True, True)
    assert np.abs(np.corrcoef(inputs) - np.eye(28)).max() < 0.07
    noise = np.stack([x[name] / exact[name] - 1 for name in OUTPUTS])
    np.testing.assert_allclose(noise.std(1), NOISE, rtol=0.05)
    np.testing.assert_allclose(noise.mean(1), 0, atol=4 * NOISE / len(noise[0]) ** 0.5)
    assert np.abs(np.corrcoef(noise) - np.eye(3)).max() < 0.07


# --- the split ------------------------------------------------------------------------------------------


def test_splits_never_change() -> None:
    """Each part has the same rows in the same order as in every version."""
    at_random = random_split(4000, 0)
    beyond = extrapolating_split(example_table().numbers["x1"], 0.8, 0)
    assert [digest(at_random[part]) for part in PARTS] == ["334265a007f353f2", "66864a4f14b0580b", "e310b97cd308a91f"]
    assert [digest(beyond[part]) for part in PARTS] == ["a642a6e44baf9bae", "61fde87390bd7bb7", "e74670eb35b81fa3"]
    assert digest(random_split(4000, 1)["test"]) != digest(at_random["test"])


@pytest.mark.parametrize("count", [7, 100, 4000])
def test_every_row_is_in_one_part(count: int) -> None:
    """Each row is in one part; validation and test get 15 % each, or validation 15/85 of the rows in the quantile."""
    column = np.arange(count, dtype=float)
    splits = [random_split(count, 3), extrapolating_split(column, 0.8, 3)]
    splits.append(labelled_split(np.array([PARTS[i % 3] for i in range(count)])))
    for split in splits:
        assert sorted(np.concatenate(list(split.values())).tolist()) == list(range(count))
    at_random, beyond, labelled = splits
    assert [len(at_random[part]) for part in ("validation", "test")] == [count * 15 // 100] * 2
    assert beyond["test"].min() == max(max(beyond[part].tolist(), default=0) for part in ("train", "validation")) + 1
    assert len(beyond["validation"]) == (count - len(beyond["test"])) * 15 // 85
    assert labelled["validation"].tolist() == list(range(1, count, 3))


def test_rows_beyond_the_quantile_are_tested() -> None:
    """Rows beyond the quantile are for testing only; rows at the quantile aren't."""
    task = Tabular(split="extrapolate", split_column="x1", split_above=0.8, **RAW)
    assert task.rows == {"train": 2636, "validation": 564, "test": 800, "dropped": 0}
    x1 = {part: rows(task, part)["inputs"][:, 0] for part in PARTS}
    assert max(x1["train"].max(), x1["validation"].max()) < x1["test"].min()
    assert extrapolating_split(np.array([1.0, 1, 1, 2, 2]), 0.5, 0)["test"].size == 2


def test_rows_may_be_labelled(tmp_path: Path) -> None:
    """The column of labels isn't an input, and a row is in the part of its label."""
    content = "x,part,y\n1,test,1\n2,train,2\n3,validation,3\n4,train,4\n,test,5\n"
    task = tabular(tmp_path, content, split="column", split_column="part", missing="drop", **RAW)
    assert task.rows == {"train": 2, "validation": 1, "test": 1, "dropped": 1}
    assert {part: rows(task, part)["inputs"].flatten().tolist() for part in PARTS} == {
        "train": [2, 4], "validation": [3], "test": [1]
    }  # fmt: skip


def test_training_goes_through_all_rows_once_an_epoch() -> None:
    """Each trial draws batches of the training rows in its own order; the split is the same for all."""
    task = Tabular(batch_size=700)
    for seed in (0, 1):
        drawn = torch.cat([task.draw(Stream([seed], i, Purpose.TRAIN))[1] for i in range(4)])
        assert sorted(drawn[:, 0].tolist()) == sorted(rows(task, "train")["outputs"][:, 0].tolist())
    first, second = (task.draw(Stream([seed], 0, Purpose.TRAIN))[0] for seed in (0, 1))
    assert not torch.equal(first, second)


# --- scales and metrics --------------------------------------------------------------------------------


def test_columns_are_scaled_by_the_training_rows() -> None:
    """Over the training rows, columns have mean 0 and deviation 1, or only deviation 1; a constant may be added."""
    raw, standard = Tabular(**RAW), Tabular()
    deviation = Tabular(inputs_scale="deviation", outputs_scale="deviation", constant=True)
    for part in ("inputs", "outputs"):
        trained, tested = rows(raw, "train")[part].double(), rows(raw, "test")[part].double()
        mean, sd = trained.mean(0), trained.std(0, correction=0)
        torch.testing.assert_close(rows(standard, "test")[part].double(), (tested - mean) / sd, rtol=1e-5, atol=1e-6)
        scaled = rows(deviation, "test")[part].double()
        torch.testing.assert_close(scaled[:, : len(sd)], tested / sd, rtol=1e-5, atol=1e-6)
    assert (rows(deviation, "test")["inputs"][:, -1] == 1).all()
    assert (raw.sizes(), deviation.sizes()) == ((28, 3), (29, 3))


def test_a_constant_input_stays_finite(tmp_path: Path) -> None:
    """A column without spread is shifted, and not divided by zero."""
    content = "x,c,y\n" + "".join(f"{i},7,{i * i}\n" for i in range(20))
    inputs = rows(tabular(tmp_path, content), "train")["inputs"]
    assert (inputs[:, 1] == 0).all()


@pytest.mark.parametrize("scale", ["standard", "deviation", "none"])
def test_metrics_are_in_the_units_of_the_file(tmp_path: Path, scale: str) -> None:
    """A model that predicts 2 x + 1 has the errors computed by hand, with any scale of outputs."""
    y = [4.0, 0.0, 10.0, 2.0, 30.0, 9.0]
    parts = ["train", "train", "train", "validation", "test", "test"]
    lines = [f"{i},{part},{value},{-value}" for i, (part, value) in enumerate(zip(parts, y, strict=True))]
    content = "\n".join(["x,part,tensile strength,z", *lines])
    fields = {"split": "column", "split_column": "part", "inputs_scale": "none", "outputs_scale": scale}
    task = tabular(tmp_path, content, outputs=("tensile strength", "z"), **fields)
    trained = np.array([[value, -value] for value in y[:3]])
    mean, sd = trained.mean(0), trained.std(0)
    shift = torch.tensor(mean if scale == "standard" else [0.0, 0.0], dtype=torch.float32)
    size = torch.tensor([1.0, 1.0] if scale == "none" else sd, dtype=torch.float32)

    def measured(part: str) -> dict[str, float]:
        batch = rows(task, part)
        predicted = (2 * batch["inputs"] + 1) * torch.tensor([1.0, -1.0])
        return {name: value.item() for name, value in task.measure((predicted - shift) / size, batch).items()}

    test = measured("test")
    errors = np.array([9.0, 11.0]) - y[4:]  # predictions 2 x + 1 for rows 4 and 5
    from_mean = np.array(y[4:]) - mean[0]
    for name in ("tensile_strength", "z"):
        assert test[f"mae_{name}"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
        assert test[f"rmse_{name}"] == pytest.approx(np.square(errors).mean() ** 0.5, rel=1e-5)
        assert test[f"relative_mae_{name}"] == pytest.approx(np.abs(errors).mean() / np.abs(from_mean).mean(), rel=1e-5)
        r2 = 1 - np.square(errors).mean() / np.square(from_mean).mean()
        assert test[f"r2_{name}"] == pytest.approx(r2, rel=1e-4)
    assert test["loss"] == pytest.approx(np.square(errors / sd[0]).mean(), rel=1e-4)
    assert measured("validation") == {"loss": pytest.approx(((7 - 2) / sd[0]) ** 2, rel=1e-4)}
    assert {f"test_{name}" for name in test} | {"validation_loss", "test_sparsity_error"} == set(task.measured())
    assert task.measured()["test_mae_tensile_strength"].title == "MAE of tensile strength"


def test_predicting_the_mean_is_the_baseline() -> None:
    """Predicting the mean has an R² of 0 and a relative error of 1; infinite errors count as 1e30."""
    task = Tabular(split="extrapolate", split_column="x1")
    batch = rows(task, "test")
    metrics = task.measure(torch.zeros_like(batch["outputs"]), batch)
    for name in OUTPUTS:
        assert metrics[f"r2_{name}"].item() == pytest.approx(0, abs=1e-5)
        assert metrics[f"relative_mae_{name}"].item() == pytest.approx(1, rel=1e-5)
    exploded = task.measure(torch.full_like(batch["outputs"], float("inf")), batch)
    assert all(torch.isfinite(value) for value in exploded.values())
    assert exploded["loss"].item() == exploded["mae_sum"].item() == pytest.approx(1e30)


# --- models --------------------------------------------------------------------------------------------


def test_models_have_the_sizes_of_the_table() -> None:
    """Dense networks have layers of 64 with ReLU, and optionally a NALU last; networks of units are input to output."""
    task = Tabular(constant=True)
    mlp = builder_of(task, "mlp")()
    assert [tuple(layer.weight.shape) for layer in mlp[::2]] == [(64, 29), (64, 64), (3, 64)]
    assert [type(layer) for layer in mlp[1::2]] == [nn.ReLU, nn.ReLU]
    nalu = builder_of(task, "mlp-NALU")(hidden_sizes=(5,))
    assert isinstance(nalu[-1], NALU)
    assert (nalu[-1].in_features, nalu[-1].out_features) == (5, 3)
    linear = builder_of(task, "linear")
    assert (linear().weight.shape, linear().bias.shape) == ((3, 29), (3,))
    assert linear() is not linear()
    for name in ("NALU", "NAC-add", "NMU", "gated-NAU-NMU"):
        assert builder_of(task, name)(hidden_size=8)(torch.ones(2, 29)).shape == (2, 3)


def test_exact_weights_predict_extrapolated_rows() -> None:
    """An NAU that selects and an NMU that multiplies are exact up to the noise on extrapolated rows."""
    task = Tabular(split="extrapolate", split_column="x1", **RAW)
    network = builder_of(task, "NMU")(hidden_size=3)
    with torch.no_grad():
        first, second = (layer.weight.zero_() for layer in network)
        first[0, :3] = first[1, 0] = first[2, 3] = 1  # hidden units: x1 + x2 + x3, x1 and x4
        second[0, 0] = second[1, 1] = second[1, 2] = 1
    batch = rows(task, "test")
    metrics = task.measure(network(batch["inputs"]), batch)
    assert metrics["r2_sum"] > 0.99
    assert metrics["r2_product"] > 0.999
    assert metrics["r2_quotient"] < 0.5
    relative = metrics["mae_product"] / batch["outputs"][:, 1].mean()
    assert relative.item() == pytest.approx(NOISE * (2 / torch.pi) ** 0.5, rel=0.1)


# --- refusals -------------------------------------------------------------------------------------------

TEN = "x,y\n" + "".join(f"{i},{i}\n" for i in range(10))


@pytest.mark.parametrize(
    ("content", "fields", "message"),
    [
        (TEN, {"batch_size": 9}, "batch_size must be at most 8, the number of training rows, but got 9"),
        (TEN, {"outputs": ()}, "outputs must name columns of the file"),
        (TEN, {"outputs": ("x", "y")}, "inputs must name columns, but every column is an output"),
        (TEN, {"inputs": ("x", "y")}, "must be different columns, but 'y' is given twice"),
        (TEN, {"outputs": ("z",)}, "ingots.csv, line 1: must have a column 'z', but has none; the nearest name is"),
        (TEN, {"split": "extrapolate"}, "split_column must name a column, since split is extrapolate"),
        (TEN, {"split": "column", "split_column": "x", "inputs": ("y",), "outputs": ("y",)}, "'y' is given twice"),
        ("x,y\n1,2\n3,4\n", {}, "split random must leave rows for .*, but of 2 it leaves none for validation"),
        ("x,y\n", {}, "of 0 it leaves none for train"),
        ("x,y\n", {"split": "extrapolate", "split_column": "x"}, "of 0 it leaves none for train"),
        (TEN.replace(",9", ",holdout"), {}, "line 11, column 'y': must be a number with a decimal point"),
        ("x,y\n" + 20 * "1,2\n", {}, "output 'y' must vary among the training rows, but is always 2"),
        (
            "c,a b,a.b\n" + "".join(f"{i},{i},{i}\n" for i in range(10)),
            {"outputs": ("a b", "a.b")},
            "must differ in their letters and digits",
        ),
    ],
)
def test_unsuitable_tables_are_refused(tmp_path: Path, content: str, fields: dict[str, Any], message: str) -> None:
    """The task's constructor refuses an unsuitable table, before any training."""
    with pytest.raises(ValueError, match=message):
        tabular(tmp_path, content, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"outputs": ("som",)}, "'som' must be a column of the example"),
        ({"split": "column", "split_column": "x1"}, "which has no column of labels"),
        ({"file": f"sha256:{64 * '0'}"}, "outputs must name columns"),
        ({"file": f"sha256:{64 * '0'}", "outputs": ("y",)}, "must be the digest of data that the study file names"),
    ],
)
def test_missing_columns_and_files_are_refused(fields: dict[str, Any], message: str) -> None:
    """A wrong column of the example is refused, and so is a digest without a file in this process."""
    with pytest.raises(ValueError, match=message):
        Tabular(**fields)
