"""The tasks of the neural power units: rows, metrics and networks of their protocol."""

from __future__ import annotations

import math

import pytest
import torch

from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.npu.large import FIRST, SECOND, TESTED, TEXT, TRAINED, NPULarge
from tasks.npu.networks import FreeNAU, free_layer
from tasks.npu.simple import NPUSimple
from units import UNITS

SIMPLE = NPUSimple()


def stream(purpose: Purpose = Purpose.TRAIN, iteration: int = 0) -> Stream:
    return Stream([7], iteration, purpose)


def layers(task: NPUSimple | NPULarge, model: str) -> list[torch.nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return list(builder_of(task, model)())


# --- the simple task --------------------------------------------------------------------------------------


def test_simple_rows_and_targets():
    """100 rows of [.1, 2.1) have the sum, product, quotient and root; each iteration has other rows."""
    x, t = SIMPLE.draw(stream())
    assert x.shape == (100, 2)
    assert 0.1 <= x.min() < 0.15
    assert 2.05 < x.max() < 2.1
    for (a, b), row in zip(x.double().tolist(), t.tolist(), strict=True):
        assert row == pytest.approx([a + b, a * b, a / b, math.sqrt(a)], rel=1e-6)
    assert not torch.equal(x, SIMPLE.draw(stream(iteration=1))[0])


def test_simple_grids_have_no_zero_and_no_root_of_a_negative():
    """Tests are the 41² pairs of -4.1, -3.9, ..., 3.9 and the 40² pairs of .1, ..., 4; all targets are defined."""
    grids = SIMPLE.evaluation(stream(), Purpose.TEST)
    expected = [[-4.1 + 0.2 * i, -4.1 + 0.2 * j] for i in range(41) for j in range(41)]
    torch.testing.assert_close(grids["arithmetic"], torch.tensor(expected), rtol=0, atol=1e-6)
    expected = [[0.1 * i, 0.1 * j] for i in range(1, 41) for j in range(1, 41)]
    torch.testing.assert_close(grids["root"], torch.tensor(expected), rtol=0, atol=1e-6)
    assert grids["arithmetic"].abs().min() > 0.09
    assert all(target.isfinite().all() for target in SIMPLE.arithmetic(grids["arithmetic"]))


def test_simple_errors_are_those_of_each_output_on_its_grid():
    """Outputs off by .1, -.2, .3 and .4 have these errors; the root is tested on its own grid."""
    grids = SIMPLE.evaluation(stream(), Purpose.TEST)

    def model(x: torch.Tensor) -> torch.Tensor:
        right = torch.stack([*SIMPLE.arithmetic(x), x[:, 0].sqrt()], -1)  # nan for negative numbers
        return right + torch.tensor([0.1, -0.2, 0.3, 0.4])

    errors = {name: value.item() for name, value in SIMPLE.measure(SIMPLE.predict(model, grids), grids).items()}
    expected = {"mae_add": 0.1, "mae_mul": 0.2, "mae_div": 0.3, "mae_root": 0.4, "mae": 0.25}
    assert errors == pytest.approx(expected, rel=1e-4)
    rows = SIMPLE.evaluation(stream(), Purpose.VALIDATION)
    assert len(rows[0]) == 1000
    measured = SIMPLE.measure(SIMPLE.predict(model, rows), rows)
    assert measured["mae"] == pytest.approx(0.25, rel=1e-4)
    assert measured["loss"] == pytest.approx((0.01 + 0.04 + 0.09 + 0.16) / 4, rel=1e-4)
    names = {f"validation_{name}" for name in measured} | {f"test_{name}" for name in errors}
    assert names == set(SIMPLE.metrics)
    assert next(iter(SIMPLE.metrics)) == "validation_mae"


def test_infinite_errors_count_as_1e30():
    """Infinity and nan become 1e30 in a metric."""
    grids = SIMPLE.evaluation(stream(), Purpose.TEST)
    for value in (math.inf, math.nan, 1e35):
        outputs = {name: torch.full((len(x), 4), value) for name, x in grids.items()}
        assert {error.item() for error in SIMPLE.measure(outputs, grids).values()} == {float(torch.tensor(1e30))}


def test_exact_weights_solve_the_simple_task():
    """A RealNPU with x y, x / y, √x, x and y, and an NAU that adds the last two, are exact on all grids."""
    power, add = layers(SIMPLE, "RealNPU")
    exponents = [[1, 1], [1, -1], [0.5, 0], [1, 0], [0, 1], [0, 0]]
    sums = [[0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]]
    with torch.no_grad():
        power.weight.copy_(torch.tensor(exponents))
        power.gate.fill_(1)
        add.weight.copy_(torch.tensor(sums))
    grids = SIMPLE.evaluation(stream(), Purpose.TEST)
    model = torch.nn.Sequential(power, add)
    assert all(error < 1e-4 for error in SIMPLE.measure(SIMPLE.predict(model, grids), grids).values())


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("NPU", ("NPU", "free")),
        ("RealNPU", ("RealNPU", "free")),
        ("NMU", ("NMU", "free")),
        ("NAC-mul", ("NAC-mul", "free")),
        ("NAU", ("free", "free")),
        ("NALU", ("NALU", "NALU")),
        ("iNALU", ("iNALU", "iNALU")),
        ("ReLU", ("ReLU", "linear")),
    ],
)
def test_simple_networks_multiply_first(model: str, kinds: tuple[str, str]):
    """In networks 2 -> 6 -> 4, a multiplying layer precedes the adding layer; other models have their usual order."""
    network = layers(SIMPLE, model)
    assert [type(layer) for layer in network] == [FreeNAU if kind == "free" else UNITS[kind] for kind in kinds]
    assert [(layer.in_features, layer.out_features) for layer in network] == [(2, 6), (6, 4)]


def test_the_nau_is_free_and_the_nmu_clamps_in_the_forward_pass():
    """Updates don't clamp weights; an NMU starts in [0, 1], and its weight of 1.5 acts as 1, without a gradient."""
    nmu, nau = layers(SIMPLE, "NMU")
    assert nmu.limits == nau.limits == {}
    many = free_layer(UNITS["NMU"], 100, 100).weight
    assert 0 <= many.min() < 0.01
    assert 0.99 < many.max() <= 1
    with torch.no_grad():
        nmu.weight.fill_(1.5)
        nau.weight.fill_(3.0)
    y = torch.nn.Sequential(nmu, nau)(torch.tensor([[2.0, 3.0]]))
    assert y.tolist() == [[6 * 3 * 6.0] * 4]
    y.sum().backward()
    assert nmu.weight.grad.abs().max() == 0
    assert nau.weight.grad.unique().tolist() == [6.0]


def test_the_dense_network_is_a_perceptron_of_two_hidden_layers():
    """The network is 2 -> 50 -> 50 -> 4 with sigmoids; weights start in Xavier's bounds, biases at 0."""
    network = layers(SIMPLE, "dense")
    assert [type(layer).__name__ for layer in network] == ["Linear", "Sigmoid", "Linear", "Sigmoid", "Linear"]
    for layer in network[::2]:
        reach = math.sqrt(6 / (layer.in_features + layer.out_features))
        assert 0.8 * reach < layer.weight.abs().max() <= reach
        assert layer.bias.abs().max() == 0
    assert [layer.weight.shape for layer in network[::2]] == [(50, 2), (50, 50), (4, 50)]


def test_an_imaginary_part_at_0_stays_there_on_positive_numbers():
    """On positive inputs, an imaginary part of 0 has a gradient of exactly 0, so that an NPU is a RealNPU."""
    network = torch.nn.Sequential(*layers(SIMPLE, "NPU"))
    batch = SIMPLE.draw(stream())
    SIMPLE.loss(network(batch[0]), batch).backward()
    assert network[0].weight_imaginary.grad.abs().max() == 0
    assert network[0].weight.grad.abs().min() > 0
    network(-batch[0]).sum().backward()
    assert network[0].weight_imaginary.grad.abs().max() > 0


# --- the large task ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", TRAINED)
def test_large_targets_are_those_of_the_sums(operation: str):
    """Targets use a, the sum of inputs 0 to 49, and b, that of 38 to 87; the last twelve inputs are ignored."""
    x, t = NPULarge(operation=operation).draw(stream())
    assert (x.shape, t.shape) == ((128, 100), (128, 1))
    for row, target in zip(x.double(), t[:, 0].tolist(), strict=True):
        a, b = sum(row[i].item() for i in range(50)), sum(row[i].item() for i in range(38, 88))
        expected = {"add": a + b, "mul": a * b, "reciprocal": 1 / a, "root": math.sqrt(max(a, 0))}[operation]
        assert target == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert (slice(0, 50), slice(38, 88)) == (FIRST, SECOND)


@pytest.mark.parametrize("operation", TRAINED)
def test_large_inputs_are_sobol_points_in_the_ranges(operation: str):
    """Each 128th of the range has one of 128 inputs; validation has the training range, tests have others."""
    task = NPULarge(operation=operation, evaluation_rows=128)
    test = task.evaluation(stream(Purpose.TEST), Purpose.TEST)
    sets = {
        TRAINED[operation]: [task.draw(stream(iteration=3)), task.evaluation(stream(), Purpose.VALIDATION)],
        TESTED[operation]: [test[""]],
        TEXT[operation]: [test["_text"]],
    }
    for (low, high), batches in sets.items():
        for x, t in batches:
            places = ((x.double() - low) / (high - low) * 128).floor()
            # At an edge, float32 may round to either side.
            assert (places.sort(0).values - torch.arange(128)[:, None]).abs().max() <= 1
            assert t.isfinite().all()
    assert [sorted(ranges) for ranges in (TRAINED, TESTED, TEXT)] == [sorted(TRAINED)] * 3


def test_large_ranges_are_the_published_ones():
    """Ranges for training, tests of the program, and tests of the text are the published ones."""
    ranges = {name: (TRAINED[name], TESTED[name], TEXT[name]) for name in TRAINED}
    assert ranges == {
        "add": ((-1, 1), (-2, 2), (-4, 4)),
        "mul": ((-1, 1), (-2, 2), (-4, 4)),
        "reciprocal": ((0, 0.5), (-0.5, 0), (-0.5, 0.5)),
        "root": ((0, 2), (0, 4), (0, 4)),
    }


def test_large_errors_are_those_of_each_range():
    """A constant's error is the mean squared target in each range, at most 1e30."""
    task = NPULarge(operation="mul", evaluation_rows=64)
    batch = task.evaluation(stream(), Purpose.TEST)
    errors = task.measure(task.predict(lambda x: 0 * x[:, :1], batch), batch)
    assert {f"test_{name}" for name in errors} | {"validation_mse"} == set(task.metrics)
    for end, (_, target) in batch.items():
        assert errors[f"mse{end}"] == pytest.approx(target.square().mean().item())
    assert errors["mse_text"] == pytest.approx(16 * errors["mse"].item(), rel=1e-4)
    assert task.measure(task.predict(lambda x: x[:, :1] / 0, batch), batch)["mse"] == pytest.approx(1e30)


@pytest.mark.parametrize(
    ("model", "kinds"),
    [("NPU", ("free", "NPU")), ("RealNPU", ("free", "RealNPU")), ("NMU", ("free", "NMU")), ("NALU", ("NALU", "NALU"))],
)
def test_large_networks_start_small_and_positive(model: str, kinds: tuple[str, str]):
    """Networks are 100 -> 100 -> 1 with weights from U[0, .1]; gates start at 1 in an NPU, at 1/2 in a RealNPU."""
    network = layers(NPULarge(), model)
    assert [type(layer) for layer in network] == [FreeNAU if kind == "free" else UNITS[kind] for kind in kinds]
    assert [(layer.in_features, layer.out_features) for layer in network] == [(100, 100), (100, 1)]
    apart = {"NPU": {"gate": 1.0, "weight_imaginary": 0.0}, "RealNPU": {"gate": 0.5}}.get(model, {})
    for layer in network:
        for name, parameter in layer.named_parameters():
            if name in apart:
                assert parameter.unique().tolist() == [apart[name]]
            else:
                assert 0 <= parameter.min() < 0.01
                assert 0.09 < parameter.max() <= 0.1


@pytest.mark.parametrize("operation", ["add", "mul", "reciprocal", "root"])
def test_exact_weights_solve_the_large_task(operation: str):
    """Exact sums with a RealNPU solve product, reciprocal and root; exact sums alone solve the sum."""
    task = NPULarge(operation=operation, evaluation_rows=256)
    add, power = layers(task, "RealNPU")
    with torch.no_grad():
        add.weight.zero_()
        add.weight[0, FIRST] += 1
        add.weight[0 if operation == "add" else 1, SECOND] += 1
        power.weight.zero_()
        power.weight[0, 0] = {"reciprocal": -1.0, "root": 0.5}.get(operation, 1.0)
        power.weight[0, 1] = float(operation == "mul")
        power.gate.copy_((power.weight != 0).float())
    batch = task.evaluation(stream(), Purpose.TEST)
    model = torch.nn.Sequential(add, power)
    for end, (_, target) in batch.items():
        error = task.measure(task.predict(model, batch), batch)[f"mse{end}"]
        assert error < 1e-6 * target.square().mean()
