"""A search's record as an Optuna study, in a database that `optuna-dashboard` can open.

The store is authoritative, and the database is only a view. If the database is unreachable, the next round or run
writes the missing trials.
"""

from __future__ import annotations

from collections.abc import Callable

import optuna
from optuna.exceptions import OptunaError
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from study.addresses import safe_message
from study.errors import last_line
from study.search.objectives import objectives_of
from study.search.record import Record
from study.search.space import Space
from study.search.suggest import attributes, directions, distribution, frozen, quietly
from study.spec import Spec
from study.summaries.search import Candidate


def write_storage(uri: str, spec: Spec, record: Record, notify: Callable[[str], None]) -> bool:
    """Write a record's new trials and values to a database.

    Args:
        uri: the database's URI, ``sqlite:///...`` or ``postgresql://...``.
        spec: the search's study file; Optuna's study gets its name.
        record: the record to write.
        notify: called with the reason if the database can't be written.

    Returns:
        True if the record was written.
    """
    try:
        with quietly():
            _write(uri, spec, record)
    except (OptunaError, SQLAlchemyError, ValueError, RuntimeError, ImportError) as error:
        reason = f"{type(error).__name__}: {safe_message(uri, last_line(str(error)))}"
        notify(f"nothing was written for Optuna's dashboard, and the search goes on: {reason}")
        return False
    return True


def _write(uri: str, spec: Spec, record: Record) -> None:
    assert spec.search is not None
    objectives = objectives_of(spec.search.objective, spec.family.metrics)
    storage = optuna.storages.RDBStorage(driver_uri(uri))
    try:
        study = optuna.create_study(
            study_name=spec.study, storage=storage, directions=directions(objectives), load_if_exists=True
        )
        study.set_metric_names([objective.title for objective in objectives])
        trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        space = Space(spec)
        distributions = {key: distribution(parameter) for key, parameter in space.parameters.items()}
        for candidate in record.candidates:
            trial = trials.get(candidate.number)
            if trial is None:
                study.add_trial(frozen(candidate, space, distributions))
            elif trial.state == TrialState.RUNNING and candidate.values:
                _finish(study, trial._trial_id, candidate)
    finally:
        storage.engine.dispose()


def _finish(study: optuna.Study, trial_id: int, candidate: Candidate) -> None:
    trial = optuna.Trial(study, trial_id)
    for key, value in attributes(candidate).items():
        trial.set_user_attr(key, value)
    study.tell(candidate.number, list(candidate.values))


def driver_uri(uri: str) -> str:
    """Return a database's URI with the installed driver for PostgreSQL; other URIs unchanged."""
    for scheme in ("postgresql://", "postgres://"):
        if uri.startswith(scheme):
            return uri.replace(scheme, "postgresql+psycopg://", 1)
    return uri
