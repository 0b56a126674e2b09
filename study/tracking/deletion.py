"""The experiments that a study has in MLflow, and their deletion, which leaves the name free."""

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
"""Tag of an experiment that is being deleted: the name that it had."""

_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
_MOST_COUNTED = 1000  # counting 20,000 runs would take 20 s


@dataclass(frozen=True)
class StudyExperiment:
    """An experiment that a study has in MLflow.

    Args:
        experiment_id: MLflow's id.
        name: its name.
        is_active: whether it is there to be seen; False for one that was deleted in MLflow, and still has the name.
        runs: the number of its runs, as text: there may be more than are counted.
        has_runs: whether there are any.
    """

    experiment_id: str
    name: str
    is_active: bool
    runs: str
    has_runs: bool


def experiments_of(uri: str, study: str) -> list[StudyExperiment]:
    """Return the experiments that `delete_experiments` would delete; a database that isn't there is not made.

    Besides the study's own, these are any whose deletion was interrupted.

    Raises:
        InputError: if one of them has runs that the study didn't write.
        TrackingError: if MLflow can't be reached.
    """
    path = database(uri)
    if path is not None and not path.exists():
        return []
    with explaining_errors(uri):
        client = connect(uri)
        own = client.get_experiment_by_name(study)
        # No study's name has a quotation mark, which would end the text of the filter.
        which = f"tags.`{_DELETED}` = '{study}'"
        interrupted = [] if "'" in study else client.search_experiments(filter_string=which)
        listed = {one.experiment_id: one for one in [*([own] if own else []), *interrupted]}
        foreign = [one for one in listed.values() if _has_foreign_runs(client, one)]
        experiments = [_described(client, one) for one in listed.values()]
    for one in foreign:
        raise InputError(
            f"experiment {one.name!r} in MLflow at {without_secret(uri)} has runs that the study didn't write; nothing "
            f"of {study!r} was deleted. Move or delete them there, or leave MLflow alone with --tracking-uri off"
        )
    return experiments


def delete_experiments(uri: str, study: str, experiments: Sequence[StudyExperiment]) -> None:
    """Delete experiments of a study, each under another name, since MLflow gives no name of a deleted one again.

    If this is interrupted, `experiments_of` returns what is left to delete.

    Args:
        uri: MLflow's address.
        study: the study's name.
        experiments: what `experiments_of` returned.

    Raises:
        TrackingError: if MLflow can't be reached or refuses.
    """
    with explaining_errors(uri):
        client = connect(uri) if experiments else None
        for one in experiments:
            assert client is not None
            if not one.is_active:
                client.restore_experiment(one.experiment_id)  # only an active one can be renamed
            client.set_experiment_tag(one.experiment_id, _DELETED, study)
            client.rename_experiment(one.experiment_id, f"{study} (deleted, experiment {one.experiment_id})")
            with _patience():
                client.delete_experiment(one.experiment_id)


@contextmanager
def _patience() -> Iterator[None]:
    """Wait for a server's answer for as long as 20,000 runs take, unless the user has said how long."""
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
