"""A pack whose updates XLA compiles: a loop of gradients, the optimiser's step and limits in one program.

A program is compiled for a fixed number of trials; a pack calls it for one group of trials after another. So it is
compiled once per recipe, and a trial's bits can only depend on its place in a group. The numbers of the streams are
drawn ahead for several iterations, with the same bits as for every other backend. Torch computes evaluations.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import torch
from jax import lax
from jax import numpy as jnp
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.dlpack import from_dlpack

from study.engine.packed.flat import fill
from study.engine.packed.lowering import Array, lowered
from study.engine.packed.members import Arrays, PackLayout, SideBySide
from study.engine.packed.recipe import Member, Recipe
from study.engine.packed.traced import Draws, drawn, drawn_ahead

# Iterations whose numbers are drawn at once, and the memory for those of a group, which must fit into a cache.
_MOST_UPDATES = 64
_MOST_BYTES = 4 * 2**20


@dataclass(frozen=True)
class _Programs:
    """The compiled programs of a recipe.

    Args:
        draws: the calls of an update's streams.
        at_once: maximum number of iterations per call.
        by_size: the programs by their number of trials.
    """

    draws: Draws
    at_once: int
    by_size: dict[int, Callable[..., Sequence[Array]]]


class XlaSideBySide(SideBySide):
    """The trials of a pack as an array program that XLA compiles for the CPU.

    Args:
        recipe: the trials' common settings.
        members: each trial's own settings.
        layout: layout of the arrays, with ``xla`` as its backend.
        state: the trials' arrays as returned by `state`; None to start.

    An update raises `LoweringError` if XLA has no counterpart of an operation.
    """

    def __init__(
        self, recipe: Recipe, members: Sequence[Member], *, layout: PackLayout, state: Arrays | None = None
    ) -> None:
        super().__init__(recipe, members, layout=layout, state=state)
        self._recipe = recipe
        sizes = [size for size in (layout.wide, layout.multiple) if 0 < size <= len(self._rows)]
        self._groups = list(_groups(len(self._rows), sizes))
        self._update_s = 0.0

    def update(self, updates: int = 1) -> None:
        """Make a number of updates of every trial.

        Raises:
            LoweringError: if XLA has no counterpart of an operation.
            ValueError: if the task's loss isn't a scalar.
            Exception: any error of the task or the model.
        """
        with self._computing():
            while updates:
                count = min(updates, self._programs.at_once)
                for rows, new in self._computed(count):
                    for tensor, value in zip(self._state_of(rows), new, strict=True):
                        tensor.copy_(from_dlpack(value))
                self.iteration += count
                updates -= count

    def update_for(self, most: int, for_s: float) -> int:
        """Update every trial 1 to `most` times, for at most about `for_s` seconds; return the number of updates.

        The first call makes one update, to measure its time. A later one makes at most 64, or fewer if an update draws
        many numbers, even if there is time for more.

        Raises:
            LoweringError, ValueError, Exception: as `update` does.
        """
        in_time = int(for_s / self._update_s) if self._update_s else 1
        count = max(1, min(most, self._programs.at_once, in_time))
        began = time.perf_counter()
        self.update(count)
        self._update_s = (time.perf_counter() - began) / count
        return count

    def _differentiate(self) -> None:
        for rows, new in self._computed(1):
            self._flat.arrays["gradient"][rows].copy_(from_dlpack(new[-1]))

    # --- the program --------------------------------------------------------------------------------------

    @cached_property
    def _programs(self) -> _Programs:
        """The compiled programs of the recipe, shared by all packs of this process that train it."""
        programs: dict[bool, _Programs] = self._recipe.programs
        if self._layout.is_aligned not in programs:
            programs[self._layout.is_aligned] = self._new_programs()
        return programs[self._layout.is_aligned]

    def _new_programs(self) -> _Programs:
        """Record the draws of an update, and choose the number of iterations per call; nothing is compiled yet."""
        rows = slice(0, self._layout.multiple)
        weight, *_ = self._state_of(rows)
        others = {name: tensor[rows].clone() for name, tensor in self._others.items()}
        _, draws = self._listened(self._flat.parts_of(weight), others, self._strengths(), self._setup_of(rows))
        of_trial = drawn(draws, self._seeds[:1], self.iteration)
        group = max(self._layout.wide, self._layout.multiple)
        size = group * sum(tensor.numel() * tensor.element_size() for tensor in tree_flatten(of_trial)[0])
        return _Programs(draws, max(1, min(_MOST_UPDATES, _MOST_BYTES // max(1, size))), {})

    def _program(self, size: int) -> Callable[..., Sequence[Array]]:
        """Return the program that makes updates of a group of `size` trials; its first call compiles it.

        Its arguments are the group's state, its setup, the numbers and factors of each iteration, [at_once, size, ...],
        and the number of updates.
        """
        rows = slice(0, size)
        numbers = drawn(self._programs.draws, self._seeds[rows], self.iteration)
        factors = {name: factor[0, rows] for name, factor in self._factors(range(1)).items()}
        inputs = self._state_of(rows), self._setup_of(rows), numbers, factors
        tensors, structure = tree_flatten(inputs)

        def update(*tensors: Tensor) -> list[Tensor]:
            return self._updated(*tree_unflatten(list(tensors), structure))

        # Torch can vectorise the gradients of attention in its math backend, but not those of its fused kernels.
        with sdpa_kernel(SDPBackend.MATH):
            compute = lowered(update, tensors)

        @jax.jit
        def run(state: Sequence[Array], setup: Sequence[Array], each: Sequence[Array], count: Array) -> Sequence[Array]:
            def body(i: Array, state: Sequence[Array]) -> Sequence[Array]:
                return tuple(compute(*state, *setup, *(array[i] for array in each)))

            updated: Sequence[Array] = lax.fori_loop(0, count, body, tuple(state))
            return updated

        return run

    def _updated(
        self, state: list[Tensor], setup: tuple[Any, ...], numbers: Any, factors: Mapping[str, Tensor]
    ) -> list[Tensor]:
        """Return the given trials' state after an update; the inputs aren't written to.

        `state` is in the order of `_state_of`, `numbers` are those of `drawn`, and `factors` are [trials].
        """
        weight, *arrays, gradient = (tensor.clone() for tensor in state)
        moments = arrays[: len(self._flat.moments)]
        others = dict(zip(self._others, arrays[len(moments) :], strict=True))
        strengths = factors["sparsity"][0], factors["l1"][0]
        gradients = self._compute(self._stream, self._flat.parts_of(weight), others, strengths, setup, numbers)
        with torch.no_grad():
            fill(self._flat.parts_of(gradient), gradients)
            by = {name: factor[:, None] for name, factor in factors.items()}
            self._optimizer.move(weight, gradient.clone(), moments, by)
            self._limit(self._flat.parts_of(weight))
        return [weight, *moments, *others.values(), gradient]

    # --- its inputs ---------------------------------------------------------------------------------------

    def _state_of(self, rows: slice) -> list[Tensor]:
        """Return the given trials' arrays that an update changes: weights, moments, buffers, and last the gradient."""
        arrays = self._flat.arrays
        kinds = [arrays["weight"], *(arrays[name] for name in self._flat.moments), *self._others.values()]
        return [tensor[rows] for tensor in (*kinds, arrays["gradient"])]

    def _setup_of(self, rows: slice) -> Any:
        return tree_map(lambda tensor: tensor[rows], self._setup)

    def _factors(self, iterations: range) -> dict[str, Tensor]:
        """Return the values that differ by iteration and aren't drawn, each [iterations, trials]."""
        rows = []
        for iteration in iterations:
            row = self._optimizer.factors(self._rates.at(iteration), iteration)
            for name, strength in (("sparsity", self._sparsity), ("l1", self._l1)):
                row[name] = np.full(len(self._rows), 0.0 if strength is None else strength.at(iteration))
            rows.append(row)
        dtype = self._flat.arrays["weight"].dtype
        return {name: torch.from_numpy(np.stack([row[name] for row in rows])).to(dtype) for name in rows[0]}

    def _computed(self, count: int) -> Iterator[tuple[slice, Sequence[Array]]]:
        """Yield each group and its state after the given number of updates."""
        _start_jax()
        programs, iterations = self._programs, range(self.iteration, self.iteration + count)
        factors = self._factors(iterations)
        # Otherwise JAX would truncate 64-bit numbers.
        with jax.enable_x64(True):
            for rows in self._groups:
                state, setup = (
                    [jnp.asarray(tensor.numpy()) for tensor in tree_flatten(part)[0]]
                    for part in (self._state_of(rows), self._setup_of(rows))
                )
                drawn_numbers = drawn_ahead(programs.draws, self._seeds[rows], iterations)
                ahead = drawn_numbers, {name: factor[:, rows] for name, factor in factors.items()}
                each = [jnp.asarray(_padded(array.numpy(), programs.at_once)) for array in tree_flatten(ahead)[0]]
                size = rows.stop - rows.start
                if size not in programs.by_size:
                    programs.by_size[size] = self._program(size)
                yield rows, programs.by_size[size](state, setup, each, count)


def _groups(trials: int, sizes: Sequence[int]) -> Iterator[slice]:
    start = 0
    for size in sizes:
        while trials - start >= size:
            yield slice(start, start + size)
            start += size


def _padded(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Pad the first axis of an array with zeros to a length, since a program is compiled for one shape."""
    if len(array) == length:
        return array
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


@cache
def _start_jax() -> None:
    """Start JAX on one thread of the CPU, and ignore its warning of forks; if it runs already, it keeps its threads."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    settings = {"XLA_FLAGS": flags, "NPROC": "1"}
    before = {name: os.environ.get(name) for name in settings}
    # JAX reads them once, at its start. The environment that the user's processes inherit is restored.
    os.environ.update(settings)
    try:
        jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
        jax.devices()
        os.register_at_fork(before=_ignore_fork_warning)  # the last one registered is called first
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _ignore_fork_warning() -> None:
    """Ignore JAX's warning of forks; set before each fork, since user code may reset filters."""
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
