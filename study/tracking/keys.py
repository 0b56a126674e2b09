"""Names spelled so that MLflow takes them, as keys of parameters and metrics, or in tags."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable

CURVE = "curve/"
"""What the metrics of learning curves begin with: their charts are in a section of their own."""

_CHARACTERS = 240  # MLflow allows 250
# As the models' names are written in study files.
_SPELLED = {"₊": "-add", "•": "-mul", ", ": " ", ",": "-", "λ": "lambda", "σ": "sigma", "\u0302": "", "=": " "}


def metric_name(text: str) -> str:
    """Spell out symbols that MLflow doesn't allow in metrics' names.

    Example:
        >>> metric_name("success_rate/NAC•,σ λ̂=10")
        'success_rate/NAC-mul-sigma lambda 10'
    """
    for symbol, word in _SPELLED.items():
        text = text.replace(symbol, word)
    return re.sub(r"[^A-Za-z0-9_\-. /:]", "_", text)


def key_of(name: str) -> str:
    """Spell a name so that MLflow takes it as a key; a slash makes a group of charts there."""
    key = metric_name(name)[:_CHARACTERS] or "_"
    is_path = posixpath.normpath(key) == key and not key.startswith((".", "/", CURVE))
    return key if is_path else re.sub("[./]", "_", key)


def keys_of(names: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Return a key for each name that MLflow takes, and that differs from all others in more than capitals.

    Example:
        >>> keys_of(["loss", "Loss", "seed"], taken=["seed"])
        {'loss': 'loss', 'Loss': 'Loss.2', 'seed': 'seed.2'}
    """
    keys: dict[str, str] = {}
    lower = {key.casefold() for key in taken}
    for name in names:
        key = key_of(name)
        number = 2
        while key.casefold() in lower:
            key, number = f"{key_of(name)}.{number}", number + 1
        keys[name] = key
        lower.add(key.casefold())
    return keys
