"""The stored packs of a study, as tracking sees them, and their marks: which of them MLflow has whole.

A mark is a hash of a pack's name and rows. The study's run has the marks of the packs that were published and read
back, in tags that the dashboard doesn't show. So a rerun requests one run from MLflow instead of all of them: 20,000
take half a minute.
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

# The dashboard doesn't show tags that begin with mlflow.
_MARKS = "mlflow.study.published"
WRITING = "mlflow.study.writing"
"""Tag of the study's run: the packs that are being written, with commas between; their runs may be incomplete."""
CHECKED = "mlflow.study.checked"
"""Tag of the study's run: every trial's run belongs to a marked pack or one being written, or is unfinished."""
SHOWS = "mlflow.study.shows"
"""Tag of the study's run: the mark of what it shows, while no process writes to it and nothing is missing."""
_LAYOUT = 2  # trials' runs are below those of cells since then; what an earlier version published is published anew
_LENGTH = 11  # characters of a mark: 66 bits
_MARKS_A_TAG = 450  # MLflow allows 8000 characters, 5000 on some databases
TRIALS_TOGETHER = 50
"""Trials of small packs that are written together, since noting, reading back and marking cost as much as a trial."""


FilesOf = Callable[[str, Path], Mapping[str, Path]]
"""`Packs.files`: given a trial's id and a folder to copy into, the paths of the trial's files by name."""


class Packs(Protocol):
    """Reads a study's stored packs; a trial that is in several of them is read only in the first."""

    def names(self) -> Sequence[str]:
        """Return the names of the packs that are done, without a failed trial."""
        ...

    def results(self, name: str) -> Sequence[Result]:
        """Read a pack's results."""
        ...

    def curves(self, name: str) -> Sequence[Curve]:
        """Read a pack's learning curves, which are much larger."""
        ...

    def files(self, trial_id: str, into: Path) -> Mapping[str, Path]:
        """Return the paths of a trial's files by name; those that aren't on this machine are copied into a folder."""
        ...


@dataclass(frozen=True)
class ReadPack:
    """A pack to publish.

    Args:
        name: the pack's name.
        results: the results of its trials.
        curves: reads their learning curves.
    """

    name: str
    results: Sequence[Result]
    curves: Callable[[], Sequence[Curve]]

    @cached_property
    def mark(self) -> str:
        """The pack's mark."""
        return mark_of(self.name, self.results)


def in_groups(packs: Iterable[ReadPack]) -> Iterator[list[ReadPack]]:
    """Yield packs in groups that are written together: each has at most `TRIALS_TOGETHER` trials, or one pack."""
    group: list[ReadPack] = []
    for pack in packs:
        if group and sum(len(other.results) for other in (*group, pack)) > TRIALS_TOGETHER:
            yield group
            group = []
        group.append(pack)
    if group:
        yield group


def shows_value(mark: str) -> str:
    """Return the value of the tag `SHOWS` for a mark: other versions may have shown the same otherwise."""
    return f"{mark} {_LAYOUT}"


def mark_of(name: str, results: Sequence[Result]) -> str:
    """Return the mark of a pack: a hash of its name and all its rows."""
    rows = results_table(results).to_pylist()
    for row in rows:
        if row["criterion"] is None:  # packs that were marked before there was this column keep their marks
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
    """Return marks as tags.

    Args:
        marks: all marks.
        since: number of marks that are written already; tags that hold only these are left out.
    """
    first = since // _MARKS_A_TAG
    return {
        f"{_MARKS}.{page + 1}": "".join(marks[page * _MARKS_A_TAG : (page + 1) * _MARKS_A_TAG])
        for page in range(first, max(first + 1, -(-len(marks) // _MARKS_A_TAG)))
    }


def empty_tags(tags: Collection[str], current: Mapping[str, str]) -> dict[str, str]:
    """Return empty values for the tags that no longer hold marks."""
    return {name: "" for name in tags if name.startswith(_MARKS) and name not in current}
