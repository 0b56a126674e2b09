"""A trial's result as the parameters, metrics and tags of an MLflow run, and back without losing a bit.

The trial's description becomes parameters, the numbers of its result metrics, and the rest tags. None is left out.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from study.arrow import CELL_COLUMNS, METRIC_COLUMNS, RESULT_SCHEMA, result_row
from study.records import Curve, Outcome, Result

CURVE_POINTS = 50
"""Points of a learning curve in MLflow; writing takes about 0.1 ms a point. The store has the whole curve."""

CURVES = METRIC_COLUMNS
TRIAL_ID = "study.trial_id"
CELL_ID = "study.cell_id"
KIND = "study.kind"
PACK = "study.pack"

_PARAMETERS = ("seed", *CELL_COLUMNS)
_TAGS = {
    "trial_id": TRIAL_ID,
    "cell_id": CELL_ID,
    "outcome": "study.outcome",
    "stopped_early": "study.stopped_early",
    "engine": "engine",
    "device": "device",
    "error": "error",
}
_METRICS = tuple(name for name in RESULT_SCHEMA.names if name not in _PARAMETERS and name not in _TAGS)
_TO_FILTER_BY = ("model", "hidden_size", "seed")
_TAG_CHARACTERS = 5000  # MLflow allows 8000; longer text continues in error.2, error.3, ...
# As the models' names are written in study files.
_SPELLED = {"₊": "-add", "•": "-mul", ", ": " ", ",": "-", "λ": "lambda", "σ": "sigma", "\u0302": "", "=": " "}
_LARGEST = sys.float_info.max  # what the database stores for infinity


Point = tuple[str, int, float | None, float | None]
"""A point of the charts: line, hidden size, success rate, median solved-at; None to leave a number out."""


@dataclass(frozen=True)
class TrialRun:
    """A trial as MLflow shows it.

    Args:
        trial_id: the trial's id.
        name: the run's name.
        params: every field of the cell, and the seed.
        metrics: every number of the result.
        tags: the rest, and what users may want to filter by.
        curve: (metric, iteration, value), thinned, only finite values.
        training_s: how long the run should appear to have lasted.
        failed: whether the run has MLflow's status FAILED, since the trial crashed.
    """

    trial_id: str
    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    curve: Sequence[tuple[str, int, float]]
    training_s: float
    failed: bool

    @property
    def digest(self) -> str:
        """A hash of the content, to check whether MLflow has it."""
        return row_digest(run_row(self.params, self.metrics, self.tags))


def trial_run(result: Result, curve: Curve | None) -> TrialRun:
    """Convert a result into the form in which MLflow shows it."""
    row = result_row(result)
    cell = result.trial.cell
    tags = {tag: _text(row[column]) for column, tag in _TAGS.items() if row[column] is not None}
    tags |= {f"study.{name}": _text(row[name]) for name in _TO_FILTER_BY}
    tags |= _pages("error", row["error"] or "")
    metrics = {name: float(row[name]) for name in _METRICS if row[name] is not None}
    return TrialRun(
        trial_id=result.trial.id,
        name=f"{cell.model} h{row['hidden_size']} seed {result.trial.seed}",
        params={name: _text(row[name]) for name in _PARAMETERS if row[name] is not None},
        metrics=metrics | {"solved": float(result.outcome is Outcome.SOLVED)},
        tags=tags,
        curve=[] if curve is None else _thinned(curve, result),
        training_s=result.training_s,
        failed=result.outcome is Outcome.FAILED,
    )


def trials_of(results: Sequence[Result], curves: Sequence[Curve]) -> Iterator[TrialRun]:
    """Convert results, each with its curve."""
    by_trial = {curve.trial_id: curve for curve in curves}
    return (trial_run(result, by_trial.get(result.trial.id)) for result in results)


def run_row(params: Mapping[str, str], metrics: Mapping[str, float], tags: Mapping[str, str]) -> dict[str, Any]:
    """Read a run back as one row of `RESULT_SCHEMA`."""
    row: dict[str, Any] = {column: tags.get(tag) for column, tag in _TAGS.items()}
    row["stopped_early"] = row["stopped_early"] == "True"
    row |= {"engine": row["engine"] or "", "device": row["device"] or ""}
    if row["error"] is not None:
        row["error"] = "".join(_read_pages("error", tags))
    row |= {name: _typed(name, params.get(name)) for name in _PARAMETERS}
    row |= {name: _number(name, metrics.get(name)) for name in _METRICS}
    return {name: row[name] for name in RESULT_SCHEMA.names}


def row_digest(row: Mapping[str, Any]) -> str:
    """Return a hash of a row's content, to the last bit."""
    return hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest()


def rows_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Gather rows into a table ordered as the store's."""
    table = pa.Table.from_pylist(list(rows), schema=RESULT_SCHEMA)
    return table.sort_by([("cell_id", "ascending"), ("seed", "ascending")])


def curve_of(trial_id: str, values: Mapping[str, Mapping[int, float]]) -> Curve:
    """Rebuild a thinned curve, with NaN where MLflow has no value.

    Args:
        trial_id: the trial's id.
        values: values by name of the curve, then by iteration.
    """
    steps = sorted({step for series in values.values() for step in series})
    arrays = {
        name: np.array([values.get(name, {}).get(step, math.nan) for step in steps], np.float32) for name in CURVES
    }
    return Curve(trial_id=trial_id, iteration=np.array(steps, np.int64), metrics=arrays)


def metric_name(text: str) -> str:
    """Spell out symbols that MLflow doesn't allow in metrics' names.

    Example:
        >>> metric_name("success_rate/NAC•,σ λ̂=10")
        'success_rate/NAC-mul-sigma lambda 10'
    """
    for symbol, word in _SPELLED.items():
        text = text.replace(symbol, word)
    return re.sub(r"[^A-Za-z0-9_\-. /:]", "_", text)


def _thinned(curve: Curve, result: Result) -> list[tuple[str, int, float]]:
    """Return about `CURVE_POINTS` evenly spread points, always with the first, last, best step and solved-at."""
    count = len(curve.iteration)
    if not count:
        return []
    marks = [mark for mark in (result.best_iteration, result.solved_at_iteration) if mark is not None]
    spread = np.linspace(0, count - 1, min(count, CURVE_POINTS - 2)).round().astype(int)
    rows = np.union1d(spread, np.flatnonzero(np.isin(curve.iteration, marks)))
    points = []
    for name in CURVES:
        values = curve.metrics[name][rows].tolist()
        points += [
            (f"curve/{name}", step, value)
            for step, value in zip(curve.iteration[rows].tolist(), values, strict=True)
            if math.isfinite(value)
        ]
    return points


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _typed(column: str, text: str | None) -> object:
    kind = RESULT_SCHEMA.field(column).type
    if text is None or pa.types.is_string(kind):
        return text
    return int(text) if pa.types.is_integer(kind) else float(text)


def _number(column: str, value: float | None) -> float | int | None:
    if value is None:
        return None
    if pa.types.is_integer(RESULT_SCHEMA.field(column).type):
        return int(value)
    return math.inf if value >= _LARGEST else value


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
