"""What must hold for ranges, and for a search."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from study.spec.document import Path
from study.spec.grid import GridValue, common_level, own_level, places, setting_tables
from study.spec.seeds import MOST_SEEDS
from study.spec.tables import POINTS, RangeTable, Search, Spec


def search_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield the mistakes of a search and its ranges, each with its place.

    Args:
        spec: the study.
        unread: hyperparameters that had mistakes of their own, as for `study.spec.checks.check`.
    """
    ranges = {setting.path: setting for setting in _ranges(spec) if setting.path[-1] not in unread}
    for path, setting in ranges.items():
        yield from _range_mistakes(path, setting.value)
    if spec.search is None:
        for path in ranges:
            yield (path, "ranges are for a search: say what is sought, search: {objective: success_rate, trials: 600}")
        return
    if not list(_ranges(spec)) and len(spec.model_tables) == 1 and not unread:
        yield (("search",), "there is nothing to choose: put {low, high} or {choices} of hyperparameters under ranges")
    for path in _swept(spec):
        yield path, "a search chooses, and sweeps nothing: put it under ranges, as {choices: [...]}"
    yield from _point_mistakes(spec, unread)
    if spec.until is not None:
        yield (("seeds",), "a search gives seeds to those candidates that earn them: say how many one has at most")
        return
    if spec.seeds.sources:
        return  # that they can't be combined in a search is said elsewhere
    if spec.last_seed + spec.search.confirm_seeds >= MOST_SEEDS:
        yield ("seeds",), f"must leave {spec.search.confirm_seeds} seeds below 2**63 to confirm what is found"
    yield from _budget_mistakes(spec.search, spec.most_seeds)
    if spec.search.sampler == "CMA-ES":
        yield from _unfit_for_cma_es(spec, ranges)


def _point_mistakes(spec: Spec, unread: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with the first candidates of a search: each value must be one that it can choose."""
    ranges = common_level(spec).ranges
    for i, point in enumerate(spec.points):
        for name, value in point.explicit.items():
            of = ranges[name].value if name in ranges else None
            if name in unread:
                continue
            if of is None:
                yield (POINTS, i, name), f"a search begins with these points, but {name} isn't among its ranges"
            elif of.choices is not None and json.dumps(value) not in map(json.dumps, of.choices):
                yield (
                    (POINTS, i, name),
                    f"must be one of the choices {', '.join(map(str, of.choices))}, but got {value}",
                )
            elif of.choices is None and of.low is not None and of.high is not None and not of.low <= value <= of.high:
                yield (POINTS, i, name), f"must be from {of.low:g} to {of.high:g}, as its range, but got {value:g}"


def _ranges(spec: Spec) -> Iterator[GridValue]:
    yield from common_level(spec).ranges.values()
    for i in range(len(spec.model_tables)):
        yield from own_level(spec, i).ranges.values()


def _swept(spec: Spec) -> Iterator[Path]:
    for table, at in setting_tables(spec):
        for _, path in places(table, at):
            if path[len(at)] in ("grid", "zip"):
                yield path[: len(at) + 2]


def _range_mistakes(path: Path, of: RangeTable) -> Iterator[tuple[Path, str]]:
    if of.choices is not None:
        if of.low is not None or of.high is not None or of.step is not None or of.scale is not None:
            yield path, "has choices, or low and high, but not both"
        if len({repr(value) for value in of.choices}) < max(2, len(of.choices)):
            yield (*path, "choices"), "must be at least 2 different values, each given once"
        return
    if of.low is None or of.high is None:
        yield path, "must have low and high, or choices"
        return
    if not of.low < of.high:
        yield (*path, "low"), f"low < high must hold, but got {of.low:g} and {of.high:g}"
        return
    if of.scale == "log" and of.low <= 0:
        yield (*path, "low"), f"0 < low must hold on a log scale, but got {of.low:g}"
    if of.scale == "log" and of.step is not None:
        yield (*path, "step"), "a log scale has no steps; give choices"
    if of.step is not None and of.step > of.high - of.low:
        yield (*path, "step"), f"step <= high - low must hold, but got {of.step:g} and {of.high - of.low:g}"


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
    instead = "sampler TPE can"
    if spec.search is not None and len(spec.search.objective) > 1:
        yield ("search", "objective"), f"CMA-ES can't seek several objectives; {instead}"
    if len(spec.model_tables) > 1:
        yield ("models",), f"CMA-ES can't choose between models; {instead}"
    for path, setting in ranges.items():
        if setting.value.choices is not None:
            yield path, f"CMA-ES can't choose between names or listed values; {instead}"
