"""Record of a search's suggestions and their values, stored with the study so that the search can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from study.errors import InputError, StoreError
from study.interface.json_text import parse_json
from study.summaries.search import Candidate

NAME = "search.json"
"""The record's file in the study's folder."""
VERSION = 2
"""The version of the definitions of values. In version 1, all but the success rate were ends of other intervals."""


class SearchFolder(Protocol):
    """A study's folder in the store, as far as a search needs it."""

    def write_file(self, name: str, data: bytes) -> None:
        """Store a file next to the results."""

    def read_file(self, name: str) -> bytes | None:
        """Return a stored file; None if it doesn't exist."""

    def file_address(self, name: str) -> str:
        """Return a stored file's address for messages."""

    def read_results(self) -> pa.Table:
        """Return the results, one row a trial."""


@dataclass(frozen=True)
class Record:
    """All suggestions of a search, in order.

    Args:
        sampler: the sampler that made them, with its version.
        search_id: identity of the search, by its content; a record is valid for its own search only.
        candidates: the suggestions.
        winners: the numbers of the candidates to confirm; None before they are chosen.
        version: the version of the definitions by which the values were computed.
    """

    sampler: str
    search_id: str
    candidates: tuple[Candidate, ...] = ()
    winners: tuple[int, ...] | None = None
    version: int = VERSION

    @property
    def rounds(self) -> int:
        """The number of rounds that have begun."""
        return self.candidates[-1].round + 1 if self.candidates else 0

    def of_round(self, number: int) -> list[Candidate]:
        """List the suggestions of a round."""
        return [candidate for candidate in self.candidates if candidate.round == number]

    @property
    def compared(self) -> list[Candidate]:
        """The candidates that are being compared and have no values yet, each cell once."""
        cells = {c.cell_id for c in self.candidates if c.values}
        by_cell: dict[str, Candidate] = {}
        for candidate in self.candidates:
            if candidate.cell_id is not None and candidate.cell_id not in cells:
                by_cell.setdefault(candidate.cell_id, candidate)
        return list(by_cell.values())

    @property
    def is_exhausted(self) -> bool:
        """True if the last round suggested no new cell; False before the first round."""
        last = self.rounds - 1
        before = {c.cell_id for c in self.candidates if c.round < last}
        return last >= 0 and all(c.cell_id in before | {None} for c in self.of_round(last))

    @property
    def valued(self) -> list[Candidate]:
        """The candidates with values, each cell once."""
        by_cell = {c.cell_id: c for c in reversed(self.candidates) if c.values}
        return sorted(by_cell.values(), key=lambda candidate: candidate.number)

    def updated(self, candidates: Sequence[Candidate]) -> Record:
        """Return the record with these candidates in place of those with the same numbers."""
        by_number = {candidate.number: candidate for candidate in candidates}
        return replace(self, candidates=tuple(by_number.get(c.number, c) for c in self.candidates))


def to_json(record: Record) -> bytes:
    """Encode a record as JSON.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    content = {
        "version": record.version,
        "sampler": record.sampler,
        "asked": record.search_id,
        "candidates": [asdict(candidate) | {"values": candidate.values or None} for candidate in record.candidates],
        "winners": record.winners,
    }
    return json.dumps(content, indent=1, allow_nan=False).encode()


def from_json(data: bytes, where: str) -> Record:
    """Decode a record of this version or an older one.

    Args:
        data: the file's content.
        where: the file's address, for messages.

    Raises:
        InputError: if a newer version wrote the record.
        StoreError: if the file isn't a valid record.

    Example:
        >>> record = Record("TPE", "", (Candidate(0, 0, {"sparsity_strength": 0.1}, "c4a95f7d3bbbc776"),))
        >>> from_json(to_json(record), "search.json") == record
        True
    """
    try:
        content = parse_json(data)
        version, winners = content["version"], content["winners"]
        if version > VERSION:
            raise InputError(
                f"{where} has version {version}, but this package reads up to {VERSION}: upgrade the package"
            )
        if version < 1:
            raise ValueError(f"it claims version {version}")
        candidates = tuple(_candidate(fields) for fields in content["candidates"])
        winners = None if winners is None else tuple(winners)
        return Record(content["sampler"], content["asked"], candidates, winners, version)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{where} isn't a valid record: {error!r}; move it away to begin the search anew: trials that are stored "
            "aren't trained again"
        ) from error


def _candidate(fields: Mapping[str, Any]) -> Candidate:
    return Candidate(**(dict(fields) | {"values": tuple(map(float, fields["values"] or ()))}))
