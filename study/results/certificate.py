"""Certificates of repeatability: stored trials that were trained again and compared bit for bit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from study.errors import StoreError
from study.interface.json_text import parse_json
from study.store import StudyStore
from study.visible import visible
from study.words import count_of, join_and

NAME = "verified.json"
"""The certificate's file in a study's folder."""

_MOST_NAMES = 5


@dataclass(frozen=True)
class Certificate:
    """Trials that were drawn at random and trained again, each by itself.

    Args:
        at: when, UTC, in ISO 8601.
        trials: their ids.
        differing: ids of the trials whose results differ from the stored ones.
        of: number of stored trials from which they were drawn.
        engines: the engines that trained them again.
        reason: why trials differ, in sentences; empty if none differs or the reason is unknown.
    """

    at: str
    trials: Sequence[str]
    differing: Sequence[str]
    of: int
    engines: Sequence[str]
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The certificate as a sentence for a report, followed by the reason, if any.

        At most five of the differing trials are named.

        Example:
            >>> Certificate("2026-11-23T21:00:00+00:00", ["a", "b"], [], 400, ["fused"]).sentence
            '2 of 400 trials, drawn at random, were trained again by themselves on 2026-11-23 (fused): all have the
            stored bits.'
        """
        count = len(self.trials)
        were = "was trained again by itself" if count == 1 else "were trained again by themselves"
        head = f"{count:,} of {count_of(self.of, 'trial')}, drawn at random, {were} on {self.at[:10]}"
        names = join_and([*self.differing[:_MOST_NAMES], *(["others"] if len(self.differing) > _MOST_NAMES else [])])
        differ = f"{len(self.differing):,} of them {'differs' if len(self.differing) == 1 else 'differ'}: {names}"
        verdict = f"{head} ({', '.join(self.engines)}): {differ if self.differing else 'all have the stored bits'}."
        return f"{verdict} {self.reason}".rstrip()


def write_certificate(certificate: Certificate, folder: StudyStore) -> None:
    """Store a certificate in a study's folder, replacing an earlier one.

    Raises:
        BusyError: if the study is running.
        StoreError: if the file can't be written.
    """
    with folder.lock():
        folder.write_file(NAME, json.dumps(asdict(certificate), indent=1).encode())


def read_certificate(folder: StudyStore) -> Certificate | None:
    """Return a study's certificate; None if it has none.

    Raises:
        StoreError: if the certificate can't be read.
    """
    content = folder.read_file(NAME)
    if content is None:
        return None
    try:
        certificate = Certificate(**parse_json(content))
        texts = [certificate.at, certificate.reason, *certificate.trials, *certificate.differing, *certificate.engines]
        if not all(isinstance(text, str) for text in texts) or not isinstance(certificate.of, int):
            raise ValueError("it has a value of the wrong type")
        return replace(certificate, reason=visible(certificate.reason))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{folder.file_address(NAME)} can't be read: {error}; `study verify` writes it anew, or remove it"
        ) from None
