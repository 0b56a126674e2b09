"""Rounding of estimates and intervals to a common last place.

The numbers are an estimate alone, or an estimate and both ends of its interval; infinite ends are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from decimal import Context, Decimal

_EXACT = Context(prec=1100)
"""Enough digits for every floating-point number."""


def largest_size(numbers: Sequence[float]) -> float:
    """Return the largest absolute value of the finite numbers; 0 without any."""
    return max([abs(number) for number in numbers if math.isfinite(number)], default=0.0)


def unit_size(numbers: Sequence[float]) -> float:
    """Return the size that sets the unit of all numbers: the estimate's, or else the largest finite one.

    The largest counts if it is over 100 times the estimate, or if the estimate isn't finite. Without a finite number,
    the size is 0.

    Example:
        >>> unit_size((850.0, 121.0, 3761.0)), unit_size((0.0, -3000.0, 2000.0))
        (850.0, 3000.0)
    """
    largest, estimate = largest_size(numbers), abs(numbers[0])
    return estimate if math.isfinite(estimate) and estimate >= largest / 100 else largest


def last_place(size: float, digits: int) -> int:
    """Return the power of ten of the last digit of a finite number rounded to `digits` digits.

    Example:
        >>> last_place(0.0423, 2), last_place(99.96, 3), last_place(0.0, 3)
        (-3, 0, -2)
    """
    return int(f"{size:.{digits - 1}e}".partition("e")[2]) - digits + 1


def half_width(numbers: Sequence[float]) -> float | None:
    """Return half the width of the interval.

    With one infinite end, the interval from the estimate to the other end counts instead.

    Returns:
        None without a finite end of an interval, if the estimate isn't finite, or if the width is within the precision
        of the numbers.
    """
    finite = [number for number in numbers if math.isfinite(number)]
    if len(finite) < 2 or not math.isfinite(numbers[0]):
        return None
    half = abs(finite[-1] / 2 - finite[-2] / 2)
    return half if half > 1e-12 * largest_size(numbers) else None


def interval_place(numbers: Sequence[float], digits: int) -> int | None:
    """Return the last place that an interval justifies.

    It is the place of the first digit of a tenth of the half-width, or the last of the first `digits` digits of the
    largest number if that place is coarser. It is never coarser than the first digit of a third of the half-width.

    Returns:
        The power of ten; None if `half_width` is None.

    Example:
        >>> interval_place((0.571, 0.143, 1.0), 3), interval_place((13700, 13400, 14000), 3)
        (-2, 2)
        >>> interval_place((12.5, 12.499, 12.501), 3), interval_place((0.9, 0.9, 0.9), 3), interval_place((0.9,), 3)
        (-4, None, None)
    """
    half = half_width(numbers)
    if half is None:
        return None
    return min(last_place(half / 3, 1), max(last_place(half / 10, 1), last_place(largest_size(numbers), digits)))


def place_apart(number: float, place: int, bounds: Collection[int]) -> int:
    """Return `place`, or a finer place if rounding there would turn a size between 0 and 1 into a bound.

    `place` is kept if no place down to -12 suffices.

    Args:
        number: the number; its absolute value is its size.
        place: the power of ten of the last place.
        bounds: the sizes to tell the number from, such as 0 and 1.

    Example:
        >>> place_apart(0.9996, -2, (0, 1)), place_apart(0.9, -2, (0, 1)), place_apart(1.0, -2, (0, 1))
        (-4, -2, -2)
    """
    size = abs(number)
    later = range(place, -13, -1) if 0 < size < 1 else ()
    return next((finer for finer in later if _rounded(size, finer) not in bounds), place)


def format_numbers(
    numbers: Sequence[float],
    place: int,
    *,
    power: int = 0,
    unit: str = "",
    is_signed: bool = False,
    is_short: bool = False,
) -> str:
    """Format an estimate and its interval in brackets, rounded to one place and in one unit.

    Thousands are separated by commas. NaN becomes ``nan``, and infinity ``∞``, both without the unit.

    Args:
        numbers: the estimate and the ends of its interval.
        place: the power of ten of the last place; at most `power` is used.
        power: the power of ten of the unit.
        unit: the text of the unit.
        is_signed: True to sign positive numbers.
        is_short: True to drop last places that are zero in all numbers.

    Example:
        >>> format_numbers((14000, 12100, 16300), 2, power=3, unit="k"), format_numbers((-0.5, -1, 0.001), -1)
        ('14.0k [12.1k, 16.3k]', '−0.5 [−1.0, 0.0]')
        >>> format_numbers((1.5,), -2, is_short=True, is_signed=True), format_numbers((2, 1, float("inf")), 0)
        ('+1.5', '2 [1, ∞]')
    """
    rounded = [_rounded(number, min(place, power)) for number in numbers]
    if is_short:
        place = min((_last_used(number) for number in rounded if number.is_finite() and number), default=power)
    texts = [_digits(number, power, max(0, power - place), unit, is_signed=is_signed) for number in rounded]
    return texts[0] if len(texts) == 1 else f"{texts[0]} [{', '.join(texts[1:])}]"


def _rounded(number: float, place: int) -> Decimal:
    if place <= 0 or not math.isfinite(number):
        return Decimal(f"{number:.{max(0, -place)}f}")  # exact, too, and faster than from the number itself
    return Decimal(float(number)).quantize(Decimal((0, (1,), place)), context=_EXACT)


def _last_used(number: Decimal) -> int:
    return int(number.normalize(_EXACT).as_tuple().exponent)


def _digits(number: Decimal, power: int, decimals: int, unit: str, *, is_signed: bool) -> str:
    if number.is_nan():
        return "nan"
    sign = "−" if number < 0 else "+" if is_signed and number > 0 else ""
    size = number.copy_abs()
    return f"{sign}{size.scaleb(-power, _EXACT):,.{decimals}f}{unit}" if size.is_finite() else f"{sign}∞"
