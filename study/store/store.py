"""The store: a folder of studies, which share the trials that they have in common."""

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
        root: a folder, made by the first write, or the URL of one in an object store: ``s3://bucket/studies``.
        read_only: leave every file where it is, even bad ones.

    Attributes:
        notices: sentences for the user about files of other studies that `adopt` skipped.

    Raises:
        InputError: if no store can be at that address.

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
        """The address that means the same to a process elsewhere."""
        return self._folder.address

    @property
    def path(self) -> Path | None:
        """The folder's path in this machine's file system; None for an object store."""
        return self._folder.path

    def require(self) -> None:
        """Check that there is a store to read: a mistyped address would look like an empty one.

        Raises:
            InputError: if there is nothing at its address.

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
        """Whether there is anything at its address."""
        return self._folder.is_there

    @property
    def _no_store_hint(self) -> str:
        return (
            f"there is no store at {self.where}: correct --store, or run a study there, which makes it "
            f"(`study run demo --store {self.where}` does)"
        )

    def studies(self) -> list[str]:
        """Return the names of the studies, sorted."""
        return self._folder.holding("spec.yaml")

    def study(self, name: str) -> StudyStore:
        """Return a study's store, whether or not the study is there yet.

        Raises:
            InputError: if the name would leave the store's folder.
        """
        return StudyStore(self._folder.below(name), read_only=self.read_only)

    def open(self, name: str) -> StudyStore:
        """Return the store of a study that must be there.

        Raises:
            UnknownStudyError: if it isn't; the message names the most similar ones.
        """
        study = self.study(name)
        if not study.exists:
            if not self._folder.is_there:
                raise UnknownStudyError(f"no study {name!r}: {self._no_store_hint}")
            names = self.studies()
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
            hint = f"; there is {', '.join(near)}" if near else "; the store is empty"
            raise UnknownStudyError(f"no study {name!r} in {self.where}{hint}")
        return study

    def adopt(self, name: str, trial_ids: Collection[str], into: StudyStore | None = None) -> int:
        """Copy results that other studies of this store already have into a study.

        Args:
            name: the study to copy them into.
            trial_ids: the trials that it needs; those that it already has are left alone.
            into: the study's store as its driver opened it, which collects notices of its own; None without a driver.

        Returns:
            How many trials were adopted.
        """
        study, others = into or self.study(name), [other for other in self.studies() if other != name]
        missing = set(trial_ids) - study.done() if others else set()
        count = 0
        for other_name in others:
            if missing:
                other = StudyStore(self._folder.below(other_name), read_only=True)
                adopted = study.adopt(other_name, other, missing)
                self.notices += other.notices
                missing -= adopted
                count += len(adopted)
        if into is None:
            self.notices += study.notices
        return count


def folder_at(root: str | Path) -> Folder:
    """Return the folder, or the prefix of an object store, at an address; see `Store`."""
    if is_url(root):
        from study.store.objects import open_objects  # only here: folders don't need it, and start sooner

        return open_objects(str(root))
    if _ONE_SLASH.match(str(root)):  # what `Path` turns a URL into
        raise InputError(f"--store {root}: an address of an object store has two slashes, as in s3://bucket/studies")
    return LocalFolder(Path(root))
