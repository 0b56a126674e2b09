"""Packs of any task and model: they compute the same as a plain loop, and their state is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from study.engine.packed.members import OneByOne, SideBySide
from study.engine.packed.optimizers import Optimizer, Schedule
from study.engine.packed.recipe import L1, Member, Recipe, Sparsity
from study.interface.declarations import Metric
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tests.study.engine.packed.spirals import Spirals, members, mlp, recipe
from units import UNITS
from units.regularize import sparsity

WAYS = [SideBySide, OneByOne]


@pytest.mark.parametrize("way", WAYS)
def test_trials_are_trained_as_by_a_plain_loop(way):
    """After 20 updates with Adam, weights and metrics are those of a loop in plain torch, to rounding."""
    seeds, rate, task = (3, 2**62 + 5), 0.01, Spirals()
    pack = way(recipe(task), [Member(seed=seed, schedule=Schedule(learning_rate=rate)) for seed in seeds])
    pack.update(20)
    weights, metrics = pack.weights(), pack.evaluate()
    for row, seed in enumerate(seeds):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = mlp()
        optimizer = torch.optim.Adam(network.parameters(), lr=rate)
        for iteration in range(20):
            x, label = task.draw(Stream([seed], iteration, Purpose.TRAIN))
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), label).backward()
            optimizer.step()
        for name, parameter in network.named_parameters():
            np.testing.assert_allclose(weights[name][row], parameter.detach().numpy(), rtol=1e-4, atol=1e-5)
        x, label = task.draw(evaluation_stream(Purpose.VALIDATION))
        expected = nn.functional.cross_entropy(network(x), label).item()
        assert metrics["validation_loss"][row] == pytest.approx(expected, rel=1e-4)
        x, label = task.draw(evaluation_stream(Purpose.TEST))
        assert metrics["test_accuracy"][row] == (network(x).argmax(-1) == label).float().mean().item()


@pytest.mark.parametrize("way", WAYS)
def test_weights_and_rows_may_have_separate_seeds(way):
    """Init seed 3 and data seed 7 give the weights of seed 3, trained on the rows of seed 7."""
    task = Spirals()
    pack = way(recipe(task), [Member(seed=3, data_seed=7), Member(seed=3), Member(seed=7)])
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = mlp()
    begins = pack.weights()
    for name, parameter in network.named_parameters():
        assert np.array_equal(begins[name][0], parameter.detach().numpy())
        assert np.array_equal(begins[name][0], begins[name][1])
    x, label = task.draw(Stream([7], 0, Purpose.TRAIN))
    nn.functional.cross_entropy(network(x), label).backward()
    gradients = pack.gradients()
    for name, parameter in network.named_parameters():
        np.testing.assert_allclose(gradients[name][0], parameter.grad.numpy(), rtol=1e-4, atol=1e-6)
        assert not np.array_equal(gradients[name][0], gradients[name][1])


def test_a_network_learns():
    """A small network classifies the spirals after 600 updates, with any seed."""
    pack = SideBySide(recipe(Spirals(batch_size=64), hidden=16), members(*range(3), learning_rate=0.05))
    pack.update(600)
    assert (pack.evaluate()["test_accuracy"] > 0.95).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw", "rmsprop"])
def test_the_state_is_complete(way, optimizer):
    """Trials resumed from their state have the bits of uninterrupted ones, buffers included."""
    made = Recipe(
        task=Spirals(),
        model=mlp,
        hyperparameters={"middle": partial(nn.BatchNorm1d, 4)},
        optimizer=Optimizer(name=optimizer),
    )
    trials = members(1, 2, 3)
    undisturbed, first = way(made, trials), way(made, trials)
    undisturbed.update(4)
    first.update(2)
    state = {name: array.copy() for name, array in first.state().items()}
    assert all(array.shape[0] == 3 and array.dtype != object for array in state.values())
    resumed = way(made, trials, state=state)
    resumed.update(2)
    for name, array in undisturbed.state().items():
        assert array.tobytes() == resumed.state()[name].tobytes(), name
    assert "buffer/2.running_mean" in state


@pytest.mark.parametrize("way", WAYS)
def test_nan_is_detected_and_does_not_spread(way):
    """Only the trial with NaN weights isn't finite, and the others' bits stay."""
    trials, made = members(1, 2, 3), recipe()
    clean = way(made, trials)
    state = clean.state()
    state["weight/0.weight"][1, 0, 0] = np.nan
    with_nan = way(made, trials, state=state)
    for pack in (clean, with_nan):
        pack.update(3)
    assert with_nan.is_finite().tolist() == [True, False, True]
    for name, array in clean.state().items():
        assert array[[0, 2]].tobytes() == with_nan.state()[name][[0, 2]].tobytes(), name


def test_global_generators_stay_unchanged():
    """Building and training leave the global generators unchanged."""
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    for way in WAYS:
        pack = way(recipe(), members(1, 2))
        pack.update()
        pack.evaluate()
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_parameters_without_a_gradient_stay():
    """Unused and frozen parameters aren't moved; frozen ones are part of the state."""

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.frozen = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.used(self.frozen(x))

    for way in WAYS:
        pack = way(recipe(model=Partly), members(1, 2))
        before = pack.weights()
        pack.update(2)
        after = pack.weights()
        moved = {name for name in before if not np.array_equal(before[name], after[name])}
        assert moved == {"used.weight", "used.bias"}
        assert {"buffer/frozen.weight", "weight/unused.weight"} <= set(pack.state())


@dataclass(frozen=True)
class NearZero(Spirals):
    def draw(self, stream):
        x, label = super().draw(stream)
        return 1e-6 * x, label


@dataclass(frozen=True)
class Undeclared(Spirals):
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_loss": Metric()}


@dataclass(frozen=True)
class Unmeasured(Spirals):
    metrics: ClassVar[Mapping[str, Metric]] = {**Spirals.metrics, "test_margin": Metric()}


@dataclass(frozen=True)
class PerRow(Spirals):
    def loss(self, outputs, batch):
        return nn.functional.cross_entropy(outputs, batch[1], reduction="none")


@pytest.mark.parametrize("way", WAYS)
def test_mistakes_are_explained(way):
    """Metrics that differ from declared ones, a loss per row, and a model without parameters are errors."""
    with pytest.raises(ValueError, match="measures accuracy, but no declared metric ends with that name"):
        way(recipe(Undeclared()), members(1)).evaluate()
    with pytest.raises(ValueError, match="declares metrics that measure doesn't return: test_margin"):
        way(recipe(Unmeasured()), members(1)).evaluate()
    with pytest.raises(ValueError, match=r"loss must return a scalar, but returned a tensor of shape \(32,\)"):
        way(recipe(PerRow()), members(1)).update()
    with pytest.raises(ValueError, match="must be all float32 or all float64, but it has none"):
        way(recipe(model=nn.Identity), members(1))
    with pytest.raises(TypeError, match=r"must build a torch\.nn\.Module, but built 3"):
        way(recipe(model=lambda: 3), members(1))


@dataclass(frozen=True)
class Own(Spirals):
    """Spirals scaled by a random factor of each trial, in training and in evaluations."""

    def setup(self, stream):
        return stream.uniform()

    def draw(self, stream, *setup):
        x, label = super().draw(stream)
        return x * setup[0], label


@pytest.mark.parametrize("way", WAYS)
def test_a_trial_keeps_its_setup(way):
    """A trial's draw in `setup` is the same in all iterations, after a resume and in evaluations."""
    task, seeds = Own(), (3, 8)
    turns = [task.setup(Stream([seed], 0, Purpose.SETUP)) for seed in seeds]
    pack = way(recipe(task), members(*seeds))
    pack.update(2)
    resumed = way(recipe(task), members(*seeds), state=pack.state())
    for row, seed in enumerate(seeds):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = mlp()
        network.load_state_dict({name: torch.from_numpy(array[row]) for name, array in pack.weights().items()})
        x, label = task.draw(evaluation_stream(Purpose.VALIDATION), turns[row])
        expected = nn.functional.cross_entropy(network(x), label).item()
        assert resumed.evaluate()["validation_loss"][row] == pytest.approx(expected, rel=1e-5)
        x, label = task.draw(Stream([seed], 2, Purpose.TRAIN), turns[row])
        nn.functional.cross_entropy(network(x), label).backward()
        for name, parameter in network.named_parameters():
            np.testing.assert_allclose(resumed.gradients()[name][row], parameter.grad.numpy(), rtol=1e-3, atol=1e-6)


def bounded(*, first: str = "NAU", second: str = "NMU") -> nn.Module:
    return nn.Sequential(UNITS[first](2, 3), UNITS[second](3, 2))


@pytest.mark.parametrize("way", WAYS)
def test_the_regulariser_follows_its_formula(way):
    """The regulariser's gradient is λ(t) times that of the units' sparsity while λ grows."""
    plain = Recipe(task=Spirals(), model=bounded)
    regularised = Recipe(task=Spirals(), model=bounded, sparsity=Sparsity(10.0, start=1, end=5))
    packs = [way(variant, members(1, 2)) for variant in (plain, regularised)]
    for iteration, strength in enumerate([0.0, 0.0, 2.5]):
        state = packs[0].state() | {"iteration": np.full(2, iteration)}
        gradients = [way(variant, members(1, 2), state=state).gradients() for variant in (plain, regularised)]
        for name, kind in (("0.weight", "NAU"), ("1.weight", "NMU")):
            weight = torch.from_numpy(state[f"weight/{name}"]).requires_grad_()
            sparsity(weight, kind, "linear").sum().backward()
            pull = strength * weight.grad.numpy()
            np.testing.assert_allclose(gradients[1][name] - gradients[0][name], pull, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_l1_applies_to_parameters_only(way):
    """The gradient of L1 is β(t) times the sign of each parameter, biases included."""

    def model() -> nn.Module:
        frozen = nn.Linear(2, 2).requires_grad_(False)
        return nn.Sequential(frozen, nn.Linear(2, 3), UNITS["RealNPU"](3, 2))

    recipes = [Recipe(task=Spirals(), model=model, l1=penalty) for penalty in (None, L1(1.0, 5.0))]
    start = way(recipes[0], members(1, 2)).state()
    for iteration, strength in ((0, 1.0), (9_999, 1.0), (10_000, 5.0)):
        state = start | {"iteration": np.full(2, iteration)}
        plain, pulled = (way(recipe, members(1, 2), state=state).gradients() for recipe in recipes)
        assert set(plain) == {"1.weight", "1.bias", "2.weight", "2.gate"}
        for name, gradient in pulled.items():
            pull = strength * np.sign(state[f"weight/{name}"])
            np.testing.assert_allclose(gradient - plain[name], pull, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("unit", ["NRU", "NMRU"])
@pytest.mark.parametrize("way", WAYS)
def test_units_may_train_and_evaluate_different_functions(way, unit):
    """Gradients are those of training mode before and after an evaluation; metrics are those of evaluation mode."""

    def model() -> nn.Module:
        return nn.Sequential(UNITS[unit](2, 2))

    made, task = Recipe(task=Spirals(), model=model), Spirals()
    pack = way(made, members(1, 2))
    state = pack.state()
    if unit == "NMRU":  # 1/(x + ε) and 1/x differ near 0 only, which needs inputs near 0
        made = Recipe(task=NearZero(), model=model)
        pack, task = way(made, members(1, 2), state=state), NearZero()
    network, expected = model(), {}
    for mode in ("train", "eval"):
        network.train(mode == "train")
        with torch.no_grad():
            network[0].weight.copy_(torch.from_numpy(state["weight/0.weight"][0]))
        batch = task.draw(Stream([1], 0, Purpose.TRAIN))
        network.zero_grad()
        task.loss(network(batch[0]), batch).backward()
        expected[mode] = network[0].weight.grad.numpy().copy()
    assert not np.allclose(expected["train"], expected["eval"], rtol=1e-3)
    for _ in range(2):
        np.testing.assert_allclose(pack.gradients()["0.weight"][0], expected["train"], rtol=1e-4)
        batch = task.draw(evaluation_stream(Purpose.VALIDATION))
        measured = pack.evaluate()["validation_loss"][0]
        losses = {mode: task.loss(network.train(mode == "train")(batch[0]), batch).item() for mode in expected}
        assert losses["train"] != pytest.approx(losses["eval"], rel=1e-5)
        assert measured == pytest.approx(losses["eval"], rel=1e-5)


@dataclass(frozen=True)
class Discrete(Spirals):
    """The spirals, with the sparsity error as a metric."""

    metrics: ClassVar[Mapping[str, Metric]] = {**Spirals.metrics, "test_sparsity_error": Metric()}


def test_the_sparsity_error_comes_from_the_units():
    """The engine computes a declared sparsity error; a model without units has NaN."""
    for way in WAYS:
        pack = way(Recipe(task=Discrete(), model=bounded), members(1, 2))
        expected = [
            max(
                np.minimum(abs(w), abs(1 - abs(w))).max()
                for w in (pack.weights()[name][row] for name in pack.weights())
            )
            for row in range(2)
        ]
        np.testing.assert_allclose(pack.evaluate()["test_sparsity_error"], expected, rtol=1e-6)
        assert np.isnan(way(recipe(Discrete()), members(1, 2)).evaluate()["test_sparsity_error"]).all()


def test_a_unit_may_be_frozen():
    """A unit without a gradient keeps its weights, has no penalty, and counts in the sparsity error."""

    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.unit, self.linear = UNITS["NMU"](2, 2).requires_grad_(False), nn.Linear(2, 2)
            nn.init.constant_(self.unit.weight, 0.75)

        def forward(self, x):
            return self.linear(self.unit(x))

    for way in WAYS:
        strengths = (None, Sparsity(10.0, start=0, end=1))
        packs = [way(Recipe(task=Discrete(), model=Frozen, sparsity=each), members(1, 2)) for each in strengths]
        for pack in packs:
            pack.update(2)
        for name, weights in packs[0].weights().items():
            np.testing.assert_array_equal(weights, packs[1].weights()[name])
        assert (packs[0].weights()["unit.weight"] == 0.75).all()
        assert packs[1].evaluate()["test_sparsity_error"].tolist() == [0.25, 0.25]
