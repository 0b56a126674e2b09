"""Recurrent arithmetic task: sum subsets of the inputs over a sequence, and combine the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.device import on_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.arithmetic.task import ArithmeticTask
from tasks.shared.cells import GRU, LSTM, Cell, SequenceReader, UnitCell
from tasks.shared.errors import bounded_mean
from units import Unit


def network_of_cell(cell: type[Cell], input_size: int, *, hidden_size: int = 2) -> SequenceReader:
    """Build a recurrent network with a linear output.

    Args:
        cell: class of the cell.
        input_size: size of each element of a sequence, >= 1.
        hidden_size: size of the hidden state, >= 1.

    Example:
        >>> network_of_cell(LSTM, 10)(torch.ones(128, 10, 10)).shape
        torch.Size([128, 1])
    """
    return SequenceReader(cell(input_size, hidden_size), nn.Linear(hidden_size, 1))


def recurrent_network_of_units(
    first: type[Unit], second: type[Unit], input_size: int, *, hidden_size: int = 2
) -> SequenceReader:
    """Build a recurrent network of two units: h_t = first([x_t, h_{t-1}]), y = second(h_T).

    Args:
        first: unit of the cell.
        second: unit of the output layer.
        input_size: size of each element of a sequence, >= 1.
        hidden_size: size of the state, >= 1.

    Example:
        >>> from units import UNITS
        >>> recurrent_network_of_units(UNITS["NAU"], UNITS["NMU"], 10)(torch.ones(128, 10, 10)).shape
        torch.Size([128, 1])
    """
    return SequenceReader(UnitCell(first, input_size, hidden_size), second(hidden_size, 1))


_CELLS: Mapping[str, type[Cell]] = {"LSTM": LSTM, "GRU": GRU}

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class Recurrent(Task):
    """Sum two subsets of the inputs over a sequence, and combine the sums.

        a = sum over t and subset 1 of x_t,   b = sum over t and subset 2 of x_t,   y = a ∘ b

    Inputs are uniform on [1, 2). The subsets are as in the arithmetic task; the offset of the first is drawn once per
    trial. Tests extrapolate to longer sequences.

    Source: after Trask et al., "Neural Arithmetic Logic Units", NeurIPS 2018. Its ranges, sizes and metric aren't
    public.

    Args:
        operation: ``add``, ``sub``, ``mul``, ``div``, ``squared`` or ``root``.
        input_size: size of each element of a sequence.
        subset_ratio: length of a subset as a share of `input_size`.
        overlap_ratio: overlap of the subsets as a share of a subset.
        train_length: length of sequences in training and validation.
        test_lengths: lengths of sequences in tests, without duplicates.
        batch_size: sequences per batch.
        evaluation_rows: sequences of each length in an evaluation set.

    Raises:
        ValueError: if the subsets don't fit, or `test_lengths` is empty or has duplicates.

    Example:
        >>> Recurrent(operation="mul", test_lengths=(10, 20)).scores()
        {'test_score_at_10': 'test_mse_at_10', 'test_score_at_20': 'test_mse_at_20'}
    """

    model_names: ClassVar[tuple[str, ...]] = tuple(_CELLS)

    operation: Literal["add", "sub", "mul", "div", "squared", "root"] = "add"
    input_size: Count = 10
    subset_ratio: Share = 0.3
    overlap_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    train_length: Count = 10
    test_lengths: tuple[Count, ...] = (10, 100, 1000)
    batch_size: Count = 128
    evaluation_rows: Count = 2048

    def __post_init__(self) -> None:
        _ = self._arithmetic  # checks the sizes
        if not self.test_lengths or len(set(self.test_lengths)) < len(self.test_lengths):
            raise ValueError(f"test_lengths must be one or more distinct lengths, but got {list(self.test_lengths)}")

    @property
    def _arithmetic(self) -> ArithmeticTask:
        return ArithmeticTask(
            operation=self.operation,
            input_size=self.input_size,
            subset_ratio=self.subset_ratio,
            overlap_ratio=self.overlap_ratio,
        )

    @property
    def update_us(self) -> float:
        """Estimated time of an update, whose sequences are read element by element, in microseconds."""
        return 20.0 * self.train_length

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics: validation errors, test errors and scores by length, and the sparsity error."""
        at_lengths = {
            f"test_{name}_at_{length}": Metric(
                title=f"{title} at length {length}",
                unit=unit,
                low=0.0,
                series=title,
                along="length",
                at=length,
                is_trained=length == self.train_length,
            )
            for name, title, unit in (("mse", "MSE", ""), ("score", "score", "%"), ("mae", "MAE", ""))
            for length in self.test_lengths
        }
        return {
            "validation_mse": Metric(title="validation MSE", low=0.0),
            "validation_mae": Metric(title="validation MAE", low=0.0),
            **at_lengths,
            "test_sparsity_error": Metric(title="sparsity error", low=0.0, high=0.5),
        }

    def scores(self) -> Mapping[str, str]:
        """Return the metric of mean squared errors that each score is computed from, by the score's name."""
        return {f"test_score_at_{length}": f"test_mse_at_{length}" for length in self.test_lengths}

    def for_proof(self) -> Recurrent:
        """Return the task without long sequences, for the proof of packs: all elements take the same operations."""
        return replace(self, test_lengths=(self.train_length,))

    def setup(self, stream: Stream) -> Tensor:
        """Draw the offset of the first subset, and return the subsets' masks, float32 [subsets, input_size]."""
        arithmetic = self._arithmetic
        offsets = self.input_size - arithmetic.used + 1
        masks = on_device(torch.stack([torch.from_numpy(arithmetic.masks(offset)) for offset in range(offsets)]))
        return masks.index_select(0, stream.integers(offsets, 1))[0]

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor]:
        """Draw sequences, [batch, time, input_size], and their targets, [batch, 1]."""
        return self._sequences(stream, setup[0], self.batch_size, self.train_length)

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> dict[str, tuple[Tensor, Tensor]]:
        """Draw sequences and targets by suffix of their metrics: of each test length for ``TEST``, else as in training.

        There are `evaluation_rows` of each length.
        """
        lengths = {"": self.train_length}
        if purpose is Purpose.TEST:
            lengths = {f"_at_{length}": length for length in self.test_lengths}
        return {
            name: self._sequences(stream, setup[0], self.evaluation_rows, length) for name, length in lengths.items()
        }

    def _sequences(self, stream: Stream, masks: Tensor, rows: int, length: int) -> tuple[Tensor, Tensor]:
        x = 1 + stream.uniform(rows, length, self.input_size)
        sums = (x.sum(1)[:, None] * masks).sum(-1)
        return x, self._arithmetic.target(sums.mT).mT

    def predict(self, model: Callable[..., Tensor], batch: Any) -> Any:
        """Apply the model to a batch, or to the sequences of each length."""
        if isinstance(batch, dict):
            return {name: model(x) for name, (x, _) in batch.items()}
        return model(batch[0])

    def loss(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: dict[str, Tensor], batch: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Compute MSE and MAE at each length; values above 1e30 or not finite become 1e30."""
        metrics = {}
        for name, (_, target) in batch.items():
            errors = outputs[name] - target
            for metric, values in (("mse", errors.square()), ("mae", errors.abs())):
                metrics[f"{metric}{name}"] = bounded_mean(values)
        return metrics

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a recurrent network with the named cell and a linear output.

        Raises:
            KeyError: if it isn't one of `model_names`.
        """
        return partial(network_of_cell, _CELLS[name], self.input_size)

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a recurrent network of two units."""
        return partial(recurrent_network_of_units, first, second, self.input_size)
