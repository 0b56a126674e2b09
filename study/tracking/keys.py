"""Names spelled so that MLflow takes them, as keys of parameters and metrics, or in tags.

MLflow takes letters and digits of any script, and the characters of `_-. /:`, up to 250 of them. A slash makes a group
of charts; a name must be a path that its normal form doesn't change.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterable

CURVE = "curve/"
"""What the metrics of learning curves begin with: their charts are in a section of their own."""
SPELLING = 2
"""The version of `key_of`. Runs that an earlier version published have the keys of `_key_before`."""

_CHARACTERS = 225  # MLflow allows 250, and `curve/` or `study.value.` may stand before it
_CHARACTERS_BEFORE = 240
_REFUSED = re.compile(r"[^\w\-. /:]|_(?=x[0-9A-F]{2,6}_)")
# As the models' names are written in study files.
_SPELLED = {"₊": "-add", "•": "-mul", ", ": " ", ",": "-", "λ": "lambda", "σ": "sigma", "\u0302": "", "=": " "}


def metric_name(text: str) -> str:
    """Return a label of a chart, with models' names as in study files and `_xHEX_` for what MLflow refuses.

    Example:
        >>> metric_name("success_rate/NAC•,σ λ̂=10"), metric_name("loss/Δ#1")
        ('success_rate/NAC-mul-sigma lambda 10', 'loss/Δ_x23_1')
    """
    for symbol, word in _SPELLED.items():
        text = text.replace(symbol, word)
    return _REFUSED.sub(_escaped, text)


def key_of(name: str) -> str:
    """Return a name as a key of MLflow, with `_xHEX_` for each character that it refuses.

    Different names have different keys, unless they have more than 225 characters.

    Example:
        >>> key_of("α"), key_of("test/Δ"), key_of("acc@1"), key_of("a_x40_"), key_of("../a")
        ('α', 'test/Δ', 'acc_x40_1', 'a_x5F_x40_', '_x2E__x2E__x2F_a')
    """
    key = _REFUSED.sub(_escaped, name)[:_CHARACTERS]
    is_path = bool(key) and posixpath.normpath(key) == key and not key.startswith((".", "/", CURVE))
    return key if is_path else re.sub("[./]", _escaped, key)[:_CHARACTERS] or "_"


def name_of(key: str) -> str:
    """Return the name of a key of `key_of` that has at most 225 characters.

    Example:
        >>> [name_of(key_of(name)) for name in ("acc@1", "a_x40_", "../a", "α")]
        ['acc@1', 'a_x40_', '../a', 'α']
    """
    return re.sub(r"_x([0-9A-F]{2,6})_", lambda match: chr(int(match[1], 16)), key)


def keys_of(names: Iterable[str], taken: Collection[str], spelling: int = SPELLING) -> dict[str, str]:
    """Return a key for each name that differs from all others in more than capitals and accents.

    Some databases don't tell these apart.

    Args:
        names: the names.
        taken: keys that others have.
        spelling: the version that spelled them.

    Example:
        >>> keys_of(["loss", "Loss", "seed"], taken=["seed"])
        {'loss': 'loss', 'Loss': 'Loss.2', 'seed': 'seed.2'}
    """
    spell, fold = (key_of, _folded) if spelling >= SPELLING else (_key_before, str.casefold)
    keys: dict[str, str] = {}
    folded = {fold(key) for key in taken}
    for name in names:
        key = spell(name)
        number = 2
        while fold(key) in folded:
            key, number = f"{spell(name)}.{number}", number + 1
        keys[name] = key
        folded.add(fold(key))
    return keys


def _escaped(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):02X}_"


def _folded(key: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", key.casefold()) if not unicodedata.combining(c))


def _key_before(name: str) -> str:
    """Return a name as version 1 spelled it: ASCII alone, and `_` for all other characters."""
    for symbol, word in _SPELLED.items():
        name = name.replace(symbol, word)
    key = re.sub(r"[^A-Za-z0-9_\-. /:]", "_", name)[:_CHARACTERS_BEFORE] or "_"
    is_path = posixpath.normpath(key) == key and not key.startswith((".", "/", CURVE))
    return key if is_path else re.sub("[./]", "_", key)
