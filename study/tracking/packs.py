"""Interface to a study's stored packs, and marks of the packs that MLflow has completely.

A mark is a hash of a pack's name and rows. The study's run has the marks of all packs that were published and read
back, in tags that the dashboard hides. So a rerun requests one run from MLflow instead of all runs, which takes half a
minute for 20,000.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from study.arrow import results_table
from study.records import Curve, Result
from study.tracking.rows import row_digest

# The dashboard hides tags that begin with mlflow.
_MARKS = "mlflow.study.published"
WRITING = "mlflow.study.writing"
"""Tag of the study's run: the packs that are being written, comma-separated; their runs may be incomplete."""
CHECKED = "mlflow.study.checked"
"""Tag of the study's run: every finished trial's run belongs to a pack that is marked or being written."""
SHOWS = "mlflow.study.shows"
"""Tag of the study's run: the mark of its content, if that is complete and no process is writing."""
_LAYOUT = 2  # since 2, trials' runs are below those of cells; older layouts are published again
_LENGTH = 11  # characters of a mark: 66 bits
_MARKS_A_TAG = 450  # MLflow allows 8000 characters, 5000 on some databases
TRIALS_TOGETHER = 50
"""Trials of small packs that are written together, since the requests for a group cost as much as a trial."""


FilesOf = Callable[[str, Path], Mapping[str, Path]]
"""Function that returns the paths of a trial's files by name, given the trial's id and a scratch folder."""


class Packs(Protocol):
    """Reader of a study's stored packs; a trial in several packs is read only from the first."""

    def names(self) -> Sequence[str]:
        """Return the names of the packs to publish, in order."""
        ...

    def results(self, name: str) -> Sequence[Result]:
        """Read a pack's results."""
        ...

    def curves(self, name: str) -> Sequence[Curve]:
        """Read a pack's learning curves."""
        ...

    def files(self, trial_id: str, into: Path) -> Mapping[str, Path]:
        """Return the paths of a trial's files by name; files of an object store are copied into `into`."""
        ...


@dataclass(frozen=True)
class ReadPack:
    """A pack to publish.

    Args:
        name: the pack's name.
        results: the results of its trials.
        curves: returns their learning curves.
    """

    name: str
    results: Sequence[Result]
    curves: Callable[[], Sequence[Curve]]

    @cached_property
    def mark(self) -> str:
        """The pack's mark.

        Raises:
            InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        """
        return mark_of(self.name, self.results)


def in_groups(packs: Iterable[ReadPack]) -> Iterator[list[ReadPack]]:
    """Yield groups of packs to write together: each has at most `TRIALS_TOGETHER` trials, or one pack."""
    group: list[ReadPack] = []
    for pack in packs:
        if group and sum(len(other.results) for other in (*group, pack)) > TRIALS_TOGETHER:
            yield group
            group = []
        group.append(pack)
    if group:
        yield group


def shows_value(mark: str) -> str:
    """Return the value of the tag `SHOWS` for a mark, with the layout's version."""
    return f"{mark} {_LAYOUT}"


def mark_of(name: str, results: Sequence[Result]) -> str:
    """Return the mark of a pack: a hash of its name and all its rows.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    rows = results_table(results).to_pylist()
    for row in rows:
        if row["criterion"] is None:  # keeps the marks of packs from before this column existed
            del row["criterion"]
    digests = [row_digest(row) for row in rows]
    return base64.b64encode(hashlib.sha256("\n".join([name, *digests]).encode()).digest()).decode()[:_LENGTH]


def marks_of(tags: Mapping[str, str]) -> list[str]:
    """Read the marks from the tags of a study's run, in order.

    Example:
        >>> marks_of(marks_tags(["abcdefghijk", "lmnopqrstuv"]))
        ['abcdefghijk', 'lmnopqrstuv']
    """
    text, page = "", 1
    while (name := f"{_MARKS}.{page}") in tags:
        text, page = text + tags[name], page + 1
    return [text[i : i + _LENGTH] for i in range(0, len(text), _LENGTH)]


def marks_tags(marks: Sequence[str], since: int = 0) -> dict[str, str]:
    """Return marks as tags: at least one tag, which is empty if there are no marks for it.

    Args:
        marks: all marks.
        since: number of marks that are written already; tags that are full of these are left out.
    """
    first = since // _MARKS_A_TAG
    return {
        f"{_MARKS}.{page + 1}": "".join(marks[page * _MARKS_A_TAG : (page + 1) * _MARKS_A_TAG])
        for page in range(first, max(first + 1, -(-len(marks) // _MARKS_A_TAG)))
    }


def empty_tags(tags: Collection[str], current: Mapping[str, str]) -> dict[str, str]:
    """Return an empty value for each of a run's `tags` that is for marks, but isn't among the `current` ones."""
    return {name: "" for name in tags if name.startswith(_MARKS) and name not in current}
