"""A folder of studies."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path

from study.errors import InputError, UnknownStudyError
from study.store.files import explained
from study.store.ledger import StudyStore


class Store:
    """A folder of studies.

    Args:
        root: the folder; made when first written to.
        read_only: leave every file where it is, also the bad ones.

    Attributes:
        notices: sentences about files of other studies that were skipped in `adopt`, for the user.

    Example:
        >>> Store(Path("no-such-folder")).studies()
        []
    """

    def __init__(self, root: Path, read_only: bool = False) -> None:
        self.root = Path(root)
        self.read_only = read_only
        self.notices: list[str] = []

    def studies(self) -> list[str]:
        """List the studies by name."""
        with explained(self.root, "read"):
            return sorted(path.parent.name for path in self.root.glob("*/spec.yaml"))

    def study(self, name: str) -> StudyStore:
        """Give the part of one study, whether or not it is there yet.

        Raises:
            InputError: if the name would leave the store's folder.
        """
        path = self.root / name
        inside = path.resolve().parent == self.root.resolve()
        if not inside or path.name != name:
            raise InputError(f"{name!r} can't name a study: it must be one folder right below {self.root}")
        return StudyStore(path, read_only=self.read_only)

    def open(self, name: str) -> StudyStore:
        """Give the part of a study that must be there.

        Raises:
            UnknownStudyError: if it isn't, naming those nearest.
        """
        study = self.study(name)
        if not study.exists:
            known = self.studies()
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:5]
            hint = f"; there is {', '.join(near)}" if near else "; the store is empty"
            raise UnknownStudyError(f"no study {name!r} in {self.root}{hint}")
        return study

    def adopt(self, name: str, trial_ids: Collection[str]) -> int:
        """Copy results that other studies of this store already have into this one.

        Args:
            name: the study that wants them.
            trial_ids: what it wants; what it has is left alone.

        Returns:
            How many trials were adopted.
        """
        study = self.study(name)
        wanted = set(trial_ids) - study.done()
        adopted = 0
        for other_name in self.studies():
            if wanted and other_name != name:
                other = StudyStore(self.root / other_name, read_only=True)
                found = study.adopt(other_name, other, wanted)
                self.notices += other.notices
                wanted -= found
                adopted += len(found)
        self.notices += study.notices
        return adopted
