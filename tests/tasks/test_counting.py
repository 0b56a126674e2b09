"""The counting task: counts and sums of digits, and networks that learn from the last output alone."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from torch import nn

from study.interface.data import provide_data
from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.sequential.counting import Counting, ImageSequenceReader
from tasks.sequential.task import ReferenceCell
from tasks.shared.cells import GRU, LSTM, Cell, ReLUCell, SequenceReader, TanhCell
from tasks.shared.images import digits
from tests.mnist import mnist_folder
from units import UNITS

__all__ = ["mnist_folder"]

COUNT, SUM = Counting(evaluation_rows=20), Counting(operation="sum", evaluation_rows=20)
MODELS = ["NAC-add", "NAU", "NALU", "LSTM", "GRU", "RNN-tanh", "RNN-ReLU", "reference"]


class Oracle(nn.Module):
    """A reader that outputs the right numbers, whatever its images."""

    def __init__(self, task: Counting, part: str) -> None:
        super().__init__()
        self.numbers = task.target(digits()[part].labels[:, None])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.numbers


def batch(task: Counting, iteration: int = 0, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return task.draw(Stream([seed], iteration, Purpose.TRAIN))


def evaluated(task: Counting, purpose: Purpose = Purpose.TEST):
    return task.evaluation(evaluation_stream(purpose), purpose)


def test_targets_are_counts_and_sums():
    """Targets are each sequence's counts of digits, or their sum."""
    labels = batch(COUNT)[1]
    for row, counts, total in zip(labels.tolist(), COUNT.target(labels), SUM.target(labels), strict=True):
        assert counts.tolist() == [Counter(row)[digit] for digit in range(10)]
        assert total.tolist() == [sum(row)]


def test_images_of_a_batch_have_its_labels():
    """Pixels and labels are of the same training images."""
    pixels, labels, places = batch(COUNT, 5)
    part = digits()["train"]
    known = {image.numpy().tobytes(): int(label) for image, label in zip(part.pixels, part.labels, strict=True)}
    assert [[known[pixels[place].numpy().tobytes()] for place in row] for row in places] == labels.tolist()


def test_an_epoch_shows_each_training_image_once():
    """Each image occurs once, in another order in the next epoch and in another trial."""
    task = Counting(batch_size=30)
    epochs = [[batch(task, 4 * epoch + i, seed)[0] for i in range(4)] for epoch, seed in ((0, 3), (1, 3), (0, 4))]
    shown = [[image.numpy().tobytes() for images in epoch for image in images] for epoch in epochs]
    assert all(
        sorted(epoch) == sorted(image.numpy().tobytes() for image in digits()["train"].pixels) for epoch in shown
    )
    assert len({tuple(epoch) for epoch in shown}) == 3


def test_tests_have_each_length():
    """Tests of length 1 show each image once; validation has the training length; lengths are independent."""
    _, labels, windows = evaluated(COUNT)
    assert {name: tuple(window.shape) for name, window in windows.items()} == {
        "_at_1": (397, 1),
        "_at_10": (20, 10),
        "_at_30": (20, 30),
        "_at_100": (20, 100),
    }
    assert torch.equal(labels["_at_1"].squeeze(-1), digits()["test"].labels)
    assert torch.equal(labels["_at_30"], digits()["test"].labels[windows["_at_30"]])
    alone = Counting(operation="sum", test_lengths=(30,), evaluation_rows=5)
    assert torch.equal(evaluated(alone)[2]["_at_30"], windows["_at_30"][:5])
    pixels, validation, _ = evaluated(COUNT, Purpose.VALIDATION)
    assert {name: tuple(label.shape) for name, label in validation.items()} == {"": (20, 10)}
    assert torch.equal(pixels, digits()["validation"].pixels)


def test_sequences_are_the_same_everywhere():
    """The first training and test sequences have the same labels on every machine and version."""
    drawn = [batch(COUNT)[1], evaluated(COUNT, Purpose.VALIDATION)[1][""], evaluated(COUNT)[1]["_at_100"]]
    digests = [sha256(labels.numpy().astype("<i8").tobytes()).hexdigest()[:16] for labels in drawn]
    assert digests == ["0ba4f05bdd1c11d0", "0fb88d98ee94d1e7", "b7d8382b331c741b"]


@pytest.mark.parametrize("task", [COUNT, SUM])
def test_the_reference_is_exact_with_a_right_reader(task):
    """With the right numbers from the reader, errors are 0, and accuracy and R² are 1."""
    for purpose in (Purpose.VALIDATION, Purpose.TEST):
        network = builder_of(task, "reference")()
        network.images = Oracle(task, purpose.name.lower())
        metrics = task.measure(task.predict(network, evaluated(task, purpose)), evaluated(task, purpose))
        assert {value.item() for name, value in metrics.items() if name in ("accuracy", "r2")} == {1.0}
        assert {value.item() for name, value in metrics.items() if name not in ("accuracy", "r2")} == {0.0}


@pytest.mark.parametrize("task", [COUNT, SUM])
@pytest.mark.parametrize("name", ["NAU", "NAC-add"])
def test_an_exact_unit_has_no_error(task, name):
    """With weights of 1 for its input and its state, a cell accumulates without error at any length."""
    network = builder_of(task, name)()
    network.images = Oracle(task, "test")
    size = network.reader.cell.hidden_size
    eyes = torch.cat([torch.eye(size), torch.eye(size)], -1)
    weights = {"NAU": {"weight": eyes}, "NAC-add": {"weight_hat": 20 * eyes, "mask_hat": 40 * eyes - 20}}
    network.reader.cell.unit.load_state_dict(weights[name])
    metrics = task.measure(task.predict(network, evaluated(task)), evaluated(task))
    assert metrics["accuracy"] == 1
    assert all(metrics[f"mae_at_{length}"] < 1e-4 for length in task.test_lengths)


def test_metrics_are_as_defined():
    """Errors are means over sequences and counts; a digit is recognised by the largest count or the rounded sum."""
    labels = {"_at_1": torch.tensor([[2], [0]]), "_at_10": torch.full((1, 10), 4)}
    two, four = torch.zeros(2, 10), torch.zeros(1, 10)
    two[0, 2], two[1, 1], four[0, 4], four[0, 5] = 0.75, 0.5, 10.0, torch.inf
    metrics = {name: value.item() for name, value in COUNT.measure([two, four], (None, labels, None)).items()}
    assert metrics == {
        "mae_at_1": pytest.approx((0.25 + 1.5) / 20),
        "mse_at_1": pytest.approx((0.25**2 + 1 + 0.25) / 20),
        "accuracy": 0.5,
        "mae_at_10": pytest.approx(1e30),
        "mse_at_10": pytest.approx(1e30),
    }
    sums = [torch.tensor([[1.6], [-0.6]]), torch.tensor([[41.0]])]
    metrics = SUM.measure(sums, (None, labels, None))
    assert (metrics["accuracy"], metrics["mae_at_10"]) == (0.5, 1.0)
    validation = COUNT.measure([COUNT.target(labels["_at_10"])], (None, {"": labels["_at_10"]}, None))
    assert {name: value.item() for name, value in validation.items()} == {"mae": 0, "mse": 0, "r2": 1}


@pytest.mark.parametrize("task", [COUNT, SUM, Counting(test_lengths=(10, 20)), COUNT.for_proof()])
def test_declared_metrics_are_measured(task):
    """Declared metrics are the measured ones and the engine's."""
    network = builder_of(task, "GRU")()
    measured = {
        f"{purpose.name.lower()}_{name}"
        for purpose in (Purpose.VALIDATION, Purpose.TEST)
        for name in task.measure(task.predict(network, evaluated(task, purpose)), evaluated(task, purpose))
    }
    assert measured | {"test_sparsity_error"} == set(task.measured())


@pytest.mark.parametrize("task", [COUNT, SUM])
@pytest.mark.parametrize("name", MODELS)
def test_the_last_output_trains_the_reader(task, name):
    """The gradient of the loss reaches every layer that reads images."""
    torch.manual_seed(0)
    network = builder_of(task, name)()
    task.loss(task.predict(network, batch(task)), batch(task)).backward()
    gradients = {key: parameter.grad for key, parameter in network.images.named_parameters()}
    assert len(gradients) == 6
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in gradients.values()), gradients


def test_outputs_of_the_reading_network():
    """The reader gives shares of ten digits for counts, logits on request, and one number for sums."""
    images = digits()["test"].pixels[:7]
    shares = builder_of(COUNT, "NAU")().images(images)
    assert shares.shape == (7, 10)
    torch.testing.assert_close(shares.sum(-1), torch.ones(7))
    assert (builder_of(Counting(reading="logits"), "NAU")().images(images) < 0).any()
    assert builder_of(SUM, "NAU")().images(images).shape == (7, 1)


@pytest.mark.parametrize(("task", "size"), [(COUNT, 10), (SUM, 1)])
def test_models_have_the_size_of_the_output(task, size):
    """A unit's state is the output; other cells have 32 numbers or the given size, and a linear readout."""
    for name in ("NAC-add", "NAU", "NALU", "linear"):
        reader = builder_of(task, name)().reader
        assert (reader.cell.unit.in_features, reader.cell.unit.out_features) == (2 * size, size)
        assert isinstance(reader.output, nn.Identity)
    for name in ("LSTM", "GRU", "RNN-tanh", "RNN-ReLU"):
        reader = builder_of(task, name)().reader
        assert (reader.cell.input_size, reader.output.in_features, reader.output.out_features) == (size, 32, size)
        assert builder_of(task, name)(hidden_size=5).reader.cell.hidden_size == 5
    cells = {"LSTM": LSTM, "GRU": GRU, "RNN-tanh": TanhCell, "RNN-ReLU": ReLUCell}
    assert {name: type(builder_of(task, name)().reader.cell) for name in cells} == cells
    assert isinstance(builder_of(task, "NMU")().reader.cell.unit, UNITS["NMU"])


def test_each_image_is_read_once():
    """Each image is read once, and outputs equal those of sequences read separately."""
    network = ImageSequenceReader(Oracle(SUM, "test"), SequenceReader(ReferenceCell("sum"), nn.Identity()))
    labels = digits()["test"].labels
    first, second = torch.tensor([[0, 1, 2]]), torch.tensor([[5, 0], [3, 3]])
    long, short = network(digits()["test"].pixels, first, second)
    assert long.tolist() == [[labels[:3].sum()]]
    assert short.tolist() == [[labels[5] + labels[0]], [2 * labels[3]]]


@pytest.mark.parametrize(("cell_class", "nonlinearity"), [(TanhCell, "tanh"), (ReLUCell, "relu")])
def test_simple_cells_are_those_of_torch(cell_class: type[Cell], nonlinearity: str):
    """With the same weights, torch's layer gives the same states."""
    cell = cell_class(3, 2)
    x = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0))
    layer = nn.RNN(3, 2, nonlinearity=nonlinearity, batch_first=True)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(cell.weight[:, :3])
        layer.weight_hh_l0.copy_(cell.weight[:, 3:])
        layer.bias_ih_l0.copy_(cell.bias)
        layer.bias_hh_l0.zero_()
    torch.testing.assert_close(SequenceReader(cell, nn.Identity())(x), layer(x)[0][:, -1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test_lengths": (10, 10)}, "test_lengths must be one or more distinct lengths, but got"),
        ({"operation": "sum", "reading": "softmax"}, "reading must be left out for operation sum"),
        ({"train_length": 100}, r"at most 1,200, the number of training images, but got 16 \* 100 = 1,600"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    """Each mistake names the value and the rule."""
    with pytest.raises(ValueError, match=message):
        Counting(**fields)


def test_own_images_can_be_used(mnist_folder: Path):
    """Own images of 28 x 28 are read by the convolutional network, and such trials train one by one."""
    digest = "sha256:" + "1" * 64
    provide_data(digest, mnist_folder)
    task = Counting(images=digest, train_length=2, test_lengths=(1,), batch_size=3, evaluation_rows=5)
    batch = task.draw(Stream([0], 0, Purpose.TRAIN))
    assert batch[0].shape == (6, 28, 28)
    (outputs,) = task.predict(builder_of(task, "GRU")(), batch)
    assert outputs.shape == (3, 10)
    assert (task.most_in_pack, Counting().most_in_pack) == (1, 128)
