"""Files and output of trials, in one folder per trial within the study's folder.

If the store is a folder, trials write there directly. For an object store, a trial writes to a local folder, which is
uploaded before each checkpoint and at the end.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.filesize import decimal

from study.records import Keep
from study.store.folder import Folder
from study.store.local import explained
from study.words import count_of

FILES = "files"
"""The subfolder of a study's folder that has a folder for each trial."""

LOG, ERROR = "log.txt", "error.txt"
"""A trial's output and the traceback of its failure; kept regardless of `Keep`."""

MOST_FILES = 1000
_LONGEST_ERROR = 10**6


@dataclass(frozen=True)
class TrialFiles:
    """The folders of the trials that a worker trains.

    Args:
        store: the study's folder of the store.
        scratch: a local folder, used if the store is an object store.
        keep: rule for the files to keep.
    """

    store: Folder
    scratch: Path
    keep: Keep
    _uploaded: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """Size and modification time in nanoseconds of each uploaded file, by trial and name."""

    def folder(self, trial_id: str) -> Path:
        """Return the path of a trial's folder, even if it doesn't exist."""
        base = self.scratch if self.store.path is None else self.store.path
        return base / FILES / trial_id

    def log(self, trial_id: str) -> Path:
        """Return the path of a trial's log."""
        return self.folder(trial_id) / LOG

    def begin(self, trial_id: str) -> None:
        """Remove the files of an earlier attempt at a trial; the next `upload` removes those in an object store.

        Raises:
            StoreError: if the folder can't be emptied.
        """
        with explained(self.folder(trial_id), "empty"), suppress(FileNotFoundError):
            shutil.rmtree(self.folder(trial_id))
        if self.store.path is None:
            self._uploaded[trial_id] = {}

    def end(self, trial_id: str, error: str = "") -> Sequence[str]:
        """Write the error of an ended trial, if it failed, and remove the files that `keep` doesn't keep.

        Log and error are kept. Empty folders are removed; links stay.

        Args:
            trial_id: the trial.
            error: why it failed, with its traceback; empty if it didn't.

        Returns:
            At most one sentence: about wanted files that exceed the limits or whose names `is_file_name` refuses, or
            about an error that couldn't be written; in the last case, no files are removed.

        Raises:
            StoreError: if files can't be removed.
        """
        folder = self.folder(trial_id)
        if error:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / ERROR).write_text(error[-_LONGEST_ERROR:], encoding="utf-8", errors="backslashreplace")
            except OSError as refused:  # the result has the error, too
                return (f"trial {trial_id}: {ERROR} wasn't written: {refused.strerror}",)
        elif not folder.is_dir():
            return ()
        sizes = dict(_files(folder))
        kept = _kept(sizes, self.keep)
        left_out = {name: size for name, size in sizes.items() if name not in kept}
        with explained(folder, "remove files in"):
            for name in left_out:
                (folder / name).unlink(missing_ok=True)
            _remove_empty(folder)
        unwanted = {name: size for name, size in left_out.items() if self.keep.matches(name)}
        return () if not unwanted else (_left_out(trial_id, unwanted, self.keep),)

    def upload(self, trial_ids: Collection[str]) -> None:
        """Upload the files to keep that changed since the last call, and remove stored ones that don't exist locally.

        This is a no-op if the store is a folder.

        Raises:
            InputError: if the bucket doesn't exist.
            OSError: if a local file can't be read.
            StoreAwayError: if the store can't be reached; the next call uploads the remaining files.
            StoreError: if the store fails for good.
        """
        if self.store.path is not None:
            return
        for trial_id in trial_ids:
            prefix, folder = f"{FILES}/{trial_id}", self.folder(trial_id)
            uploaded = self._uploaded.setdefault(trial_id, {})
            sizes = dict(_files(folder)) if folder.is_dir() else {}
            for name in _kept(sizes, self.keep):
                path = folder / name
                with suppress(FileNotFoundError):  # the trial may remove it meanwhile
                    status = path.stat()
                    if uploaded.get(name) != (version := (status.st_size, status.st_mtime_ns)):
                        self.store.write(f"{prefix}/{name}", path.read_bytes())
                        uploaded[name] = version
            stale = {key.removeprefix(f"{prefix}/") for key in self.store.sizes(prefix)} - sizes.keys()
            if stale:
                self.store.remove_all([f"{prefix}/{name}" for name in stale])

    def fetch(self, trial_ids: Collection[str]) -> None:
        """Replace the local folders of resumed trials by those in the object store; no-op if the store is a folder.

        Files whose names `is_file_name` refuses are skipped.

        Raises:
            InputError: if the bucket doesn't exist.
            OSError: if a local file can't be written.
            StoreError: if the store can't be read.
        """
        if self.store.path is not None:
            return
        for trial_id in trial_ids:
            prefix, folder = f"{FILES}/{trial_id}", self.folder(trial_id)
            shutil.rmtree(folder, ignore_errors=True)
            for key in self.store.sizes(prefix):
                if (data := self.store.read(key)) is not None and is_file_name(key.removeprefix(f"{prefix}/")):
                    path = folder / key.removeprefix(f"{prefix}/")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)


def is_file_name(name: str) -> bool:
    r"""Return True if a name is accepted as a path below a trial's folder.

    It must be printable, have at most 1,000 bytes, and have no backslash, no empty part, and no part ``.`` or ``..``.

    Example:
        >>> [is_file_name(name) for name in ("a/b.txt", "../a", "/etc/a", "a//b", "a\\b", "a\n")]
        [True, False, False, False, False, False]
    """
    parts = name.split("/")
    is_plain = name.isprintable() and "\\" not in name and len(name.encode(errors="replace")) <= 1000
    return is_plain and all(part not in ("", ".", "..") for part in parts)


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each regular file below a folder; links aren't followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with suppress(FileNotFoundError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path.relative_to(folder).as_posix(), status.st_size


def _kept(sizes: Mapping[str, int], keep: Keep) -> list[str]:
    """Return the files to keep: log and error, then the smallest files that `keep` names, within the limits."""
    always = [name for name in (LOG, ERROR) if name in sizes]
    wanted = [name for name in sizes if name not in always and keep.matches(name) and is_file_name(name)]
    kept, left = always, keep.size_mb * 10**6
    for name in sorted(wanted, key=lambda name: (sizes[name], name))[: MOST_FILES - len(always)]:
        left -= sizes[name]
        if left < 0:
            break
        kept.append(name)
    return kept


def _left_out(trial_id: str, sizes: Mapping[str, int], keep: Keep) -> str:
    """Return the sentence about wanted files that exceed the limits."""
    largest = max(sizes, key=lambda name: (sizes[name], name))
    return (
        f"trial {trial_id}: not kept: {count_of(len(sizes), 'file')} ({decimal(sum(sizes.values()))} in all), "
        f"such as {largest}; a trial keeps at most {keep.size_mb:g} MB and {MOST_FILES:,} files "
        f"(keep: {{size_mb: ...}} in the study file)"
    )


def _remove_empty(folder: Path) -> None:
    """Remove the empty folders in a folder, and the folder if it is empty."""
    for parent, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # it isn't empty
            Path(parent).rmdir()
