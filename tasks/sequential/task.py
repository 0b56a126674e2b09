"""Sequential tasks: multiply or add the digits of a sequence of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import MOST_IN_PACK, Metric
from study.interface.task import Task
from study.stream.device import on_device, use_device
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.trial_stream import Stream
from tasks.shared.cells import LSTM, Cell, UnitCell
from tasks.shared.errors import bounded_mean
from tasks.shared.images import ImageData, Images, images_of
from units import Unit
from units.nac import NACAdd, NACMulNMU
from units.nau import NAU
from units.nmu import NMU

Operation = Literal["product", "sum"]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]

IDENTITIES: Mapping[Operation, float] = {"product": 1.0, "sum": 0.0}
"""Identity element of each operation: the initial state of an exact cell."""

_EPSILON = 1e-7
_CHUNK_SIZE = 1000


class Perceptron(nn.Sequential):
    """Network from an image of 8 x 8 to numbers: 64 -> 64 -> 32 -> `output_size`, with ReLU between.

    Args:
        output_size: numbers read per image, >= 1.

    Example:
        >>> Perceptron()(torch.ones(5, 8, 8)).shape
        torch.Size([5, 1])
    """

    def __init__(self, output_size: int = 1) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        for size, next_size in pairwise((64, 64, 32, output_size)):
            layers += [nn.Linear(size, next_size), nn.ReLU()]
        super().__init__(*layers[:-1])


class ConvolutionalNetwork(nn.Module):
    """Network from an image of 28 x 28 to numbers, with 426,571 parameters for one number.

        5 x 5 to 20, ReLU, max-pool 2, 5 x 5 to 50, ReLU, max-pool 2, dense to 500, ReLU, dense to `output_size`

    Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020.

    Args:
        output_size: numbers read per image, >= 1.

    Example:
        >>> ConvolutionalNetwork()(torch.ones(5, 28, 28)).shape
        torch.Size([5, 1])
        >>> sum(parameter.numel() for parameter in ConvolutionalNetwork().parameters())
        426571
    """

    def __init__(self, output_size: int = 1) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.hidden, self.output = nn.Linear(800, 500), nn.Linear(500, output_size)

    def forward(self, images: Tensor) -> Tensor:
        """Read numbers from each image.

        Args:
            images: shape [images, 28, 28].

        Returns:
            Numbers, [images, output_size].
        """
        x = images.unsqueeze(1)
        for layer in (self.first, self.second):
            x = nn.functional.max_pool2d(torch.relu(layer(x)), 2)
        output: Tensor = self.output(torch.relu(self.hidden(x.flatten(1))))
        return output


def network_of_images(data: str, output_size: int = 1) -> Callable[[], nn.Module]:
    """Return the builder of the network from an image to `output_size` numbers: a `Perceptron` for ``digits``.

    For other data it is a `ConvolutionalNetwork`.
    """
    return partial(Perceptron if data == "digits" else ConvolutionalNetwork, output_size)


def read_in_chunks(network: nn.Module, images: Tensor) -> Tensor:
    """Read numbers from images, [images, numbers], in chunks of 1,000 to limit the memory of convolutions."""
    return torch.cat([network(chunk) for chunk in torch.split(images, _CHUNK_SIZE)])


class ReferenceCell(Cell):
    """Exact accumulator without parameters: h_t = h_{t-1} l_t, or h_{t-1} + l_t, elementwise.

    Args:
        operation: ``product`` or ``sum``.
        size: size of the input and of the state, >= 1.

    Example:
        >>> ReferenceCell("product")(torch.tensor([[3.0]]), torch.tensor([[7.0]])).item()
        21.0
    """

    def __init__(self, operation: Operation, size: int = 1) -> None:
        super().__init__(size, size)
        self.operation = operation

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Multiply the state by the input, or add the input to it."""
        return state * x if self.operation == "product" else state + x


class SequenceOfImages(nn.Module):
    """Network that reads a number l_t from each image, and accumulates them with a cell.

        h_t = cell(l_t, h_{t-1}),   y_t = h_t, or a linear readout of it

    Args:
        images: network from an image to a number.
        cell: cell with one input.
        start: h_0, the same for all elements of the state.
        readout: layer from the state to the output; None if the state is the output.
        z_strength: λ_z, weight of the regulariser of the cell's inputs; must be 0 unless the cell is a `UnitCell`.

    Example:
        >>> network = SequenceOfImages(Perceptron(), ReferenceCell("sum"), start=0.0)
        >>> outputs, penalty = network(torch.ones(6, 8, 8), torch.tensor([[0, 1, 2], [3, 4, 5]]))
        >>> [tuple(output.shape) for output in outputs], penalty.item()
        ([(2, 3)], 0.0)
    """

    def __init__(
        self, images: nn.Module, cell: Cell, *, start: float, readout: nn.Module | None = None, z_strength: float = 0.0
    ) -> None:
        super().__init__()
        self.images = images
        self.cell = cell
        self.start = start
        self.readout = readout
        self.z_strength = z_strength

    def forward(self, images: Tensor, *windows: Tensor) -> tuple[list[Tensor], Tensor]:
        """Compute the output after each image of each sequence, and the regulariser.

        Args:
            images: shape [images, height, width]; each is read once.
            windows: indices of each sequence's images, each int64 [sequences, length].

        Returns:
            Outputs for each of `windows`, [sequences, length], and λ_z R_z of the last one, a scalar.

        Raises:
            TypeError: if λ_z isn't 0, and the cell's unit has no such regulariser.
            AssertionError: if λ_z isn't 0, and the cell isn't a `UnitCell`.
        """
        numbers = read_in_chunks(self.images, images).squeeze(-1)
        outputs = []
        for window in windows:
            read = numbers[window]
            states = self._states(read)
            outputs.append(torch.stack([self._output(state) for state in states[1:]], -1))
        penalty = numbers.new_zeros(()) if self.z_strength == 0 else self.z_strength * self._regulariser(read, states)
        return outputs, penalty

    def _states(self, read: Tensor) -> list[Tensor]:
        state = self.cell.start(read[:, :1]) + self.start
        states = [state]
        for t in range(read.shape[1]):
            state = self.cell(read[:, t : t + 1], state)
            states.append(state)
        return states

    def _output(self, state: Tensor) -> Tensor:
        h = self.cell.hidden(state)
        output: Tensor = h if self.readout is None else self.readout(h)
        return output.squeeze(-1)

    def _regulariser(self, read: Tensor, states: list[Tensor]) -> Tensor:
        """Compute R_z of a `UnitCell` from its inputs, averaged over sequences and time, including h_0."""
        inputs = torch.stack([read, torch.cat(states[:-1], -1)], -1)
        assert isinstance(self.cell, UnitCell)
        return input_regulariser(self.cell.unit, inputs.flatten(0, -2))


def input_regulariser(unit: Unit, inputs: Tensor) -> Tensor:
    """Compute the regulariser R_z of a unit's unused inputs, towards the identity of its operation.

        multiplying: R_z = mean_i (1 - W_i)(1 - x̄_i)²,    adding: R_z = mean_i (1 - abs(W_i)) x̄_i²

    x̄ is the mean input. For a NAC• with weights of an NMU, it is the mean of log(abs(x) + 1e-7). The formula pulls that
    to 1, as published, although the identity is 0 in log space.

    Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020.

    Args:
        unit: unit with one output.
        inputs: shape [rows, in].

    Raises:
        TypeError: if the unit has no such regulariser.

    Example:
        >>> unit = NAU(2, 1)
        >>> _ = unit.load_state_dict({"weight": torch.tensor([[0.5, 1.0]])})
        >>> input_regulariser(unit, torch.tensor([[1.0, 5.0], [3.0, 5.0]])).item()
        1.0
    """
    if isinstance(unit, NACMulNMU):
        inputs = torch.log(inputs.abs() + _EPSILON)
    mean = inputs.mean(0)
    if isinstance(unit, NMU | NACMulNMU):
        return ((1 - unit.weight.squeeze(0)) * (1 - mean).square()).mean()
    if isinstance(unit, NAU):
        return ((1 - unit.weight.squeeze(0).abs()) * mean.square()).mean()
    if isinstance(unit, NACAdd):
        weight = torch.tanh(unit.weight_hat) * torch.sigmoid(unit.mask_hat)
        return ((1 - weight.squeeze(0).abs()) * mean.square()).mean()
    raise TypeError(f"z_strength must be 0 for {type(unit).__name__}, which has no regulariser of its inputs")


def network_of_unit(
    images: Callable[[], nn.Module],
    operation: Operation,
    unit: type[Unit],
    *,
    start: float | None = None,
    z_strength: NotNegative = 0.0,
) -> SequenceOfImages:
    """Build a network with a unit as its cell and the state as its output: h_t = unit([l_t, h_{t-1}]).

    Args:
        images: builds the network that reads images.
        operation: ``product`` or ``sum``.
        unit: class of the unit.
        start: h_0; None for the operation's identity: 1 for a product, 0 for a sum.
        z_strength: λ_z, weight of the regulariser of the cell's inputs; 0 for units without one.

    Example:
        >>> network_of_unit(Perceptron, "product", NMU).start
        1.0
    """
    start = IDENTITIES[operation] if start is None else start
    return SequenceOfImages(images(), UnitCell(unit, 1, 1), start=start, z_strength=z_strength)


def network_of_lstm(
    images: Callable[[], nn.Module], *, hidden_size: Count = 1, readout: bool = False
) -> SequenceOfImages:
    """Build a network with an LSTM as its cell and an initial state of 0.

    Args:
        images: builds the network that reads images.
        hidden_size: size of the hidden state; must be 1 without a readout.
        readout: if true, a linear layer computes the output from the state. If false, as published, the output is the
            state, between -1 and 1.

    Raises:
        ValueError: if `hidden_size` is above 1 without a readout.
    """
    if hidden_size > 1 and not readout:
        raise ValueError(f"an LSTM without readout must have hidden_size 1, but has {hidden_size}; set readout: true")
    linear = nn.Linear(hidden_size, 1) if readout else None
    return SequenceOfImages(images(), LSTM(1, hidden_size), start=0.0, readout=linear)


def reference_network(images: Callable[[], nn.Module], operation: Operation) -> SequenceOfImages:
    """Build a network with an exact accumulator; only its reading of images is trained.

    Args:
        images: builds the network that reads images.
        operation: ``product`` or ``sum``.
    """
    return SequenceOfImages(images(), ReferenceCell(operation), start=IDENTITIES[operation])


@dataclass(frozen=True, kw_only=True)
class Sequential(Task):
    """Multiply or add the digits of a sequence of images, with a result after each image.

        t_k = d_1 ∘ ... ∘ d_k,   L = mean over sequences and k of (y_k - t_k)² + λ_z R_z

    Sequences are consecutive windows of an order of the images. Each trial draws its order of the training images; the
    orders of validation and test images are fixed. For products, images of zeros are left out.

    Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020, and its published program.

    Args:
        operation: ``product`` or ``sum``.
        images: ``digits``, scikit-learn's of 8 x 8, or a folder of IDX files with images of 28 x 28, such as MNIST's.
        train_length: images per sequence in training and validation.
        test_lengths: images per sequence in tests, without duplicates.
        test_orders: number of orders of the test images; errors are averaged over them.
        batch_size: sequences per batch.

    Raises:
        ValueError: if `test_lengths` is empty or has duplicates, a sequence or a batch has more images than its part,
            or the images are invalid.
        OSError: if a file of images can't be read.

    Example:
        >>> task = Sequential(operation="product")
        >>> pixels, labels, window = task.draw(Stream([0], 0, Purpose.TRAIN), task.setup(Stream([0], 0, Purpose.SETUP)))
        >>> tuple(pixels.shape), tuple(labels.shape), bool((labels > 0).all())
        ((128, 8, 8), (64, 2), True)
    """

    model_names: ClassVar[tuple[str, ...]] = ("LSTM", "reference")

    operation: Operation = "product"
    images: ImageData = "digits"
    train_length: Count = 2
    test_lengths: tuple[Count, ...] = (1, 2, 5, 10, 20)
    test_orders: Count = 8
    batch_size: Count = 64

    def __post_init__(self) -> None:
        if not self.test_lengths or len(set(self.test_lengths)) < len(self.test_lengths):
            raise ValueError(f"test_lengths must be one or more distinct lengths, but got {list(self.test_lengths)}")
        lengths = {"train": self.train_length, "validation": self.train_length, "test": max(self.test_lengths)}
        for part, longest in lengths.items():
            available = len(self._part(part).labels)
            if longest > available:
                raise ValueError(
                    f"sequences must have at most {available:,} images, the number of {part} images, but got a length "
                    f"of {longest:,}"
                )
        sequences = len(self._part("train").labels) // self.train_length
        if self.batch_size > sequences:
            raise ValueError(
                f"batch_size must be at most {sequences:,}, the number of training sequences of {self.train_length} "
                f"images, but got {self.batch_size:,}"
            )

    @property
    def most_in_pack(self) -> int:
        """The most trials of a pack: 1 with a convolutional network, as larger packs are slower; else the default."""
        return MOST_IN_PACK if self.images == "digits" else 1

    @property
    def update_us(self) -> float:
        """Estimated time of an update with 128 images and a convolutional network or a small one, in microseconds."""
        return 150.0 if self.images == "digits" else 40_000.0

    def for_proof(self) -> Task:
        """Return the task for the proof of packs: without long sequences, and with few images if they are large.

        Every image of a sequence takes the same operations.
        """
        short = vars(self) | {"test_orders": 1, "test_lengths": (self.train_length,)}
        return (Sequential if self.images == "digits" else _FewImages)(**short)

    def _part(self, part: str) -> Images:
        return _usable(self.images, part, self.operation)

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics: validation MSE and R², three errors by test length, and the sparsity error."""
        metrics = {
            "validation_mse": Metric(title="validation MSE", low=0.0),
            "validation_r2": Metric(title="validation R²", higher_is_better=True, high=1.0),
        }
        for name, title in (("mse", "MSE"), ("log_error", "squared log error"), ("relative_error", "relative error")):
            for length in self.test_lengths:
                metrics[f"test_{name}_at_{length}"] = Metric(
                    title=f"{title} at length {length}",
                    low=0.0,
                    series=title,
                    along="length",
                    at=length,
                    is_trained=length <= self.train_length,
                )
        return metrics | {"test_sparsity_error": Metric(title="sparsity error", low=0.0, high=0.5)}

    def setup(self, stream: Stream) -> Tensor:
        """Draw an order of the training images, and cut it into full windows, int64 [windows, train_length]."""
        images = len(self._part("train").labels)
        windows = images // self.train_length
        return stream.permutation(images)[: windows * self.train_length].reshape(windows, self.train_length)

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, ...]:
        """Draw sequences: images, labels, and the index of each label's image; the last two are [batch, length]."""
        (windows,) = setup
        part = self._part("train").on_device()
        chosen = windows.index_select(0, stream.batch(len(windows), self.batch_size))
        places = torch.arange(chosen.numel()).reshape(chosen.shape)
        return part.pixels.index_select(0, chosen.flatten()), part.labels[chosen], places

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> tuple[Any, ...]:
        """Return all images of a part, then labels and image indices of its sequences, by suffix of their metrics.

        There are sequences of each test length for ``TEST``, else of the training length.
        """
        part = self._part(purpose.name.lower()).on_device()
        if purpose is Purpose.TEST:
            cut = {f"_at_{n}": _windows(purpose, len(part.labels), n, self.test_orders) for n in self.test_lengths}
        else:
            cut = {"": _windows(purpose, len(part.labels), self.train_length, 1)}
        windows = {name: on_device(places) for name, places in cut.items()}
        return part.pixels, {name: part.labels[window] for name, window in windows.items()}, windows

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to the images and their sequences."""
        images, _, windows = batch
        return model(images, *(windows.values() if isinstance(windows, dict) else [windows]))

    def loss(self, outputs: Any, batch: Any) -> Tensor:
        """Compute the mean squared error over all steps plus the regulariser of the cell's inputs."""
        (predicted,), penalty = outputs
        loss: Tensor = (predicted - self._targets(batch[1])).square().mean() + penalty
        return loss

    def measure(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Compute MSE and R² of validation sequences, or three errors at each test length.

        These are the MSE, the squared difference of logarithms (of values clamped to at least 1e-7), and the error
        after the last image relative to the target, or to 1 if that is larger. Errors above 1e30 or not finite become
        1e30.
        """
        metrics: dict[str, Tensor] = {}
        for (name, labels), predicted in zip(batch[1].items(), outputs[0], strict=True):
            target = self._targets(labels)
            metrics[f"mse{name}"] = mse = bounded_mean((predicted - target).square())
            if not name:
                metrics["r2"] = 1 - mse / target.var(correction=0)
                continue
            distance = torch.log(predicted.clamp(min=_EPSILON)) - torch.log(target.clamp(min=_EPSILON))
            relative = (predicted - target)[:, -1].abs() / target[:, -1].clamp(min=1)
            metrics |= {
                f"log_error{name}": bounded_mean(distance.square()),
                f"relative_error{name}": bounded_mean(relative),
            }
        return metrics

    def _targets(self, labels: Tensor) -> Tensor:
        accumulated = labels.double().cumprod(-1) if self.operation == "product" else labels.double().cumsum(-1)
        targets: Tensor = accumulated.float()
        return targets

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a network with an LSTM for ``LSTM``, else of one that accumulates exactly."""
        if name == "LSTM":
            return partial(network_of_lstm, network_of_images(self.images))
        return partial(reference_network, network_of_images(self.images), self.operation)

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a network with the second unit as its cell."""
        return partial(network_of_unit, network_of_images(self.images), self.operation, second)


class _FewImages(Sequential):
    """Sequential task on only as many images of each part as its sequences need."""

    def _part(self, part: str) -> Images:
        images = super()._part(part)
        most = max(self.batch_size * self.train_length, *self.test_lengths)
        return Images(images.pixels[:most], images.labels[:most])


@cache
def _usable(data: str, part: str, operation: Operation) -> Images:
    """Return a part's images, without zeros for products."""
    images = images_of(data)[part]
    if operation == "sum":
        return images
    return Images(images.pixels[images.labels > 0], images.labels[images.labels > 0])


@cache
def _windows(purpose: Purpose, images: int, length: int, orders: int) -> Tensor:
    """Cut fixed orders of images into full windows, int64 [windows, length], on the CPU; remainders are dropped."""
    count = images // length
    with use_device("cpu"):
        drawn = [Stream([EVALUATION_SEED], order, purpose).permutation(images) for order in range(orders)]
    return torch.cat([order[: count * length].reshape(count, length) for order in drawn])
