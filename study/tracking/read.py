"""Reading of a study's trials from MLflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from study.addresses import without_secret
from study.arrow import complaint, names_complaint
from study.errors import TrackingError
from study.records import Curve, Result
from study.tracking.address import connect
from study.tracking.rows import KIND, TRIAL_ID, curve_keys, curve_of, run_result, runs_table
from study.tracking.trouble import explaining_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_PAGE = 1000  # runs per request; with more, a slow server might exceed MLflow's timeout of 10 s


def published(uri: str, study: str) -> set[str]:
    """Return the ids of the trials with finished runs in MLflow; empty if it lacks the study.

    Failed trials aren't included, since they may be tried again.

    Raises:
        TrackingError: if MLflow can't be reached.
    """
    with explaining_errors(uri):
        runs = trial_runs(connect(uri), study)
        return {run.data.tags.get(TRIAL_ID, "") for run in runs if run.info.status == "FINISHED"}


def load(
    uri: str, study: str, *, with_curves: bool = True, notify: Callable[[str], None] = lambda sentence: None
) -> tuple[pa.Table, list[Curve]]:
    """Read a study back from MLflow: the store's rows, bit for bit, and the thinned curves.

    Runs are checked like files of the store, since any user of MLflow may have changed them.

    Args:
        uri: MLflow's address.
        study: the study's name.
        with_curves: read the curves too, at one request per trial and metric.
        notify: called with a sentence about each run that is left out because it can't be read or was changed.

    Returns:
        Results of ended runs in the store's order, and curves ordered by trial id, without empty ones. Of several runs
        of a trial, the first to start counts. Both are empty for an experiment that was deleted in MLflow.

    Raises:
        TrackingError: if MLflow can't be reached, refuses a request, or doesn't know the study.
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    with explaining_errors(uri):
        client = connect(uri)
        if client.get_experiment_by_name(study) is None:
            raise TrackingError(
                f"MLflow at {without_secret(uri)} has no experiment {study!r}: publish it with `study sync`"
            )
        ended: dict[str, Run] = {}
        for run in trial_runs(client, study):
            if run.info.status != "RUNNING":
                ended.setdefault(run.data.tags.get(TRIAL_ID, ""), run)
        results = _believable(ended, notify)
        curves = [_curve(client, ended[trial_id]) for trial_id in sorted(results)] if with_curves else []
    return runs_table(list(results.values())), [curve for curve in curves if len(curve.iteration)]


def _believable(runs: Mapping[str, Run], notify: Callable[[str], None]) -> dict[str, tuple[Mapping[str, str], Result]]:
    """Return the tags and the result of each valid run, by trial; notify of each invalid one."""
    read: dict[str, tuple[Mapping[str, str], Result]] = {}
    wrong: dict[str, str] = {}
    for trial_id, run in runs.items():
        try:
            read[trial_id] = (run.data.tags, _result(run))
        except (LookupError, ValueError, TypeError, OverflowError, RecursionError) as error:
            wrong[trial_id] = f"it can't be read ({type(error).__name__}: {error})"
    if _complaint(read.values()) is not None:
        reasons = {trial_id: _complaint([entry]) for trial_id, entry in read.items()}
        wrong |= {trial_id: reason for trial_id, reason in reasons.items() if reason is not None}
    for trial_id, reason in wrong.items():
        notify(f"run {runs[trial_id].info.run_id} of MLflow was left out: {reason}; `study sync` publishes it again")
    return {trial_id: entry for trial_id, entry in read.items() if trial_id not in wrong}


def _complaint(results: Iterable[tuple[Mapping[str, str], Result]]) -> str | None:
    try:
        table = runs_table(list(results))
        return names_complaint(table.schema) or complaint(table)
    except (ValueError, TypeError, OverflowError) as error:  # such as values that Arrow has no type for
        return f"it can't be read ({type(error).__name__}: {error})"


def trial_runs(client: MlflowClient, study: str) -> Iterator[Run]:
    """Yield the runs of a study's trials; none if MLflow lacks the study.

    Raises:
        Exception: an error of MLflow if it can't be reached; `explaining_errors` converts it.
    """
    experiment = client.get_experiment_by_name(study)
    if experiment is not None:
        yield from runs_of(client, experiment.experiment_id, f"tags.`{KIND}` = 'trial'")


def runs_of(client: MlflowClient, experiment_id: str, where: str) -> Iterator[Run]:
    """Yield the runs that match a filter and aren't deleted, each once, ordered by their start.

    New runs may move others to the next page, so repeated ones are skipped. In another order, such as by status, runs
    could also move to a page that was read already, and be missed.

    Args:
        client: MLflow's client.
        experiment_id: MLflow's id of the experiment.
        where: the filter in MLflow's syntax; empty for all runs.

    Raises:
        Exception: an error of MLflow if it can't be reached; `explaining_errors` converts it.
    """
    run_ids: set[str] = set()
    token = ""
    while token is not None:
        page = client.search_runs(
            [experiment_id], where, max_results=_PAGE, order_by=["attributes.start_time ASC"], page_token=token or None
        )
        for run in page:
            if run.info.run_id not in run_ids:
                run_ids.add(run.info.run_id)
                yield run
        token = page.token


def _result(run: Run) -> Result:
    return run_result(run.data.params, run.data.metrics, run.data.tags)


def _curve(client: MlflowClient, run: Run) -> Curve:
    values: dict[str, dict[int, float]] = {}
    for name, key in curve_keys(run.data.tags).items():
        if key in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, key)
            values[name] = {point.step: point.value for point in history}
    return curve_of(run.data.tags, values)
