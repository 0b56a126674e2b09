"""Texts of reports: readable names, and numbers formatted for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from study.plugins.vocabulary import vocabulary
from study.records import Cell, Interval, Labels, format_range, is_pairs, value
from study.rounding import format_numbers, half_width, interval_place, largest_size, last_place, place_apart, unit_size

if TYPE_CHECKING:
    from study.interface.declarations import Metric

NONE = "–"
_DIGEST_CHARACTERS = 8


def symbol(model: str) -> str:
    """Return a model's symbol, or its name if it has none.

    Args:
        model: its name in study files, or the symbol that the published tables use.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> symbol("NAC-add"), symbol("NAC+"), symbol("mine")
        ('NAC₊', 'NAC₊', 'mine')
    """
    name = model_name(model)
    return str(vocabulary().model_symbols.get(name, name))


def model_name(model: str) -> str:
    """Return a model's name in study files, from that name or its symbol in the published tables.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> model_name("NAC•,NMU"), model_name("mine")
        ('NAC-mul-NMU', 'mine')
    """
    return str(vocabulary().model_names.get(model, model))


def title(key: str, declared: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a readable name of a hyperparameter or grid axis.

    Args:
        key: its name in study files.
        declared: titles declared by the study's own code, by name; they take precedence over the vocabulary's.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> title("batch_size"), title("batch_size", {"batch_size": "rows"}), title("my_width")
        ('batch', 'rows', 'my width')
    """
    return str(declared.get(key) or vocabulary().titles.get(key, key.replace("_", " ")))


def format_cell_value(cell: Cell, key: str, labels: Labels) -> str:
    """Format a cell's value of a hyperparameter, or its label on an axis, for readers.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.
    """
    return format_value(key, value(cell, key, labels))


def format_value(key: str, content: Any) -> str:
    """Format a value of a hyperparameter or column for readers; None as the vocabulary has it, or else an en dash.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> format_value("operation", "mul"), format_value("hidden_size", 1000), format_value("clipped", False)
        ('×', '1,000', 'no')
        >>> format_value("widths", (8, 16)), format_value("interpolation_range", ((1.0, 2.0),))
        ('[8, 16]', '[1,2]')
        >>> format_value("code", "sha256:" + "2914014606233c12" * 4)
        '29140146'
    """
    if content is None:
        return str(vocabulary().nones.get(key, NONE))
    if key == "model":
        return symbol(str(content))
    if isinstance(content, str) and re.fullmatch("(sha256|parsed):[0-9a-f]{64}", content):
        return content.partition(":")[2][:_DIGEST_CHARACTERS]  # tables in files have all digits
    of_values = vocabulary().value_symbols.get(key)
    if of_values is not None:
        return str(of_values.get(content, str(content)))
    if is_pairs(content):
        return format_range(content)
    if isinstance(content, tuple):
        return f"[{', '.join(format_value(key, part) for part in content)}]"
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        short = f"{content:g}"
        return short if float(short) == content else repr(content)
    return f"{content:,}" if isinstance(content, int) else str(content)


class Notation(Protocol):
    """Format of a quantity: the estimate, alone or with its interval, to the same decimal place."""

    def __call__(self, number: float | None, interval: Interval | None = None, /) -> str:
        """Format an estimate; an en dash for None."""


def iterations(number: float | None, interval: Interval | None = None, *, is_signed: bool = False) -> str:
    """Format a number of iterations: to three digits (two below 1), or with an interval like `measure`; None as –.

    All digits before the decimal point are shown. From 1,000 on, numbers are in thousands (k), from a million on in
    millions (M). All have the estimate's unit, or that of an end over 100 times as large.

    Args:
        number: the estimate.
        interval: its interval.
        is_signed: True to sign positive numbers, for differences.

    Example:
        >>> iterations(1420856), iterations(14000), iterations(850), iterations(0.571), iterations(None)
        ('1.42M', '14.0k', '850', '0.57', '–')
        >>> iterations(13700, (13412, 14031)), iterations(0.571, (0.143, 1.0))
        ('13.7k [13.4k, 14.0k]', '0.57 [0.14, 1.00]')
        >>> iterations(1200, (-300, 2700), is_signed=True)
        '+1.2k [−0.3k, +2.7k]'
    """
    if number is None:
        return NONE
    numbers = (number, *(interval or ()))
    size, place = unit_size(numbers), interval_place(numbers, 3)
    power, unit = next(((p, unit) for p, unit in ((6, "M"), (3, "k")) if size >= 0.9995 * 10**p), (0, ""))
    is_short = place is None and not unit
    if place is None:
        place = last_place(size, 3 if size >= 1 else 2)
    return format_numbers(numbers, place, power=power, unit=unit, is_signed=is_signed, is_short=is_short)


def error(number: float | None, interval: Interval | None = None) -> str:
    """Format a small number like `measure`, but to two digits, and with a power of ten below 0.01; None as –.

    Example:
        >>> error(4.2056e-07), error(0.45365), error(0.0), error(1234.0)
        ('4.2e-7', '0.45', '0', '1,234')
        >>> error(4.2056e-07, (3.9e-07, 4.58e-07)), error(0.5, (0.4938, 0.5062))
        ('4.2e-7 [3.9e-7, 4.6e-7]', '0.500 [0.494, 0.506]')
    """
    return _format_number(number, interval, digits=2, least=1e-2)


def seconds(number: float | None, interval: Interval | None = None) -> str:
    """Format seconds to three digits, between whole seconds and milliseconds; None as –.

    With an interval, the last place is the one that the interval justifies.

    Example:
        >>> seconds(0.20415), seconds(12.5), seconds(12.5, (12.41, 12.58))
        ('0.204', '12.5', '12.50 [12.41, 12.58]')
    """
    if number is None:
        return NONE
    numbers = (number, *(interval or ()))
    place = interval_place(numbers, 3)
    return format_numbers(numbers, max(-3, last_place(largest_size(numbers), 3)) if place is None else place)


def percent(number: float, interval: Interval | None = None) -> str:
    """Format a rate from 0 to 1 as a percentage with the digits of `rate`; an interval sets only the digits.

    Example:
        >>> percent(0.825), percent(1.0), percent(2999 / 3000), percent(1 / 3000), percent(0.942, (0.9352, 0.9481))
        ('82%', '100%', '99.97%', '0.03%', '94.2%')
    """
    return f"{Decimal(without_interval(rate(number, interval))).scaleb(2):f}%"


def rate(number: float | None, interval: Interval | None = None) -> str:
    """Format a rate to two decimals; more if its half-width is below 0.0095, or to tell it from 0 and 1; None as –.

    Example:
        >>> rate(0.9, (0.826, 0.945)), rate(0.942, (0.9352, 0.9481)), rate(1.0), rate(2999 / 3000), rate(None)
        ('0.90 [0.83, 0.94]', '0.942 [0.935, 0.948]', '1.00', '0.9997', '–')
    """
    if number is None:
        return NONE
    numbers = (number, *(interval or ()))
    half = half_width(numbers)
    place = -2 if half is None else min(-2, last_place(half, 1))
    return format_numbers(numbers, place_apart(number, place, (0, 1)))


def factor(number: float | None, interval: Interval | None = None) -> str:
    """Format a factor to two digits, whole from 100 to 994; with a power of ten above, or below 0.0001; None as –.

    Each end of its interval has its own two digits, since the interval may span orders of magnitude.

    Example:
        >>> factor(0.394), factor(1.0), factor(37.2), factor(3.1e-9), factor(2.4e12)
        ('×0.39', '×1', '×37', '×3.1e-9', '×2.4e12')
        >>> factor(37.2, (0.42, float("inf")))
        '×37 [×0.42, ×∞]'
    """
    if number is None:
        return NONE
    if interval is not None:
        low, high = map(factor, interval)
        return f"{factor(number)} [{low}, {high}]"
    if math.isinf(number):
        return "×∞"
    text = f"{number:.2g}"
    if "e" in text:
        mantissa, power = text.split("e")
        text = f"{mantissa}e{int(power)}" if abs(int(power)) > 2 else f"{number:.0f}"
    return f"×{text}"


def change(number: float | None, interval: Interval | None = None) -> str:
    """Format a difference of rates with its sign, to two decimals, or more to show a third of its half-width.

    None becomes –.

    Example:
        >>> change(0.04), change(-0.3), change(0.001), change(-0.0124, (-0.0151, 0.0042))
        ('+0.04', '−0.30', '0.00', '−0.012 [−0.015, +0.004]')
    """
    if number is None:
        return NONE
    numbers = (number, *(interval or ()))
    half = half_width(numbers)
    place = -2 if half is None else min(-2, last_place(half / 3, 1))
    return format_numbers(numbers, place, is_signed=True)


def p_value(number: float) -> str:
    """Format a p-value to two digits, or as ``< 0.001``.

    Example:
        >>> p_value(0.0371), p_value(2e-9)
        ('0.037', '< 0.001')
    """
    return "< 0.001" if number < 0.001 else f"{number:.2g}"


def measure(number: float | None, interval: Interval | None = None) -> str:
    """Format any number to three digits, or to the decimal place that its interval justifies; None as –.

    From 1,000 to a million, all digits before the decimal point are shown. From a million on, and below 0.001, there is
    a power of ten.

    An estimate and both ends have the same last place (`interval_place` for three digits) and the same power of ten. A
    number below 1 has enough digits to tell it from 1. If `interval_place` is None, as without an interval or with
    one of width 0, trailing zeros are dropped.

    Example:
        >>> measure(0.9423), measure(0.99964), measure(-1234.5), measure(4.2056e-7), measure(2.5e7), measure(None)
        ('0.942', '0.9996', '−1,234', '4.21e-7', '2.5e7', '–')
        >>> measure(0.57, (0.43, 0.7099)), measure(2.5e7, (2.4e7, 2.61e7)), measure(-3.0, (-8.2, 2.1))
        ('0.57 [0.43, 0.71]', '2.50e7 [2.40e7, 2.61e7]', '−3.0 [−8.2, 2.1]')
        >>> measure(0.5, (0.5, 0.5)), measure(1.5, (1.25, float("inf"))), measure(4e-9, (0.0, 0.25))
        ('0.5 [0.5, 0.5]', '1.50 [1.25, ∞]', '0.00 [0.00, 0.25]')
    """
    return _format_number(number, interval)


def signed(number: float | None, interval: Interval | None = None) -> str:
    """Format a difference of any numbers like `measure`, with its sign; None as –.

    Example:
        >>> signed(0.0423), signed(-12.0), signed(0.0), signed(0.0423, (-0.011, 0.0956))
        ('+0.0423', '−12', '0', '+0.042 [−0.011, +0.096]')
    """
    return _format_number(number, interval, is_signed=True)


def _format_number(
    number: float | None, interval: Interval | None, *, digits: int = 3, least: float = 1e-3, is_signed: bool = False
) -> str:
    """Format any number to `digits` digits, with a power of ten from a million on and below `least`; None as –."""
    if number is None:
        return NONE
    numbers = (number, *(interval or ()))
    size, place = unit_size(numbers), interval_place(numbers, digits)
    alone = last_place(size, digits)
    power = 0 if size == 0 or least <= size < 1e6 else alone + digits - 1
    return format_numbers(
        numbers,
        place_apart(number, min(alone if place is None else place, power), (1,)),
        power=power,
        unit=f"e{power}" if power else "",
        is_signed=is_signed,
        is_short=place is None,
    )


def metric_notation(metric: Metric) -> Notation:
    """Return the notation of a metric's numbers: two digits if its interval is a beta interval, else three."""
    return error if metric.interval == "beta" else measure


def metric_title(name: str, metric: Metric) -> str:
    """Return a readable name of a metric, with its unit.

    Example:
        >>> from study.interface.declarations import Metric
        >>> metric_title("test_loss", Metric()), metric_title("wait", Metric(title="waiting time", unit="s"))
        ('test loss', 'waiting time (s)')
    """
    unit = f" ({metric.unit})" if metric.unit else ""
    return f"{metric.title or name.replace('_', ' ')}{unit}"


def count_of(number: int, noun: str) -> str:
    """Format a count with its noun, in the plural with an added s.

    Example:
        >>> count_of(1, "trial"), count_of(1200, "trial")
        ('1 trial', '1,200 trials')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_and(names: Sequence[str], word: str = "and") -> str:
    """Join names for a sentence; empty without names.

    Example:
        >>> join_and(["a", "b", "c"]), join_and(["a"]), join_and(["a", "b"], "or")
        ('a, b and c', 'a', 'a or b')
    """
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def estimate_alone(write: Notation, number: float | None, interval: Interval | None) -> str:
    """Format an estimate without its interval, rounded as if the interval were shown.

    Example:
        >>> iterations(69210), estimate_alone(iterations, 69210, (48000, 105000))
        ('69.2k', '69k')
    """
    return without_interval(write(number, interval))


def without_interval(text: str) -> str:
    """Return the estimate in a text of an estimate and its interval.

    Example:
        >>> without_interval("0.90 [0.83, 0.94]"), without_interval("0.90")
        ('0.90', '0.90')
    """
    return text.partition(" [")[0]


def duration(seconds: float) -> str:
    """Format a duration for readers, in whole numbers of up to two units.

    Example:
        >>> duration(42), duration(3700), duration(200_000)
        ('42 s', '1 h 1 min', '2 d 7 h')
    """
    whole_s = round(seconds)
    if whole_s < 60:
        return f"{whole_s} s"
    if whole_s < 3600:
        return f"{whole_s // 60} min {whole_s % 60} s"
    if whole_s < 86400:
        return f"{whole_s // 3600} h {whole_s % 3600 // 60} min"
    return f"{whole_s // 86400} d {whole_s % 86400 // 3600} h"
