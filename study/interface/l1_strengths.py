"""The strengths of the L1 penalty, as study files of every family give them."""

from __future__ import annotations

from collections.abc import Iterator

from study.interface.family import Mistake

NAMES = ("l1_strength", "l1_first_strength")
"""β₁, the last strength, and β₀, the first."""

LAST_MEANING = "β₁, the last strength of the L1 penalty of all parameters, gates among them, >= 0; 0 is off"
FIRST_MEANING = "β₀, its first strength, > 0, which grows tenfold at every 10,000th iteration until β₁"


def l1_fields(last: float | None, first: float | None) -> dict[str, float | None]:
    """Return both strengths; without a first one the penalty has its last one from the start, and 0 is None.

    Example:
        >>> l1_fields(1e-5, None), l1_fields(0.0, 1e-7)
        ({'l1_strength': 1e-05, 'l1_first_strength': 1e-05}, {'l1_strength': None, 'l1_first_strength': None})
    """
    last = last or None
    return {"l1_strength": last, "l1_first_strength": last and (first or last)}


def l1_mistakes(last: float | None, first: float | None, last_from: str = "") -> Iterator[Mistake]:
    """Yield what is wrong with strengths.

    Args:
        last: β₁; None if it is off.
        first: β₀; None if it is off.
        last_from: where β₁ comes from if no file gives it, with a comma in front.
    """
    if first and last and first > last:
        yield (
            ("l1_first_strength", "l1_strength"),
            f"l1_first_strength <= l1_strength must hold, but got {first:g} and {last:g}{last_from}",
        )
