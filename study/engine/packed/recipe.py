"""A pack's common settings, its trials' own settings, and the construction of their modules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from study.engine.packed.optimizers import Optimizer, Schedule
from study.engine.penalties import stepwise
from study.interface.task import Task
from study.stream.stream import Purpose


@dataclass(frozen=True)
class Sparsity:
    """The regulariser that makes the bounded weights of units discrete, added to the loss with a growing weight.

        λ(t) = strength clip((t - start) / (end - start), 0, 1)

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        strength: λ̂ > 0.
        start: iteration at which λ begins to grow.
        end: iteration at which λ reaches λ̂, > start.
    """

    strength: float
    start: int
    end: int

    def at(self, iteration: int) -> float:
        """Return λ at an iteration.

        Example:
            >>> Sparsity(10.0, start=100, end=300).at(150)
            2.5
        """
        return self.strength * min(1.0, max(0.0, (iteration - self.start) / (self.end - self.start)))


@dataclass(frozen=True)
class L1:
    """The penalty of all trained parameters, added to the loss with a weight that grows in steps.

        β(t) = min(β_0 10^floor(t / 10,000), β_1)

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020; see `study.engine.penalties`.

    Args:
        first_strength: β_0, > 0.
        strength: β_1, >= β_0.
    """

    first_strength: float
    strength: float

    def at(self, iteration: int) -> float:
        """Return β at an iteration.

        Raises:
            ValueError: if the iteration or a strength is out of range.

        Example:
            >>> L1(1e-5, 1e-4).at(9_999), L1(1e-5, 1e-4).at(20_000)
            (1e-05, 0.0001)
        """
        return stepwise(iteration, self.first_strength, self.strength)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The common settings of a pack's trials.

    Args:
        task: the task that they learn.
        model: a module's class, or a function that builds a module.
        hyperparameters: keyword arguments of `model`.
        optimizer: the optimiser.
        sparsity: the regulariser of the model's units, or None.
        l1: the penalty of all parameters, or None.
        programs: cache of the programs compiled for it.
    """

    task: Task
    model: Callable[..., nn.Module]
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    optimizer: Optimizer = field(default_factory=Optimizer)
    sparsity: Sparsity | None = None
    l1: L1 | None = None
    programs: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A trial's own settings in a pack.

    Args:
        seed: seed of its weights, 0 <= seed < 2**63; also of its data and noise if `data_seed` is None.
        data_seed: seed of its data and noise; None for `seed`.
        schedule: its learning rate.
    """

    seed: int
    data_seed: int | None = None
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def stream_seed(self) -> int:
        """The seed of its data and noise."""
        return self.seed if self.data_seed is None else self.data_seed


def build(recipe: Recipe, seed: int) -> nn.Module:
    """Build a trial's module, with the global generators of torch, numpy and Python seeded from the trial's seed.

    Raises:
        TypeError: if the model doesn't build a module, or doesn't take the hyperparameters.
        Exception: any error of the model itself.

    Example:
        >>> from study.interface.task import Task
        >>> recipe = Recipe(task=None, model=nn.Linear, hyperparameters={"in_features": 1, "out_features": 1})
        >>> bool(build(recipe, 7).weight == build(recipe, 7).weight)
        True
    """
    with seeded_generators(seed):
        module = recipe.model(**recipe.hyperparameters)
    if not isinstance(module, nn.Module):
        raise TypeError(f"model {recipe.model!r} must build a torch.nn.Module, but built {module!r}")
    return module


def untrained(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's buffers and its parameters with ``requires_grad=False``: no optimiser moves them."""
    frozen = {name: p for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | dict(module.named_buffers())


@contextmanager
def seeded_generators(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python within the context, and restore them afterwards.

    Args:
        seed: 0 <= seed < 2**64.
        device: the device that computes; for ``cuda``, torch's generators of the GPUs are seeded as well. The
            process must use a GPU already.
    """
    before = generator_states(device)
    for generator in _torch_generators(device):
        generator.manual_seed(seed)
    np.random.seed([seed & 0xFFFFFFFF, seed >> 32])  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        for generator, state in zip(_torch_generators(device), before[0], strict=True):
            generator.set_state(state)
        np.random.set_state(before[1])  # noqa: NPY002
        random.setstate(before[2])


def seed_of(seed: int, iteration: int, purpose: Purpose) -> int:
    """Mix a trial's seed with an iteration and a purpose to a seed of a global generator, 0 <= seed < 2**63."""
    return int(np.random.SeedSequence((seed, iteration, int(purpose))).generate_state(1, np.uint64)[0] >> 1)


def _torch_generators(device: str) -> list[torch.Generator]:
    # Generators of GPUs exist once a GPU is in use.
    return [torch.default_generator, *(torch.cuda.default_generators if device == "cuda" else ())]


GeneratorStates = tuple[list[Tensor], Any, Any]


def generator_states(device: str = "cpu") -> GeneratorStates:
    """Copy the states of the global generators of torch (of its GPUs, too, for ``cuda``), numpy and Python."""
    states = [generator.get_state() for generator in _torch_generators(device)]
    return states, np.random.get_state(), random.getstate()  # noqa: NPY002


def moved_generators(before: GeneratorStates, device: str = "cpu") -> list[str]:
    """Return the names of the global generators whose states differ from `before`; empty if all are equal.

    The names are ``torch``, ``numpy.random`` and ``random``.

    Args:
        before: the result of `generator_states` for the same device.
        device: ``cpu``; or ``cuda`` if the process used a GPU already then.
    """
    now = generator_states(device)
    is_same = (
        all(torch.equal(a, b) for a, b in zip(before[0], now[0], strict=True)),
        all(np.array_equal(a, b) for a, b in zip(before[1], now[1], strict=True)),
        before[2] == now[2],
    )
    return [name for name, same in zip(("torch", "numpy.random", "random"), is_same, strict=True) if not same]
