"""Checks between values, over every combination of values in the grid."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from study.errors import Problem, nearest
from study.records import MOST_COMBINED
from study.spec.claims import claim_mistakes
from study.spec.document import Document, Path
from study.spec.grid import GridValues, Level, common_level, is_too_large, model_level, places, points, setting_tables
from study.spec.search_checks import search_mistakes
from study.spec.seeds import SOURCES
from study.spec.tables import ModelTable, Spec

_MOST_COMBINATIONS = 20_000
_CELL_KEYS = ("task", "protocol", "success", "models", "fixed", "grid", "zip", "points", "ranges", "when", "train")


def check(spec: Spec, document: Document, unread: Collection[str] = ()) -> list[Problem]:
    """Return the problems of a study, at most one for each place; if conditions form a cycle, only the cycles.

    Checks of values at points of the grid read at most 20,000 points of each model. Claims are checked only if no value
    is invalid, the settings that define cells have no problem, and the study isn't too large (`is_too_large`). Metrics,
    success, pruning and code have their own checks, such as `study.spec.calls.call_mistakes`.

    Args:
        spec: the study.
        document: the file, with the line of each value.
        unread: hyperparameters with invalid values, and `model`, `ranges` or `claims` if these are invalid; checks that
            depend on them are skipped.

    Raises:
        InputError: if a study has claims, and the vocabulary of an installed package can't be imported.
    """
    if cycles := list(_cycles(spec)):  # cells aren't defined then
        return [document.problem(path, message) for path, message in cycles]
    problems: dict[Path, Problem] = {}
    for path, message in (
        *_duplicates(spec),
        *_without_effect(spec, every_model_read="model" not in unread),
        *_until_mistakes(spec, unread),
        *_source_mistakes(spec),
        *_standardise_mistakes(spec),
        *_condition_mistakes(spec, unread),
        *search_mistakes(spec, unread),
        *_combinations(spec, unread),
    ):
        problems.setdefault(path, document.problem(path, message))
    # The cells of a claim are known only if the settings that define cells are valid.
    if not unread and not any(path[0] in _CELL_KEYS for path in problems) and not is_too_large(spec):
        try:
            mistakes = list(claim_mistakes(spec))
        except ValueError as error:  # of a point beyond those that each check reads
            mistakes = [(("claims",), f"a cell of the study is impossible: {error}")]
        for path, message in mistakes:
            problems.setdefault(path, document.problem(path, message))
    return list(problems.values())


def _duplicates(spec: Spec) -> Iterator[tuple[Path, str]]:
    for table, at in setting_tables(spec):
        first: dict[str, Path] = {}
        for name, path in places(table, at):
            if name in first:
                yield path, f"{name} is also set under {first[name][len(at)]!r}; set it in one place"
            first.setdefault(name, path)


def _condition_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    for table, at, level in _tables_with_levels(spec):
        for name, condition in table.when.explicit.items():
            place = (*at, "when", name)
            if name in unread:
                continue
            if name not in level.names | level.ranges.keys():
                yield place, f"{name} has a condition, but no value: set it under fixed, grid, zip, points or ranges"
            if spec.family.leaves_out and not spec.family.may_be_left_out(name):
                yield place, f"{name} has a condition, but no default for other trials: give it one, such as None"
            for other, allowed in condition.explicit.items():
                yield from _mistakes_of_control(level, (*place, other), other, allowed) if other not in unread else ()


def _tables_with_levels(spec: Spec) -> Iterator[tuple[Spec | ModelTable, Path, Level]]:
    """Yield each table that sets hyperparameters, for all models or for one, with its place and level."""
    for table, at in setting_tables(spec):
        yield table, at, common_level(spec) if table is spec else model_level(spec, int(at[1]))


def _cycles(spec: Spec) -> Iterator[tuple[Path, str]]:
    for _, at, level in _tables_with_levels(spec):
        if cycle := level.conditions.cycle:
            yield (*at, "when", cycle[0]), f"conditions must not form a cycle, but got {' -> '.join(cycle)}"


def _mistakes_of_control(level: Level, place: Path, name: str, allowed: list[Any]) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in a condition on a hyperparameter: it is unset or continuous, or a value never occurs.

    A condition on a fixed hyperparameter may have any values.
    """
    if name in level.ranges and level.ranges[name].value.choices is None:
        yield place, f"a condition needs listed values, but {name} is a range of numbers"
        return
    if name in level.fixed:  # files may share a condition, and some fix its hyperparameter
        return
    given = [point[name].value for axis in level.axes for point in axis.points if name in point]
    if not given:
        yield place, f"{name} isn't set, so no condition on it holds: set it under fixed, grid, zip, points or ranges"
        return
    texts = {json.dumps(value) for value in given}
    for value in allowed:
        if json.dumps(value) not in texts:
            known = ", ".join(dict.fromkeys(str(content) for content in given))
            yield (
                place,
                f"{name} is never {value}, only {known}{nearest(str(value), [str(content) for content in given])}",
            )


def _until_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    until, every_model_read = spec.until, "model" not in unread
    if until is None:
        return
    rules = [name for name in ("half_width", "different_from", "claims") if getattr(until, name) is not None]
    if len(rules) != 1:
        given = " and ".join(rules) or "none"
        yield ("seeds", "until"), f"must have exactly one of half_width, different_from and claims, but has {given}"
    if until.claims is not None and not spec.claims and "claims" not in unread:
        yield ("seeds", "until", "claims"), "needs claims to decide, but the file has none: add claims"
    if until.claims is not None and until.metric is not None:
        yield ("seeds", "until", "metric"), "can't be combined with claims, which name their own metrics: remove metric"
    if until.metric is None and until.half_width is not None and until.half_width >= 0.5:
        yield ("seeds", "until", "half_width"), f"must be < 0.5, but got {until.half_width:g}"
    metrics = spec.family.metrics
    if until.metric is not None and until.metric not in metrics:
        yield ("seeds", "until", "metric"), _no_metric(until.metric, metrics)
    if until.batch is not None and until.batch > until.max:
        yield (("seeds", "until", "batch"), f"batch <= max must hold, but got {until.batch} and max {until.max}")
    names = {model.name for model in spec.model_tables}
    if every_model_read and until.different_from is not None and names <= {until.different_from}:
        yield (
            ("seeds", "until", "different_from"),
            f"needs a model to compare with {until.different_from}, but models has no other: add one, or use "
            "half_width, which judges each cell by itself",
        )
    if every_model_read and until.different_from is not None and until.different_from not in names:
        yield (
            ("seeds", "until", "different_from"),
            f"must be one of the study's models, {', '.join(sorted(names))}, but got {until.different_from!r}",
        )


def _no_metric(name: str, metrics: Collection[str]) -> str:
    return f"must be one of the metrics, {', '.join(metrics)}, but got {name!r}{nearest(name, metrics)}"


def _source_mistakes(spec: Spec) -> Iterator[tuple[Path, str]]:
    sources = spec.seeds.sources
    if not sources:
        return
    for name, seeds in sources.items():
        if name not in spec.family.sources:
            yield ("seeds", name), _no_source(spec, name)
        if (seeds[-1] if isinstance(seeds, range) else max(seeds)) >= MOST_COMBINED - 1:
            yield ("seeds", name), f"combined seeds must be < {MOST_COMBINED - 1:,}"
    if len(sources) == 1:
        yield ("seeds",), f"has seeds of {next(iter(sources))} only: give those of two or more of {', '.join(SOURCES)}"
    if spec.seeds.design == "nested" and not (
        {"init", "data"} <= set(sources)
        and sources["data"] == range(len(sources["data"]))
        and "evaluation" not in sources
    ):
        yield ("seeds", "design"), "nested needs init, and data as a count of seeds per init seed, without evaluation"
    elif spec.seeds.design == "nested" and len(sources["init"]) * len(sources["data"]) >= MOST_COMBINED:
        yield ("seeds", "data"), f"init seeds times data seeds must be < {MOST_COMBINED:,}"
    if spec.search is not None:
        yield ("seeds",), "a search can't use combined seeds: give a count"
    if spec.claims:
        yield ("claims",), "need independent trials, but combined seeds share seeds of a source: give a count or a list"


def _standardise_mistakes(spec: Spec) -> Iterator[tuple[Path, str]]:
    if not spec.standardise:
        return
    metrics, at = spec.family.metrics, ("standardise",)
    if spec.standardise not in metrics:
        yield at, _no_metric(spec.standardise, metrics)
    elif spec.search is not None or spec.until is not None or spec.seeds.sources:
        yield at, "needs independent trials of seeds fixed in advance: give a count or a list of seeds, without search"
    elif not spec.has_success:
        yield at, "needs success rates, but the file has no success criterion: add success"


def _no_source(spec: Spec, name: str) -> str:
    if not spec.family.sources:
        return "a training function gets a single seed: make other seeds its hyperparameters"
    return f"must be one of {', '.join(spec.family.sources)}: the task fixes the evaluation rows"


def _without_effect(spec: Spec, *, every_model_read: bool) -> Iterator[tuple[Path, str]]:
    levels = [model_level(spec, i) for i in range(len(spec.model_tables))]
    names = [model.name for model in spec.model_tables]
    for name, path in places(spec) if every_model_read else ():
        reasons = [_reason_without_effect(name, spec, m, level) for m, level in zip(names, levels, strict=True)]
        if all(reasons):
            yield path, f"{name} has no effect on any model of the study: {reasons[0]}"
    for i, model in enumerate(spec.model_tables):
        for name, path in places(model, ("models", i)):
            reason = _reason_without_effect(name, spec, model.name, levels[i])
            if reason:
                yield path, f"{name} has no effect: {reason}"


def _reason_without_effect(name: str, spec: Spec, model: str, level: Level) -> str | None:
    values = {other: _values_of(level, other) for other in level.names}
    return spec.family.why_without_effect(name, spec.task_name, model, values)


def _values_of(level: Level, name: str) -> list[Any]:
    return [setting.value for point in points(level, (name,)) for setting in point.settings.values()]


def _combinations(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    for i, model in enumerate(spec.model_tables):
        level = model_level(spec, i)
        for check in spec.family.checks:
            if set(check.names) & set(unread):
                continue
            mistakes: list[tuple[Path, str]] = []
            for point in islice(points(level, check.names), _MOST_COMBINATIONS):
                if spec.family.leaves_out and point.inapplicable.intersection(check.names):
                    continue
                values = {name: setting.value for name, setting in point.settings.items()}
                point_mistakes = list(spec.family.mistakes(check, spec.task_name, model.name, values))
                mistakes += [(_place_of(point.settings, b, _called(spec, i)), message) for b, message in point_mistakes]
                # A search may suggest impossible values if some are possible: it then suggests others.
                if not point_mistakes and check.may_be_chosen and level.ranges:
                    mistakes = []
                    break
            yield from mistakes


def _called(spec: Spec, index: int) -> Path:
    """Return the place of a model, or of the study's only function or program."""
    key = next((key for key in ("train", "command") if hasattr(spec, key)), None)
    return ("models", index) if key is None else (key,)


def _place_of(settings: GridValues, names: Collection[str], otherwise: Path) -> Path:
    return next((settings[name].path for name in names if name in settings), otherwise)
