"""Deletion of a study from the store and from MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from study.addresses import without_secret
from study.api.where import Where
from study.errors import InputError, StudyError, TrackingError
from study.words import count_of

if TYPE_CHECKING:
    from study.store import StudyStore
    from study.tracking import StudyExperiment


@dataclass(frozen=True)
class Deletion:
    """Content of a study that a deletion removes; `carry_out` deletes it.

    Args:
        study: the study's name.
        where: addresses of the store and of MLflow.
        files: number of its files in the store.
        size_bytes: total size of these files.
        trials: number of trials with a result; None if results can't be read.
        has_report: True if the files include a report.
        experiments: its experiments in MLflow.
    """

    study: str
    where: Where
    files: int
    size_bytes: int
    trials: int | None
    has_report: bool
    experiments: Sequence[StudyExperiment] = field(default=())

    def __str__(self) -> str:
        results = "trials that can't be read" if self.trials is None else count_of(self.trials, "trial")
        content = f"{results}{' and a report' if self.has_report else ''} in {count_of(self.files, 'file')}"
        size = f"{content}, {self.size_bytes / 2**20:,.1f} MiB" if self.files else "nothing"
        lines = [self.study, f"  store:  {size} in {without_secret(self.where.shown_store)}"]
        uri = self.where.tracking
        for experiment in self.experiments:
            state = "" if experiment.is_active else ", already deleted there"
            lines.append(f"  MLflow: experiment {experiment.name!r} with {experiment.runs}{state}")
        if not self.experiments:
            lines.append("  MLflow: is left alone" if uri is None else "  MLflow: no experiment of this study")
        return "\n".join(lines)

    def carry_out(self) -> None:
        """Delete the study from MLflow, then from the store; without MLflow's address, from the store alone.

        MLflow comes first, since it can be rebuilt from the store. After an interruption, a second deletion completes
        the first.

        Raises:
            BusyError: if the study is running; nothing is deleted.
            InputError: if the study's folder has files but no study, or its experiment has runs of others.
            TrackingError: if MLflow can't be reached or refuses; the store is untouched.
            StoreError: if the store can't be read, or a file can't be removed.
        """
        from study.store import Store

        folder = Store(self.where.store).study(self.study)
        is_own = _check_own(folder)
        with folder.lock():
            uri = self.where.tracking
            if uri is not None:
                from study.tracking import delete_experiments

                try:
                    # Read again, since the user may have taken long to confirm.
                    delete_experiments(uri, self.study, _experiments(self.study, self.where, is_own=is_own))
                except TrackingError as error:
                    raise _untouched_store(self.study, error) from error
            folder.delete()


def deletion_of(study: str, where: Where) -> Deletion:
    """Return the content that the deletion of a study removes; nothing is written.

    Args:
        study: the study's name.
        where: addresses of the store and of MLflow; if MLflow is ``off``, it stays unchanged.

    Raises:
        UnknownStudyError: if neither the store nor MLflow has the study.
        InputError: if the study's experiment in MLflow has runs that the study didn't write, or its folder is a link,
            or the folder has files but no study.
        TrackingError: if MLflow can't be reached.
        StoreError: if the store can't be read.
    """
    from study.store import Store

    store = Store(where.store, read_only=True)
    folder = store.study(study)
    if folder.path is not None and folder.path.is_symlink():
        raise InputError(f"{folder.where} is a link, not a study's own folder: remove the link itself")
    is_own = folder.exists or folder.has_remains
    experiments = _experiments(study, where, is_own=is_own)
    if not experiments and not is_own:
        store.open(study)
    _check_own(folder)
    sizes = folder.sizes()
    return Deletion(
        study,
        where,
        files=len(sizes),
        size_bytes=sum(sizes.values()),
        trials=_trials(folder),
        has_report=any(key.startswith("report/") for key in sizes),
        experiments=experiments,
    )


def _check_own(folder: StudyStore) -> bool:
    """Return True if a folder has a study or its remains, False if it is empty; raise InputError for other files."""
    is_own = folder.exists or folder.has_remains
    if not is_own and folder.sizes():
        raise InputError(
            f"{folder.where} has files but no study, so nothing was deleted: correct --store, or remove the folder by "
            "hand. To delete only the experiment in MLflow, give --store another folder"
        )
    return is_own


def _experiments(study: str, where: Where, *, is_own: bool) -> Sequence[StudyExperiment]:
    """Return the study's experiments in MLflow; without the study in the store, only those that have runs.

    Raise InputError if one has runs that the study didn't write, and TrackingError if MLflow can't be reached.
    """
    uri = where.tracking
    if uri is None:
        return ()
    # imported late: MLflow takes seconds to import
    from study.tracking import experiments_of

    try:
        return [experiment for experiment in experiments_of(uri, study) if is_own or experiment.has_runs]
    except TrackingError as error:
        raise _untouched_store(study, error) from error


def _untouched_store(study: str, error: TrackingError) -> TrackingError:
    return TrackingError(
        f"{error}. Nothing of {study!r} was deleted from the store; --tracking-uri off deletes the study there, and "
        "leaves MLflow alone"
    )


def _trials(folder: StudyStore) -> int | None:
    try:
        return len(folder.done())
    except StudyError:  # for example a file of a newer version
        return None
