"""A study's cells and charts for MLflow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from study import tracking
from study.interface.declarations import Metric
from study.plan.plan import Plan
from study.records import Interval
from study.results.load import StudyResults
from study.results.trials import choose_rows, first_trials, rows_of_trials
from study.summaries.aggregate import CellSummary
from study.summaries.learning import QUANTILES, LearningCurve, learning_curve
from study.summaries.metrics import single
from study.summaries.series import chart_series

MOST_CURVES = 100
"""The most cells with learning curves in MLflow; a chart with more lines is unreadable."""
_NAMES = {0.25: "lower_quartile", 0.5: "median", 0.75: "upper_quartile"}


def planned_cells(plan: Plan) -> list[tracking.CellRun]:
    """Return a plan's cells for MLflow, without statistics.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.
    """
    return [tracking.CellRun(cell, plan.names[cell.id], plan.labels.get(cell.id, {})) for cell in plan.cells]


def cell_runs(results: StudyResults) -> list[tracking.CellRun]:
    """Return a study's cells with their statistics, including a search's cells that its report doesn't show.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.
    """
    planned = results.planned_cells
    plan = results.plan if planned is None else planned.plan
    others = () if planned is None else planned.summaries
    summaries = {s.cell_id: s for s in (*others, *results.summaries)}
    metrics = single(results.metrics, results.rows.named_metrics)
    return [
        tracking.CellRun(run.cell, run.name, run.labels, _statistics(summaries[run.cell.id], metrics))
        for run in planned_cells(plan)
    ]


def charts(results: StudyResults) -> list[tracking.ChartLine]:
    """Return the lines of a study's charts: statistics against the x axis, and learning curves of up to 100 cells.

    Each curve is of the cell's first 50 trials that didn't fail.

    Raises:
        InputError: if a newer package wrote one of the curves, a vocabulary can't be imported, or two packages offer
            one of the same name.
        StoreError: if the curves can't be read.
        ValueError: if a stored curve doesn't have one value of a metric for each of its evaluations.
    """
    points_of: dict[str, list[tuple[str, int, float]]] = {}
    for chart, line, x, y in chart_series(results.summaries, results.plan.labels):
        points_of.setdefault(line, []).append((chart, x, float(y)))
    lines = [tracking.ChartLine(tracking.LINE, name, points) for name, points in points_of.items()]
    return [*lines, *_curves(results)]


def _statistics(summary: CellSummary, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Return a cell's finite statistics, by their names in cells.csv."""
    done = summary.seeds - summary.pending
    numbers: dict[str, float | None] = {
        "trials": summary.seeds,
        "done": done,
        "training_s_mean": summary.training_s_mean,
    }
    numbers |= {name: getattr(summary, name) for name in ("diverged", "failed")}
    if summary.is_judged:
        numbers |= {"solved": summary.solved, "success_rate": summary.success_rate}
        numbers |= _ends("success_rate", summary.success_rate_interval)
        numbers |= {"solved_at_median": summary.solved_at_median}
        numbers |= _ends("solved_at_median", summary.solved_at_median_interval)
        numbers |= {"time_to_success_mean": summary.time_to_success_mean}
        numbers |= _ends("time_to_success", summary.time_to_success_interval)
    for name, values in summary.metrics.items():
        if name in metrics:
            numbers |= {f"{name}_mean": values.mean} | _ends(name, values.mean_interval)
    return {name: float(number) for name, number in numbers.items() if number is not None and math.isfinite(number)}


def _ends(name: str, interval: Interval | None) -> dict[str, float]:
    return {} if interval is None else {f"{name}_lower": interval[0], f"{name}_upper": interval[1]}


def _curves(results: StudyResults) -> Iterator[tracking.ChartLine]:
    """Yield the learning curves of up to `MOST_CURVES` cells as chart lines, each from its first trials."""
    trials = {
        row: first_trials(results.table, results.summaries[row].cell_id)
        for row in choose_rows(results.rows, MOST_CURVES)
    }
    curves = results.folder.read_curves({i for table in trials.values() for i in table["trial_id"].to_pylist()})
    metrics = single(results.metrics, results.rows.named_metrics)
    higher = [name for name, metric in metrics.items() if metric.higher_is_better]
    for row, table in trials.items():
        curve = learning_curve(row, rows_of_trials(curves, table), higher=higher, most_points=tracking.CURVE_POINTS)
        if curve is not None and (points := list(_points(curve, metrics))):
            name = results.plan.names[results.summaries[row].cell_id]
            yield tracking.ChartLine(tracking.CURVE, name, points)


def _points(curve: LearningCurve, metrics: Mapping[str, Metric]) -> Iterator[tuple[str, int, float]]:
    """Yield the chart, the iteration and the value of each finite point of a curve's quartiles."""
    for name, quantiles in curve.quantiles.items():
        for q, values in zip(QUANTILES, quantiles.tolist(), strict=True):
            if name in metrics and q in _NAMES:
                for step, value in zip(curve.iteration.tolist(), values, strict=True):
                    if math.isfinite(value):
                        yield f"curve/{name}_{_NAMES[q]}", step, value
