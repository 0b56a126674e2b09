"""Tabular task: predict columns of a table from others, within or beyond the training rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.data import DataFile, data_path
from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.device import on_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.shared.errors import bounded
from tasks.tabular.example import OUTPUTS, example_table
from tasks.tabular.split import PARTS, Places, extrapolating_split, labelled_split, random_split
from tasks.tabular.table import Floats, Missing, Table, column_names, read_table
from units.nalu import NALU

EXAMPLE = "example"

Count = Annotated[int, Field(ge=1)]
Scale = Literal["standard", "deviation", "none"]


def dense_layer(input_size: int, output_size: int) -> nn.Linear:
    """Build a dense layer with bias.

    Args:
        input_size: number of inputs, >= 1.
        output_size: number of outputs, >= 1.
    """
    return nn.Linear(input_size, output_size)


def multilayer_perceptron(
    input_size: int,
    output_size: int,
    last: Callable[[int, int], nn.Module],
    *,
    hidden_sizes: tuple[Count, ...] = (64, 64),
) -> nn.Sequential:
    """Build input -> hidden -> ... -> output, with ReLU after each hidden layer.

    Args:
        input_size: number of inputs, >= 1.
        output_size: number of outputs, >= 1.
        last: builds the last layer, given its input size and its output size.
        hidden_sizes: sizes of the hidden layers; if empty, the last layer is the only one.

    Example:
        >>> multilayer_perceptron(28, 3, nn.Linear)(torch.ones(128, 28)).shape
        torch.Size([128, 3])
    """
    sizes = [input_size, *hidden_sizes]
    layers: list[nn.Module] = []
    for size, next_size in pairwise(sizes):
        layers += [nn.Linear(size, next_size), nn.ReLU()]
    return nn.Sequential(*layers, last(sizes[-1], output_size))


@dataclass(frozen=True, kw_only=True)
class Tabular(Task):
    """Predict the outputs of a table's rows from their inputs.

        L = mean over rows and outputs of (f(x) - (y - b) / s)²,   with b and s by `outputs_scale`

    The metrics are the mean absolute error and the root mean squared error, in the units of the file, and two errors
    relative to a baseline, the mean of the training rows:

        relative MAE = MAE / MAE of the mean,   R² = 1 - MSE / MSE of the mean

    Args:
        file: a CSV file with a header, or ``example``, the table of `tasks.tabular.example`.
        inputs: names of the input columns; if empty, all but the outputs and the labels of a ``column`` split.
        outputs: names of the output columns, required for a file; if empty, those of the example.
        missing: ``refuse`` raises an error for a row with a missing number; ``drop`` leaves out the row.
        split: ``random``, 70 % training, 15 % validation, 15 % test; ``column``, by the labels train, validation and
            test in `split_column`; ``extrapolate``, test rows are those with `split_column` above a quantile, and the
            others are split at random.
        split_column: column of labels for ``column``, of numbers for ``extrapolate``; no effect for ``random``.
        split_above: level of the quantile for ``extrapolate``.
        split_seed: seed of the order of the rows, the same for all trials.
        inputs_scale: ``standard`` subtracts the mean of the training rows and divides by their standard deviation;
            ``deviation`` only divides; ``none`` leaves inputs as in the file.
        outputs_scale: the same for the outputs, in the loss only.
        constant: if true, add an input that is always 1, for units without bias.
        batch_size: rows per batch.

    Raises:
        ValueError: if the fields, the file and its rows don't match.
        OSError: if the file can't be read.

    Example:
        >>> task = Tabular()
        >>> task.rows
        {'train': 2800, 'validation': 600, 'test': 600, 'dropped': 0}
        >>> [tuple(numbers.shape) for numbers in task.draw(Stream([0], 0, Purpose.TRAIN))]
        [(128, 28), (128, 3)]
    """

    model_names: ClassVar[tuple[str, ...]] = ("linear", "mlp", "mlp-NALU")

    file: Annotated[str, DataFile(known=(EXAMPLE,))] = EXAMPLE
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    missing: Missing = "refuse"
    split: Literal["random", "column", "extrapolate"] = "random"
    split_column: str = ""
    split_above: Annotated[float, Field(gt=0, lt=1)] = 0.8
    split_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    inputs_scale: Scale = "standard"
    outputs_scale: Scale = "standard"
    constant: bool = False
    batch_size: Count = 128

    def __post_init__(self) -> None:
        prepared = self._prepared
        if self.batch_size > len(prepared.batches["train"][0]):
            raise ValueError(
                f"batch_size must be at most {self.rows['train']:,}, the number of training rows, but got "
                f"{self.batch_size:,}"
            )

    @property
    def _prepared(self) -> _Prepared:
        return _prepare(self)

    @property
    def rows(self) -> dict[str, int]:
        """Numbers of rows in ``train``, ``validation`` and ``test``, and of ``dropped`` rows."""
        prepared = self._prepared
        return {part: len(prepared.batches[part][0]) for part in PARTS} | {"dropped": prepared.dropped}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentence on the number of dropped rows; empty if no row was dropped."""
        *parts, dropped = self.rows.values()
        if not dropped:
            return ()
        return (
            f"{dropped:,} of the table's {sum(parts) + dropped:,} rows lack a number and are left out (missing: drop)",
        )

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics: losses, errors of each output, and the sparsity error."""
        metrics = {
            "validation_loss": Metric(title="validation loss", low=0.0),
            "test_loss": Metric(title="test loss", low=0.0),
        }
        outputs = self._prepared.outputs
        for slug, name in outputs.items():
            metrics[f"test_mae_{slug}"] = Metric(title=f"MAE of {name}", low=0.0)
        for slug, name in outputs.items():
            metrics[f"test_rmse_{slug}"] = Metric(title=f"RMSE of {name}", low=0.0)
        for slug, name in outputs.items():
            metrics[f"test_relative_mae_{slug}"] = Metric(title=f"relative MAE of {name}", low=0.0)
        for slug, name in outputs.items():
            metrics[f"test_r2_{slug}"] = Metric(title=f"R² of {name}", higher_is_better=True, high=1.0)
        return metrics | {"test_sparsity_error": Metric(title="sparsity error", low=0.0, high=0.5)}

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor]:
        """Draw training rows: scaled inputs, [batch, inputs], and scaled outputs, [batch, outputs]."""
        x, y = map(on_device, self._prepared.batches["train"])
        places = stream.batch(len(x), self.batch_size)
        return x.index_select(0, places), y.index_select(0, places)

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> dict[str, Tensor]:
        """Return all rows of a part, scaled, as ``inputs`` and ``outputs``.

        For the test, ``mae`` and ``mse`` are the baseline's errors, in the file's units.
        """
        part = purpose.name.lower()
        x, y = self._prepared.batches[part]
        tensors = {"inputs": x, "outputs": y, **(self._prepared.baseline if part == "test" else {})}
        return {name: on_device(tensor) for name, tensor in tensors.items()}

    def loss(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the mean squared error of the scaled outputs."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Tensor, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute the mean squared error in variances of the training outputs, and on test rows each output's errors.

        On test rows, errors above 1e30 or not finite become 1e30. RMSE and R² are computed from such errors, so the
        RMSE is at most 1e15, and R² at least 1 - 1e30.
        """
        prepared = self._prepared
        errors = outputs - batch["outputs"]
        loss = (errors * on_device(prepared.error_scale)).square().mean()
        if "mae" not in batch:
            return {"loss": loss}
        in_units = errors * on_device(prepared.output_scale)
        mae, mse = bounded(in_units.abs().mean(0)), bounded(in_units.square().mean(0))
        relative, r2 = bounded(mae / batch["mae"]), 1 - bounded(mse / batch["mse"])
        metrics = {"loss": bounded(loss)}
        for name, values in (("mae", mae), ("rmse", mse.sqrt()), ("relative_mae", relative), ("r2", r2)):
            metrics |= {f"{name}_{slug}": values[i] for i, slug in enumerate(prepared.outputs)}
        return metrics

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of inputs, with the constant, and of outputs."""
        x, y = self._prepared.batches["train"]
        return x.shape[1], y.shape[1]

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a dense layer for ``linear``, else of a multilayer perceptron.

        The last layer of ``mlp-NALU`` is a NALU.
        """
        if name == "linear":
            return partial(dense_layer, *self.sizes())
        return partial(multilayer_perceptron, *self.sizes(), NALU if name == "mlp-NALU" else nn.Linear)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Scaled rows of a task.

    Args:
        batches: scaled inputs and outputs of each part, float32 [rows, numbers].
        outputs: names of the outputs, by their slugs in names of metrics.
        output_scale: unit of a scaled output, in the file's units, float32 [outputs].
        error_scale: unit of a scaled output, in standard deviations of the training rows, float32 [outputs].
        baseline: mean absolute and mean squared error of the training mean on test rows, in the file's units, float32
            [outputs].
        dropped: number of dropped rows.
    """

    batches: Mapping[str, tuple[Tensor, Tensor]]
    outputs: Mapping[str, str]
    output_scale: Tensor
    error_scale: Tensor
    baseline: Mapping[str, Tensor]
    dropped: int


@lru_cache(maxsize=8)
def _prepare(task: Tabular) -> _Prepared:
    table, inputs, outputs = _columns(task)
    places = _split(task, table)
    x, y = (np.stack([table.numbers[name] for name in names], 1) for names in (inputs, outputs))
    trained = y[places["train"]]
    for name, column in zip(outputs, trained.T, strict=True):
        if np.ptp(column) == 0:
            raise ValueError(f"output {name!r} must vary among the training rows, but is always {column[0]:g}")
    shift_x, scale_x = _scale(x[places["train"]], task.inputs_scale)
    shift_y, scale_y = _scale(trained, task.outputs_scale)
    scaled_x, scaled_y = (x - shift_x) / scale_x, (y - shift_y) / scale_y
    if task.constant:
        scaled_x = np.concatenate([scaled_x, np.ones((len(x), 1))], 1)
    from_mean = y[places["test"]] - trained.mean(0)
    return _Prepared(
        {part: (_tensor(scaled_x[rows]), _tensor(scaled_y[rows])) for part, rows in places.items()},
        _slugs(outputs),
        _tensor(scale_y),
        _tensor(scale_y / trained.std(0)),
        {"mae": _tensor(np.abs(from_mean).mean(0)), "mse": _tensor(np.square(from_mean).mean(0))},
        table.dropped,
    )


def _columns(task: Tabular) -> tuple[Table, list[str], list[str]]:
    """Return the table, and the names of its input and output columns.

    Raises:
        ValueError: if the fields and the file don't match, or the file is invalid.
        OSError: if the file can't be read.
    """
    if task.split != "random" and not task.split_column:
        raise ValueError(f"split_column must name a column, since split is {task.split}")
    is_example = task.file == EXAMPLE
    if not is_example and not task.outputs:
        raise ValueError("outputs must name columns of the file, but is empty")
    path = None if is_example else data_path(task.file)
    names = list(example_table().numbers) if path is None else column_names(path)
    label = task.split_column if task.split == "column" else ""
    outputs = list(task.outputs or OUTPUTS)
    inputs = list(task.inputs) or [name for name in names if name not in (*outputs, label)]
    named = [*inputs, *outputs, *([label] if label else [])]
    duplicate = next((name for name in named if named.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(
            f"inputs, outputs and the column of labels must be different columns, but {duplicate!r} is given twice"
        )
    if not inputs:
        raise ValueError("inputs must name columns, but every column is an output")
    split_columns = [task.split_column] if task.split == "extrapolate" else []
    wanted = list(dict.fromkeys([*inputs, *outputs, *split_columns]))
    if path is not None:
        return read_table(path, wanted, label=label, choices=PARTS, missing=task.missing), inputs, outputs
    unknown = next((name for name in [*wanted, *([label] if label else [])] if name not in names), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} must be a column of the example, x1 ... x28, {', '.join(OUTPUTS)}")
    if label:
        raise ValueError("split must be random or extrapolate for the example, which has no column of labels")
    return example_table(), inputs, outputs


def _split(task: Tabular, table: Table) -> Places:
    """Return the row indices of each part; raise ValueError for an empty part."""
    if task.split == "random":
        places = random_split(len(table), task.split_seed)
    elif task.split == "extrapolate":
        places = extrapolating_split(table.numbers[task.split_column], task.split_above, task.split_seed)
    else:
        places = labelled_split(np.array(table.labels, dtype=str))
    empty = next((part for part in PARTS if not len(places[part])), None)
    if empty is not None:
        raise ValueError(
            f"split {task.split} must leave rows for training, validation and test, but of {len(table):,} it leaves "
            f"none for {empty}"
        )
    return places


def _scale(trained: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Return the shift and the divisor of each column; the divisor of a constant column is 1."""
    zeros, ones = np.zeros(trained.shape[1]), np.ones(trained.shape[1])
    if scale == "none":
        return zeros, ones
    deviation = np.where(np.ptp(trained, 0) > 0, trained.std(0), 1.0)
    return (trained.mean(0) if scale == "standard" else zeros), deviation


def _slugs(outputs: list[str]) -> dict[str, str]:
    """Return names by slug, of letters, digits and underscores; raise ValueError for equal or empty slugs."""
    slugs = {re.sub(r"\W+", "_", name).strip("_"): name for name in outputs}
    if len(slugs) < len(outputs) or "" in slugs:
        raise ValueError(
            f"outputs must differ in their letters and digits, which name metrics, but got {', '.join(outputs)}"
        )
    return slugs


def _tensor(numbers: Floats) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers, np.float32))
