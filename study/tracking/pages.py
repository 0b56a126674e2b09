"""Descriptions and views in MLflow's dashboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from study.arrow import metric_columns
from study.tracking.rows import KIND, PLACE

EXPERIMENT_KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Tag of the experiment, for a dashboard without chat features. MLflow 3.17 obeys the link instead (see `Links`)."""
CELLS, TRIALS, NOT_SOLVED, LINES, CURVES = "cells", "trials", "not-solved", "lines", "curves"
"""Keys of the experiment's views; an address with ``viewStateShareKey=cells`` opens the first."""

_FIRST_CHARTS = ("success_rate", "solved_at_median")

# Prefix of the tags with the views of MLflow 3.17's dashboard. Only views can preset columns: an experiment has no
# default columns.
_VIEW_TAG = "mlflow.sharedViewState."
# In its default order, by time, the dashboard hides runs below collapsed parents, and reads the newest hundred first,
# which belong to few cells. It can't sort by keys of any other form.
_BY_PLACE, _BY_NAME = f"tags.`{PLACE}`", "tags.`mlflow.runName`"
_OF_CELLS = ("trials", "success_rate", "success_rate_lower", "success_rate_upper", "solved_at_median")
# This excludes the other kinds, since MLflow has no IN for tags. The study's run is included, so that the page isn't
# empty before there are lines.
_STUDY_AND_LINES = " and ".join(f"tags.`{KIND}` != '{kind}'" for kind in ("trial", "cell", "curve", "charts"))
_OUTCOME = "tags.`study.outcome`"
_HOW_TO_READ = """
**How to read it.** The menu *Views* at the top right has these views:

- *Cells*: the study's run, with the report under *Artifacts*, and one run for each cell of the grid. A cell's name has
  the values that vary. Its success rate, the limits of the interval, and the median of solved-at are in columns. Its
  trials, one per seed, are below it.
- *Trials*: all trials.
- *Trials that were not solved*.
- *Charts*: the study's run, and statistics against the swept values, which are called *Step* there.
- *Learning curves*: medians and quartiles of cells.

Charts and learning curves are lists of lines; the second button above a list draws them.

Tags to filter by: `study.kind` (cell, trial, ...), `study.model`, `study.hidden_size`, `study.label.AXIS` (the label
on an axis of the study's file), `study.seed`, `study.outcome` (solved, unsolved, diverged, failed), `study.failure`
(why a trial failed), `study.cell_id`, `study.trial_id`. For example:
``tags.`study.outcome` = 'solved' and tags.`study.model` = 'NMU'``
"""
_STUDY = """
**How to read it.** Under *Artifacts*, `report/report.html` is the complete report, with intervals and tests, and
`spec.yaml` is the study's file. The runs below this one are the study's charts and its cells, with their trials below
them. Learning curves are thinned in MLflow; the store has all points.
"""


def experiment_tags(
    question: str, finding: str = "", counts: Mapping[str, float] | None = None, failures: str = ""
) -> dict[str, str]:
    """Return the tags of an experiment: its description, its views, and the counts in the list of experiments.

    Args:
        question: the study's question.
        finding: the findings so far.
        counts: number of trials by state, with ``done``, ``trials`` and ``solved``; None or empty to leave them out.
        failures: reasons of failed trials, as Markdown.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    count_tags = {}
    if counts:
        count_tags["study.trials"] = "{done:,} of {trials:,}, {solved:,} solved".format(**counts)
    trials = "tags.`study.kind` = 'trial'"
    of_trials = ("solved_at_iteration", *metric_columns())
    not_solved = f"{trials} and {_OUTCOME} != 'solved'"
    return {
        "mlflow.note.content": _note(question, finding, failures, _HOW_TO_READ),
        **count_tags,
        **_view(CELLS, "Cells", f"tags.`{PLACE}` != ''", _BY_PLACE, _OF_CELLS),
        **_view(TRIALS, "Trials", trials, _BY_NAME, of_trials, _OUTCOME),
        **_view(NOT_SOLVED, "Trials that were not solved", not_solved, _BY_NAME, of_trials, _OUTCOME),
        **_view(LINES, "Charts", _STUDY_AND_LINES, _BY_NAME),
        **_view(CURVES, "Learning curves", "tags.`study.kind` = 'curve'", _BY_NAME),
    }


def study_note(question: str, finding: str = "", failures: str = "") -> str:
    """Return the description of the study's own run; arguments as for `experiment_tags`."""
    return _note(question, finding, failures, _STUDY)


def _note(question: str, finding: str, failures: str, how_to_read: str) -> str:
    findings = f"**Found so far.** {finding}" if finding else ""
    failed = f"**Failed trials.**\n\n{failures}" if failures else ""
    # The dashboard shows only the first line until it is expanded.
    return "\n\n".join(part for part in (findings, question.strip(), failed, how_to_read.strip()) if part)


def _view(key: str, name: str, where: str, order: str, metrics: Sequence[str] = (), *others: str) -> Mapping[str, str]:
    """Return a view as a tag, in the dashboard's format of saved views."""
    state: dict[str, object] = {
        "searchFilter": where,
        "orderByKey": order,
        "orderByAsc": True,
        "selectedColumns": [*(f"metrics.`{metric}`" for metric in metrics), *others],
    }
    if key in (CELLS, LINES, CURVES):
        state["runsHiddenMode"] = "SHOW_ALL"  # otherwise only the first ten runs are drawn
    if key == LINES:
        state |= _charts(_FIRST_CHARTS)
    made_ms = 1_700_000_000_000  # constant, since the view never changes
    view = {"name": name, "createdAt": made_ms, "updatedAt": made_ms, "state": json.dumps(state)}
    return {f"{_VIEW_TAG}{key}": json.dumps(view)}


def _charts(metrics: Sequence[str]) -> dict[str, object]:
    """Return the part of a view's state that shows line charts of the metrics first, and hides empty charts."""
    # Without isReordered, the charts of a section are sorted by name.
    section = {"uuid": "metrics", "name": "Model metrics", "display": True, "columns": 2, "isReordered": True}
    own = {"deleted": False, "isGenerated": False}
    charts = [
        {"uuid": name, "type": "LINE", "metricKey": name, "selectedMetricKeys": [name], "metricSectionId": "metrics"}
        | {"runsCountToCompare": 100, "deleted": False, "isGenerated": False, "useGlobalXaxisKey": True}
        | {"xAxisKey": "step", "xAxisScaleType": "linear", "scaleType": "linear", "lineSmoothness": 0}
        | {"useGlobalLineSmoothing": True}
        for name in metrics
    ]
    return {"compareRunCharts": charts, "compareRunSections": [section | own], "hideEmptyCharts": True}
