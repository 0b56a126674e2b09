"""The proof, on a user's own task and model, that a trial's bits don't depend on its pack.

A few updates and evaluations must give the same bits as in a pack of two: in packs of several sizes, at other places,
after a resume, and beside trials whose weights are NaN or 0. Otherwise the trials train one by one. There, a trial must
at least repeat itself.

A proof holds for one device. On the CPU, operations that have the same bits for packs of the compared sizes have them
for all sizes. On a GPU, libraries choose kernels, and split long sums, by the size of the arrays. There a proof holds
for the compared sizes only, so these must include the size of the pack to train. The CPU's proof may use a quicker
variant of the task; a GPU's uses the task itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from study.engine.device import one_thread
from study.engine.packed.members import Arrays, Members, OneByOne, PackLayout, SideBySide
from study.engine.packed.optimizers import Schedule
from study.engine.packed.recipe import (
    Member,
    Recipe,
    build,
    generator_states,
    moved_generators,
    seed_of,
    seeded_generators,
    untrained,
)
from study.engine.packed.traced import LoweringError
from study.errors import InputError
from study.interface.stop_signals import exceptions_only
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, noise_from

Numbers = dict[str, npt.NDArray[Any]]

_UPDATES = 3
_RESUMED_AT = 2
# Trials whose bits are compared, at any place in a pack.
_COMPARED = 8
# Torch's vectorised operations compute the numbers past the last multiple of this with other instructions.
_VECTORS = 32
# Large packs are fastest with programs of 16 trials. A pack of ten is faster with programs of 4.
_COMPILED = tuple(
    PackLayout(multiple=multiple, is_aligned=is_aligned, backend="xla", wide=wide)
    for is_aligned in (False, True)
    for multiple, wide in ((4, 16), (16, 0))
)
# The fastest first; in the last one, the fewest places differ.
_LAYOUTS = (
    PackLayout(),
    PackLayout(is_aligned=True),
    PackLayout(multiple=_VECTORS),
    PackLayout(multiple=_VECTORS, is_aligned=True),
)
MOST_ON_GPU = 512
"""Default maximum number of trials in a pack on a GPU."""

# On a GPU, arrays of one size for all packs, so that kernels don't depend on the number of trials.
_ONE_SIZE = PackLayout(multiple=MOST_ON_GPU)
# Relative to a parameter's largest gradient: the packed and the plain network differ in the order of sums only. A
# parameter's gradient that is smaller than _ROUNDING times the others' may be a rounding error of sums that cancel.
_TOLERANCE = 1e-3
_ROUNDING = 1e-3


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of a proof for the trials of a recipe.

    Args:
        layout: layout of the arrays in which they train side by side; None if they train one by one.
        reason: the reason that they don't train side by side; empty if they do.
        uncompiled: the reason that XLA doesn't compile the updates of trials that train side by side, if it was tried;
            otherwise empty.
    """

    layout: PackLayout | None
    reason: str = ""
    uncompiled: str = ""

    @property
    def packs(self) -> bool:
        """True if trials train side by side."""
        return self.layout is not None


def start(
    recipe: Recipe, members: Sequence[Member], proof: Proof, *, state: Arrays | None = None, device: str = "cpu"
) -> Members:
    """Start the trials of a pack as their proof requires, or resume them from their state.

    Args:
        recipe: the trials' common settings.
        members: each trial's own settings.
        proof: the recipe's proof for the device.
        state: the trials' arrays as returned by `Members.state`; None to start.
        device: the device that computes; XLA computes on the CPU only.

    Raises:
        InputError: if the proof needs XLA, and JAX isn't installed.
        ValueError: unless the model has trainable parameters, all float32 or all float64.
        Exception: any error of the task or the model.
    """
    if proof.layout is None:
        return OneByOne(recipe, members, state=state, device=device)
    return _side_by_side(recipe, members, proof.layout, state, device)


def _side_by_side(
    recipe: Recipe, members: Sequence[Member], layout: PackLayout, state: Arrays | None, device: str
) -> SideBySide:
    """Start trials side by side in a layout; raise InputError if it needs XLA and JAX isn't installed."""
    if layout.backend == "torch":
        return SideBySide(recipe, members, layout=layout, state=state, device=device)
    if not can_compile():
        raise InputError(
            "the trials of this study train by programs that XLA compiles, but JAX isn't installed here: "
            "pip install 'seeded-study[xla]', or train them as a new study"
        )
    from study.engine.packed.xla import XlaSideBySide

    return XlaSideBySide(recipe, members, layout=layout, state=state)


def can_compile() -> bool:
    """Return True if JAX is installed, whose XLA compiles updates."""
    return find_spec("jax") is not None


def prove(recipe: Recipe, *, sizes: Sequence[int] = (2, 5, 8), device: str = "cpu", is_compiled: bool = False) -> Proof:
    """Test trials for the same bits in all packs; return the proof, with the fastest layout that passes.

    If none passes, the proof is for trials one by one, with the reason.

    Args:
        recipe: the task, the model and the optimiser.
        sizes: pack sizes to compare, at least one; on a GPU, they must include the size of the pack to train.
            If all are 1, trials are only repeated alone, and the proof is for trials one by one.
        device: the device that trains them.
        is_compiled: whether XLA is to compile their updates on the CPU, if bits are the same in all packs.

    Raises:
        ValueError: if a trial that trains alone gives other numbers when repeated, or after a resume; or as `Members`,
            `Members.update` and `Members.evaluate` do for it.
        torch.OutOfMemoryError: if a GPU has no room for a pack of these sizes.
        Exception: the error of the user's task or model in a trial alone.

    Example:
        >>> from study import Dropout
        >>> from dataclasses import dataclass
        >>> from study.interface.declarations import Metric
        >>> from study.interface.task import Task
        >>> @dataclass(frozen=True)
        ... class Double(Task):
        ...     metrics = {"validation_loss": Metric()}
        ...
        ...     def draw(self, stream):
        ...         x = stream.uniform(32, 1)
        ...         return x, 2 * x
        ...
        ...     def loss(self, outputs, batch):
        ...         return (outputs - batch[1]).square().mean()
        >>> def mlp(dropout):
        ...     return nn.Sequential(nn.Linear(1, 4), nn.ReLU(), dropout(0.1), nn.Linear(4, 1))
        >>> prove(Recipe(task=Double(), model=mlp, hyperparameters={"dropout": Dropout})).packs
        True
        >>> print(prove(Recipe(task=Double(), model=mlp, hyperparameters={"dropout": nn.Dropout})).reason)
        they can't be one array program: Dropout 2 draws from torch's global generator; ...
    """
    recipe = _quick_recipe(recipe, device)
    members = [
        Member(seed=seed, schedule=Schedule(learning_rate=1e-2 / (1 + seed % _COMPARED)))
        for seed in range(max(_COMPARED, _VECTORS + 1, *sizes))
    ]
    _check_repeats(recipe, members[:2], device)
    if max(sizes) == 1:
        return Proof(layout=None, reason="one of them keeps a core busy by itself")
    uncompiled = ""
    if is_compiled and device == "cpu":
        try:
            layout, uncompiled = _first_valid(recipe, members, sizes, _COMPILED, device)
        except LoweringError as error:
            layout, uncompiled = None, str(error)
        if layout is not None:
            return Proof(layout=layout)
    layouts = _LAYOUTS if device == "cpu" else (*_LAYOUTS, _ONE_SIZE)
    layout, reason = _first_valid(recipe, members, sizes, layouts, device)
    return Proof(layout=layout, reason=reason, uncompiled="" if layout is None else uncompiled)


def _first_valid(
    recipe: Recipe, members: Sequence[Member], sizes: Sequence[int], layouts: Sequence[PackLayout], device: str
) -> tuple[PackLayout | None, str]:
    """Return the first layout with the same bits in all packs; else None, and the reason against the first layout."""
    reasons = []
    for layout in layouts:
        more = () if layout == _ONE_SIZE else (max(layout.multiple, layout.wide) + 1,)
        reason = _pack_dependence(recipe, members, (*sizes, *more), layout, device)
        if not reason:
            return layout, ""
        reasons.append(reason)
    return None, reasons[0]


def _quick_recipe(recipe: Recipe, device: str) -> Recipe:
    """Return a quicker recipe of the same operations (on the CPU), whose regulariser is in force at once."""
    sparsity = None if recipe.sparsity is None else replace(recipe.sparsity, start=-1, end=0)
    return replace(recipe, task=recipe.task.for_proof() if device == "cpu" else recipe.task, sparsity=sparsity)


def _check_repeats(recipe: Recipe, members: Sequence[Member], device: str) -> None:
    """Raise ValueError unless trials one by one give the same numbers when trained again, and after a resume."""

    def begin(state: Arrays | None = None) -> Members:
        return OneByOne(recipe, members, state=state, device=device)

    name = type(recipe.task).__name__
    first = _train(begin())
    if different := _differences(first, _train(begin())):
        raise ValueError(
            f"task {name} and its model gave different numbers when the same trial was trained again ({different}): "
            "they depend on more than the trial's stream, such as a generator of their own without a seed, or a module "
            "that all trials share; draw from the stream, and build new modules"
            + ("" if device == "cpu" else ". Or an operation gives other bits each time on this device")
        )
    resumed = _resumed(begin)
    if different := _differences(_final_numbers(first), resumed):
        raise ValueError(
            f"task {name} and its model gave different numbers after a resume ({different}): the module keeps state "
            f"outside its parameters and buffers{_sentence(_attributes(recipe))}; register it as a buffer"
        )


def _pack_dependence(
    recipe: Recipe, members: Sequence[Member], sizes: Sequence[int], layout: PackLayout, device: str
) -> str:
    """Return the reason that trials' bits depend on their pack in a layout; empty if they don't.

    Errors of the user's code are reasons, too. LoweringError is raised, and OutOfMemoryError unless for `_ONE_SIZE`.
    """
    before = generator_states(device)
    try:
        with exceptions_only():
            difference = _first_difference(recipe, members, sizes, layout, device)
    except torch.OutOfMemoryError:
        if layout != _ONE_SIZE:  # there may be room for a smaller pack
            raise
        return "the device has no room for arrays of one fixed size"
    except LoweringError:
        raise
    except Exception as error:  # user code may raise anything under vmap, though it didn't one by one
        return f"they can't be one array program: {_explained(recipe, error)}"
    if moved := moved_generators(before, device):
        return f"the task or the model reads the global generator of {' and '.join(moved)}, which all trials share"
    if not difference:
        return ""
    return f"{difference}{_sentence(_culprits(recipe))}"


def _first_difference(
    recipe: Recipe, members: Sequence[Member], sizes: Sequence[int], layout: PackLayout, device: str
) -> str:
    """Return the first difference between packs of a layout, or to networks alone, as a sentence; empty if none."""

    def pack(chosen: Sequence[Member], state: Arrays | None = None) -> SideBySide:
        return _side_by_side(recipe, chosen, layout, state, device)

    pairs = [_train(pack(members[at : at + 2])) for at in range(0, _COMPARED, 2)]
    expected = {name: np.concatenate([pair[name] for pair in pairs]) for name in pairs[0]}
    alone = OneByOne(recipe, [Member(seed=0), Member(seed=1)], device=device)
    if name := _mismatch(alone, pack(members[:2])):
        return f"{name} differs between a pack and the network alone"
    if different := _differences(_select(expected, [0]), _train(pack(members[:1]))):
        return f"a trial alone has other bits than beside another one ({different})"
    for size in sizes:
        rows = range(min(size, _COMPARED))
        for order in (range(size), range(size)[::-1]):
            numbers = _train(pack([members[row] for row in order]))
            if different := _differences(_select(expected, rows), _select(numbers, [order.index(row) for row in rows])):
                return f"trials have other bits in a pack of {size} than in a pack of 2 ({different})"
    resumed = _resumed(lambda state: pack(members[:5], state))
    if different := _differences(_final_numbers(_select(expected, range(5))), resumed):
        return f"trials have other bits after a resume ({different})"
    return _interference(pack, members)


def _interference(pack: Callable[..., SideBySide], members: Sequence[Member]) -> str:
    """Return a message if trials with weights of NaN or 0 change the bits of others, else an empty string."""
    clean = pack(members[:_COMPARED]).state()
    for value in (np.nan, 0.0):
        state = {name: array.copy() for name, array in clean.items()}
        for name, array in state.items():
            if name.startswith("weight/"):
                array[3] = value
        others = [row for row in range(_COMPARED) if row != 3]
        beside = _train(pack(members[:_COMPARED], state))
        undisturbed = _train(pack([members[row] for row in others], _select(clean, others)))
        if different := _differences(undisturbed, _select(beside, others)):
            return f"a trial whose weights are {value:g} changes the bits of others ({different})"
    return ""


def _train(trials: Members) -> Numbers:
    """Train for a few updates; return the metrics before each, and those and the state at the end."""
    numbers: Numbers = {}
    for update in range(_UPDATES):
        numbers |= {f"{name} at {update}": values for name, values in trials.evaluate().items()}
        trials.update()
    return numbers | trials.evaluate() | trials.state()


def _resumed(begin: Callable[[Arrays | None], Members]) -> Numbers:
    """Train for a few updates with a resume in between; return the last metrics and the state."""
    trials = begin(None)
    for _ in range(_RESUMED_AT):
        trials.evaluate()
        trials.update()
    trials = begin(trials.state())
    for _ in range(_RESUMED_AT, _UPDATES):
        trials.evaluate()
        trials.update()
    return trials.evaluate() | trials.state()


def _final_numbers(numbers: Numbers) -> Numbers:
    return {name: values for name, values in numbers.items() if " at " not in name}


def _select(numbers: Mapping[str, npt.NDArray[Any]], rows: Sequence[int]) -> Numbers:
    return {name: values[list(rows)] for name, values in numbers.items()}


def _differences(expected: Numbers, actual: Numbers) -> str:
    """Return the name of the first array whose bits differ; empty if none do."""
    names = [name for name, values in expected.items() if values.tobytes() != actual[name].tobytes()]
    return names[0] if names else ""


def _mismatch(alone: OneByOne, pack: SideBySide) -> str:
    """Return the first gradient or buffer of a pack that differs beyond rounding from networks alone; empty if none."""
    for kind in ("gradient", "buffer"):
        here, there = (each.gradients() if kind == "gradient" else each.buffers() for each in (pack, alone))
        largest = max((np.abs(values).max(initial=0) for values in there.values()), default=0.0)
        for name, values in there.items():
            scale = max(np.abs(values).max(initial=0), _ROUNDING * largest) or 1.0
            if not np.allclose(here[name], values, rtol=0, atol=_TOLERANCE * scale, equal_nan=True):
                return f"{kind} {name}"
    return ""


# --- reasons ----------------------------------------------------------------------------------------------


def _sentence(reason: str) -> str:
    return f": {reason}" if reason else ""


def _explained(recipe: Recipe, error: Exception) -> str:
    """Explain an error under `torch.func.vmap` by its likely cause in the task or the model."""
    text = str(error).partition("\n")[0]
    if "randomness" in text:
        dropouts = _names(recipe, nn.modules.dropout._DropoutNd)
        if dropouts:
            return f"{dropouts} draws from torch's global generator; study.Dropout draws from the trial's"
        return "the task or the model draws from torch's global generator; draw from the stream instead"
    if ".item()" in text:
        return "the task or the model reads a tensor's value, by .item(), float(), if or while: use torch.where"
    culprits = _culprits(recipe)
    return f"{culprits} ({type(error).__name__}: {text})" if culprits else f"{type(error).__name__}: {text}"


def _culprits(recipe: Recipe) -> str:
    """Describe the parts of a module that often depend on other trials; empty if there are none."""
    reasons = []
    if norms := _names(recipe, nn.modules.batchnorm._NormBase):
        reasons.append(f"{norms} keeps running statistics")
    if dropouts := _names(recipe, nn.modules.dropout._DropoutNd):
        reasons.append(f"{dropouts} draws from a global generator")
    if buffers := _changed_buffers(recipe):
        reasons.append(f"the model changes its buffers {buffers} while it computes")
    return "; ".join(reasons)


def _names(recipe: Recipe, kind: type[nn.Module]) -> str:
    modules = build(recipe, 0).named_modules()
    return ", ".join(f"{type(module).__name__} {name}".strip() for name, module in modules if isinstance(module, kind))


def _forward(recipe: Recipe) -> nn.Module:
    """Build a module, apply it to a batch once, and return it."""
    task, module = recipe.task, build(recipe, 0).train()
    stream = Stream([0], 0, Purpose.TRAIN)
    with one_thread(), seeded_generators(seed_of(0, 0, Purpose.TRAIN)), noise_from(Stream([0], 0, Purpose.NOISE)):
        setup = (task.setup(Stream([0], 0, Purpose.SETUP)),) if task.has_setup else ()
        task.predict(module, task.draw(stream, *setup))
    return module


def _changed_buffers(recipe: Recipe) -> str:
    before, after = untrained(build(recipe, 0)), untrained(_forward(recipe))
    return ", ".join(name for name, tensor in before.items() if not torch.equal(tensor, after[name]))


def _attributes(recipe: Recipe) -> str:
    """Describe the numbers, texts and booleans in a module's attributes that a forward pass changes; empty if none."""
    before, after = _plain_attributes(build(recipe, 0)), _plain_attributes(_forward(recipe))
    names = [name for name, value in after.items() if before.get(name) != value]
    return f"its attribute {', '.join(names)} changes while it computes" if names else ""


def _plain_attributes(module: nn.Module) -> dict[str, Any]:
    return {
        f"{prefix}.{name}".lstrip("."): value
        for prefix, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, int | float | str | bool) and name != "training"
    }
