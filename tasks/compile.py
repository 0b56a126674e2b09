"""How compiled functions are kept on disk: until any of the files that they were made of changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba as nb

Decorator = Callable[[Callable[..., Any]], Any]
# Its types know fewer options than it takes.
_njit: Any = nb.njit


def digest(sources: Iterable[Path]) -> str:
    """Give a hash of what some files contain."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def cached(stamp: str, **options: Any) -> Decorator:
    """Compile a function with numba, and use what is on disk only if it has the same stamp.

    numba itself looks at the function's own file alone, and would go on with what the function calls as it was.

    Args:
        stamp: a `digest` of all files that the function is made of.
        options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _njit(cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = stamp
        return dispatcher

    return decorate
