"""Files of trials for readers: sizes, local copies, and logs, also of running trials."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from study.errors import InputError
from study.store import StudyStore
from study.store.trial_files import ERROR, LOG

_LOOK_AGAIN_S = 0.5
_MOST_LINKED = 6


def trial_named(folder: StudyStore, text: str) -> str:
    """Return the id of a trial by its first letters, also of a running trial that has files.

    Args:
        folder: the study's part of the store.
        text: the id, or its first letters.

    Raises:
        InputError: if no trial has the id, and none or more than one begins with it; or a newer package wrote a result.
        StoreError: if the store can't be read.
    """
    ended = {*folder.done(), *folder.failed_rows()["trial_id"].to_pylist()}
    ids = sorted(trial_id for trial_id in {*folder.trials_with_files(), *ended} if trial_id.startswith(text))
    if text in ids or len(ids) == 1:
        return text if text in ids else ids[0]
    reason = f"{len(ids)} trial ids begin with it, such as {ids[0]}" if ids else "no trial has that id"
    raise InputError(f"trial {text!r} of study {folder.name!r}: {reason}; `study files {folder.name}` lists them")


def sizes_by_trial(folder: StudyStore) -> dict[str, dict[str, int]]:
    """Return the sizes in bytes of all trials' files, by trial id and file name.

    Raises:
        StoreError: if the store can't be read.
    """
    return {trial_id: folder.file_sizes(trial_id) for trial_id in folder.trials_with_files()}


def linked_files(folder: StudyStore) -> dict[str, list[str]]:
    """Return the names of the files that a report links to, by trial id: log and traceback first, six at most.

    Raises:
        StoreError: if the store can't be read.
    """
    linked = {}
    for trial_id, names in sizes_by_trial(folder).items():
        first = [name for name in (LOG, ERROR) if name in names]
        linked[trial_id] = [*first, *(name for name in names if name not in first)][:_MOST_LINKED]
    return linked


def local_files(folder: StudyStore, trial_id: str, into: Path | None = None) -> dict[str, Path]:
    """Return the paths of a trial's files on this machine, by their names in the trial's folder; copy them if asked.

    Args:
        folder: the study's part of the store.
        trial_id: the trial.
        into: the folder to copy the files to, replacing files of these names; None for their paths in the store, which
            must be a folder then.

    Raises:
        InputError: if `into` is None and the store is an object store, or a file has a name that isn't valid on every
            system.
        OSError: if a file can't be written to `into`.
        StoreError: if the store can't be read.
    """
    names = folder.file_sizes(trial_id)
    if into is None:
        if folder.path is None:
            raise InputError(f"{folder.where} isn't a folder of this machine: give a folder to copy the files to")
        return {name: folder.path / folder.trial_file(trial_id, name) for name in names}
    copied = {}
    for name in names:
        if (data := folder.read_file(folder.trial_file(trial_id, name))) is not None:
            copied[name] = into / name
            copied[name].parent.mkdir(parents=True, exist_ok=True)
            copied[name].write_bytes(data)
    return copied


def read_log(folder: StudyStore, trial_id: str) -> str:
    """Return a trial's output so far.

    Raises:
        InputError: if the trial has no log.
        StoreError: if the store can't be read.
    """
    data = folder.read_file(folder.trial_file(trial_id, LOG))
    if data is None:
        raise InputError(f"trial {trial_id} of study {folder.name!r} has no log: it has printed nothing so far")
    return data.decode(errors="replace")


def follow_log(folder: StudyStore, trial_id: str) -> Iterator[str]:
    """Yield a trial's output so far, then its new output until the trial or the study's run has ended.

    If the log was replaced, all of it is yielded, after ``[...]``. In an object store, a running trial's log is
    complete up to its last checkpoint.

    Raises:
        InputError: if a newer package wrote one of the results.
        StoreError: if the store can't be read.
    """
    key, shown = folder.trial_file(trial_id, LOG), b""
    while True:
        has_ended = _has_ended(folder, trial_id)  # checked first: the log is then read to its end
        data = folder.read_file(key) or b""
        if new := data.removeprefix(shown) if data.startswith(shown) else b"\n[...]\n" + data:
            yield new.decode(errors="replace")
        shown = data
        if has_ended:
            return
        time.sleep(_LOOK_AGAIN_S)


def _has_ended(folder: StudyStore, trial_id: str) -> bool:
    """Return True if a trial has a result or failed, or the study isn't running."""
    ended: Mapping[str, object] = dict.fromkeys(folder.failed_rows()["trial_id"].to_pylist())
    return trial_id in folder.done() or (folder.holder() is None) or trial_id in ended
