"""Counting task: count or add the digits of images, trained on the result at the end of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import MOST_IN_PACK, Metric
from study.interface.task import Task
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.trial_stream import Stream
from tasks.sequential.task import ReferenceCell, network_of_images, read_in_chunks
from tasks.shared.cells import GRU, LSTM, Cell, ReLUCell, SequenceReader, TanhCell, UnitCell
from tasks.shared.errors import bounded_mean
from tasks.shared.images import ImageData, Images, images_of
from units import Unit

Count = Annotated[int, Field(ge=1)]

CLASSES = 10

_CELLS: Mapping[str, type[Cell]] = {"LSTM": LSTM, "GRU": GRU, "RNN-tanh": TanhCell, "RNN-ReLU": ReLUCell}


class ImageSequenceReader(nn.Module):
    """Network that reads numbers l_t from each image, and computes the output of their sequence.

        h_t = cell(l_t, h_{t-1}),   y = output(h_T)

    Args:
        images: network from an image to numbers.
        reader: network from a sequence of numbers to the output.

    Example:
        >>> reader = SequenceReader(ReferenceCell("sum", 3), nn.Identity())
        >>> network = ImageSequenceReader(network_of_images("digits", 3)(), reader)
        >>> [tuple(output.shape) for output in network(torch.ones(6, 8, 8), torch.tensor([[0, 1, 2], [3, 4, 5]]))]
        [(2, 3)]
    """

    def __init__(self, images: nn.Module, reader: SequenceReader) -> None:
        super().__init__()
        self.images = images
        self.reader = reader

    def forward(self, images: Tensor, *windows: Tensor) -> list[Tensor]:
        """Compute the output of each sequence.

        Args:
            images: shape [images, height, width]; each is read once.
            windows: indices of each sequence's images, each int64 [sequences, length].

        Returns:
            Outputs for each of `windows`, [sequences, outputs].
        """
        numbers = read_in_chunks(self.images, images)
        return [self.reader(numbers[window]) for window in windows]


def network_of_cell(
    images: Callable[[], nn.Module], size: int, cell: type[Cell], *, hidden_size: Count = 32
) -> nn.Module:
    """Build a network that reads images, then their numbers with a cell, and has a linear output.

    Args:
        images: builds the network that reads images.
        size: numbers read per image; also the size of the output.
        cell: class of the cell.
        hidden_size: size of the hidden state.

    Example:
        >>> network_of_cell(network_of_images("digits", 10), 10, GRU).reader.output
        Linear(in_features=32, out_features=10, bias=True)
    """
    return ImageSequenceReader(images(), SequenceReader(cell(size, hidden_size), nn.Linear(hidden_size, size)))


def network_of_state(images: Callable[[], nn.Module], cell: Callable[[], Cell]) -> nn.Module:
    """Build a network whose output is the state of its cell.

    Args:
        images: builds the network that reads images.
        cell: builds the cell.

    Example:
        >>> network = network_of_state(network_of_images("digits"), partial(ReferenceCell, "sum"))
        >>> network(torch.ones(1, 8, 8), torch.tensor([[0]]))[0].shape
        torch.Size([1, 1])
    """
    return ImageSequenceReader(images(), SequenceReader(cell(), nn.Identity()))


@dataclass(frozen=True, kw_only=True)
class Counting(Task):
    """Count the occurrences of each digit in a sequence of images, or add the digits, with a loss at the end only.

        count: t = (number of 0s, ..., number of 9s),   sum: t = d_1 + ... + d_T
        L = mean over sequences, and counts, of (y - t)²

    The network that reads images never sees the label of a single image. For counts, l_t is a softmax of its ten
    outputs; for sums, its one output.

    Each epoch draws a new order of the training images and cuts it into sequences. Sequences of an evaluation set are
    drawn with replacement from the images of its part, the same for all trials. At length 1 they are all images, each
    once.

    Source: Trask et al., "Neural Arithmetic Logic Units", NeurIPS 2018.

    Args:
        operation: ``count`` or ``sum``.
        images: ``digits``, scikit-learn's of 8 x 8, or a folder of IDX files with images of 28 x 28, such as MNIST's.
        reading: l_t of a count, ``softmax`` or ``logits``; None for the softmax. Must be None for a sum.
        train_length: images per sequence in training and validation.
        test_lengths: images per sequence in tests, without duplicates.
        batch_size: sequences per batch.
        evaluation_rows: sequences of each length in an evaluation set.

    Raises:
        ValueError: if `test_lengths` is empty or has duplicates, a sum has a `reading`, a batch has more images than
            the training part, or the images are invalid.
        OSError: if a file of images can't be read.

    Example:
        >>> task = Counting()
        >>> pixels, labels, window = task.draw(Stream([0], 0, Purpose.TRAIN))
        >>> tuple(pixels.shape), tuple(labels.shape), task.target(torch.tensor([[3, 1, 3]])).tolist()
        ((160, 8, 8), (16, 10), [[0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    """

    model_names: ClassVar[tuple[str, ...]] = (*_CELLS, "reference")

    operation: Literal["count", "sum"] = "count"
    images: ImageData = "digits"
    reading: Literal["softmax", "logits"] | None = None
    train_length: Count = 10
    test_lengths: tuple[Count, ...] = (1, 10, 30, 100)
    batch_size: Count = 16
    evaluation_rows: Count = 500

    def __post_init__(self) -> None:
        if not self.test_lengths or len(set(self.test_lengths)) < len(self.test_lengths):
            raise ValueError(f"test_lengths must be one or more distinct lengths, but got {list(self.test_lengths)}")
        if self.operation == "sum" and self.reading is not None:
            raise ValueError(
                f"reading must be left out for operation sum, which reads one number, but got {self.reading}"
            )
        available, required = len(self._part("train").labels), self.batch_size * self.train_length
        if required > available:
            raise ValueError(
                f"batch_size * train_length must be at most {available:,}, the number of training images, but got "
                f"{self.batch_size:,} * {self.train_length:,} = {required:,}"
            )

    @property
    def most_in_pack(self) -> int:
        """The most trials of a pack: 1 with a convolutional network, as larger packs are slower; else the default."""
        return MOST_IN_PACK if self.images == "digits" else 1

    @property
    def update_us(self) -> float:
        """Estimated time of an update with 160 images and a convolutional network or a small one, in microseconds."""
        return 300.0 if self.images == "digits" else 50_000.0

    def _part(self, part: str) -> Images:
        return images_of(self.images)[part]

    @property
    def _size(self) -> int:
        """Numbers read per image; also the size of the output."""
        return CLASSES if self.operation == "count" else 1

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics: validation errors and R², errors by test length, accuracy at length 1, sparsity error.

        The accuracy is left out unless 1 is among `test_lengths`.
        """
        metrics = {
            "validation_mse": Metric(title="validation MSE", low=0.0),
            "validation_mae": Metric(title="validation MAE", low=0.0),
            "validation_r2": Metric(title="validation R²", higher_is_better=True, high=1.0),
        }
        for name, title in (("mae", "MAE"), ("mse", "MSE")):
            for length in self.test_lengths:
                metrics[f"test_{name}_at_{length}"] = Metric(
                    title=f"{title} at length {length}",
                    low=0.0,
                    series=title,
                    along="length",
                    at=length,
                    is_trained=length <= self.train_length,
                )
        if 1 in self.test_lengths:
            metrics["test_accuracy"] = Metric(title="accuracy at length 1", higher_is_better=True, low=0.0, high=1.0)
        return metrics | {"test_sparsity_error": Metric(title="sparsity error", low=0.0, high=0.5)}

    def for_proof(self) -> Counting:
        """Return the task without long sequences, for the proof of packs, since all images take the same operations."""
        return replace(self, test_lengths=(1, self.train_length) if self.train_length > 1 else (1,))

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Draw sequences: images, labels, and the index of each label's image; the last two are [batch, length]."""
        part, shape = self._part("train").on_device(), (self.batch_size, self.train_length)
        chosen = stream.batch(len(part.labels), self.batch_size * self.train_length)
        places = torch.arange(len(chosen)).reshape(shape)
        return part.pixels.index_select(0, chosen), part.labels.index_select(0, chosen).reshape(shape), places

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> tuple[Any, ...]:
        """Return all images of a part, then labels and image indices of its sequences, by suffix of their metrics.

        There are sequences of each test length for ``TEST``, else of the training length.
        """
        part = self._part(purpose.name.lower()).on_device()
        lengths = {"": self.train_length}
        if purpose is Purpose.TEST:
            lengths = {f"_at_{length}": length for length in self.test_lengths}
        windows = {name: self._windows(purpose, len(part.labels), length) for name, length in lengths.items()}
        return part.pixels, {name: part.labels[window] for name, window in windows.items()}, windows

    def _windows(self, purpose: Purpose, images: int, length: int) -> Tensor:
        """Draw indices of the sequences' images, int64 [sequences, length]; at length 1, return each image once."""
        if length == 1:
            return torch.arange(images)[:, None]
        return Stream([EVALUATION_SEED], length, purpose).integers(images, self.evaluation_rows, length)

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to the images and their sequences."""
        images, _, windows = batch
        return model(images, *(windows.values() if isinstance(windows, dict) else [windows]))

    def loss(self, outputs: list[Tensor], batch: Any) -> Tensor:
        """Compute the mean squared error."""
        return (outputs[0] - self.target(batch[1])).square().mean()

    def measure(self, outputs: list[Tensor], batch: Any) -> dict[str, Tensor]:
        """Compute the errors at each length, R² of validation sequences, and the accuracy at length 1.

        Errors above 1e30 or not finite become 1e30.
        """
        metrics: dict[str, Tensor] = {}
        for (name, labels), predicted in zip(batch[1].items(), outputs, strict=True):
            target = self.target(labels)
            errors = predicted - target
            metrics |= {f"mae{name}": bounded_mean(errors.abs()), f"mse{name}": bounded_mean(errors.square())}
            if not name:
                metrics["r2"] = 1 - metrics["mse"] / target.var(correction=0)
            if name == "_at_1":
                metrics["accuracy"] = (self._digit(predicted) == labels.squeeze(-1)).float().mean()
        return metrics

    def target(self, labels: Tensor) -> Tensor:
        """Compute the targets.

        Args:
            labels: digits, int64 [sequences, length].

        Returns:
            Counts, [sequences, 10], or sums, [sequences, 1].
        """
        if self.operation == "sum":
            return labels.sum(-1, keepdim=True).float()
        return (labels.unsqueeze(-1) == torch.arange(CLASSES)).sum(-2).float()

    def _digit(self, predicted: Tensor) -> Tensor:
        """Return the predicted digit of sequences of one image: the highest count, or the rounded sum."""
        return predicted.argmax(-1) if self.operation == "count" else predicted.squeeze(-1).round()

    def _reader(self) -> nn.Module:
        network = network_of_images(self.images, self._size)()
        if self.operation == "sum" or self.reading == "logits":
            return network
        return nn.Sequential(network, nn.Softmax(-1))

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a network with the named cell and a linear output, or for ``reference`` an exact sum.

        Raises:
            KeyError: if it isn't one of `model_names`.
        """
        if name == "reference":
            return partial(network_of_state, self._reader, partial(ReferenceCell, "sum", self._size))
        return partial(network_of_cell, self._reader, self._size, _CELLS[name])

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a network with the second unit as its cell."""
        return partial(network_of_state, self._reader, partial(UnitCell, second, self._size, self._size))
