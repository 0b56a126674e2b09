"""The store: a folder of studies with shared results of equal trials."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from pathlib import Path

from study.errors import InputError, UnknownStudyError
from study.store.folder import Folder, is_url
from study.store.local import LocalFolder
from study.store.study_store import StudyStore

_ONE_SLASH = re.compile(r"[A-Za-z0-9]{2,}:/(?!/)")


class Store:
    """A folder of studies.

    Args:
        root: a folder, made by the first write, or its URL in an object store, such as ``s3://bucket/studies``.
        read_only: leave every file in place, even invalid ones.

    Attributes:
        notices: sentences for the user about studies and files that `adopt` skipped or set aside.

    Raises:
        InputError: if the address isn't valid.
        StoreError: if a setting or package that the object store needs is missing, or the AWS files can't be read.

    Example:
        >>> Store("no-such-folder").studies()
        []
    """

    def __init__(self, root: str | Path, read_only: bool = False) -> None:
        self.read_only = read_only
        self.notices: list[str] = []
        self._folder = folder_at(root)

    @property
    def where(self) -> str:
        """The store's address, to print."""
        return self._folder.where

    @property
    def address(self) -> str:
        """The absolute address, valid for other processes."""
        return self._folder.address

    @property
    def path(self) -> Path | None:
        """The folder's path in this machine's file system; None for an object store."""
        return self._folder.path

    def require(self) -> None:
        """Check that the store exists, since a mistyped address would look like an empty store.

        Raises:
            InputError: if nothing is at its address.
            StoreError: if the store can't be read.

        Example:
            >>> Store("no-such-folder").require()
            Traceback (most recent call last):
            ...
            study.errors.InputError: there is no store at no-such-folder: correct --store, or run a study...
        """
        if not self.is_there:
            raise InputError(self._no_store_hint)

    @property
    def is_there(self) -> bool:
        """True if anything is at its address.

        Raises:
            InputError: if the bucket of an object store doesn't exist.
            StoreError: if the store can't be read.
        """
        return self._folder.is_there

    @property
    def _no_store_hint(self) -> str:
        """The end of the message about a missing store."""
        return (
            f"there is no store at {self.where}: correct --store, or run a study there, which makes it "
            f"(`study run demo --store {self.where}` does)"
        )

    def studies(self) -> list[str]:
        """Return the names of the studies, sorted.

        Raises:
            InputError: if the bucket of an object store doesn't exist.
            StoreError: if the store can't be read.
        """
        return self._folder.holding("spec.yaml")

    def study(self, name: str) -> StudyStore:
        """Return a study's store; the study needn't exist yet.

        Raises:
            InputError: if the name leads out of the store's folder.
        """
        return StudyStore(self._folder.below(name), read_only=self.read_only)

    def open(self, name: str) -> StudyStore:
        """Return the store of an existing study.

        Raises:
            UnknownStudyError: if it doesn't exist; the message names similar studies, or else others, if there are any.
            StoreError: if the store can't be read.
            InputError: if the name leads out of the store's folder, or the bucket of an object store doesn't exist.
        """
        study = self.study(name)
        if not study.exists:
            if not self._folder.is_there:
                raise UnknownStudyError(f"no study {name!r}: {self._no_store_hint}")
            names = self.studies()
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
            hint = f"; choose from {', '.join(near)}" if near else "; the store is empty"
            raise UnknownStudyError(f"no study {name!r} in {self.where}{hint}")
        return study

    def adopt(self, name: str, trial_ids: Collection[str], into: StudyStore | None = None) -> int:
        """Copy results of other studies in this store into a study, with their curves, weights and files.

        Trials that failed or were stopped early aren't copied. A study that can't be read, or
        is a link out of the store, is skipped, with a notice.

        Args:
            name: the study to copy them into.
            trial_ids: the trials that it needs; those that it has already aren't copied.
            into: the study's store as its driver opened it, which collects its own notices; None without a driver.

        Returns:
            The number of adopted trials.

        Raises:
            InputError: if the name leads out of the store's folder, a newer package wrote one of the study's files, or
                another study's curves, weights or files of trials can't be adopted.
            StoreError: if the study can't be read or written, or another's curves, weights or files can't be read.
            BusyError: if another driver has taken the study over from that of `into`.
        """
        study, others = into or self.study(name), [other for other in self.studies() if other != name]
        missing = set(trial_ids) - study.done() if others else set()
        count = 0
        for other_name in others:
            if missing:
                try:
                    other = StudyStore(self._folder.below(other_name), read_only=True)
                except InputError as error:  # a link that leads out of the store
                    self.notices.append(str(error))
                    continue
                adopted = study.adopt(other_name, other, missing)
                self.notices += other.notices
                missing -= adopted
                count += len(adopted)
        if into is None:
            self.notices += study.notices
        return count


def folder_at(root: str | Path) -> Folder:
    """Return the folder, or the prefix of an object store, at an address; see `Store`.

    Raises:
        InputError: if the address isn't valid.
        StoreError: if a setting or package that the object store needs is missing, or the AWS files can't be read.
    """
    if is_url(root):
        from study.store.objects import open_objects  # imported late, since folders don't need it

        return open_objects(str(root))
    if _ONE_SLASH.match(str(root)):  # a URL that `Path` has normalised
        raise InputError(f"--store {root}: the address of an object store needs two slashes, as in s3://bucket/studies")
    return LocalFolder(Path(root))
