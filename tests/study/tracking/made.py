"""Synthetic results and curves, and a reader of their MLflow runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from study.arrow import metric_columns
from study.records import Curve, Outcome, Result, Trial
from study.tracking import Publisher
from study.tracking.address import connect
from study.tracking.packs import ReadPack
from tests.study.builders import arithmetic_cell, exact_result

CELL = arithmetic_cell(
    subset_ratio=0.1 + 0.2,
    interpolation_range=((-2.0, 2.0),),
    extrapolation_range=((-6.0, -2.0), (2.0, 6.0)),
    hidden_size=4,
    sparsity_strength=1e-7,
    iterations=300_000,
)
EVALUATIONS = 301


def solved(seed: int, **changes: Any) -> Result:
    known: dict[str, Any] = {"best_iteration": 37_000, "solved_at_iteration": 211_000}
    return exact_result(Trial(CELL, seed), **(known | changes))


def diverged(seed: int) -> Result:
    return solved(
        seed,
        outcome=Outcome.DIVERGED,
        best_iteration=1000,
        validation_mse=math.inf,
        test_mse=None,
        sparsity_error=None,
        solved_at_iteration=None,
        stopped_early=True,
        training_s=0.0,
    )


def failed(seed: int, error: str = "killed") -> Result:
    return Result(trial=Trial(CELL, seed), outcome=Outcome.FAILED, error=error)


def curve(seed: int) -> Curve:
    values = np.linspace(1, 0, EVALUATIONS, dtype=np.float32) * (seed % 7 + 1)
    values[10] = np.nan
    metrics = dict(zip(metric_columns(), (values, values * 2, values * 3), strict=True))
    return Curve(Trial(CELL, seed).id, np.arange(EVALUATIONS) * 1000, metrics)


class Made:
    """Packs of a few trials each, in memory."""

    def __init__(self, results: Sequence[Result], curves: Sequence[Curve] = (), size: int = 4) -> None:
        self._results, self._curves, self._size = list(results), list(curves), size

    def names(self) -> list[str]:
        return [f"pack-{start}" for start in range(0, len(self._results), self._size)]

    def results(self, name: str) -> list[Result]:
        start = int(name.removeprefix("pack-"))
        return self._results[start : start + self._size]

    def curves(self, name: str) -> list[Curve]:
        trial_ids = {result.trial.id for result in self.results(name)}
        return [curve for curve in self._curves if curve.trial_id in trial_ids]

    def pack(self, name: str) -> ReadPack:
        return ReadPack(name, self.results(name), partial(self.curves, name))

    def files(self, trial_id: str, into: Path) -> dict[str, Path]:
        return {}


def publish_all(publisher: Publisher, packs: Made) -> None:
    for name in packs.names():
        publisher.queue_pack(name, len(packs.results(name)))


RESULTS = [solved(1), solved(2**63 - 1), diverged(3), failed(4, "a\nlong story " * 1000)]
CURVES = [curve(1), curve(2**63 - 1), curve(3)]


def runs_of(uri: str, kind: str = "trial", study: str = "demo") -> list[Any]:
    client = connect(uri)
    experiment = client.get_experiment_by_name(study)
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], f"tags.`study.kind` = '{kind}'"))
