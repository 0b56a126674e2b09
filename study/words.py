"""How a report says things: names for people, and numbers to read rather than to compute with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from study.records import Cell, Interval, Labels, format_range, value

if TYPE_CHECKING:
    from tasks.declarations import Metric

NONE = "–"
_DIGEST_CHARACTERS = 8


@cache
def _symbols() -> ModuleType:
    from tasks import symbols  # only here: it brings numpy, and commands that say how long something took need none

    return symbols


def symbol(model: str) -> str:
    """Return the field's symbol of a model, or its name if it has none.

    Args:
        model: its name in study files, or the symbol that the published tables use.

    Example:
        >>> symbol("NAC-add"), symbol("NAC+"), symbol("mine")
        ('NAC₊', 'NAC₊', 'mine')
    """
    name = model_name(model)
    return str(_symbols().MODEL_SYMBOLS.get(name, name))


def model_name(model: str) -> str:
    """Return a model's name in study files, from that name or its symbol in the published tables.

    Example:
        >>> model_name("NAC•,NMU"), model_name("mine")
        ('NAC-mul-NMU', 'mine')
    """
    return str(_symbols().MODEL_NAMES.get(model, model))


def title(key: str) -> str:
    """Return a readable name of a hyperparameter or of an axis of the grid."""
    return str(_symbols().TITLES.get(key, key.replace("_", " ")))


def show(cell: Cell, key: str, labels: Labels) -> str:
    """Write a cell's value of a hyperparameter, or its label on an axis, for readers."""
    return show_value(key, value(cell, key, labels))


def show_value(key: str, content: Any) -> str:
    """Write a value of a hyperparameter or of a column for readers.

    Example:
        >>> show_value("operation", "mul"), show_value("hidden_size", 1000), show_value("clipped", False)
        ('×', '1,000', 'no')
        >>> show_value("widths", (8, 16)), show_value("interpolation_range", ((1.0, 2.0),))
        ('[8, 16]', '[1,2]')
        >>> show_value("code", "sha256:" + "2914014606233c12" * 4)
        '29140146'
    """
    if content is None:
        return str(_symbols().NONES.get(key, NONE))
    if key == "model":
        return symbol(str(content))
    if isinstance(content, str) and re.fullmatch("(sha256|parsed):[0-9a-f]{64}", content):
        return content.partition(":")[2][:_DIGEST_CHARACTERS]  # tables as files have all of it
    of_values = _symbols().VALUE_SYMBOLS.get(key)
    if of_values is not None:
        return str(of_values.get(content, str(content)))
    if isinstance(content, tuple):
        is_range = bool(content) and all(isinstance(part, tuple) and len(part) == 2 for part in content)
        return format_range(content) if is_range else f"[{', '.join(show_value(key, part) for part in content)}]"
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        short = f"{content:g}"
        return short if float(short) == content else repr(content)
    return f"{content:,}" if isinstance(content, int) else str(content)


def iterations(number: float | None) -> str:
    """Write a number of iterations to three digits.

    Example:
        >>> iterations(1420856), iterations(14000), iterations(850), iterations(None)
        ('1.42M', '14.0k', '850', '–')
    """
    if number is None:
        return NONE
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size * 0.9995:
            return f"{_three_digits(number / size)}{unit}"
    return f"{number:.0f}"


def error(number: float | None) -> str:
    """Write a small number to two digits.

    Example:
        >>> error(4.2056e-07), error(0.45365), error(0.0)
        ('4.2e-7', '0.45', '0')
    """
    if number is None:
        return NONE
    if number == 0 or number >= 0.01:
        return f"{number:.2g}"
    return f"{number:.1e}".replace("e-0", "e-")


def seconds(number: float | None) -> str:
    """Write seconds to three digits.

    Example:
        >>> seconds(0.20415), seconds(12.5)
        ('0.204', '12.5')
    """
    return NONE if number is None else _three_digits(number)


def percent(rate: float) -> str:
    """Write a rate as per cent, with as many decimals as keep it from 0% or 100% when it is neither.

    Example:
        >>> percent(0.825), percent(1.0), percent(2999 / 3000), percent(1 / 3000)
        ('82%', '100%', '99.97%', '0.03%')
    """
    decimals = 0
    while decimals < 12 and 0 < rate < 1 and float(f"{100 * rate:.{decimals}f}") in (0, 100):
        decimals += 1
    return f"{100 * rate:.{decimals}f}%"


def rate(number: float | None) -> str:
    """Write a rate to two decimals."""
    return NONE if number is None else f"{number:.2f}"


def factor(number: float | None) -> str:
    """Write a factor to two digits, with a power of ten if it is far from one.

    Example:
        >>> factor(0.394), factor(1.0), factor(37.2), factor(3.1e-9), factor(2.4e12)
        ('×0.39', '×1', '×37', '×3.1e-9', '×2.4e12')
    """
    if number is None:
        return NONE
    text = f"{number:.2g}"
    if "e" in text:
        mantissa, power = text.split("e")
        text = f"{mantissa}e{int(power)}" if abs(int(power)) > 2 else f"{number:.0f}"
    return f"×{text}"


def change(number: float | None) -> str:
    """Write a difference of rates, with its sign.

    Example:
        >>> change(0.04), change(-0.3), change(0.001)
        ('+0.04', '−0.30', '0.00')
    """
    if number is None:
        return NONE
    text = f"{abs(number):.2f}"
    return text if float(text) == 0 else ("+" if number > 0 else "−") + text


def p_value(number: float) -> str:
    """Write a p-value.

    Example:
        >>> p_value(0.0371), p_value(2e-9)
        ('0.037', '< 0.001')
    """
    return "< 0.001" if number < 0.001 else f"{number:.2g}"


def measure(number: float | None) -> str:
    """Write any number to three digits, or as many as keep it from 1 when it isn't.

    Example:
        >>> measure(0.9423), measure(0.99964), measure(-1234.5), measure(4.2056e-7), measure(2.5e7), measure(None)
        ('0.942', '0.9996', '−1,234', '4.21e-7', '2.5e7', '–')
    """
    if number is None:
        return NONE
    size, sign = abs(number), "−" if number < 0 else ""
    if 999.5 <= size < 1e6:
        return f"{sign}{size:,.0f}"
    if size != 0 and not 1e-3 <= size < 1e6:
        mantissa, power = f"{size:.2e}".split("e")
        return f"{sign}{float(mantissa):g}e{int(power)}"
    digits = 3
    while digits < 12 and size < 1 <= float(f"{size:.{digits}g}"):
        digits += 1
    return f"{sign}{size:.{digits}g}"


def signed(number: float | None) -> str:
    """Write a difference of any numbers, with its sign.

    Example:
        >>> signed(0.0423), signed(-12.0), signed(0.0)
        ('+0.0423', '−12', '0')
    """
    return f"{'+' if number is not None and number > 0 else ''}{measure(number)}"


def metric_title(name: str, metric: Metric) -> str:
    """Return a metric's name for readers, with its unit.

    Example:
        >>> from tasks.declarations import Metric
        >>> metric_title("test_loss", Metric()), metric_title("wait", Metric(title="waiting time", unit="s"))
        ('test loss', 'waiting time (s)')
    """
    unit = f" ({metric.unit})" if metric.unit else ""
    return f"{metric.title or name.replace('_', ' ')}{unit}"


def count_of(number: int, noun: str) -> str:
    """Write a number of things.

    Example:
        >>> count_of(1, "trial"), count_of(1200, "trial")
        ('1 trial', '1,200 trials')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_and(names: Sequence[str]) -> str:
    """Join names in a sentence.

    Example:
        >>> join_and(["a", "b", "c"]), join_and(["a"])
        ('a, b and c', 'a')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def spaced_interval(pair: Interval | None, write: Any = rate) -> str:
    """Write an interval behind a number; empty without one.

    Example:
        >>> spaced_interval((0.875, 0.9722)), spaced_interval(None)
        (' [0.88, 0.97]', '')
    """
    return f" {interval(pair, write)}".rstrip()


def interval(pair: Interval | None, write: Any = rate) -> str:
    """Write an interval, with `write` for each end.

    Example:
        >>> interval((0.875, 0.9722))
        '[0.88, 0.97]'
    """
    return "" if pair is None else f"[{write(pair[0])}, {write(pair[1])}]"


def _three_digits(number: float) -> str:
    decimals = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{3 if number < 0.9995 else decimals}f}"


def duration(seconds: float) -> str:
    """Write a duration for readers.

    Example:
        >>> duration(42), duration(3700), duration(200_000)
        ('42 s', '1 h 1 min', '2 d 7 h')
    """
    s = round(seconds)
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60} s"
    if s < 86400:
        return f"{s // 3600} h {s % 3600 // 60} min"
    return f"{s // 86400} d {s % 86400 // 3600} h"
