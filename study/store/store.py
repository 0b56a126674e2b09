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
        root: a folder, made when first written to, or the URL of one in an object store: ``s3://bucket/studies``.
        read_only: leave every file where it is, also the bad ones.

    Attributes:
        notices: sentences about files of other studies that were skipped in `adopt`, for the user.

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
        """Give its address, to print."""
        return self._folder.where

    @property
    def address(self) -> str:
        """Give the address that means the same to a process elsewhere."""
        return self._folder.address

    def require(self) -> None:
        """Check that there is a store to read: a mistyped address would look like an empty one.

        Raises:
            InputError: if nothing is at its address.

        Example:
            >>> Store("no-such-folder").require()
            Traceback (most recent call last):
            ...
            study.errors.InputError: there is no store at no-such-folder: correct --store, or run a study...
        """
        if not self._folder.is_there:
            raise InputError(self._nothing)

    @property
    def _nothing(self) -> str:
        return (
            f"there is no store at {self.where}: correct --store, or run a study there, which makes it "
            f"(`study run demo --store {self.where}` does)"
        )

    def studies(self) -> list[str]:
        """List the studies by name."""
        return self._folder.holding("spec.yaml")

    def study(self, name: str) -> StudyStore:
        """Give the part of one study, whether or not it is there yet.

        Raises:
            InputError: if the name would leave the store's folder.
        """
        return StudyStore(self._folder.below(name), read_only=self.read_only)

    def open(self, name: str) -> StudyStore:
        """Give the part of a study that must be there.

        Raises:
            UnknownStudyError: if it isn't, naming those nearest.
        """
        study = self.study(name)
        if not study.exists:
            if not self._folder.is_there:
                raise UnknownStudyError(f"no study {name!r}: {self._nothing}")
            known = self.studies()
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:5]
            hint = f"; there is {', '.join(near)}" if near else "; the store is empty"
            raise UnknownStudyError(f"no study {name!r} in {self.where}{hint}")
        return study

    def adopt(self, name: str, trial_ids: Collection[str], into: StudyStore | None = None) -> int:
        """Copy results that other studies of this store already have into this one.

        Args:
            name: the study that wants them.
            trial_ids: what it wants; what it has is left alone.
            into: the study as its driver has it, which keeps notices of its own; None for anybody.

        Returns:
            How many trials were adopted.
        """
        study, others = into or self.study(name), [other for other in self.studies() if other != name]
        wanted = set(trial_ids) - study.done() if others else set()
        adopted = 0
        for other_name in others:
            if wanted:
                other = StudyStore(self._folder.below(other_name), read_only=True)
                found = study.adopt(other_name, other, wanted)
                self.notices += other.notices
                wanted -= found
                adopted += len(found)
        if into is None:
            self.notices += study.notices
        return adopted


def folder_at(root: str | Path) -> Folder:
    """Give the folder, or the prefix of an object store, at an address; see `Store`."""
    if is_url(root):
        from study.store.objects import open_objects  # only here: folders do without, and start sooner

        return open_objects(str(root))
    if _ONE_SLASH.match(str(root)):  # what `Path` makes of a URL
        raise InputError(
            f"--store {root}: an address of an object store has two slashes, as in s3://bucket/studies"
        )
    return LocalFolder(Path(root))
