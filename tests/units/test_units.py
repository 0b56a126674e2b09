"""Properties of every unit."""

from __future__ import annotations

import copy
import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from units import UNITS, Unit
from units.golden import GOLDEN_RATIO
from units.initialize import Uniform
from units.nalu import GatedUnit
from units.reciprocal import NMRU, NRU
from units.regularize import Shape
from units.traits import TRAITS
from units.unit import Bounds
from units.variance import nac_reach, nac_variance


class EvaluatedNRU(NRU):
    """An NRU in evaluation mode, where it computes another function than in training."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.eval()


class EvaluatedNMRU(NMRU):
    """An NMRU in evaluation mode, where it computes another function than in training."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.eval()


EVERY: dict[str, type[Unit]] = {
    **UNITS, "NRU in evaluation": EvaluatedNRU, "NMRU in evaluation": EvaluatedNMRU
}  # fmt: skip
with_a_variance = pytest.mark.parametrize(
    "name", [key for key, unit in EVERY.items() if unit.traits.largest_init_variance]
)
GATED_INPUTS = ("NPU", "RealNPU", "RealNPU-modified")

SHAPES = [
    ((100, 2), 128), ((2, 1), 128), ((10, 1), 128), ((1, 1), 16), ((1, 5), 128), ((5, 8), 100),
    ((4, 3), 7), ((10, 1), 129), ((30, 3), 33), ((100, 4), 1),
]  # fmt: skip
every_unit = pytest.mark.parametrize("name", EVERY)
bounded_unit = pytest.mark.parametrize("name", [name for name, unit in EVERY.items() if unit.traits.bounded])


def batch_innermost(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw inputs [..., batch, features] in the engines' layout: a transposed view of [..., features, batch]."""
    *leading, rows, features = shape
    generator = torch.Generator().manual_seed(seed)
    return (4 * torch.rand(*leading, features, rows, generator=generator, dtype=dtype) - 1.5).mT


def numpy_uniform(seed: int) -> Uniform:
    """Return a source of uniform numbers that depend only on the seed, the parameter and its shape."""

    def uniform(index: int, shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(np.random.default_rng([seed, index]).random(shape))

    return uniform


def constant_uniform(value: float) -> Uniform:
    """Return a source of one constant uniform number."""
    return lambda _, shape: torch.full(shape, value, dtype=torch.float64)


def pack_of(name: str, seeds: range, sizes: tuple[int, int], bounds: Bounds = "clipped") -> Unit:
    """Build a pack whose trials start from their own seeds."""
    unit = EVERY[name](*sizes, trials=len(seeds), bounds=bounds)
    with torch.no_grad():
        for place, seed in enumerate(seeds):
            for key, value in EVERY[name].initial(*sizes, numpy_uniform(seed)).items():
                unit.get_parameter(key)[place].copy_(value)
    return unit


def outputs_and_gradients(unit: Unit, x: Tensor, grad: Tensor) -> dict[str, Tensor]:
    """Return the output, the gradients, the regularisers and the sparsity error of one forward and backward pass."""
    x = x.detach().requires_grad_()
    names = [key for key, _ in unit.named_parameters()]
    y = unit(x)
    grads = torch.autograd.grad(y, [x, *unit.parameters()], grad)
    values = dict(zip(["x", *names], grads, strict=True)) | {"y": y.detach()}
    shapes: tuple[Shape, ...] = ("linear", "squared")
    values |= {shape: value.detach() for shape in shapes if (value := unit.sparsity(shape)) is not None}
    return values | {"error": unit.sparsity_error()}


@every_unit
@pytest.mark.parametrize("bounds", ["clipped", "regularized"])
@pytest.mark.parametrize("trials", [None, 3])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (3, 2), (6, 2)])
def test_gradients_equal_numerical_ones(name: str, bounds: Bounds, trials: int | None, sizes: tuple[int, int]) -> None:
    """Gradients with respect to the input and every parameter equal numerical ones in float64."""
    generator = torch.Generator().manual_seed(4)
    unit = EVERY[name](*sizes, trials=trials, bounds=bounds, generator=generator, dtype=torch.float64)
    leading = () if trials is None else (trials,)
    x = batch_innermost(*leading, 5, sizes[0], seed=9, dtype=torch.float64).requires_grad_()
    keys = [key for key, _ in unit.named_parameters()]

    def call(x: Tensor, *values: Tensor) -> Tensor:
        y: Tensor = torch.func.functional_call(unit, dict(zip(keys, values, strict=True)), (x,))
        return y

    values = [value.detach().requires_grad_() for value in unit.parameters()]
    assert torch.autograd.gradcheck(call, (x, *values))


@every_unit
def test_second_derivatives_equal_numerical_ones(name: str) -> None:
    """Second derivatives, needed for gradient penalties, equal numerical ones."""
    unit = EVERY[name](3, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    x = batch_innermost(3, 3, seed=9, dtype=torch.float64).requires_grad_()
    keys = [key for key, _ in unit.named_parameters()]

    def call(x: Tensor, *values: Tensor) -> Tensor:
        y: Tensor = torch.func.functional_call(unit, dict(zip(keys, values, strict=True)), (x,))
        return y

    values = [value.detach().requires_grad_() for value in unit.parameters()]
    assert torch.autograd.gradgradcheck(call, (x, *values))


@every_unit
@pytest.mark.parametrize("trials", [1, 3, 16])
@pytest.mark.parametrize(("sizes", "rows"), SHAPES)
def test_pack_equals_its_trials_alone(name: str, trials: int, sizes: tuple[int, int], rows: int) -> None:
    """A trial's outputs, gradients, regularisers and sparsity error are the same bits alone and in a pack."""
    pack = pack_of(name, range(trials), sizes)
    x = batch_innermost(trials, rows, sizes[0])
    grad = batch_innermost(trials, rows, sizes[1], seed=1)
    together = outputs_and_gradients(pack, x, grad)
    for trial in {0, trials // 2, trials - 1}:
        solo = pack_of(name, range(trial, trial + 1), sizes)
        alone_x, alone_grad = (full[trial].mT.clone().mT.unsqueeze(0) for full in (x, grad))
        alone = outputs_and_gradients(solo, alone_x, alone_grad)
        for key, value in alone.items():
            assert torch.equal(value[0], together[key][trial]), key


@every_unit
def test_zero_in_one_trial_changes_no_bit_of_another(name: str) -> None:
    """A trial with zero inputs and discrete weights doesn't change its neighbours' bits."""
    sizes, rows = (4, 2), 33
    x, grad = batch_innermost(3, rows, 4), batch_innermost(3, rows, 2, seed=1)
    before = outputs_and_gradients(pack_of(name, range(3), sizes), x, grad)
    pack = pack_of(name, range(3), sizes)
    with torch.no_grad():
        x[1] = 0
        for value in pack.parameters():
            value[1] = 1
    after = outputs_and_gradients(pack, x, grad)
    for key in before:
        assert torch.equal(before[key][[0, 2]], after[key][[0, 2]]), key


@every_unit
@pytest.mark.parametrize("bounds", ["clipped", "regularized"])
def test_nan_touches_no_other_trial(name: str, bounds: Bounds) -> None:
    """A NaN in any parameter makes that trial's output and sparsity error NaN, and changes no other bit."""
    sizes, rows = (4, 1), 9
    x, grad = batch_innermost(3, rows, 4), batch_innermost(3, rows, 1, seed=1)
    x[2, 3] = 0
    before = outputs_and_gradients(pack_of(name, range(3), sizes, bounds), x, grad)
    gates = {"gate", "bias"}
    for key, _ in pack_of(name, range(1), sizes).named_parameters():
        pack = pack_of(name, range(3), sizes, bounds)
        with torch.no_grad():
            pack.get_parameter(key)[1].view(-1)[0] = math.nan
        pack.clip_()
        assert pack.get_parameter(key)[1].view(-1)[0].isnan()
        after = outputs_and_gradients(pack, x, grad)
        assert after["y"][1].isnan().all()
        assert bool(after["error"][1].isnan()) == (key not in gates)
        for part in before:
            assert torch.equal(before[part][[0, 2]], after[part][[0, 2]]), (key, part)


@every_unit
def test_nan_input_gives_nan(name: str) -> None:
    """A NaN input gives a NaN output, even through weights of zero."""
    unit = EVERY[name](3, 2)
    with torch.no_grad():
        for value in unit.parameters():
            value.zero_()
    x = torch.ones(2, 3)
    x[0, 1] = math.nan
    if name == "NMU-normalized":  # its scale depends on the whole batch
        assert unit(x).isnan().all()
    else:
        assert unit(x).isnan().all(1).tolist() == [True, False]


@every_unit
def test_initial_is_a_function_of_its_uniforms(name: str) -> None:
    """The same uniforms give the same weights, in the shapes and order of the unit's parameters."""
    first, second = (EVERY[name].initial(5, 3, numpy_uniform(7)) for _ in range(2))
    unit = EVERY[name](5, 3)
    assert list(first) == [key for key, _ in unit.named_parameters()]
    for key, value in first.items():
        assert torch.equal(value, second[key])
        assert value.dtype == torch.float32
        assert value.shape == unit.get_parameter(key).shape
        assert EVERY[name](5, 3, trials=4).get_parameter(key).shape == (4, *value.shape)


@every_unit
def test_initial_is_finite_at_the_ends_of_the_uniforms(name: str) -> None:
    """Uniforms of exactly 0 and just below 1 give finite weights within bounds, whatever the variance."""
    largest = EVERY[name].traits.largest_init_variance
    for variance in (None, min(largest, 2.0)) if largest else (None,):
        for end in (0.0, math.nextafter(1.0, 0.0)):
            values = EVERY[name].initial(3, 2, constant_uniform(end), init_variance=variance)
            unit = EVERY[name](3, 2)
            unit.load_state_dict(values)
            assert all(value.isfinite().all() for value in values.values())
            unit.clip_()
            assert all(torch.equal(unit.get_parameter(key), values[key]) for key in unit.traits.bounded)


@every_unit
def test_generator_decides_the_start(name: str) -> None:
    """Equal seeds give equal initial weights, other seeds other ones, and every trial of a pack its own."""
    first, same, other = (
        EVERY[name](3, 2, trials=2, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    for key, value in first.named_parameters():
        assert torch.equal(value, same.get_parameter(key))
        is_constant = key in ("bias", "weight_imaginary") or (key == "gate" and name in GATED_INPUTS)
        if not is_constant:
            assert not torch.equal(value, other.get_parameter(key))
            assert not torch.equal(value[0], value[1])


DEFAULT_VARIANCE = {
    "NAC-add": 2 / 1000, "NAC-mul": 2 / 1000, "NALU": 2 / 1000, "NALU-separate": 2 / 1000,
    "NAU": 2 / 1000, "NMU": 1 / 48, "NAC-mul-NMU": 1 / 48, "NMU-normalized": 1 / 48,
    "linear": 2 / 1000, "sigmoid": 2 / 1000, "softsign": 2 / 1000, "tanh": 2 / 1000 * 25 / 9,
    "ReLU": 2 / 400, "ReLU6": 2 / 400, "ELU": 2 / 400, "SELU": 1 / 400,
    "RealNPU": 2 / 1000, "RealNPU-modified": 2 / 1000, "NRU": 2 / 1000, "NMRU": 1 / 48,
    "G-NALU": nac_variance(math.log(GOLDEN_RATIO) * nac_reach(2 / 1000)),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULT_VARIANCE)
def test_default_variance(name: str) -> None:
    """The effective weights start with the published variance."""
    unit = EVERY[name](400, 600, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for weight in unit.effective_weights():
        assert float(weight.detach().var()) == pytest.approx(DEFAULT_VARIANCE[name], rel=0.02)


@with_a_variance
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_requested_variance(name: str, share: float) -> None:
    """The effective weights start with the requested variance, up to the largest possible one."""
    variance = share * min(EVERY[name].traits.largest_init_variance, 3.0)
    generator = torch.Generator().manual_seed(0)
    unit = EVERY[name](400, 600, init_variance=variance, generator=generator, dtype=torch.float64)
    weights = unit.effective_weights()
    for weight in weights[:1] if name == "NPU" else weights:  # without the imaginary part, since it starts at 0
        assert float(weight.detach().var()) == pytest.approx(variance, rel=0.02)
        centre = 0.5 if float(weight.detach().min()) >= 0 else 0.0
        assert float(weight.detach().mean()) == pytest.approx(centre, abs=0.02)


@with_a_variance
def test_impossible_variance_is_refused(name: str) -> None:
    """An impossible variance gives an error with the value and the largest possible one."""
    largest = EVERY[name].traits.largest_init_variance
    for variance in (0.0, -1.0, math.nan, math.inf, largest * 1.001):
        with pytest.raises(ValueError, match=f"init_variance={variance:g} was given for") as caught:
            EVERY[name].initial(3, 2, numpy_uniform(0), init_variance=variance)
        assert (f"{largest:.6g}, the largest possible" in str(caught.value)) == (largest < math.inf)


@every_unit
def test_nonsense_sizes_are_refused(name: str) -> None:
    """Sizes below one, and unknown bounds, are refused by name."""
    for sizes, trials, word in (((0, 1), None, "in_features=0"), ((1, 0), None, "out_features=0")):
        with pytest.raises(ValueError, match=word):
            EVERY[name](*sizes, trials=trials)
    with pytest.raises(ValueError, match="trials=0"):
        EVERY[name](1, 1, trials=0)
    with pytest.raises(ValueError, match="bounds='loose'"):
        EVERY[name](1, 1, bounds="loose")  # type: ignore[arg-type]


def test_traits_are_those_of_the_unit() -> None:
    """The traits that are listed by name without torch agree with the unit's own."""
    assert {name: unit.traits for name, unit in UNITS.items()} == TRAITS


@bounded_unit
def test_clipping_keeps_bounds(name: str) -> None:
    """Clipping clamps exactly the bounded parameters, and only in clipped mode."""
    for bounds in get_args(Bounds):
        unit = EVERY[name](3, 2, bounds=bounds)
        with torch.no_grad():
            for value in unit.parameters():
                value.copy_(torch.linspace(-3, 3, value.numel()).view_as(value))
        before = copy.deepcopy(unit.state_dict())
        unit.clip_()
        assert set(unit.limits) == (set(unit.traits.bounded) if bounds == "clipped" else set())
        for key, value in unit.named_parameters():
            low, high = unit.limits.get(key, (-math.inf, math.inf))
            assert torch.equal(value, before[key].clamp(low, high))
        excess = unit.out_of_bounds("linear")
        assert excess is not None
        assert (float(excess.detach()) == 0) == (bounds == "clipped")


@bounded_unit
def test_regularized_clamps_in_the_forward_pass_only(name: str) -> None:
    """A regularised unit out of bounds computes like a clipped unit, with a gradient of zero for these weights."""
    free, clipped = EVERY[name](3, 2, bounds="regularized"), EVERY[name](3, 2)
    with torch.no_grad():
        for key, value in free.named_parameters():
            numbers = torch.tensor([-2.0, 0.25, 2.0, 0.5, 3.0, -0.001 - 1])
            numbers = numbers.roll(-1) if key == "gate" else numbers.repeat(2)  # keeps gates open
            value.copy_(numbers[: value.numel()].view_as(value))
            clipped.get_parameter(key).copy_(value)
    clipped.clip_()
    x = batch_innermost(5, 3)
    assert torch.equal(free(x), clipped(x))
    assert torch.equal(free.sparsity_error(), clipped.sparsity_error())
    free(x).sum().backward()
    for key in free.traits.bounded:
        gradient = free.get_parameter(key).grad
        assert gradient is not None
        assert torch.equal(gradient.ne(0), free.get_parameter(key) == clipped.get_parameter(key))


@every_unit
def test_every_effective_weight_has_a_name_of_its_own(name: str) -> None:
    """A unit has one path name for each of its effective weights."""
    unit = EVERY[name](3, 2)
    assert len(set(unit.paths)) == len(unit.paths) == len(unit.effective_weights())


@pytest.mark.parametrize("name", [name for name, unit in EVERY.items() if issubclass(unit, GatedUnit)])
@pytest.mark.parametrize("trials", [None, 3])
def test_gates_mix_sum_and_product(name: str, trials: int | None) -> None:
    """A gated unit's output is its sum where a gate is 1, its product where it is 0, and a mixture in between."""
    unit = EVERY[name](3, 2, trials=trials, generator=torch.Generator().manual_seed(0))
    assert isinstance(unit, GatedUnit)
    x = batch_innermost(5, 3).abs() + 0.5
    gates = unit.gates(x).detach()
    assert gates.shape == unit(x).shape
    assert 0 < float(gates.min()) < 0.5 < float(gates.max()) < 1
    always = []
    for value in (1e4, -1e4):
        other = copy.deepcopy(unit)
        other.gate.data.fill_(value)
        assert (other.gates(x) == (value > 0)).all()
        always.append(other(x))
    torch.testing.assert_close(unit(x), gates * always[0] + (1 - gates) * always[1])


@every_unit
def test_only_bounded_units_have_regularisers(name: str) -> None:
    """Units with bounded weights have both regularisers, with a value per trial; other units return None."""
    unit = EVERY[name](3, 2, trials=5)
    for value in (unit.sparsity("linear"), unit.sparsity("squared"), unit.out_of_bounds("squared")):
        assert (value is not None) == bool(unit.traits.bounded)
        assert value is None or value.shape == (5,)
    assert unit.sparsity_error().shape == (5,)


@every_unit
def test_trains_as_an_ordinary_layer(name: str) -> None:
    """In a Sequential, an ordinary optimiser lowers the loss, and clipping keeps the bounds."""
    generator = torch.Generator().manual_seed(5)
    layer = EVERY[name](3, 2, generator=generator)
    network = nn.Sequential(layer, UNITS["linear"](2, 1, generator=generator))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    x = 1 + torch.rand(64, 3, generator=generator)
    target = x[:, :1] + x[:, 1:2]
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (network(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        layer.clip_()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2


@every_unit
def test_state_survives_a_round_trip(name: str) -> None:
    """A unit loaded from another unit's state gives the same output."""
    unit, copy_ = EVERY[name](3, 2, trials=2), EVERY[name](3, 2, trials=2)
    x = batch_innermost(2, 5, 3)
    assert not torch.equal(unit(x), copy_(x))
    copy_.load_state_dict(unit.state_dict())
    assert torch.equal(unit(x), copy_(x))


@every_unit
def test_memory_stays_batch_innermost(name: str) -> None:
    """The output of a batch-innermost input is batch-innermost too."""
    assert EVERY[name](4, 3, trials=2)(batch_innermost(2, 7, 4)).mT.is_contiguous()


@every_unit
def test_shared_input_equals_a_repeated_one(name: str) -> None:
    """An input without the trial axis is shared by all trials."""
    unit = EVERY[name](4, 3, trials=2)
    x = batch_innermost(7, 4)
    assert torch.equal(unit(x), unit(torch.stack([x.mT, x.mT]).mT))


@every_unit
def test_more_leading_axes_are_batches(name: str) -> None:
    """A plain layer takes any leading axes, like torch's own layers."""
    unit = EVERY[name](4, 3)
    x = batch_innermost(2, 3, 7, 4)
    y = unit(x)
    assert y.shape == (2, 3, 7, 3)
    torch.testing.assert_close(y[1, 2], unit(x[1, 2]))
