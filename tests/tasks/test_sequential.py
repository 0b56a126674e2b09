"""The sequential tasks: accumulation of digits, and networks that read each image once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.sequential.task import Perceptron, ReferenceCell, SequenceOfImages, Sequential, input_regulariser
from tasks.shared.images import digits
from units import UNITS

PRODUCT, SUM = Sequential(), Sequential(operation="sum", train_length=10, test_lengths=(1, 30), batch_size=16)


class Always(nn.Module):
    """A reader that outputs given numbers, whatever its images."""

    def __init__(self, numbers: torch.Tensor) -> None:
        super().__init__()
        self.numbers = numbers

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.numbers


def windows(task: Sequential, seed: int) -> torch.Tensor:
    return task.setup(Stream([seed], 0, Purpose.SETUP))


def evaluated(task: Sequential, purpose: Purpose = Purpose.TEST):
    return task.evaluation(evaluation_stream(purpose), purpose, windows(task, 0))


def test_the_parts_are_those_of_the_file():
    """The first 1,200 digits are for training, in their order, standardised by their own mean and deviation."""
    loaded, parts = load_digits(), digits()
    np.testing.assert_array_equal(torch.cat([parts[name].labels for name in parts]).numpy(), loaded.target)
    assert abs(float(parts["train"].pixels.mean())) < 1e-6
    assert float(parts["train"].pixels.std(correction=0)) == pytest.approx(1, abs=1e-6)
    pixels = torch.cat([parts[name].pixels for name in parts]).numpy()
    assert np.corrcoef(pixels.ravel(), loaded.images.ravel())[0, 1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("task", [PRODUCT, SUM])
def test_training_goes_through_all_windows_once_an_epoch(task):
    """Windows of a trial contain each image once; each epoch draws each window once, in another order."""
    own = windows(task, 3)
    images = len(task._part("train").labels)
    assert own.shape == (images // task.train_length, task.train_length)
    assert len(own.unique()) == own.numel()
    assert not torch.equal(own, windows(task, 4))
    batches = len(own) // task.batch_size
    epochs = []
    for epoch in (0, 1):
        places = [
            Stream([3], epoch * batches + i, Purpose.TRAIN).batch(len(own), task.batch_size) for i in range(batches)
        ]
        epochs.append(torch.cat(places))
        assert len(epochs[-1].unique()) == batches * task.batch_size
    assert not torch.equal(*epochs)


@pytest.mark.parametrize("task", [PRODUCT, SUM])
def test_images_of_a_batch_have_its_labels(task):
    """Pixels and labels belong to the same images, and products have no zeros."""
    pixels, labels, places = task.draw(Stream([3], 5, Purpose.TRAIN), windows(task, 3))
    part = digits()["train"]
    known = {image.numpy().tobytes(): int(label) for image, label in zip(part.pixels, part.labels, strict=True)}
    shown = [[known[pixels[place].numpy().tobytes()] for place in row] for row in places]
    assert shown == labels.tolist()
    assert (labels == 0).any() == (task.operation == "sum")


def test_tests_cut_the_same_fixed_orders_for_all():
    """Each length cuts the same orders of test images into disjoint windows; validation has one order."""
    _, labels, cut = evaluated(PRODUCT)
    assert {name: tuple(window.shape) for name, window in cut.items()} == {
        f"_at_{length}": (8 * (358 // length), length) for length in (1, 2, 5, 10, 20)
    }
    assert torch.equal(cut["_at_20"][0], cut["_at_1"][:20, 0])
    assert len(cut["_at_5"][: 358 // 5].unique()) == 355
    assert all((label > 0).all() for label in labels.values())
    assert set(evaluated(PRODUCT, Purpose.VALIDATION)[1]) == {""}


@pytest.mark.parametrize("task", [PRODUCT, SUM])
def test_the_reference_is_exact_with_a_right_reader(task):
    """With the right numbers from the reader, all errors are 0, and R² is 1."""
    for purpose in (Purpose.VALIDATION, Purpose.TEST):
        oracle = Always(task._part(purpose.name.lower()).labels.float()[:, None])
        network = SequenceOfImages(oracle, ReferenceCell(task.operation), start=float(task.operation == "product"))
        batch = evaluated(task, purpose)
        metrics = task.measure(task.predict(network, batch), batch)
        assert all(value.item() < 1e-6 for name, value in metrics.items() if not name.startswith(("mse", "r2"))), (
            metrics
        )
        if purpose is Purpose.VALIDATION:
            assert metrics["r2"] == 1


def test_errors_are_as_defined():
    """The squared error covers all steps, the relative error the last step; non-finite errors count as 1e30."""
    task = Sequential(test_lengths=(2, 5))
    labels = {"_at_2": torch.tensor([[2, 3], [1, 4]]), "_at_5": torch.tensor([[1, 1, 1, 1, 1]])}
    outputs = [torch.tensor([[2.0, 9.0], [1.0, 4.0]]), torch.full((1, 5), torch.inf)], torch.tensor(0.0)
    metrics = {name: value.item() for name, value in task.measure(outputs, (None, labels, None)).items()}
    assert metrics["mse_at_2"] == pytest.approx(9 / 4)
    assert metrics["relative_error_at_2"] == pytest.approx(0.5 / 2)
    assert metrics["log_error_at_2"] == pytest.approx(np.log(1.5) ** 2 / 4)
    assert metrics["mse_at_5"] == metrics["relative_error_at_5"] == pytest.approx(1e30)


def test_where_cells_start():
    """Units start at the operation's identity by default, and an LSTM at 0."""
    assert builder_of(PRODUCT, "NMU")().start == 1
    assert builder_of(SUM, "NAU")().start == 0
    assert builder_of(PRODUCT, "NALU")(start=0.0).start == 0
    assert builder_of(PRODUCT, "LSTM")().start == 0


def test_each_part_has_a_sequence_of_its_length():
    """A training length beyond the number of validation images is refused: there would be nothing to validate on."""
    with pytest.raises(ValueError, match="the number of validation images, but got a length of 250"):
        Sequential(operation="sum", train_length=250, batch_size=4)


def test_an_lstm_of_several_numbers_needs_a_readout():
    """An LSTM of several numbers without a readout is refused."""
    with pytest.raises(ValueError, match="must have hidden_size 1, but has 16; set readout: true"):
        builder_of(PRODUCT, "LSTM")(hidden_size=16)
    network = builder_of(PRODUCT, "LSTM")(hidden_size=16, readout=True)
    (output,), _ = network(torch.ones(4, 8, 8), torch.tensor([[0, 1], [2, 3]]))
    assert output.shape == (2, 2)


@pytest.mark.parametrize("name", ["NMU", "NAC-mul", "NAC-mul-sigma", "NAC-mul-NMU", "NALU", "NAU", "NAC-add"])
def test_a_cell_is_the_second_unit_of_a_model(name):
    """A cell is a unit with two inputs: the reader's number and its own last output."""
    network = builder_of(PRODUCT, name)()
    assert (network.cell.unit.in_features, network.cell.unit.out_features) == (2, 1)
    if name == "NMU":
        assert isinstance(network.cell.unit, UNITS["NMU"])


def test_an_exact_nmu_multiplies_the_read_numbers():
    """With both weights at 1, the output after each image is the product so far, also with shared windows."""
    network = builder_of(PRODUCT, "NMU")()
    with torch.no_grad():
        network.cell.unit.weight.fill_(1)
    images = digits()["test"].pixels[:6]
    read = Perceptron()(images)
    network.images = Always(read)
    first, second = torch.tensor([[0, 1, 2]]), torch.tensor([[5, 0], [3, 3]])
    (long, short), penalty = network(images, first, second)
    torch.testing.assert_close(long, read.squeeze(-1)[first].cumprod(-1))
    torch.testing.assert_close(short, read.squeeze(-1)[second].cumprod(-1))
    assert penalty == 0


@pytest.mark.parametrize(
    ("name", "weights", "inputs", "expected"),
    [
        ("NMU", {"weight": [[0.25, 1.0]]}, [[3.0, 9.0], [5.0, 9.0]], 0.75 * 9 / 2),
        ("NAU", {"weight": [[-0.5, 1.0]]}, [[1.0, 9.0], [3.0, 9.0]], 0.5 * 4 / 2),
        ("NAC-mul-NMU", {"weight": [[0.5, 1.0]]}, [[np.e**3, 9.0]], 0.5 * 4 / 2),
        ("NAC-add", {"weight_hat": [[0.0, 20.0]], "mask_hat": [[0.0, 20.0]]}, [[3.0, 9.0]], 9 / 2),
    ],
)
def test_the_regulariser_of_inputs(name, weights, inputs, expected):
    """The regulariser equals its formula on the mean inputs that a unit ignores."""
    unit = UNITS[name](2, 1)
    unit.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    assert input_regulariser(unit, torch.tensor(inputs)).item() == pytest.approx(expected, rel=1e-5)


def test_the_regulariser_covers_the_initial_state():
    """The regulariser's mean input covers h_0 and all states except the last."""
    network = builder_of(PRODUCT, "NMU")(z_strength=2.0)
    with torch.no_grad():
        network.cell.unit.weight.copy_(torch.tensor([[1.0, 0.5]]))
    network.images = Always(torch.tensor([[3.0], [5.0]]))
    (output,), penalty = network(torch.ones(2, 8, 8), torch.tensor([[0, 1]]))
    mean_state = (1 + output[0, 0].item()) / 2
    assert penalty.item() == pytest.approx(2 * 0.5 * (1 - mean_state) ** 2 / 2, rel=1e-5)
    with pytest.raises(TypeError, match="z_strength must be 0 for NALU"):
        input_regulariser(UNITS["NALU"](2, 1), torch.ones(1, 2))
