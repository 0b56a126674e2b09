"""Spelling of names as MLflow's keys of parameters, metrics and tags.

MLflow accepts letters and digits of any script, and the characters `_-. /:`, up to 250 in all. A slash makes a group
of charts, and a key must be a normalised path.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterable

CURVE = "curve/"
"""Prefix of the metrics of learning curves, whose charts then have their own section."""
SPELLING = 2
"""The version of `key_of`. Runs of version 1 have the keys of `_key_before`."""

_CHARACTERS = 225  # MLflow allows 250, including a prefix `curve/` or `study.value.`
_CHARACTERS_BEFORE = 240
_REFUSED = re.compile(r"[^\w\-. /:]|_(?=x[0-9A-F]{2,6}_)")
# Spelling of models' names in study files.
_SPELLED = {"₊": "-add", "•": "-mul", ", ": " ", ",": "-", "λ": "lambda", "σ": "sigma", "\u0302": "", "=": " "}


def metric_name(text: str) -> str:
    """Return a chart's label with models' names as in study files, and `_xHEX_` for characters that MLflow refuses.

    Anywhere in the label, ``, `` and ``=`` become a space, and any other comma ``-``. Unlike a key of `key_of`, the
    label is neither truncated nor normalised as a path.

    Example:
        >>> metric_name("success_rate/NAC•,σ λ̂=10"), metric_name("loss/Δ#1")
        ('success_rate/NAC-mul-sigma lambda 10', 'loss/Δ_x23_1')
    """
    for symbol, word in _SPELLED.items():
        text = text.replace(symbol, word)
    return _REFUSED.sub(_escaped, text)


def key_of(name: str) -> str:
    """Return a name as a key of MLflow, with `_xHEX_` for each refused character.

    Keys are truncated to 225 characters. Different names rarely have the same key: truncated ones, the empty name and
    ``_``, and names with parts of an escape, such as ``_x40@`` and ``@x40_``. `keys_of` makes them unique.

    Example:
        >>> key_of("α"), key_of("test/Δ"), key_of("acc@1"), key_of("a_x40_"), key_of("../a")
        ('α', 'test/Δ', 'acc_x40_1', 'a_x5F_x40_', '_x2E__x2E__x2F_a')
    """
    key = _REFUSED.sub(_escaped, name)[:_CHARACTERS]
    is_path = bool(key) and posixpath.normpath(key) == key and not key.startswith((".", "/", CURVE))
    return key if is_path else re.sub("[./]", _escaped, key)[:_CHARACTERS] or "_"


def name_of(key: str) -> str:
    """Return the name of a key that `key_of` made, if the key wasn't truncated.

    Example:
        >>> [name_of(key_of(name)) for name in ("acc@1", "a_x40_", "../a", "α")]
        ['acc@1', 'a_x40_', '../a', 'α']
    """
    return re.sub(r"_x([0-9A-F]{2,6})_", lambda match: chr(int(match[1], 16)), key)


def keys_of(names: Iterable[str], taken: Collection[str], spelling: int = SPELLING) -> dict[str, str]:
    """Return a key for each name, unique even if a database ignores capitals and accents.

    Args:
        names: the names.
        taken: keys that are in use already.
        spelling: the version of the spelling.

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
    """Return a name in the spelling of version 1: ASCII, with words for models' symbols and `_` for all others."""
    for symbol, word in _SPELLED.items():
        name = name.replace(symbol, word)
    key = re.sub(r"[^A-Za-z0-9_\-. /:]", "_", name)[:_CHARACTERS_BEFORE] or "_"
    is_path = posixpath.normpath(key) == key and not key.startswith((".", "/", CURVE))
    return key if is_path else re.sub("[./]", "_", key)
