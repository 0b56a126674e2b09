"""The identity task: ranges and networks of its protocol."""

from __future__ import annotations

import pytest
import torch

from study.plugins.packed_tasks import builder_of, model_names
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.identity.task import Identity
from units import Unit

TASK = Identity()


def stream() -> Stream:
    return Stream([0], 0, Purpose.TEST)


def test_training_and_test_ranges():
    """The task trains on the 11 integers from -5 to 5, and tests on the 41 from -20 to 20."""
    assert TASK.draw(stream())[0].flatten().tolist() == list(range(-5, 6))
    assert TASK.evaluation(stream(), Purpose.TEST)[1].flatten().tolist() == list(range(-20, 21))
    assert len(TASK.evaluation(stream(), Purpose.TRAIN)[0]) == 11


def test_errors_belong_to_the_numbers_of_their_names():
    """A model that is 1 too high below 0 has errors in the metrics of these numbers only."""
    test = TASK.evaluation(stream(), Purpose.TEST)
    errors = {name: value.item() for name, value in TASK.measure(test[0] + (test[0] < 0), test).items()}
    assert [errors[f"error_at_{x}"] for x in (-20, -1, 0, 20)] == [1, 1, 0, 0]
    assert (errors["error_10"], errors["error_20"]) == (0.5, 0.5)
    train = TASK.draw(stream())
    assert TASK.measure(train[0] + 2, train) == {"error": torch.tensor(2.0)}
    measured = {f"test_{name}" for name in errors} | {"train_error"}
    assert measured == set(TASK.measured())


@pytest.mark.parametrize("name", Identity.model_names)
def test_each_activation_stands_after_each_hidden_layer(name):
    """A network has three activations with own parameters, between linear layers of 8 with small initial weights."""
    network = builder_of(TASK, name)()
    linear, activations = list(network)[::2], list(network)[1::2]
    assert [layer.weight.shape for layer in linear] == [(8, 1), (8, 8), (8, 8), (1, 8)]
    assert len({id(activation) for activation in activations}) == 3
    assert len({type(activation) for activation in activations}) == 1
    for layer in linear:
        assert layer.weight.abs().max() <= layer.in_features**-0.5
        assert layer.bias.abs().max() <= layer.in_features**-0.5


def test_activations_are_those_of_the_figure():
    """The 15 activations of the figure are all different; PReLU has a slope in each layer."""
    x = torch.linspace(-8, 8, 33)
    layers = {name: list(builder_of(TASK, name)()) for name in TASK.model_names}
    curves = {name: network[1](x) for name, network in layers.items()}
    assert len(curves) == 15
    assert len({tuple(curve.tolist()) for curve in curves.values()}) == 15
    slopes = [p for name, p in builder_of(TASK, "PReLU")().named_parameters() if p.numel() == 1 and "6" not in name]
    assert [p.item() for p in slopes] == [0.25] * 3


def test_units_make_networks_of_the_same_depth():
    """NAC, NAU and linear networks are 1 -> 8 -> 8 -> 8 -> 1."""
    assert {"NAC-add", "NAU", "linear"} <= set(model_names(Identity))
    for name in ("NAC-add", "NAU", "linear"):
        network = builder_of(TASK, name)()
        assert all(isinstance(layer, Unit) for layer in network)
        assert [(layer.in_features, layer.out_features) for layer in network] == [(1, 8), (8, 8), (8, 8), (8, 1)]
