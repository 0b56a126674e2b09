"""The deletion of a study: what goes with it, and that it goes from the store and from MLflow."""

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
    """What goes if a study is deleted; `carry_out` deletes it.

    Args:
        study: the study's name.
        where: the store, and MLflow.
        files: how many files the store has of it.
        size_bytes: their size.
        trials: how many trials have a result; None if that can't be read.
        has_report: whether there is a report among the files.
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
        what = f"{results}{' and a report' if self.has_report else ''} in {count_of(self.files, 'file')}"
        size = f"{what}, {self.size_bytes / 2**20:,.1f} MiB" if self.files else "nothing"
        lines = [self.study, f"  store:  {size} in {without_secret(self.where.shown_store)}"]
        uri = self.where.tracking
        for one in self.experiments:
            state = "" if one.is_active else ", deleted there before"
            lines.append(f"  MLflow: experiment {one.name!r} with {one.runs}{state}")
        if not self.experiments:
            lines.append("  MLflow: is left alone" if uri is None else "  MLflow: has no experiment of it")
        return "\n".join(lines)

    def carry_out(self) -> None:
        """Delete it: first from MLflow, which can be made again from the store, then from the store.

        Interrupted at any moment, it leaves what a second deletion completes.

        Raises:
            BusyError: if the study is running; nothing is deleted.
            TrackingError: if MLflow can't be reached or refuses; the store is untouched.
        """
        from study.store import Store

        folder = Store(self.where.store).study(self.study)
        is_own = _check_own(folder)
        with folder.lock():
            uri = self.where.tracking
            if uri is not None:
                from study.tracking import delete_experiments

                try:
                    # Those of now, since a person may have taken long to answer.
                    delete_experiments(uri, self.study, _experiments(self.study, self.where, is_own=is_own))
                except TrackingError as error:
                    raise _left_alone(self.study, error) from error
            folder.delete()


def deletion_of(study: str, where: Where) -> Deletion:
    """Find out what goes if a study is deleted; nothing is written.

    Args:
        study: its name.
        where: the store, and MLflow; where MLflow is ``off``, it is left alone.

    Raises:
        UnknownStudyError: if neither the store nor MLflow has anything of that study.
        InputError: if its experiment in MLflow has runs that it didn't write, or its folder is a link or no study's.
        TrackingError: if MLflow can't be reached.
    """
    from study.store import Store

    store = Store(where.store, read_only=True)
    folder = store.study(study)
    if folder.path is not None and folder.path.is_symlink():
        raise InputError(f"{folder.where} is a link to another folder, and not a study's own: remove the link itself")
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
    """Check that a folder is a study's, or what an interrupted deletion left of one, and return whether it is there.

    Raises:
        InputError: if it has files and is neither: they may be anybody's.
    """
    is_own = folder.exists or folder.has_remains
    if not is_own and folder.sizes():
        raise InputError(
            f"{folder.where} has files but no study, so nothing was deleted: correct --store, or remove the folder by "
            "hand. --store with another folder deletes the experiment in MLflow alone"
        )
    return is_own


def _experiments(study: str, where: Where, *, is_own: bool) -> Sequence[StudyExperiment]:
    """Return the study's experiments; if the store has no such study, one without runs may be anybody's."""
    uri = where.tracking
    if uri is None:
        return ()
    # imported late: MLflow takes seconds to import
    from study.tracking import experiments_of

    try:
        return [one for one in experiments_of(uri, study) if is_own or one.has_runs]
    except TrackingError as error:
        raise _left_alone(study, error) from error


def _left_alone(study: str, error: TrackingError) -> TrackingError:
    return TrackingError(
        f"{error}. Nothing of {study!r} was deleted from the store; --tracking-uri off deletes the study there, and "
        "leaves MLflow alone"
    )


def _trials(folder: StudyStore) -> int | None:
    try:
        return len(folder.done())
    except StudyError:  # a newer version's file, for example
        return None
