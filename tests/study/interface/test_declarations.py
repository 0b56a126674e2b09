"""Declarations of series metrics, and stored declarations from versions without series."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from study.interface.declarations import Metric, check_series
from study.interface.function_family import FunctionFamily
from study.interface.packed_family import PackedFamily
from study.interface.task import check_metrics
from study.plugins.families import declared_family
from tasks.identity.task import Identity
from tasks.recurrent.task import Recurrent
from tasks.sequential.task import Sequential

ERROR: dict[str, Any] = {"series": "error", "along": "length"}


@pytest.mark.parametrize(
    "fields",
    [ERROR, {"at": 1.0}, {"at": 0.0, "series": "error"}, {"along": "length", "at": 1.0}, ERROR | {"at": math.nan}],
)
def test_a_place_in_a_series_is_complete_or_absent(fields: dict[str, Any]) -> None:
    """A metric of a series needs the series' name, its axis and a finite place."""
    with pytest.raises(ValueError, match="needs all of series, along and at"):
        Metric(**fields)
    assert Metric(**ERROR, at=0.0).at == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at": 1.0}, "both are at 1"),
        ({"at": 2.0, "unit": "m"}, "differ in unit"),
        ({"at": 2.0, "higher_is_better": True}, "differ in higher_is_better"),
        ({"at": 2.0, "low": 0.0}, "differ in low"),
    ],
)
def test_metrics_of_a_series_go_together(changes: dict[str, Any], message: str) -> None:
    """Metrics of a series share axis, unit, limits and direction, and each has its own place."""
    metrics = {"test_1": Metric(**ERROR, at=1.0), "test_2": Metric(**ERROR | changes)}
    with pytest.raises(ValueError, match=message):
        check_series(metrics)
    with pytest.raises(TypeError, match=f"task Mine: .*{message}"):
        check_metrics("Mine", metrics)
    check_series(metrics | {"test_2": Metric(**ERROR | changes | {"along": "width"})})


@pytest.mark.parametrize(
    ("task", "series", "trained"),
    [
        (Identity(), {("error", "number"): list(range(-20, 21))}, range(-5, 6)),
        (Recurrent(test_lengths=(100, 10)), {(name, "length"): [100, 10] for name in ("MSE", "score", "MAE")}, [10]),
        (
            Sequential(test_lengths=(1, 2, 3)),
            {(name, "length"): [1, 2, 3] for name in ("MSE", "squared log error", "relative error")},
            [1, 2],
        ),
    ],
)
def test_tasks_declare_their_series(task: Any, series: dict[Any, Any], trained: Any) -> None:
    """Each metric whose name ends with its place belongs to a series; places covered by training are marked."""
    metrics = task.measured()
    check_metrics(type(task).__name__, metrics)
    declared: dict[Any, list[Any]] = {}
    for name, metric in metrics.items():
        assert bool(metric.series) == ("_at_" in name)
        if metric.series:
            assert name.endswith(f"_at_{metric.at}")
            assert metric.is_trained == (metric.at in trained)
            declared.setdefault((metric.series, metric.along), []).append(metric.at)
    assert declared == series


@pytest.mark.parametrize(
    "family",
    [
        PackedFamily("lab:Sums", {}, {"lab:mlp": {}}, {"test_1": Metric(**ERROR, at=1, is_trained=True)}, "version:1"),
        FunctionFamily("lab:train", {}, {"loss": Metric(**ERROR, at=1.5)}, code="version:1", iterations=None),
    ],
)
def test_declarations_of_earlier_versions_are_read(family: Any) -> None:
    """Declarations round-trip, and metrics in a file from before series belong to no series."""
    assert declared_family(family.to_json()).metrics == family.metrics
    content = json.loads(family.to_json())
    for metric in content["metrics"].values():
        for field in ("series", "along", "at", "is_trained"):
            del metric[field]
    metrics = declared_family(json.dumps(content)).metrics
    assert metrics == dict.fromkeys(family.metrics, Metric())
