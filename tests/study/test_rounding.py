"""Printed estimates: estimate and interval share decimal places and unit, in every format."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import words
from study.reports import latex

POWERS = {"": 0, "k": 3, "M": 6}
NOTATIONS = st.sampled_from(
    [words.measure, words.signed, words.error, words.iterations, words.seconds, words.rate, words.change]
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = FINITE | st.floats(-1, 1) | st.floats(0, 1000) | st.integers(-(10**7), 10**7).map(float)
WITH_INTERVALS = st.lists(NUMBERS, min_size=3, max_size=3).map(sorted)
NARROW = st.tuples(st.floats(-1e9, 1e9), st.floats(-12, 3)).map(
    lambda drawn: [drawn[0] - 10 ** drawn[1], drawn[0], drawn[0] + 2 * 10 ** drawn[1]]
)


def numbers_of(text: str) -> list[tuple[Decimal, Decimal]]:
    """Return the printed numbers, each with half a unit of its last place."""
    matches = re.findall(r"([+−]?)([\d,]*\d)(\.\d+)?(?:e(-?\d+)|([kM])?)", text)
    assert matches
    return [
        (
            Decimal(f"{sign.replace('−', '-')}{integer.replace(',', '')}{decimals}e{power or POWERS[unit]}"),
            Decimal(f"5e{int(power or POWERS[unit]) - max(0, len(decimals) - 1) - 1}"),
        )
        for sign, integer, decimals, power, unit in matches
    ]


@settings(max_examples=300)
@given(notation=NOTATIONS, numbers=WITH_INTERVALS | NARROW)
def test_printed_numbers_are_the_true_ones(notation, numbers):
    """Numbers are within half a unit of their common last place, and an estimate stays in its interval."""
    low, value, high = numbers
    printed = numbers_of(notation(value, (low, high)))
    for (read, half_unit), true in zip(printed, (value, low, high), strict=True):
        assert abs(read - Decimal(true)) <= half_unit
    assert len({half_unit for _, half_unit in printed}) == 1
    (estimate, _), (lower, _), (upper, _) = printed
    assert lower <= estimate <= upper


@settings(max_examples=300)
@given(notation=NOTATIONS, number=NUMBERS)
def test_lone_numbers_are_the_true_ones(notation, number):
    """A number printed without an interval is within half a unit of its last place."""
    [(read, half_unit)] = numbers_of(notation(number))
    assert abs(read - Decimal(number)) <= half_unit


@given(numbers=WITH_INTERVALS.filter(lambda numbers: numbers[0] != numbers[2]))
def test_intervals_show_their_width(numbers):
    """Different ends are printed as different numbers, with one to three digits of the half-width."""
    low, value, high = numbers
    half_width = Decimal(high) / 2 - Decimal(low) / 2
    if half_width < Decimal("1e-11") * Decimal(max(map(abs, numbers))):
        return
    (_, half_unit), (lower, _), (upper, _) = numbers_of(words.measure(value, (low, high)))
    assert lower < upper
    assert half_width / half_unit > 4


@given(number=st.floats(1e-9, 1 - 1e-9))
def test_rates_are_kept_from_their_limits(number):
    """A rate other than 0 and 1 isn't printed as 0 or 1, alone, with an interval or as a percentage."""
    for text in (words.rate(number), words.rate(number, (0.0, 1.0))):
        assert 0 < numbers_of(text)[0][0] < 1
    assert words.percent(number) not in ("0%", "100%")


@given(numbers=WITH_INTERVALS | NARROW)
def test_latex_has_the_same_digits(numbers):
    """The half-widths in LaTeX are the differences of the printed ends and the printed estimate."""
    low, value, high = numbers
    text = words.measure(value, (low, high))
    [(estimate, _), (lower, _), (upper, _)] = numbers_of(text)
    typeset = re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", latex.estimate(text).replace("{,}", ""))
    power = Decimal(f"1{exponents[0]}" if (exponents := re.findall(r"e-?\d+", typeset)) else "1")
    numbers = [Decimal(number) * power for number in re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"e-?\d+", "", typeset))]
    if "pm" in typeset:
        numbers = [numbers[0], numbers[1], -numbers[1]]
    assert numbers == [estimate, upper - estimate, lower - estimate]


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("14.0k [12.1k, 16.3k]", r"$(14.0\;{}^{+2.3}_{-1.9}) \cdot 10^{3}$"),
        ("−3.0 [−8.2, 2.1]", r"$-3.0\;{}^{+5.1}_{-5.2}$"),
        ("1,234 [1,100, 1,368]", r"$1{,}234 \pm 134$"),
        ("0.57 [0.60, 0.71]", r"$0.57\;[0.60, 0.71]$"),
        ("+0.04 [−0.02, +0.10]", r"$0.04 \pm 0.06$"),
    ],
)
def test_estimates_are_typeset_as_printed(text, typeset):
    """Units become powers of ten; an interval that doesn't contain its estimate is typeset by its ends."""
    assert latex.estimate(text) == typeset
