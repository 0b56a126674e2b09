"""Lossless conversion of trials' results to the parameters, metrics and tags of MLflow runs, and back.

A trial's description becomes parameters, the numbers of its result become metrics, and everything else becomes tags. A
tag lists the hyperparameters with their kinds, and the metrics, unless the trial's family declares all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from study.arrow import EMPTY_RESULTS, RESULT_COLUMNS, kind_of, metric_columns, results_table, with_short_errors
from study.plugins.families import family_kinds
from study.plugins.vocabulary import GENERAL
from study.records import Cell, Curve, Outcome, Result, Trial, format_range, parse_range
from study.summaries.reasons import failure_reason
from study.tracking.keys import CURVE, SPELLING, keys_of

CURVE_POINTS = 50
"""Number of points of a learning curve in MLflow, at about 0.1 ms per point. The store has the full curve."""

TRIAL_ID = "study.trial_id"
CELL_ID = "study.cell_id"
KIND = "study.kind"
PACK = "study.pack"
SEED = "study.seed"
FAILURE = "study.failure"
"""Tag of a failed trial's run: the reason in one line, for filters; the tag `error` has the full text."""
PLACE = "study.place"
"""Tag of the runs of the study and its planned cells: their position at the head of lists."""
LABEL = "study.label."
"""Prefix of tags of trials' and cells' runs, before a zip axis' name: the name of the cell's point on it."""

_KINDS = "study.kinds"
_VALUE = "study.value."  # prefix of the tags of a value that is too long for a parameter
_OF_TRIAL = ("seed", "task", "model")
_TAGS = {
    "trial_id": TRIAL_ID,
    "cell_id": CELL_ID,
    "outcome": "study.outcome",
    "criterion": "study.criterion",
    "stopped_early": "study.stopped_early",
    "engine": "engine",
    "device": "device",
    "error": "error",
}
_NUMBERS = tuple(name for name in RESULT_COLUMNS if name not in _TAGS)
_SOLVED = "solved"
_SIZE = GENERAL.swept_first[0]
_TAG_CHARACTERS = 5000  # MLflow allows 8000; longer text continues in error.2, error.3, ...
_PARAMETER_CHARACTERS = 6000  # MLflow silently truncates longer values
_LARGEST = sys.float_info.max  # the database stores infinity as this

_WRITERS: Mapping[str, Callable[[Any], str]] = {"text": str, "range": format_range, "json": json.dumps}
_READERS: Mapping[str, Callable[[str], Any]] = {
    "whole": int,
    "number": float,
    "flag": "True".__eq__,
    "range": parse_range,
    "json": json.loads,
}


@dataclass(frozen=True)
class TrialRun:
    """A trial as MLflow shows it.

    Args:
        trial: the trial.
        params: the seed, task, model, and the cell's values.
        metrics: every number of the result.
        tags: the other values, and tags for filters.
        curve: (metric, iteration, value), thinned, finite values only.
        training_s: duration of the run in seconds, as MLflow shows it.
        failed: True if the trial crashed, for MLflow's status FAILED.
    """

    trial: Trial
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    curve: Sequence[tuple[str, int, float]]
    training_s: float
    failed: bool

    @property
    def digest(self) -> str:
        """A hash of the content, to compare with MLflow's."""
        return run_digest(self.params, self.metrics, self.tags)


@dataclass(frozen=True)
class _Names:
    """A run's hyperparameters and metrics, and their keys in MLflow.

    Args:
        kinds: the kind of each hyperparameter that has a value.
        metrics: the metrics.
        spelling: the version of `study.tracking.keys` that spelled the run's keys.
    """

    kinds: Mapping[str, str]
    metrics: Sequence[str]
    spelling: int = SPELLING

    @property
    def params(self) -> dict[str, str]:
        """The key of MLflow's parameter for each hyperparameter."""
        return keys_of(self.kinds, _OF_TRIAL, self.spelling)

    @property
    def numbers(self) -> dict[str, str]:
        """The key of MLflow's metric for each metric."""
        return keys_of(self.metrics, (*_NUMBERS, _SOLVED), self.spelling)

    @property
    def is_built_in(self) -> bool:
        """True if the families of tasks declare all of these hyperparameters and metrics."""
        declared = family_kinds()
        return set(self.metrics) <= set(metric_columns()) and self.kinds.items() <= declared.items()

    def tag(self) -> dict[str, str]:
        """Return the names as tags for `_names_from`; empty if they are built in."""
        if self.is_built_in:
            return {}
        content: dict[str, Any] = {"hyperparameters": dict(self.kinds), "metrics": list(self.metrics)}
        before = replace(self, spelling=1)
        if (self.params, self.numbers) != (before.params, before.numbers):  # else the tag stays as in earlier versions
            content["spelling"] = self.spelling
        return _pages(_KINDS, json.dumps(content))


def _names_from(tags: Mapping[str, str]) -> _Names:
    """Read the hyperparameters and metrics of a run from its tags; without the tag, those that families declare."""
    if _KINDS not in tags:
        return _Names(family_kinds(), metric_columns())
    content = json.loads("".join(_read_pages(_KINDS, tags)))
    return _Names(content["hyperparameters"], content["metrics"], content.get("spelling", 1))


def _sources(trial: Trial) -> dict[str, str]:
    """Return the seeds of the sources of randomness if they are combined, else nothing."""
    sources = trial.sources
    seeds = {"init_seed": sources.init, "data_seed": sources.data, "evaluation_seed": sources.evaluation}
    return {name: str(seed) for name, seed in seeds.items() if seed is not None} if sources.are_combined else {}


def trial_run(result: Result, curve: Curve | None) -> TrialRun:
    """Convert a result and its learning curve, if it has one, to a run of MLflow.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    trial, cell = result.trial, result.trial.cell
    curve_metrics = {} if curve is None else curve.metrics
    names = _names_in(cell, list(dict.fromkeys([*result.metrics, *curve_metrics])))
    texts = _texts(cell, names)
    fixed = {"trial_id": trial.id, "cell_id": cell.id, **{name: _result_value(result, name) for name in RESULT_COLUMNS}}
    fixed["outcome"] = str(result.outcome)
    tags = {tag: _text(fixed[column]) for column, tag in _TAGS.items() if fixed[column] is not None}
    tags |= cell_tags(cell) | {SEED: str(trial.seed)}
    tags |= _pages("error", result.error or "") | names.tag()
    tags |= {FAILURE: failure_reason(result.error).text} if result.error else {}
    for key, text in texts.items():
        tags |= _pages(f"{_VALUE}{key}", text) if len(text) > _PARAMETER_CHARACTERS else {}
    metrics = {name: float(fixed[name]) for name in _NUMBERS if fixed[name] is not None}
    metrics |= {key: float(result.metrics[name]) for name, key in names.numbers.items() if name in result.metrics}
    params = {"seed": str(trial.seed), **_sources(trial), "task": cell.task, "model": cell.model, **texts}
    is_stopped = result.outcome is Outcome.STOPPED
    return TrialRun(
        trial=trial,
        params={key: text[:_PARAMETER_CHARACTERS] for key, text in params.items()},
        metrics=metrics | ({} if is_stopped else {_SOLVED: float(result.outcome is Outcome.SOLVED)}),
        tags=tags,
        curve=[] if curve is None else _thinned(curve, result, names.numbers),
        training_s=result.training_s,
        failed=result.outcome is Outcome.FAILED,
    )


def trials_of(results: Sequence[Result], curves: Sequence[Curve]) -> Iterator[TrialRun]:
    """Yield the run of each result, with its curve if there is one.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    by_trial = {curve.trial_id: curve for curve in curves}
    return (trial_run(result, by_trial.get(result.trial.id)) for result in results)


def run_result(params: Mapping[str, str], metrics: Mapping[str, float], tags: Mapping[str, str]) -> Result:
    """Convert the parameters, metrics and tags of a run back to a result.

    Raises:
        LookupError: if the task, model, seed or outcome is missing. A missing metric has no entry, and other missing
            values become None, False or empty.
        ValueError, TypeError, OverflowError: if one has an impossible value, or the tag with the run's names was
            changed; also LookupError for this tag.
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    names = _names_from(tags)
    values = dict.fromkeys(names.kinds) | {
        name: _read("".join(_read_pages(f"{_VALUE}{key}", tags)) or params[key], names.kinds[name])
        for name, key in names.params.items()
        if key in params
    }
    numbers = {name: _number(name, metrics.get(name)) for name in _NUMBERS}
    numbers["iterations"] = numbers.pop("trained_iterations")
    return Result(
        trial=Trial(Cell(params["task"], params["model"], values), int(params["seed"])),
        outcome=Outcome(tags[_TAGS["outcome"]]),
        criterion=tags.get(_TAGS["criterion"]),
        metrics={name: _float(metrics[key]) for name, key in names.numbers.items() if key in metrics},
        stopped_early=tags.get(_TAGS["stopped_early"]) == "True",
        engine=tags.get("engine") or "",
        device=tags.get("device") or "",
        error="".join(_read_pages("error", tags)) if "error" in tags else None,
        **numbers,
    )


def run_digest(params: Mapping[str, str], metrics: Mapping[str, float], tags: Mapping[str, str]) -> str:
    """Return a hash of the result in a run, sensitive to every bit and independent of the spelling of keys.

    Other users' additions to the run are ignored.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        LookupError, ValueError, TypeError: if the tag with the run's names was changed.
    """
    names = _names_from(tags)
    keys = [*((name, name) for name in _OF_TRIAL), *((f"of cell: {name}", key) for name, key in names.params.items())]
    params_here = [(name, params[key]) for name, key in sorted(keys) if key in params]
    keys = [*((name, name) for name in _NUMBERS), *((f"metric: {name}", key) for name, key in names.numbers.items())]
    numbers = [(name, _float(metrics[key])) for name, key in sorted(keys) if key in metrics]
    texts = [(tag, tags.get(tag) or None) for tag in _TAGS.values()]
    pages = [
        _read_pages(tag, tags) for tag in ("error", *(f"{_VALUE}{key}" for _, key in sorted(names.params.items())))
    ]
    return hashlib.sha256(repr((params_here, numbers, texts, pages)).encode()).hexdigest()


def row_digest(row: Mapping[str, Any]) -> str:
    """Return a hash of a row's content, sensitive to every bit."""
    return hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest()


def runs_table(runs: Sequence[tuple[Mapping[str, str], Result]]) -> pa.Table:
    """Return the results of runs, given with their tags, as a table in the store's order.

    Its ids are those of the tags, and long error texts are shortened.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        ValueError, TypeError, OverflowError: if Arrow has no type for the values, as after a change in MLflow.
    """
    table = results_table([result for _, result in runs])
    for name in ("trial_id", "cell_id"):  # the published ids: they differ from the parameters if somebody changed these
        ids = pa.array([tags.get(_TAGS[name]) for tags, _ in runs], pa.string())
        table = table.set_column(table.column_names.index(name), name, ids)
    return with_short_errors(table).sort_by([("cell_id", "ascending"), ("seed", "ascending")])


def curve_keys(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the key of MLflow's metric for the curve of each metric of a run.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        LookupError, ValueError, TypeError: if the tag with the run's names was changed.
    """
    return {name: f"{CURVE}{key}" for name, key in _names_from(tags).numbers.items()}


def curve_of(tags: Mapping[str, str], values: Mapping[str, Mapping[int, float]]) -> Curve:
    """Rebuild a thinned curve, with NaN where MLflow has no value.

    Args:
        tags: the run's tags.
        values: values by metric, then by iteration.

    Raises:
        KeyError: if the tags lack the trial's id.
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        LookupError, ValueError, TypeError: if the tag with the run's names was changed.
    """
    steps = sorted({step for series in values.values() for step in series})
    names = _names_from(tags)
    kind: type[np.floating[Any]] = np.float32 if names.is_built_in else np.float64
    arrays = {
        name: np.array([values.get(name, {}).get(step, math.nan) for step in steps], kind) for name in names.metrics
    }
    return Curve(trial_id=tags[TRIAL_ID], iteration=np.array(steps, np.int64), metrics=arrays)


def cell_params(cell: Cell) -> dict[str, str]:
    """Return the parameters of a cell's run: those of its trials' runs, without the seeds."""
    texts = _texts(cell, _names_in(cell, ()))
    return {"task": cell.task, "model": cell.model} | {k: text[:_PARAMETER_CHARACTERS] for k, text in texts.items()}


def cell_tags(cell: Cell) -> dict[str, str]:
    """Return the tags by which cells and trials are filtered: the model, and the size if the cell has one."""
    size = cell.value(_SIZE)
    return {"study.model": cell.model} | ({} if size is None else {f"study.{_SIZE}": _text(size)})


def plain_name(cell: Cell) -> str:
    """Return the default name of a cell: its model, without the module of own code, and its size if it has one."""
    size = cell.value(_SIZE)
    model = cell.model.rpartition(":")[2]
    return model if size is None else f"{model} {_SIZE[0]}{size}"


def _names_in(cell: Cell, metrics: Sequence[str]) -> _Names:
    return _Names({name: _kind(value) for name, value in cell.values.items() if value is not None}, metrics)


def _texts(cell: Cell, names: _Names) -> dict[str, str]:
    return {key: _written(cell.values[name], names.kinds[name]) for name, key in names.params.items()}


def _thinned(curve: Curve, result: Result, keys: Mapping[str, str]) -> list[tuple[str, int, float]]:
    """Return about `CURVE_POINTS` evenly spaced points per metric, including the first, last, best step and solved-at.

    A point is (key, iteration, value). Values that aren't finite are left out.
    """
    count = len(curve.iteration)
    if not count:
        return []
    marks = [mark for mark in (result.best_iteration, result.solved_at_iteration) if mark is not None]
    spread = np.linspace(0, count - 1, min(count, CURVE_POINTS - 2)).round().astype(int)
    rows = np.union1d(spread, np.flatnonzero(np.isin(curve.iteration, marks)))
    points = []
    for name, array in curve.metrics.items():
        values = array[rows].tolist()
        points += [
            (f"{CURVE}{keys[name]}", step, value)
            for step, value in zip(curve.iteration[rows].tolist(), values, strict=True)
            if math.isfinite(value)
        ]
    return points


def _result_value(result: Result, column: str) -> Any:
    return result.iterations if column == "trained_iterations" else getattr(result, column)


def _kind(value: Any) -> str:
    kind = kind_of([value])
    # some databases refuse empty texts and control characters; JSON escapes these
    return "json" if kind == "text" and not (value and value.isprintable()) else kind


def _written(value: Any, kind: str) -> str:
    return _WRITERS.get(kind, repr)(value)


def _read(text: str, kind: str) -> Any:
    return _READERS.get(kind, str)(text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _number(column: str, value: float | None) -> Any:
    if value is None:
        return None
    return int(value) if pa.types.is_integer(EMPTY_RESULTS.schema.field(column).type) else _float(value)


def _float(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _LARGEST else float(value)


def _pages(tag: str, text: str) -> dict[str, str]:
    starts = range(0, len(text), _TAG_CHARACTERS)
    names = [tag if page == 0 else f"{tag}.{page + 1}" for page in range(len(starts))]
    return {name: text[i : i + _TAG_CHARACTERS] for name, i in zip(names, starts, strict=True)}


def _read_pages(tag: str, tags: Mapping[str, str]) -> list[str]:
    pages, name = [], tag
    while name in tags:
        pages.append(tags[name])
        name = f"{tag}.{len(pages) + 1}"
    return pages
