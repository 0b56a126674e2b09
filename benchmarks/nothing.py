"""Training functions that do nothing; the module imports nothing, because processes of trials import it."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def load(name: str) -> Callable[..., object]:
    """Return the function of this name, ``once`` or ``steps``.

    Raises:
        KeyError: for another name.
    """
    functions: dict[str, Callable[..., object]] = {"once": once, "steps": steps}
    return functions[name]


def once(seed: int, *, width: int = 32) -> dict[str, float]:
    """Return the metrics, the same for all arguments."""
    return {"loss": 0.0, "accuracy": 1.0}


def steps(seed: int, *, count: int) -> Iterator[dict[str, float]]:
    """Yield the metrics of `count` steps."""
    for step in range(count):
        yield {"step": step, "loss": 0.0, "accuracy": 1.0}
