"""A study's experiments in MLflow, and their deletion, with release of the study's name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.addresses import without_secret
from study.errors import InputError
from study.tracking.address import ENVIRONMENT, connect, database
from study.tracking.rows import KIND
from study.tracking.trouble import explaining_errors
from study.words import count_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment as MlflowExperiment

_DELETED = "study.deleted"
"""Tag of an experiment that is being deleted: its former name."""

_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
_MOST_COUNTED = 1000  # counting 20,000 runs would take 20 s


@dataclass(frozen=True)
class StudyExperiment:
    """A study's experiment in MLflow.

    Args:
        experiment_id: MLflow's id.
        name: its name.
        is_active: False if it was deleted in MLflow, which still reserves its name.
        runs: the number of its runs as text, since counting stops at a limit.
        has_runs: True if it has any runs.
    """

    experiment_id: str
    name: str
    is_active: bool
    runs: str
    has_runs: bool


def experiments_of(uri: str, study: str) -> list[StudyExperiment]:
    """Return the experiments to delete: the study's own, and any whose deletion was interrupted.

    The result is empty if MLflow has none, or if the database doesn't exist.

    Raises:
        InputError: if one of them has runs that the study didn't write.
        TrackingError: if MLflow can't be reached or refuses a request.
    """
    path = database(uri)
    if path is not None and not path.exists():
        return []
    with explaining_errors(uri):
        client = connect(uri)
        own = client.get_experiment_by_name(study)
        # A quotation mark would end the text of the filter; no study's name has one.
        tagged = f"tags.`{_DELETED}` = '{study}'"
        interrupted = [] if "'" in study else client.search_experiments(filter_string=tagged)
        listed = {entry.experiment_id: entry for entry in [*([own] if own else []), *interrupted]}
        foreign = [entry for entry in listed.values() if _has_foreign_runs(client, entry)]
        experiments = [_described(client, entry) for entry in listed.values()]
    for entry in foreign:
        raise InputError(
            f"experiment {entry.name!r} in MLflow at {without_secret(uri)} has runs that the study didn't write; "
            f"nothing of {study!r} was deleted. Move or delete them there, or pass --tracking-uri off"
        )
    return experiments


def delete_experiments(uri: str, study: str, experiments: Sequence[StudyExperiment]) -> None:
    """Rename and delete experiments of a study, since MLflow reserves the names of deleted experiments.

    If this is interrupted, `experiments_of` returns the remaining experiments.

    Args:
        uri: MLflow's address.
        study: the study's name.
        experiments: the result of `experiments_of`.

    Raises:
        TrackingError: if MLflow can't be reached or refuses a request.
    """
    with explaining_errors(uri):
        client = connect(uri) if experiments else None
        for entry in experiments:
            assert client is not None
            if not entry.is_active:
                client.restore_experiment(entry.experiment_id)  # only active experiments can be renamed
            client.set_experiment_tag(entry.experiment_id, _DELETED, study)
            client.rename_experiment(entry.experiment_id, f"{study} (deleted, experiment {entry.experiment_id})")
            with _patience():
                client.delete_experiment(entry.experiment_id)


@contextmanager
def _patience() -> Iterator[None]:
    """Raise the request timeout to 600 s, enough for 20,000 runs, unless the user has set it."""
    usual = os.environ.get(_TIMEOUT, "")
    if usual == ENVIRONMENT[_TIMEOUT]:
        os.environ[_TIMEOUT] = "600"
    try:
        yield
    finally:
        os.environ[_TIMEOUT] = usual


def _described(client: MlflowClient, experiment: MlflowExperiment) -> StudyExperiment:
    is_active = experiment.lifecycle_stage == "active"
    page = client.search_runs([experiment.experiment_id], run_view_type=_view(is_active), max_results=_MOST_COUNTED)
    runs = f"more than {_MOST_COUNTED:,} runs" if page.token else count_of(len(page), "run")
    return StudyExperiment(str(experiment.experiment_id), experiment.name, is_active, runs, bool(page))


def _has_foreign_runs(client: MlflowClient, experiment: MlflowExperiment) -> bool:
    is_active = experiment.lifecycle_stage == "active"
    return bool(
        client.search_runs(
            [experiment.experiment_id], f"tags.`{KIND}` IS NULL", run_view_type=_view(is_active), max_results=1
        )
    )


def _view(is_active: bool) -> int:
    from mlflow.entities import ViewType

    return int(ViewType.ACTIVE_ONLY if is_active else ViewType.DELETED_ONLY)
