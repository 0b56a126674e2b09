"""Verdict of the order-dependence check of a training function, stored in the study's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from study.errors import StoreError
from study.interface.json_text import parse_json
from study.store import StudyStore
from study.visible import visible

NAME = "order.json"
"""The verdict's file in a study's folder."""

WARNINGS = ("differs", "unrepeatable")
VERDICTS = ("same", "unknown", *WARNINGS)


@dataclass(frozen=True)
class OrderNote:
    """The verdict on the code that was checked last.

    Args:
        key: digest of the checked code and trials.
        verdict: one of `VERDICTS`.
        sentence: the verdict for the reader; empty if the results are the same in both orders.
    """

    key: str
    verdict: str
    sentence: str = ""

    @property
    def warning(self) -> str:
        """The report's sentence on results that differ; empty if there are none."""
        return self.sentence if self.verdict in WARNINGS else ""


def write_order_note(note: OrderNote, folder: StudyStore) -> None:
    """Store a verdict in a study's folder, replacing an earlier one.

    Raises:
        StoreError: if the file can't be written.
        StudyError: if `folder.check` fails.
    """
    folder.write_file(NAME, json.dumps(asdict(note), indent=1).encode())


def read_order_note(folder: StudyStore) -> OrderNote | None:
    """Return a study's verdict; None if it has none.

    Raises:
        StoreError: if the verdict can't be read.
    """
    content = folder.read_file(NAME)
    if content is None:
        return None
    try:
        note = OrderNote(**parse_json(content))
        if note.verdict not in VERDICTS or not isinstance(note.sentence, str):
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, and sentence a text")
        return replace(note, sentence=visible(note.sentence))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{folder.file_address(NAME)} can't be read: {error}; remove it, and `study run` writes it anew"
        ) from None
