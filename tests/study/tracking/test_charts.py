"""A study has one family of charts with its results so far."""

from __future__ import annotations

from typing import Any

import pytest

from study.tracking import CURVE, LINE, ChartLine, Publisher, sync
from study.tracking.address import connect
from study.tracking.experiment import Experiment
from tests.study.tracking.made import Made, runs_of

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

RATES = ChartLine(LINE, "NMU", [("success_rate", 2, 0.9), ("success_rate", 4, 1.0), ("solved_at_median", 2, 1e5)])
OTHER = ChartLine(LINE, "NAC•, λ", [("success_rate", 2, 0.0)])
MEDIAN = ChartLine(CURVE, "NMU h2", [("curve/test_mse_median", step, 0.5) for step in range(50)])


def drawn(uri: str) -> dict[str, dict[str, dict[int, float]]]:
    """Return values by line, metric and step, after checking that all lines are in one family."""
    client = connect(uri)
    (family,) = runs_of(uri, "charts")
    lines: dict[str, Any] = {}
    for run in (*runs_of(uri, "line"), *runs_of(uri, "curve")):
        assert run.data.tags["mlflow.parentRunId"] == family.info.run_id
        histories = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
        assert run.info.run_name not in lines
        lines[run.info.run_name] = {name: {p.step: p.value for p in points} for name, points in histories.items()}
        assert sum(map(len, histories.values())) == sum(map(len, lines[run.info.run_name].values()))
    return lines


def test_changed_charts_replace_earlier_ones(uri: str) -> None:
    """Changed charts replace the earlier generation: changed lines are new runs, and dropped lines are deleted."""
    sync(uri, "demo", Made([]), charts=lambda: [RATES, OTHER, MEDIAN])
    first = drawn(uri)
    assert first["NMU"] == {"success_rate": {2: 0.9, 4: 1.0}, "solved_at_median": {2: 1e5}}
    assert first["NAC-mul lambda"] == {"success_rate": {2: 0.0}}
    assert len(first["NMU h2"]["curve/test_mse_median"]) == 50
    assert len({run.data.tags["mlflow.runColor"] for run in (*runs_of(uri, "line"), *runs_of(uri, "curve"))}) == 3
    changed = ChartLine(LINE, "NMU", [("success_rate", 2, 0.8)])
    sync(uri, "demo", Made([]), charts=lambda: [changed, MEDIAN])
    assert drawn(uri) == {"NMU": {"success_rate": {2: 0.8}}, "NMU h2": first["NMU h2"]}
    sync(uri, "demo", Made([]))
    assert [runs_of(uri, kind) for kind in ("charts", "line", "curve")] == [[], [], []]


def test_lines_of_a_deleted_family_are_deleted(uri: str) -> None:
    """If another publisher deletes a family while its lines are being made, all of these lines are deleted."""
    sync(uri, "demo", Made([]), charts=lambda: [RATES])
    (study,) = runs_of(uri, "study")
    tags = {"study.kind": "line", "mlflow.parentRunId": "gone"}
    connect(uri).create_run(study.info.experiment_id, tags=tags, run_name="stale")
    sync(uri, "demo", Made([]), charts=lambda: [RATES])
    assert drawn(uri).keys() == {"NMU"}


def test_equal_charts_are_not_written_again(uri: str) -> None:
    """Publishing again creates and deletes no run."""
    sync(uri, "demo", Made([]), charts=lambda: [RATES, MEDIAN])
    before = {run.info.run_id for kind in ("charts", "line", "curve") for run in runs_of(uri, kind)}
    with Publisher(uri, "demo", Made([])) as publisher:
        publisher.queue_charts(lambda: [RATES, MEDIAN])
    assert publisher.trouble is None
    assert {run.info.run_id for kind in ("charts", "line", "curve") for run in runs_of(uri, kind)} == before


@pytest.mark.parametrize("fail_at", range(1, 8))
def test_charts_that_a_kill_left_unfinished_are_replaced(
    uri: str, fail_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at any creation or deletion of a run, the next publisher leaves one complete family."""
    sync(uri, "demo", Made([]), charts=lambda: [RATES, MEDIAN])
    experiment, done = Experiment(uri, "demo"), 0
    create, delete = experiment._client.create_run, experiment._client.delete_run

    def struck(act: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == fail_at:
                raise OSError("killed")
            return act(*given, **named)

        return call

    monkeypatch.setattr(experiment._client, "create_run", struck(create))
    monkeypatch.setattr(experiment._client, "delete_run", struck(delete))
    if fail_at <= 6:  # three runs are deleted and three are made
        with pytest.raises(OSError, match="killed"):
            experiment.publish_charts([OTHER, MEDIAN])
    else:
        experiment.publish_charts([OTHER, MEDIAN])
    sync(uri, "demo", Made([]), charts=lambda: [OTHER, MEDIAN])
    assert set(drawn(uri)) == {"NAC-mul lambda", "NMU h2"}
