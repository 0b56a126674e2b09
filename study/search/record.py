"""What was suggested, and what came of it: a file of the store from which a search continues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from study.errors import InputError, StoreError
from study.search.objectives import Value

NAME = "search.json"
"""The file, in the study's folder."""
VERSION = 2
"""Of what values mean: in version 1 they were the ends of other intervals, but for the success rate's."""


class Folder(Protocol):
    """A study's part of the store, as a search needs it."""

    def keep(self, name: str, data: bytes) -> None:
        """Put a file beside the results."""

    def kept(self, name: str) -> bytes | None:
        """Give a file that was kept; None if there is none."""

    def kept_where(self, name: str) -> str:
        """Give a kept file's address, to print."""

    def read_results(self) -> pa.Table:
        """Give the results, one row a trial."""


@dataclass(frozen=True)
class Candidate:
    """A suggestion.

    Args:
        number: in the order of suggestion, from 0.
        round: of candidates that are compared, from 0.
        params: what was chosen, by the parameters' names.
        cell_id: its cell; None if there can't be one.
        impossible: why there can't be; None if there can.
        seeds: that it has earned; 0 while it is compared.
        values: what the sampler was told; None while it is compared, or if there is no cell.
    """

    number: int
    round: int
    params: Mapping[str, Any]
    cell_id: str | None
    impossible: str | None = None
    seeds: int = 0
    values: Value | None = None


@dataclass(frozen=True)
class Record:
    """All suggestions of a search, in order.

    Args:
        sampler: what made them, with its version.
        asked: what the search was, by its content: a record of another is of no use.
        candidates: all of them.
        winners: numbers of those to be confirmed; None before that.
        version: of the program's definitions by which candidates have their values.
    """

    sampler: str
    asked: str
    candidates: tuple[Candidate, ...] = ()
    winners: tuple[int, ...] | None = None
    version: int = VERSION

    @property
    def rounds(self) -> int:
        """Count the rounds that were begun."""
        return self.candidates[-1].round + 1 if self.candidates else 0

    def of_round(self, number: int) -> list[Candidate]:
        """Give the suggestions of a round."""
        return [candidate for candidate in self.candidates if candidate.round == number]

    @property
    def compared(self) -> list[Candidate]:
        """The candidates that are compared now, each cell once: those that the sampler wasn't told of."""
        known = {c.cell_id for c in self.candidates if c.values is not None}
        found: dict[str, Candidate] = {}
        for candidate in self.candidates:
            if candidate.cell_id is not None and candidate.values is None and candidate.cell_id not in known:
                found.setdefault(candidate.cell_id, candidate)
        return list(found.values())

    @property
    def exhausted(self) -> bool:
        """Say whether the last round had no cell that wasn't known before it."""
        last = self.rounds - 1
        before = {c.cell_id for c in self.candidates if c.round < last}
        return last >= 0 and all(c.cell_id in before | {None} for c in self.of_round(last))

    @property
    def told(self) -> list[Candidate]:
        """The candidates that have values, each cell once."""
        found = {c.cell_id: c for c in reversed(self.candidates) if c.values is not None}
        return sorted(found.values(), key=lambda candidate: candidate.number)

    def with_told(self, told: Sequence[Candidate]) -> Record:
        """Put what came of some candidates in place of what was asked."""
        by_number = {candidate.number: candidate for candidate in told}
        return replace(self, candidates=tuple(by_number.get(c.number, c) for c in self.candidates))


def to_json(record: Record) -> bytes:
    """Write a record, the same bytes for the same record."""
    content = {"version": record.version} | asdict(record)
    return json.dumps(content, indent=1, allow_nan=False).encode()


def from_json(data: bytes, where: str) -> Record:
    """Read what `to_json` wrote, of this version or an older one.

    Args:
        data: the file.
        where: its address, for an error.

    Raises:
        InputError: if a newer package wrote it.
        StoreError: if it is no record.

    Example:
        >>> record = Record("TPE", "", (Candidate(0, 0, {"sparsity_strength": 0.1}, "c4a95f7d3bbbc776"),))
        >>> from_json(to_json(record), "search.json") == record
        True
    """
    try:
        content = json.loads(data)
        version, winners = content["version"], content["winners"]
        if version > VERSION:
            raise InputError(
                f"{where} has version {version}, but this package reads up to {VERSION}: upgrade the package"
            )
        if version < 1:
            raise ValueError(f"it claims version {version}")
        candidates = tuple(_candidate(one) for one in content["candidates"])
        winners = None if winners is None else tuple(winners)
        return Record(content["sampler"], content["asked"], candidates, winners, version)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{where} can't be believed: {error!r}; move it away, and the search begins anew: trials that are stored "
            "aren't trained again"
        ) from error


def _candidate(one: Mapping[str, Any]) -> Candidate:
    values = one["values"]
    return Candidate(**(dict(one) | {"values": None if values is None else tuple(map(float, values))}))
