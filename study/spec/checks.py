"""What must hold between values, over every combination that occurs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from study.errors import Problem
from study.spec.document import Document, Path
from study.spec.grid import GridValues, Level, model_level, places, points, setting_tables
from study.spec.search_checks import search_mistakes
from study.spec.tables import Spec
from tasks import MODELS, TASKS, arithmetic_cell
from tasks.arithmetic_cell import ArithmeticCell

_MOST_COMBINATIONS = 20_000
_BOUNDS = ("bounds", "out_of_bounds_strength", "out_of_bounds_shape")
_SPARSITY = ("sparsity_strength", "sparsity_start", "sparsity_end", "sparsity_shape", "sparsity_scaling")
_RATIOS = ("subset_ratio", "overlap_ratio")

Values = Mapping[str, Any]
Mistake = tuple[Collection[str], str]
"""The names that may be wrong, the likeliest first, and the message."""


def check(spec: Spec, document: Document, unread: Collection[str] = ()) -> list[Problem]:
    """Return the problems of a study, each mistake once.

    Args:
        spec: the study.
        document: the file, with the line of each value.
        unread: hyperparameters that had mistakes of their own, and `model` if one had; nothing that depends on
            them is checked.
    """
    problems: dict[Path, Problem] = {}
    for path, message in (
        *_duplicates(spec),
        *_without_effect(spec, every_model_read="model" not in unread),
        *_until_mistakes(spec, every_model_read="model" not in unread),
        *search_mistakes(spec, unread),
        *_combinations(spec, unread),
    ):
        problems.setdefault(path, document.problem(path, message))
    return list(problems.values())


def _duplicates(spec: Spec) -> Iterator[tuple[Path, str]]:
    for table, at in setting_tables(spec):
        first: dict[str, Path] = {}
        for name, path in places(table, at):
            if name in first:
                yield path, f"{name} is also set under {first[name][len(at)]!r}; set it in one place"
            first.setdefault(name, path)


def _until_mistakes(spec: Spec, *, every_model_read: bool) -> Iterator[tuple[Path, str]]:
    until = spec.until
    if until is None:
        return
    if (until.half_width is None) == (until.different_from is None):
        which = "neither" if until.half_width is None else "both"
        yield ("seeds", "until"), f"must say half_width or different_from, but has {which}"
    if until.batch is not None and until.batch > until.max:
        yield (("seeds", "until", "batch"), f"batch <= max must hold, but got {until.batch} and max {until.max}")
    names = {model.name for model in spec.models}
    if every_model_read and until.different_from is not None and names <= {until.different_from}:
        yield (
            ("seeds", "until", "different_from"),
            f"there must be a model that can differ from {until.different_from}, but models has no other",
        )
    if every_model_read and until.different_from is not None and until.different_from not in names:
        yield (
            ("seeds", "until", "different_from"),
            f"must be one of the study's models, {', '.join(sorted(names))}, but got {until.different_from!r}",
        )


def _without_effect(spec: Spec, *, every_model_read: bool) -> Iterator[tuple[Path, str]]:
    of_models = [model_level(spec, i) for i in range(len(spec.models))]
    names = [model.name for model in spec.models]
    for name, path in places(spec) if every_model_read else ():
        reasons = [_why_not(name, spec, m, level) for m, level in zip(names, of_models, strict=True)]
        if all(reasons):
            yield path, f"{name} has no effect on any model of the study: {reasons[0]}"
    for i, model in enumerate(spec.models):
        for name, path in places(model, ("models", i)):
            reason = _why_not(name, spec, model.name, of_models[i])
            if reason:
                yield path, f"{name} has no effect: {reason}"


def _why_not(name: str, spec: Spec, model: str, level: Level) -> str | None:
    if name in _SPARSITY and not MODELS[model].has_bounds:
        return f"{model} has no sparsity regulariser"
    if name in _BOUNDS and not MODELS[model].has_bounds:
        return f"{model} has no bounded weights"
    if name in _BOUNDS[1:] and "regularized" not in _values_of(level, "bounds"):
        return "bounds must be regularized for that"
    if name == "momentum" and "momentum" not in _values_of(level, "optimizer"):
        return "optimizer must be momentum for that"
    if name in _RATIOS and spec.task.name == "simple":
        return "the simple task has fixed subsets"
    return None


def _values_of(level: Level, name: str) -> set[Any]:
    return {setting.value for point in points(level, (name,)) for setting in point.settings.values()}


def _combinations(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    for i, model in enumerate(spec.models):
        level = model_level(spec, i)
        for names, find in _CHECKS:
            if set(names) & set(unread):
                continue
            mistakes: list[tuple[Path, str]] = []
            for point in islice(points(level, names), _MOST_COMBINATIONS):
                values = {name: setting.value for name, setting in point.settings.items()}
                of_point = list(find(spec.task.name, model.name, values))
                mistakes += [(_place_of(point.settings, b, ("models", i)), message) for b, message in of_point]
                # A search may suggest impossible values as long as some are possible: it then suggests others.
                if not of_point and find is _schedule_mistakes and level.ranges:
                    mistakes = []
                    break
            yield from mistakes


def _place_of(settings: GridValues, names: Collection[str], otherwise: Path) -> Path:
    return next((settings[name].path for name in names if name in settings), otherwise)


def impossible(task: str, model: str, values: Values) -> str | None:
    """Return why there can't be a cell with these values; None if there can."""
    for names, find in _CHECKS:
        of_check = {name: value for name, value in values.items() if name in names}
        for _, message in find(task, model, of_check):
            return message
    return None


def _task_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    """Make the task and compute its threshold; the task's own errors say what is wrong."""
    try:
        task_ = TASKS[task](**{name: value for name, value in values.items() if name in arithmetic_cell.TASK_NAMES})
        epsilon = arithmetic_cell.success(values)["success_epsilon"]
        if epsilon is not None:
            task_.threshold(epsilon)
    except ValueError as error:
        message = str(error)
        names = [name for name in arithmetic_cell.TASK_NAMES if name in message]
        yield (*sorted(names, key=message.index), "success_epsilon"), message


def _variance_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    variance = values.get("init_variance")
    if variance is None:
        return
    largest = MODELS[model].largest_init_variance
    if variance > largest:
        yield (
            ("init_variance",),
            f"the weights of {model} can have a variance of at most {largest:.6g}, but got {variance:g}",
        )


def _schedule_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    regulariser = arithmetic_cell.sparsity(model, values)
    start, end = regulariser.get("sparsity_start"), regulariser.get("sparsity_end")
    if start is None or end is None or end > start:
        return
    defaults = [name for name in ("sparsity_start", "sparsity_end") if name not in values]
    default = f" ({' and '.join(defaults)} as published for {model})" if defaults else ""
    yield (
        ("sparsity_end", "sparsity_start"),
        f"sparsity_start < sparsity_end must hold, but got start {start} and end {end}{default}",
    )


def _protocol_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    cell = arithmetic_cell.canonical(task, model, {n: v for n, v in values.items() if n in _PROTOCOL})
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
    """Return an upper estimate of one trial's memory: weights, a batch, evaluation rows, masks and its curve.

    Example:
        >>> trial_bytes(arithmetic_cell.canonical("arithmetic", "NMU", {})) / 2**20
        8.171...
    """
    weights = 12 * cell.hidden_size * (cell.input_size + 1)
    batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
    rows = 2 * cell.evaluation_rows * (cell.input_size + 4)
    return _NUMBER_BYTES * (weights + batch + rows + cell.subsets * cell.input_size + 3 * cell.evaluations)


def _memory_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    try:
        cell = arithmetic_cell.canonical(task, model, {name: values[name] for name in _OF_MEMORY if name in values})
    except ValueError:  # `_task_mistakes` reports it
        return
    needed = trial_bytes(cell)
    if needed > _MOST_TRIAL_BYTES:
        largest = sorted(_SIZES, key=lambda name: int(getattr(cell, name)), reverse=True)
        sizes = ", ".join(f"{name} {getattr(cell, name)}" for name in (*_SIZES, "iterations", "evaluate_every"))
        yield (
            (*largest, "iterations"),
            f"one trial must fit into {_MOST_TRIAL_BYTES / 2**30:g} GiB of memory, but takes about "
            f"{needed / 2**30:,.0f} GiB with {sizes}",
        )


_PROTOCOL = ("iterations", "evaluate_every")
_SIZES = ("input_size", "hidden_size", "batch_size", "evaluation_rows")
_OF_MEMORY = (*_SIZES, "subsets", *_PROTOCOL)
_NUMBER_BYTES = 4
_MOST_TRIAL_BYTES = 16 * 2**30
_CHECKS: tuple[tuple[tuple[str, ...], Callable[[str, str, Values], Iterator[Mistake]]], ...] = (
    ((*arithmetic_cell.TASK_NAMES, "success_epsilon", "success_threshold"), _task_mistakes),
    (("init_variance",), _variance_mistakes),
    (_SPARSITY, _schedule_mistakes),
    (_PROTOCOL, _protocol_mistakes),
    (_OF_MEMORY, _memory_mistakes),
    (("success_epsilon", "success_threshold"), _success_mistakes),
)
