"""Reading of Optuna studies from users' storages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import OptunaError
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from study.addresses import safe_message
from study.errors import InputError, last_line, nearest
from study.interface.program import SEEDS
from study.search.storage import driver_uri
from study.search.suggest import quietly
from study.words import count_of

_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class OptunaTrial:
    """A completed trial of Optuna.

    Args:
        number: the trial's number.
        params: the values of its parameters.
        values: the values of its objectives.
        attributes: its user attributes.
        seconds: its duration; None if unknown.
    """

    number: int
    params: Mapping[str, Any]
    values: Sequence[float]
    attributes: Mapping[str, Any]
    seconds: float | None

    @property
    def seed(self) -> int | None:
        """The value of the first name of `SEEDS` that a parameter or a user attribute has; None if it isn't an int.

        Parameters take precedence over attributes of the same name. The name of a parameter is its part after the last
        dot. The seed is None, too, if there is no such name.
        """
        given = {**self.attributes, **{name.rpartition(".")[2]: value for name, value in self.params.items()}}
        seed = next((given[name] for name in SEEDS if name in given), None)
        return seed if type(seed) is int else None


@dataclass(frozen=True)
class OptunaStudy:
    """A study in a storage of Optuna.

    Args:
        name: the study's name.
        objectives: each objective's name, which may be empty, and ``higher`` or ``lower`` for better values.
        domains: the choices of each parameter, or its ``low``, ``high``, ``scale`` and ``step``.
        trials: the completed trials.
        other_trials: the number of trials in each other state.
        best: the parameters of the best trial, or of the first trial of the front; empty without a completed trial.
        notes: sentences on parameters whose ranges differ between trials.
    """

    name: str
    objectives: Sequence[tuple[str, str]]
    domains: Mapping[str, dict[str, Any]]
    trials: Sequence[OptunaTrial]
    other_trials: Mapping[str, int]
    best: Mapping[str, Any]
    notes: Sequence[str]


def read_optuna_study(storage: str, name: str | None = None) -> OptunaStudy:
    """Read a study from a storage of Optuna.

    Args:
        storage: the database's URL, such as ``sqlite:///optuna.db``, or the path of a journal file.
        name: the study's name; None for the only one.

    Raises:
        InputError: if the storage or study doesn't exist or can't be read; if `name` is None and the storage has
            several studies; or if no completed trial (without completed ones, no trial) has parameters.
    """
    with _opened(storage) as opened:
        names = sorted(optuna.get_all_study_names(opened))
        if not names:
            raise InputError(f"{storage} has no study of Optuna; check the address")
        if name is None and len(names) > 1:
            raise InputError(f"{storage} has several studies: give --optuna-study, one of {', '.join(names)}")
        if name is not None and name not in names:
            raise InputError(f"{storage} has no study {name!r}{nearest(name, names) or f'; it has {names[0]}'}")
        return _read(optuna.load_study(study_name=name or names[0], storage=opened))


@contextmanager
def _opened(storage: str) -> Iterator[Any]:
    """Open an existing storage; raise InputError if it is missing or can't be read, since Optuna would create it."""
    is_url = "://" in storage
    path = Path(storage.removeprefix(_SQLITE)) if not is_url or storage.startswith(_SQLITE) else None
    if path is not None and not path.is_file():
        raise InputError(f"no such file: {path}; give Optuna's storage, such as sqlite:///optuna.db or journal.log")
    opened: optuna.storages.BaseStorage | None = None
    try:
        with quietly():
            if is_url:
                opened = optuna.storages.RDBStorage(driver_uri(storage), skip_table_creation=True)
            else:
                opened = optuna.storages.JournalStorage(JournalFileBackend(storage))
            yield opened
    except InputError:
        raise
    except (OptunaError, SQLAlchemyError, OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError) as error:
        cause = error.__cause__ or error  # Optuna's own error has advice for its developers
        first_line = str(cause).partition("\n")[0]  # SQLAlchemy's next lines show the query
        reason = safe_message(storage, first_line if isinstance(cause, SQLAlchemyError) else last_line(str(cause)))
        raise InputError(
            f"{storage} can't be read as a storage of Optuna: {type(cause).__name__}: {reason}; check the address, and "
            "that its database answers and has its driver installed"
        ) from None
    finally:
        if isinstance(opened, optuna.storages.RDBStorage):
            opened.engine.dispose()


def _read(study: optuna.Study) -> OptunaStudy:
    trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    others = [trial.state.name.lower() for trial in trials if trial.state != TrialState.COMPLETE]
    distributions: dict[str, list[BaseDistribution]] = {}
    for trial in complete or trials:
        for parameter, distribution in trial.distributions.items():
            known = distributions.setdefault(parameter, [])
            if distribution not in known:
                known.append(distribution)
    if not distributions:
        count = count_of(len(trials), "trial")
        raise InputError(f"Optuna's study {study.study_name!r} has {count}, and none has parameters; run it first")
    names = study.metric_names or [""] * len(study.directions)
    better = ["higher" if direction == StudyDirection.MAXIMIZE else "lower" for direction in study.directions]
    return OptunaStudy(
        name=study.study_name,
        objectives=list(zip(names, better, strict=True)),
        domains={parameter: _domain(known) for parameter, known in distributions.items()},
        trials=[
            OptunaTrial(
                trial.number,
                trial.params,
                trial.values,
                trial.user_attrs,
                None if trial.duration is None else trial.duration.total_seconds(),
            )
            for trial in complete
        ],
        other_trials={state: others.count(state) for state in dict.fromkeys(others)},
        best=next((trial.params for trial in study.best_trials), {}),
        notes=[
            f"{parameter}: its range differs between trials; the range that covers all of them is used"
            for parameter, known in distributions.items()
            if len(known) > 1
        ],
    )


def _domain(distributions: Sequence[BaseDistribution]) -> dict[str, Any]:
    """Return a parameter's domain as in a study file: its choices, or the range that covers all its distributions.

    A range of a single number becomes a choice; the scale and the step are those of the first distribution.
    """
    first: Any = distributions[0]
    if isinstance(first, CategoricalDistribution):
        return {"choices": list(first.choices)}
    low, high = min(domain.low for domain in distributions), max(domain.high for domain in distributions)  # type: ignore[attr-defined]
    if low == high:
        return {"choices": [low]}
    scale = {"scale": "log"} if first.log else {}
    step = {"step": first.step} if first.step not in (None, 1) or (first.step and isinstance(low, float)) else {}
    return {"low": low, "high": high, **scale, **step}
