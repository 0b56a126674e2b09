"""Array programs that are recorded once and then repeated, without the overhead of Python.

`torch.func.vmap` and autograd determine the operations anew in every update. For small networks this takes most of the
time. A recording is a list of operations on arrays, with the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from study.interface.stop_signals import exceptions_only
from study.stream.stream import Purpose
from study.stream.trial_stream import BY_ROW, Draw, Stream

# The interpreter profiles the first runs, and rewrites the program for later ones.
_CHECKED = 3


class LoweringError(Exception):
    """An operation of torch that has no counterpart of XLA here."""


Draws = dict[Purpose, list[Draw]]
"""The calls of an update's streams, in order."""

Numbers = dict[Purpose, list[Tensor]]
"""The numbers that these calls draw, each [trials, *shape]."""

Gradients = dict[str, Tensor]
"""The gradients of all trials by parameter name, without those that are 0."""

Compute = Callable[..., Gradients]
"""Computes gradients from nested tensors and the numbers of an update."""


class ListeningStream(Stream):
    """A stream that records its calls.

    Args:
        draws: the list to which calls are appended.

    The other arguments are those of `Stream`.
    """

    def __init__(
        self,
        draws: list[Draw],
        seeds: Sequence[int] | npt.NDArray[np.uint64],
        iteration: int,
        purpose: Purpose,
        *,
        trial: Tensor | None = None,
    ) -> None:
        super().__init__(seeds, iteration, purpose, trial=trial)
        self._draws = draws

    def of_all(self, draw: Draw) -> Tensor:
        """Record the next call, and draw its numbers for all trials of the pack, [trials, *shape].

        Raises:
            ValueError: as `Stream.of_all` does.
        """
        self._draws.append(draw)
        return super().of_all(draw)


class GivenStream(Stream):
    """A stream of given numbers, inside of `torch.func.vmap` those of one trial.

    Args:
        numbers: the numbers of each call.
    """

    def __init__(self, numbers: Sequence[Tensor]) -> None:
        super().__init__([], 0, Purpose.TRAIN)
        self._numbers: Iterator[Tensor] = iter(numbers)

    def draw(self, draw: Draw) -> Tensor:
        """Return the numbers that were given for the next call, without drawing any; StopIteration after the last."""
        return next(self._numbers)


def drawn(draws: Draws, seeds: npt.NDArray[np.uint64], iteration: int) -> Numbers:
    """Draw the numbers of an iteration, contiguous in memory for each trial, since products depend on the layout.

    Args:
        draws: the calls of an update's streams.
        seeds: uint64 [trials].
        iteration: 0 <= iteration < 2**32.

    Raises:
        ValueError: as `Stream` does.

    Example:
        >>> drawn({Purpose.TRAIN: [Draw("uniform", (3,))]}, np.array([7], np.uint64), 0)[Purpose.TRAIN]
        [tensor([[0.9546, 0.4070, 0.0061]])]
    """
    numbers = {}
    for purpose, calls in draws.items():
        stream = Stream(seeds, iteration, purpose)
        numbers[purpose] = [stream.of_all(draw).contiguous() for draw in calls]
    return numbers


def drawn_ahead(draws: Draws, seeds: npt.NDArray[np.uint64], iterations: range) -> Numbers:
    """Draw the numbers of several iterations, as `drawn` does, each [iterations, trials, *shape].

    Args:
        draws: the calls of an update's streams.
        seeds: uint64 [trials].
        iterations: at least one.

    Raises:
        ValueError: as `Stream` does.

    Example:
        >>> draws = {Purpose.TRAIN: [Draw("uniform", (3,))]}
        >>> drawn_ahead(draws, np.array([7], np.uint64), range(2))[Purpose.TRAIN][0][0]
        tensor([[0.9546, 0.4070, 0.0061]])
    """
    if any(draw.kind not in BY_ROW for calls in draws.values() for draw in calls):
        each = [drawn(draws, seeds, iteration) for iteration in iterations]
        return {
            purpose: [torch.stack(parts) for parts in zip(*(numbers[purpose] for numbers in each), strict=True)]
            for purpose in draws
        }
    count = len(iterations)
    trial_iterations = np.repeat(np.array(iterations, np.uint32), len(seeds))
    numbers = {}
    for purpose, calls in draws.items():
        stream = Stream(np.tile(seeds, count), trial_iterations, purpose)
        numbers[purpose] = [stream.of_all(draw).contiguous().view(count, len(seeds), *draw.shape) for draw in calls]
    return numbers


def recorded(compute: Compute, expected: Gradients, *inputs: Any) -> Compute | None:
    """Record the operations of a computation for given inputs; the operations must not depend on the numbers.

    TorchScript's interpreter repeats them with an overhead of about 1 us per operation; Python's is 4 us. Updates of
    small networks took 0.5 times as long.

    Args:
        compute: the computation.
        expected: its gradients for these inputs.
        inputs: its arguments, nested tensors.

    Returns:
        A function that repeats them for inputs of the same shapes. None if they can't be recorded, or give other bits
        when repeated.

    Example:
        >>> repeat = recorded(lambda x: {"y": (x * x).sum()}, {"y": torch.tensor(5.0)}, torch.arange(3.0))
        >>> repeat(torch.arange(4.0)[1:])
        {'y': tensor(14.)}
    """
    try:
        with exceptions_only():
            repeat = _Repeat(compute, inputs, list(expected))
            repeated = [repeat(*inputs) for _ in range(_CHECKED)]
    except Exception:  # the user's code may raise anything under a recorder, though it didn't without
        return None
    return repeat if all(_are_same(expected, gradients) for gradients in repeated) else None


class _Repeat:
    """A repetition of recorded operations.

    Args:
        compute: the computation.
        inputs: the inputs for which it is recorded.
        names: names of its outputs.
    """

    def __init__(self, compute: Compute, inputs: tuple[Any, ...], names: list[str]) -> None:
        self._names = names
        tensors, structure = tree_flatten(inputs)

        def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
            gradients = compute(*tree_unflatten(list(tensors), structure))
            return tuple(gradients[name] for name in names)

        graph = make_fx(flat)(*tensors)
        _remove_detours(graph)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `recorded` checks the recording itself
            self._program = torch.jit.trace(graph, tuple(tensors), check_trace=False)  # type: ignore[no-untyped-call]

    def __call__(self, *inputs: Any) -> Gradients:
        tensors = _leaves(inputs)
        # On a GPU the interpreter would fuse operations into kernels that round a product and a sum together.
        as_recorded = nullcontext() if tensors[0].is_cpu else torch.jit.optimized_execution(False)  # type: ignore[attr-defined]
        with torch.no_grad(), as_recorded:
            return dict(zip(self._names, self._program(*tensors), strict=True))


def _leaves(tree: Any) -> list[Tensor]:
    """Return the tensors of a nested input in the order of `tree_flatten`, in a fraction of its time."""
    if isinstance(tree, Tensor):
        return [tree]
    if type(tree) not in (dict, list, tuple):
        return tree_flatten(tree)[0]
    return [tensor for part in (tree.values() if type(tree) is dict else tree) for tensor in _leaves(part)]


def _remove_detours(graph: GraphModule) -> None:
    """Remove `detach` operations and dead code."""
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.detach.default:
            node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _are_same(expected: Gradients, repeated: Gradients) -> bool:
    return expected.keys() == repeated.keys() and all(
        tensor.cpu().numpy().tobytes() == repeated[name].cpu().numpy().tobytes() for name, tensor in expected.items()
    )
