"""Import strings: names of Python objects in study files, `package.module:object`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from study.errors import InputError


@dataclass(frozen=True, slots=True)
class ImportString:
    """An object of a module.

    Args:
        module: the module's name, with dots.
        name: the object's name in the module.
    """

    module: str
    name: str

    @property
    def package(self) -> str:
        """The top-level package, or the module itself if it isn't in a package."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def is_import_string(name: str) -> bool:
    """Return True if a name in a study file is an import string: it has a colon, unlike built-in names.

    Example:
        >>> is_import_string("mylab.spirals:train"), is_import_string("NAC-mul")
        (True, False)
    """
    return ":" in name


def parse_import_string(text: str) -> ImportString:
    """Parse an import string.

    Raises:
        InputError: if the text isn't an import string; the message states the format, and suggests a correction
            if one is obvious.

    Example:
        >>> parse_import_string("mylab.spirals:train")
        ImportString(module='mylab.spirals', name='train')
        >>> parse_import_string("mylab/spirals.py:train")
        Traceback (most recent call last):
        ...
        study.errors.InputError: 'mylab/spirals.py:train' must be package.module:object, names of Python with dots and
        one colon; did you mean 'mylab.spirals:train'?
    """
    module, _, name = text.partition(":")
    if _is_module(module) and _is_name(name) and not module.endswith(".py"):
        return ImportString(module, name)
    guess = ImportString(
        re.sub(r"\.py$", "", module.strip()).lstrip("./\\").replace("/", ".").replace("\\", "."), _bare(name)
    )
    hint = f"; did you mean '{guess}'?" if _is_module(guess.module) and _is_name(guess.name) else ""
    raise InputError(f"{text!r} must be package.module:object, names of Python with dots and one colon{hint}")


def _is_module(text: str) -> bool:
    return all(_is_name(part) for part in text.split("."))


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _bare(name: str) -> str:
    return re.sub(r"\(.*\)$", "", name.strip().lstrip(":"))
