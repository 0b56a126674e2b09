"""What a person reads first in MLflow's dashboard: descriptions, and views of the trials."""

from __future__ import annotations

import json
from collections.abc import Mapping

EXPERIMENT_KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Tag of the experiment: not a chat application. The dashboard of 3.17 goes by the link instead (see `Links`)."""
TRIALS, NOT_SOLVED = "trials", "not-solved"
"""Views of the experiment; an address with ``viewStateShareKey=trials`` opens the first."""

# Where the dashboard of 3.17 finds views; the experiment's page lists their names. Columns are chosen in a view or by
# hand: an experiment has no default ones.
_VIEW_TAG = "mlflow.sharedViewState."
# A run's name has the model, the hidden units and the seed.
_COLUMNS = ("metrics.`solved_at_iteration`", "metrics.`test_mse`", "metrics.`sparsity_error`", "tags.`study.outcome`")
_HOW_TO_READ = """
**How to read it.** The run with the study's name is the study itself: its counts, success rate and solved-at against
hidden units, and the report. Each run below it is a trial: one cell of the grid, one seed. The view *Trials* lists them
without nesting, with the most useful columns.

Tags to filter by: `study.model`, `study.hidden_size`, `study.seed`, `study.outcome` (solved, unsolved, diverged,
failed), `study.cell_id`, `study.trial_id`. For example:
``tags.`study.outcome` = 'solved' and tags.`study.model` = 'NMU'``
"""
_CHARTS = """
**How to read it.** Under *Model metrics*, `success_rate/...` and `solved_at_median/...` are drawn against hidden units,
which are called *Step* there. If the study has grown since it was first published, the charts with the highest number
are the newest.

Under *Artifacts*, `report/report.html` is the whole report, with intervals and tests, and `spec.yaml` the study's file.
Learning curves of trials are thinned in MLflow; the store has them whole.
"""


def experiment_tags(question: str, finding: str = "", counts: Mapping[str, float] | None = None) -> dict[str, str]:
    """Return the tags of an experiment: its description, its views, and the counts in the list of experiments.

    Args:
        question: the question that the study asks.
        finding: the findings so far.
        counts: number of trials in each state.
    """
    count_tags = {}
    if counts:
        count_tags["study.trials"] = "{done:,} of {trials:,}, {solved:,} solved".format(**counts)
    trials = "tags.`study.kind` = 'trial'"
    return {
        "mlflow.note.content": _note(question, finding, _HOW_TO_READ),
        **count_tags,
        **_view(TRIALS, "Trials", trials),
        **_view(NOT_SOLVED, "Trials that were not solved", f"{trials} and tags.`study.outcome` != 'solved'"),
    }


def study_note(question: str, finding: str = "") -> str:
    """Return the description of the study's own run; the arguments are those of `experiment_tags`."""
    return _note(question, finding, _CHARTS)


def _note(question: str, finding: str, how_to_read: str) -> str:
    findings = f"**Found so far.** {finding}" if finding else ""
    return "\n\n".join(part for part in (question.strip(), findings, how_to_read.strip()) if part)


def _view(key: str, name: str, which: str) -> Mapping[str, str]:
    """Return a view in the form in which the dashboard stores those that a user saves."""
    state = {
        "searchFilter": which,
        # In its default order the dashboard hides trials below the collapsed study. Only this name works for the key.
        "orderByKey": "tags.`mlflow.runName`",
        "orderByAsc": True,
        "selectedColumns": list(_COLUMNS),
    }
    made_ms = 1_700_000_000_000  # the same each time, since the view never changes
    view = {"name": name, "createdAt": made_ms, "updatedAt": made_ms, "state": json.dumps(state)}
    return {f"{_VIEW_TAG}{key}": json.dumps(view)}
