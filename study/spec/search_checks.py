"""Checks of ranges and searches."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from study.spec.document import Path
from study.spec.grid import GridValue, common_level, own_level, places, setting_tables
from study.spec.seeds import MOST_SEEDS
from study.spec.tables import POINTS, RangeTable, Search, Spec


def search_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in ranges, and in a search's settings, points and seeds, with its place.

    The search's budget and sampler are checked only without `until` and combined seeds, which are mistakes themselves.

    Args:
        spec: the study.
        unread: hyperparameters with invalid values, as for `study.spec.checks.check`.
    """
    ranges = {setting.path: setting for setting in _ranges(spec) if setting.path[-1] not in unread}
    for path, setting in ranges.items():
        yield from _range_mistakes(path, setting.value)
    if spec.search is None:
        for path in ranges:
            yield (path, "ranges need a search: add search, such as search: {objective: success_rate, trials: 600}")
        return
    if not list(_ranges(spec)) and len(spec.model_tables) == 1 and not unread:
        yield (("search",), "has nothing to choose: put {low, high} or {choices} of hyperparameters under ranges")
    for path in _swept(spec):
        yield path, "a search can't sweep hyperparameters: put it under ranges, as {choices: [...]}"
    yield from _point_mistakes(spec, unread)
    if spec.until is not None:
        yield (("seeds",), "a search can't be combined with until: give the greatest number of seeds of a candidate")
        return
    if spec.seeds.sources:
        return  # reported by `study.spec.checks`
    if spec.last_seed + spec.search.confirm_seeds >= MOST_SEEDS:
        yield ("seeds",), f"must leave {spec.search.confirm_seeds} seeds below 2**63 for the confirmation"
    yield from _budget_mistakes(spec.search, spec.most_seeds)
    if spec.search.sampler == "CMA-ES":
        yield from _unfit_for_cma_es(spec, ranges)


def _point_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in a search's first candidates, whose values must be in its ranges."""
    ranges = common_level(spec).ranges
    for i, point in enumerate(spec.points):
        for name, value in point.explicit.items():
            limits = ranges[name].value if name in ranges else None
            if name in unread:
                continue
            if limits is None:
                yield (POINTS, i, name), f"points of a search must be in its ranges, but {name} has none: add one"
            elif limits.choices is not None and json.dumps(value) not in map(json.dumps, limits.choices):
                yield (
                    (POINTS, i, name),
                    f"must be one of the choices {', '.join(map(str, limits.choices))}, but got {value}",
                )
            elif (
                limits.choices is None
                and limits.low is not None
                and limits.high is not None
                and (value is None or not limits.low <= value <= limits.high)
            ):
                got = "null" if value is None else f"{value:g}"
                yield (POINTS, i, name), f"must be from {limits.low:g} to {limits.high:g}, its range, but got {got}"


def _ranges(spec: Spec) -> Iterator[GridValue]:
    yield from common_level(spec).ranges.values()
    for i in range(len(spec.model_tables)):
        yield from own_level(spec, i).ranges.values()


def _swept(spec: Spec) -> Iterator[Path]:
    for table, at in setting_tables(spec):
        for _, path in places(table, at):
            if path[len(at)] in ("grid", "zip"):
                yield path[: len(at) + 2]


def _range_mistakes(path: Path, limits: RangeTable) -> Iterator[tuple[Path, str]]:
    if limits.choices is not None:
        if limits.low is not None or limits.high is not None or limits.step is not None or limits.scale is not None:
            yield path, "must have choices, or low and high, but has both"
        if len({repr(value) for value in limits.choices}) < max(2, len(limits.choices)):
            yield (*path, "choices"), "must be at least 2 different values, each given once"
        return
    if limits.low is None or limits.high is None:
        yield path, "must have low and high, or choices"
        return
    if not limits.low < limits.high:
        yield (*path, "low"), f"low < high must hold, but got {limits.low:g} and {limits.high:g}"
        return
    if limits.scale == "log" and limits.low <= 0:
        yield (*path, "low"), f"0 < low must hold on a log scale, but got {limits.low:g}"
    if limits.scale == "log" and limits.step is not None:
        yield (*path, "step"), "a log scale has no steps; give choices"
    if limits.step is not None and limits.step > limits.high - limits.low:
        yield (*path, "step"), f"step <= high - low must hold, but got {limits.step:g} and {limits.high - limits.low:g}"


def _budget_mistakes(search: Search, most_seeds: int) -> Iterator[tuple[Path, str]]:
    if search.first_seeds > most_seeds:
        yield (
            ("search", "first_seeds"),
            f"first_seeds <= seeds must hold, but got {search.first_seeds} and {most_seeds} seeds",
        )
    least = search.candidates * search.first_seeds
    if search.trials < least:
        yield (
            ("search", "trials"),
            f"candidates x first_seeds <= trials must hold, but got {search.candidates} x {search.first_seeds} = "
            f"{least} and trials {search.trials}",
        )


def _unfit_for_cma_es(spec: Spec, ranges: dict[Path, GridValue]) -> Iterator[tuple[Path, str]]:
    instead = "use sampler: TPE"
    if spec.search is not None and len(spec.search.objective) > 1:
        yield ("search", "objective"), f"CMA-ES can't optimise several objectives; {instead}"
    if len(spec.model_tables) > 1:
        yield ("models",), f"CMA-ES can't choose between models; {instead}"
    for path, setting in ranges.items():
        if setting.value.choices is not None:
            yield path, f"CMA-ES can't choose between names or listed values; {instead}"
