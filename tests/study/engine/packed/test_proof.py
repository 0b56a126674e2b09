"""The proof that a trial's bits don't depend on its pack, or the reason for training one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from study.engine.packed.aligned import AlignedProducts
from study.engine.packed.proof import Proof, prove, start
from study.stream.trial_stream import Dropout
from tests.study.engine.packed.spirals import Spirals, members, recipe


@pytest.mark.parametrize("hidden", [2, 4, 32])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU])
def test_dense_networks_train_in_packs(hidden, activation):
    """Dense layers of even width with common activations can be proven."""
    assert prove(recipe(hidden=hidden, activation=activation)).packs


@pytest.mark.parametrize("middle", [partial(Dropout, 0.2), partial(nn.LayerNorm, 4)], ids=["Dropout", "LayerNorm"])
def test_noise_from_the_stream_trains_in_packs(middle):
    """Models with dropout from the trial's stream, or with a norm over a row, can be proven."""
    assert prove(recipe(middle=middle)).packs


@pytest.mark.parametrize(
    ("batch_size", "hidden", "activation"), [(25, 6, nn.SiLU), (32, 5, nn.Tanh), (25, 7, nn.Sigmoid), (32, 4, nn.ReLU)]
)
def test_a_proof_holds_for_a_larger_pack(batch_size, hidden, activation):
    """A trial in a pack of 21 has the bits that it has alone and in a pack of 3, after 30 updates.

    Odd widths and batches need another layout than plain arrays: the remainder after the last full vector, and matrices
    with another alignment, are computed differently.
    """
    middle, seeds = partial(nn.Linear, hidden, hidden), range(21)
    made = recipe(Spirals(batch_size=batch_size), hidden=hidden, activation=activation, middle=middle)
    proof = prove(made)
    assert proof.packs
    large, small, alone = (start(made, members(*pack_seeds), proof) for pack_seeds in (seeds, (19, 4, 11), (4,)))
    for pack in (large, small, alone):
        pack.update(30)
    for name, array in large.state().items():
        assert array[[19, 4, 11]].tobytes() == small.state()[name].tobytes(), name
        assert array[4:5].tobytes() == alone.state()[name].tobytes(), name
    for name, values in large.evaluate().items():
        assert values[4:5].tobytes() == alone.evaluate()[name].tobytes()


@pytest.mark.parametrize("size", [1, 3, 5, 16, 17])
def test_aligned_layers_compute_dense_layers(size):
    """A dense layer widened with zeros has the outputs and gradients of the plain layer."""
    layer, x = nn.Linear(size, 7), torch.randn(4, size, generator=torch.Generator().manual_seed(0))
    plain = layer(x)
    expected = torch.autograd.grad(plain.square().sum(), layer.parameters())
    with AlignedProducts():
        wide = layer(x)
        actual = torch.autograd.grad(wide.square().sum(), layer.parameters())
    torch.testing.assert_close(wide, plain)
    for gradient, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(gradient, other)


class Reads(nn.Module):
    """A module that depends on a tensor's value."""

    def forward(self, x):
        return x if x.mean().item() > 0 else 2 * x


class Mixes(nn.Module):
    """A module whose output for a trial depends on all trials of a pack."""

    def forward(self, x):
        return _Neighbours.apply(x)


class _Neighbours(torch.autograd.Function):
    generate_vmap_rule = False

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad

    @staticmethod
    def vmap(info, in_dims, x):
        return x + 1e-3 * x.mean(), 0


class Replaces(nn.Module):
    """A module that counts in a buffer that it replaces instead of changing in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps = self.steps + 1
        return x * (1 + 0.1 * self.steps)


@dataclass(frozen=True)
class FromTorch(Spirals):
    def draw(self, stream):
        x, label = super().draw(stream)
        return x + 0.1 * torch.randn(x.shape), label


@dataclass(frozen=True)
class FromNumpy(Spirals):
    def draw(self, stream):
        x, label = super().draw(stream)
        return x + 0.1 * np.random.rand(), label  # noqa: NPY002


@dataclass(frozen=True)
class FromPython(Spirals):
    def evaluation(self, stream, purpose):
        x, label = self.draw(stream)
        return x + random.random(), label


BREACHES = {
    "batch norm": (recipe(middle=lambda: nn.Sequential(nn.BatchNorm1d(4), Mixes())), "BatchNorm1d 2.0 keeps running"),
    "dropout": (recipe(middle=partial(nn.Dropout, 0.2)), "Dropout 2 draws from torch's global generator"),
    "item": (recipe(middle=Reads), "reads a tensor's value, by .item()"),
    "neighbours": (recipe(middle=Mixes), "a trial alone has other bits than beside another one"),
    "a replaced buffer": (recipe(middle=Replaces), "buffer 2.steps"),
    "torch's generator": (recipe(FromTorch()), "draws from torch's global generator"),
    "numpy's generator": (recipe(FromNumpy()), "reads the global generator of numpy.random"),
}


@pytest.mark.parametrize(("made", "reason"), BREACHES.values(), ids=list(BREACHES))
def test_breaches_are_detected_and_trained_one_by_one(made, reason):
    """The proof gives the reason, and one by one a trial's bits don't depend on others."""
    proof = prove(made)
    assert not proof.packs
    assert reason in proof.reason
    many, single = start(made, members(1, 2, 3), proof), start(made, members(2), proof)
    for pack in (many, single):
        pack.update(3)
    for name, array in many.state().items():
        assert array[1:2].tobytes() == single.state()[name].tobytes(), name


def test_evaluation_sets_from_global_generators_are_fixed():
    """Global generators are seeded for evaluation sets, so all processes draw the same."""
    made, values = recipe(FromPython()), []
    proof = prove(made)
    assert proof.packs
    for seed in (1, 2):
        random.seed(seed)
        values.append(start(made, members(1, 2), proof).evaluate()["validation_loss"].tobytes())
    assert values[0] == values[1]


class Notes(nn.Module):
    """A module that stores its draw from torch's global generator."""

    def __init__(self):
        super().__init__()
        self.register_buffer("drawn", torch.zeros(()))

    def forward(self, x):
        self.drawn.copy_(torch.rand(()))
        return x


def test_one_by_one_each_trial_has_a_global_generator():
    """One by one, each trial and iteration draws its own numbers from the global generator, whatever the pack."""
    made, proof = recipe(middle=Notes), Proof(layout=None)
    pack, other = (start(made, members(*seeds), proof) for seeds in ((1, 2), (2, 3)))
    drawn = []
    for _ in range(2):
        for each in (pack, other):
            each.update()
        assert pack.buffers()["2.drawn"][1] == other.buffers()["2.drawn"][0]
        drawn += pack.buffers()["2.drawn"].tolist()
    assert len(set(drawn)) == 4


class Counts(nn.Module):
    """A module that counts in an attribute."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * (1 + 0.1 * self.calls)


@dataclass(frozen=True)
class Entropy(Spirals):
    def draw(self, stream):
        x, label = super().draw(stream)
        return x + 0.1 * float(np.random.default_rng().random()), label


SHARED = np.random.default_rng(0)


@dataclass(frozen=True)
class FromShared(Spirals):
    def draw(self, stream):
        x, label = super().draw(stream)
        return x + 0.1 * float(SHARED.random()), label


def test_unrepeatable_trials_are_refused():
    """A counter that a checkpoint would lose, and shared generators, are errors with a remedy."""
    with pytest.raises(ValueError, match=r"its attribute 2\.calls changes while it computes; register it as a buffer"):
        prove(recipe(middle=Counts))
    with pytest.raises(ValueError, match="depend on more than the trial's stream"):
        prove(recipe(Entropy()))
    with pytest.raises(ValueError, match="a generator of their own without a seed, or a module that all trials share"):
        prove(recipe(FromShared()))


def test_an_error_of_user_code_is_raised():
    """An error of the user's task or model is raised unchanged."""
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        prove(recipe(model=lambda: nn.Linear(3, 2)))
