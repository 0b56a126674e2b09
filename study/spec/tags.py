"""Tags of studies, for selecting studies of a store; they aren't part of ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from study.errors import InputError
from study.interface.values import quoted
from study.spec.document import read

_TAG = r"^[^\s,\-][^\s,]{0,39}$"
_MUST = "1 to 40 printable characters, without spaces and commas, the first not a hyphen"


def is_tag(value: object) -> bool:
    """Return True if a value is a tag: a text of 1 to 40 printable characters.

    It must have no spaces or commas, and not begin with a hyphen.

    Example:
        >>> [is_tag(value) for value in ("paper-2", "größe", "a b", "-x", "", "a" * 41, 1)]
        [True, True, False, False, False, False, False]
    """
    return isinstance(value, str) and re.match(_TAG, value) is not None and value.isprintable()


def check_tags(tags: Iterable[str]) -> None:
    """Check the tags of a command.

    Raises:
        InputError: if a tag is invalid.
    """
    for tag in tags:
        if not is_tag(tag):
            raise InputError(f"a tag must have {_MUST}, but got {tag!r}")


def _tags(value: object) -> tuple[str, ...]:
    """Return a tag or a list of tags as a tuple of texts without repeats; raise ValueError if one is invalid."""
    listed = value if isinstance(value, list | tuple) else [value]
    tags = [str(tag) if type(tag) in (int, float) else tag for tag in listed]
    for tag in tags:
        if not is_tag(tag):
            raise ValueError(f"must be a tag or a list of tags, each of {_MUST}, but got {quoted(tag)}")
    return tuple(dict.fromkeys(map(str, tags)))


_TAG_SCHEMA = {"anyOf": [{"type": "string", "pattern": _TAG}, {"type": "number"}]}

Tags = Annotated[
    tuple[str, ...],
    BeforeValidator(_tags),
    WithJsonSchema({"anyOf": [*_TAG_SCHEMA["anyOf"], {"type": "array", "items": _TAG_SCHEMA}]}),
]
"""The type of the key ``tags`` of a study file."""


def tags_in(text: str) -> tuple[str, ...]:
    """Return the tags of a study file, without repeats; empty without any, or if one is invalid.

    They are also empty if `read` refuses the YAML as a whole. Other mistakes are ignored.

    Example:
        >>> tags_in("{study: a, tags: [smoke, 2026], models: wrong}"), tags_in("{study: a, tags: [a b]}"), tags_in("[")
        (('smoke', '2026'), (), ())
    """
    data: Any = read(text).data
    try:
        return _tags(data["tags"])
    except (KeyError, TypeError, ValueError):
        return ()
