"""Strengths of the L1 penalty in study files of all families."""

from __future__ import annotations

from collections.abc import Iterator

from study.interface.family import Mistake

NAMES = ("l1_strength", "l1_first_strength")
"""Hyperparameters: β₁, the last strength, and β₀, the first."""

LAST_MEANING = "β₁, the last strength of the L1 penalty of all parameters, gates among them, >= 0; 0 is off"
FIRST_MEANING = "β₀, its first strength, > 0, which grows tenfold at every 10,000th iteration until β₁"


def l1_fields(last: float | None, first: float | None) -> dict[str, float | None]:
    """Return both strengths by name, in canonical form.

    If the penalty is off, both are None. Without a first strength, the penalty has its last strength from the start.

    Args:
        last: β₁; None or 0 if the penalty is off.
        first: β₀; None or 0 if it isn't given.

    Example:
        >>> l1_fields(1e-5, None), l1_fields(0.0, 1e-7)
        ({'l1_strength': 1e-05, 'l1_first_strength': 1e-05}, {'l1_strength': None, 'l1_first_strength': None})
    """
    last = last or None
    return {"l1_strength": last, "l1_first_strength": last and (first or last)}


def l1_mistakes(last: float | None, first: float | None, last_from: str = "") -> Iterator[Mistake]:
    """Yield a mistake if the strengths violate β₀ <= β₁.

    Args:
        last: β₁; None or 0 if the penalty is off.
        first: β₀; None or 0 if it isn't given.
        last_from: origin of β₁ if the study file doesn't give it, beginning with a comma.
    """
    if first and last and first > last:
        yield (
            ("l1_first_strength", "l1_strength"),
            f"l1_first_strength <= l1_strength must hold, but got {first:g} and {last:g}{last_from}",
        )
