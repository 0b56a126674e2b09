"""A program that prints the cache state and the values of functions from one factory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from study.stream.compile import cached, digest, is_on_disk

_STAMP = digest([Path(__file__)])


def times(factor: float) -> Callable[[float], float]:
    """Return a cached function that multiplies by the factor."""

    @cached(_STAMP, made_for=factor)
    def multiply(x):  # type: ignore[no-untyped-def]
        return x * factor

    multiplied: Callable[[float], float] = multiply
    return multiplied


def main() -> None:
    """Print "kept" or "new" for each factor's cached function, and the result of a function that calls two of them."""
    factors = [float(word) for word in sys.argv[1:]]
    parts: Any = tuple(times(factor) for factor in factors)
    print(*("kept" if is_on_disk(part) else "new" for part in parts))
    for part in parts:
        part(1.0)
    first, last = parts[0], parts[-1]

    @cached(_STAMP, made_for=tuple(factors))
    def products(x):  # type: ignore[no-untyped-def]
        return first(x), last(x)

    print(*products(1.0))


if __name__ == "__main__":
    main()
