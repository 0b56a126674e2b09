"""Final looks at claims, stored in the study's folder: later looks share the error rate with them."""

from __future__ import annotations

import json
from dataclasses import asdict

from study.errors import StoreError
from study.interface.json_text import parse_json
from study.plan.plan import ClaimLook, Plan
from study.spec.seeds import MOST_TRIALS, count_seeds, format_seeds, parse_seeds
from study.store import StudyStore

NAME = "claim_looks.json"
"""The looks' file in a study's folder."""


def keep_looks(plan: Plan, folder: StudyStore) -> None:
    """Store a plan's looks, replacing earlier ones; no-op if it has none, or these are stored already.

    Call this before the study's file is replaced.

    Raises:
        StoreError: if the stored looks can't be read or replaced.
        StudyError: if `folder.check` fails.
    """
    if plan.earlier_looks and plan.earlier_looks != read_looks(folder):
        looks = [asdict(look) | {"seeds": format_seeds(look.seeds)} for look in plan.earlier_looks]
        folder.write_file(NAME, json.dumps({"looks": looks}, indent=1).encode())


def read_looks(folder: StudyStore) -> tuple[ClaimLook, ...]:
    """Return the stored looks; empty without a file of looks.

    Raises:
        StoreError: if the file can't be read.
    """
    content = folder.read_file(NAME)
    if content is None:
        return ()
    try:
        return tuple(_look(**look) for look in parse_json(content)["looks"])
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{folder.file_address(NAME)} can't be read: {error}; it records how much of the claims' error rate "
            "earlier looks have spent: restore it, or remove it to judge claims as if there had been no earlier look"
        ) from None


def _look(claim: str, seeds: str | list[int], exact: float, bets: float) -> ClaimLook:
    """Make a look of its stored form; raise ValueError if it is invalid."""
    if not (0 <= exact <= 1 and 0 <= bets <= 1):
        raise ValueError(f"exact and bets must be from 0 to 1, but are {exact} and {bets}")
    parsed = parse_seeds(seeds)
    if (count := count_seeds(parsed)) > MOST_TRIALS:
        raise ValueError(f"a look has at most {MOST_TRIALS:,} seeds, but one has {count:,}")
    return ClaimLook(str(claim), parsed, float(exact), float(bets))
