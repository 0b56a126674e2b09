"""The networks of the arithmetic task."""

from __future__ import annotations

import math

import pytest
import torch

from tasks.arithmetic import MODELS
from tasks.arithmetic.networks import Network
from units import UNITS

every_model = pytest.mark.parametrize("name", MODELS)

PUBLISHED = {
    "NMU": ("NAU", "NMU", 10, 1e6, 2e6),
    "NAU": ("NAU", "NAU", 0.01, 5e3, 5e4),
    "NAC-add": ("NAC-add", "NAC-add", None, None, None),
    "NAC-mul": ("NAC-add", "NAC-mul", None, None, None),
    "NAC-mul-sigma": ("NAC-add", "NAC-mul-sigma", None, None, None),
    "NAC-mul-NMU": ("NAU", "NAC-mul-NMU", 10, 1e6, 2e6),
    "NALU": ("NALU", "NALU", None, None, None),
    "linear": ("linear", "linear", None, None, None),
    "ReLU": ("ReLU", "linear", None, None, None),
    "ReLU6": ("ReLU6", "linear", None, None, None),
    "gated-NAU-NMU": ("gated-NAU-NMU", "gated-NAU-NMU", 10, 1e6, 2e6),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_are_the_published_ones(name: str) -> None:
    """Layers and schedules are those of the published table."""
    model = MODELS[name]
    schedule = (model.sparsity_strength, model.sparsity_start, model.sparsity_end)
    assert (model.first, model.second, *schedule) == PUBLISHED[name]


@every_model
def test_model_is_whole(name: str) -> None:
    """A model has its name, existing units, and a schedule if and only if it has a regulariser."""
    model = MODELS[name]
    assert model.name == name
    assert name.isascii()
    assert {model.first, model.second} <= set(UNITS)
    assert model.has_bounds == any(layer.traits.bounded for layer in Network(model, 2, 2).layers)
    for value in (model.sparsity_strength, model.sparsity_start, model.sparsity_end):
        assert (value is not None) == model.has_bounds


def test_every_unit_is_in_a_network() -> None:
    """Every unit is in the network of a model."""
    assert {unit for model in MODELS.values() for unit in (model.first, model.second)} == set(UNITS)


@every_model
def test_network_is_its_layers(name: str) -> None:
    """The network applies its two units in turn, input -> hidden -> 1, for many trials at once."""
    network = Network(MODELS[name], 6, 3, trials=2, bounds="regularized", generator=torch.Generator().manual_seed(0))
    x = 1 + torch.rand(2, 6, 5).mT
    first, second = network.layers
    assert (first.in_features, first.out_features) == (6, 3)
    assert (second.in_features, second.out_features) == (3, 1)
    assert {first.bounds, second.bounds} == {"regularized"}
    assert torch.equal(network(x), second(first(x)))
    assert network(x).shape == (2, 5, 1)


@every_model
def test_variance_must_suit_both_layers(name: str) -> None:
    """A network's largest initial variance is possible in both layers; a larger variance is refused."""
    model = MODELS[name]
    largest = model.largest_init_variance
    if largest > 0:
        Network(model, 6, 3, init_variance=min(largest, 5.0))
    if largest < math.inf:
        with pytest.raises(ValueError, match="the largest possible" if largest else "leave it out"):
            Network(model, 6, 3, init_variance=largest * 1.01 or 0.1)


@every_model
@pytest.mark.parametrize("rows", [37, 128])
def test_two_layers_are_the_same_bits_alone_and_in_a_pack(name: str, rows: int) -> None:
    """A trial's loss and gradients through both layers don't depend on its pack."""
    trials = 5
    pack = Network(MODELS[name], 20, 4, trials=trials, generator=torch.Generator().manual_seed(0))
    x = 1 + torch.rand(trials, 20, rows, generator=torch.Generator().manual_seed(1)).mT
    target = x.sum(-1, keepdim=True)
    loss = (pack(x) - target).square().mean((-2, -1))
    grads = torch.autograd.grad(loss.sum(), list(pack.parameters()))
    for trial in range(trials):
        solo = Network(MODELS[name], 20, 4, trials=1)
        solo.load_state_dict({key: value[trial : trial + 1] for key, value in pack.state_dict().items()})
        alone_x = x[trial : trial + 1].mT.clone().mT
        alone = (solo(alone_x) - target[trial : trial + 1]).square().mean((-2, -1))
        assert torch.equal(alone, loss[trial : trial + 1])
        for own, many in zip(torch.autograd.grad(alone.sum(), list(solo.parameters())), grads, strict=True):
            assert torch.equal(own[0], many[trial])
