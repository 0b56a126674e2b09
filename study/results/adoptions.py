"""Log of the results of earlier code that the user has declared valid for the current code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from study.errors import StoreError
from study.interface.json_text import parse_json
from study.spec import Spec
from study.store import StudyStore
from study.words import count_of, join_and

LOG = "code/adopted.json"
"""The log's file in a study's folder. The log is append-only."""

_MOST_NAMES = 5


@dataclass(frozen=True)
class Adoption:
    """An entry of the log.

    Args:
        at: when, UTC, in ISO 8601.
        by: ``user@machine``.
        code: identity of the code that the results are valid for.
        earlier: identity of the code that made the results; None if this entry revokes an earlier one.
        digest: byte digest of the current code at that time.
        changed: files and packages that had changed.
        trials: number of trials that had a result.
    """

    at: str
    by: str
    code: str
    earlier: str | None
    digest: str = ""
    changed: Sequence[str] = ()
    trials: int = 0

    @property
    def sentence(self) -> str:
        """The notice for readers of the results; without meaning for an entry that revokes an earlier one.

        Example:
            >>> Adoption("2026-11-23T21:00:00+00:00", "ann@lab", "parsed:1", "parsed:0", "", ["a.py"], 120).sentence
            '120 trials were run before a.py changed: ann@lab declared their results valid on 2026-11-23.'
        """
        names = join_and([*self.changed[:_MOST_NAMES], *(["others"] if len(self.changed) > _MOST_NAMES else [])])
        was = "was" if self.trials == 1 else "were"
        its = "its result" if self.trials == 1 else "their results"
        head = f"{count_of(self.trials, 'trial')} {was} run before {names or 'the code'} changed"
        return f"{head}: {self.by} declared {its} valid on {self.at[:10]}."

    def provenance(self) -> dict[str, str]:
        """Return the entry, without its digest, as texts by title, for the report's provenance."""
        names = {"at": "adopted_at", "by": "adopted_by", "code": "adopted_for", "earlier": "results_of"}
        entry = {title: str(getattr(self, name)) for name, title in names.items()}
        return entry | {"changed": ", ".join(self.changed), "trials": f"{self.trials:,}"}


def read_adoptions(folder: StudyStore) -> list[Adoption]:
    """Return the log, the earliest entry first; empty if nothing was adopted.

    Raises:
        StoreError: if the log can't be read.
    """
    content = folder.read_file(LOG)
    if content is None:
        return []
    try:
        return [_parse(entry) for entry in parse_json(content)]
    except (ValueError, TypeError) as error:
        raise StoreError(f"{folder.file_address(LOG)} can't be read: {error}; put it back as it was") from None


def _parse(entry: dict[str, Any]) -> Adoption:
    """Make an adoption of an entry of the log; raise TypeError or ValueError if it is invalid."""
    adoption = Adoption(**entry)
    texts = [adoption.at, adoption.by, adoption.code, adoption.earlier or "", adoption.digest, *adoption.changed]
    if not all(isinstance(text, str) for text in texts) or not isinstance(adoption.trials, int):
        raise ValueError("an entry has a value of the wrong type")
    return adoption


def add_adoption(entry: Adoption, folder: StudyStore) -> None:
    """Add an entry to the log. Call it with the study's lock held.

    Raises:
        StoreError: if the log can't be read or written.
        StudyError: if `folder.check` fails.
    """
    entries = [*read_adoptions(folder), entry]
    folder.write_file(LOG, json.dumps([asdict(adoption) for adoption in entries], indent=1).encode())


def adoption_of(folder: StudyStore, code: str) -> Adoption | None:
    """Return the current adoption for a code identity; None if there is none, or it was revoked.

    Raises:
        StoreError: if the log can't be read.
    """
    last = next((entry for entry in reversed(read_adoptions(folder)) if entry.code == code), None)
    return last if last is not None and last.earlier is not None else None


def adopted_identity(folder: StudyStore, code: str) -> str | None:
    """Return the earlier identity that a code identity has adopted; None without an adoption.

    Raises:
        StoreError: if the log can't be read.
    """
    adoption = adoption_of(folder, code)
    return None if adoption is None else adoption.earlier


def adoptions_of_study(folder: StudyStore, spec: Spec) -> list[Adoption]:
    """Return the current adoptions of the results that a study's plan uses; empty without own code.

    Raises:
        StoreError: if the log can't be read.
    """
    return [] if spec.family.own_code is None else adoptions_of(folder, spec.family.own_code)


def adoptions_of(folder: StudyStore, identity: str) -> list[Adoption]:
    """Return the current adoptions of one code identity's results: the last entry of each later code.

    Raises:
        StoreError: if the log can't be read.
    """
    latest = {entry.code: entry for entry in read_adoptions(folder)}
    return [entry for entry in latest.values() if entry.earlier == identity]
