"""Checks of combinations of hyperparameter values in the arithmetic family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from study.interface.family import Check, Mistake, Values
from study.interface.l1_strengths import NAMES as L1
from study.interface.l1_strengths import l1_mistakes
from tasks.arithmetic import SINGLE_MODULE, TASKS, canonical, model_of
from tasks.arithmetic.cell import TASK_NAMES, ArithmeticCell
from tasks.arithmetic.distributions import uniform_mean
from tasks.arithmetic.hyperparameters import SPARSITY
from tasks.arithmetic.models import SINGLE_LAYERS
from tasks.arithmetic.own_units import is_own

_NUMBER_BYTES = 4
_MOST_TRIAL_BYTES = 16 * 2**30

_LENGTH = ("iterations", "evaluate_every")
_SIZES = ("input_size", "hidden_size", "batch_size", "evaluation_rows")
_SUCCESS = ("success_epsilon", "success_threshold")


def _layer_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if task == SINGLE_MODULE and model not in SINGLE_LAYERS and not is_own(model):
        alone = ", ".join(SINGLE_LAYERS)
        yield (), f"the single-module task has one layer, and {model} alone is linear: take one of {alone}"


def _task_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    """Construct the task and, unless a threshold is given, compute it; yield the ValueError that this raises."""
    try:
        task_ = TASKS[task](**canonical.task_values(values))
        epsilon = canonical.success(values)["success_epsilon"]
        if epsilon is not None:
            task_.threshold(epsilon)
    except ValueError as error:
        message = str(error)
        names = [name for name in TASK_NAMES if name in message]
        yield (*sorted(names, key=message.index), "success_epsilon"), message


def _variance_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    variance = values.get("init_variance")
    if variance is None:
        return
    largest = model_of(task, model).largest_init_variance
    if largest == 0:
        yield ("init_variance",), f"the distributions of {model}'s initial weights are fixed: leave it out"
    elif variance > largest:
        yield (
            ("init_variance",),
            f"the weights of {model} can have a variance of at most {largest:.6g}, but got {variance:g}",
        )


def _start_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if not model_of(task, model).has_nmu:
        return
    if values.get("init_range") is not None and values.get("init_variance") is not None:
        yield (
            ("init_range", "init_variance"),
            "an NMU takes an init_variance, around 1/2, or an init_range, but got both",
        )


def _signs_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if values.get("init_signs") != "two_negative" or not model_of(task, model).multiplies_sums:
        return
    if values.get("distribution", "uniform") != "uniform":
        yield ("init_signs",), "two_negative needs a uniform distribution of inputs"
    elif uniform_mean(values.get("interpolation_range", ((1.0, 2.0),))) == 0:
        yield ("init_signs",), "two_negative needs inputs whose mean isn't 0: with mean 0, no factor is negative"


def _schedule_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    network = model_of(task, model, values.get("input_size", 2))
    regulariser = canonical.sparsity(network, values)
    start, end = regulariser.get("sparsity_start"), regulariser.get("sparsity_end")
    if start is None or end is None or end > start:
        return
    defaults = [name for name in ("sparsity_start", "sparsity_end") if name not in values]
    publisher = "NMU" if is_own(model) else model
    default = f" ({' and '.join(defaults)} as published for {publisher})" if defaults else ""
    yield (
        ("sparsity_end", "sparsity_start"),
        f"sparsity_start < sparsity_end must hold, but got start {start} and end {end}{default}",
    )


def _l1_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    network = model_of(task, model, values.get("input_size", 2))
    penalty = canonical.l1(network, values.get("operation", "mul"), values)
    published = "" if "l1_strength" in values else f", as published for {model}"
    yield from l1_mistakes(penalty["l1_strength"], penalty["l1_first_strength"], published)


def _length_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    cell = canonical.canonical(task, model, values)
    if cell.iterations < cell.evaluate_every:
        yield (
            ("evaluate_every", "iterations"),
            "evaluate_every <= iterations must hold, or a trial is evaluated only before its first update; "
            f"but got evaluate_every {cell.evaluate_every} and iterations {cell.iterations}",
        )


def _success_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if len(values) == 2:
        yield (
            ("success_threshold",),
            "success takes an epsilon, from which the threshold is computed, or a threshold, but got both",
        )


def trial_bytes(cell: ArithmeticCell) -> int:
    """Return an upper estimate of a trial's memory in bytes: weights, batch, evaluation rows, masks and curve."""
    weights = 12 * cell.hidden_size * (cell.input_size + 1)
    batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
    rows = 2 * cell.evaluation_rows * (cell.input_size + 4)
    return _NUMBER_BYTES * (weights + batch + rows + cell.subsets * cell.input_size + 3 * cell.evaluations)


def _memory_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    try:
        cell = canonical.canonical(task, model, values)
    except ValueError:  # `_task_mistakes` reports it
        return
    needed = trial_bytes(cell)
    if needed > _MOST_TRIAL_BYTES:
        largest = sorted(_SIZES, key=lambda name: int(getattr(cell, name)), reverse=True)
        sizes = ", ".join(f"{name} {getattr(cell, name)}" for name in (*_SIZES, *_LENGTH))
        yield (
            (*largest, "iterations"),
            f"one trial must fit into {_MOST_TRIAL_BYTES / 2**30:g} GiB of memory, but takes about "
            f"{needed / 2**30:,.0f} GiB with {sizes}",
        )


CHECKS: Mapping[Check, Callable[[str, str, Values], Iterator[Mistake]]] = {
    Check(()): _layer_mistakes,
    Check((*TASK_NAMES, *_SUCCESS)): _task_mistakes,
    Check(("init_variance",)): _variance_mistakes,
    Check(("init_range", "init_variance")): _start_mistakes,
    Check(("init_signs", "distribution", "interpolation_range")): _signs_mistakes,
    Check((*SPARSITY, "input_size"), may_be_chosen=True): _schedule_mistakes,
    Check((*L1, "operation", "input_size"), may_be_chosen=True): _l1_mistakes,
    Check(_LENGTH): _length_mistakes,
    Check((*_SIZES, "subsets", *_LENGTH)): _memory_mistakes,
    Check(_SUCCESS): _success_mistakes,
}
"""The checks, by the hyperparameters that they read."""
