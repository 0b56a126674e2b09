"""References to objects of Python modules, as study files write them: `package.module:object`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from study.errors import InputError


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of a module.

    Args:
        module: the module's name, with dots.
        name: the object's name in the module.
    """

    module: str
    name: str

    @property
    def package(self) -> str:
        """The top-level package, or the module if it is in none."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def is_reference(name: str) -> bool:
    """Return whether a study file's name is a reference: it has a colon, and the built-in names have none.

    Example:
        >>> is_reference("mylab.spirals:train"), is_reference("NAC-mul")
        (True, False)
    """
    return ":" in name


def parse_reference(text: str) -> Reference:
    """Parse a reference.

    Raises:
        InputError: if it isn't one; the message says what must hold, and what was probably meant.

    Example:
        >>> parse_reference("mylab.spirals:train")
        Reference(module='mylab.spirals', name='train')
        >>> parse_reference("mylab/spirals.py:train")
        Traceback (most recent call last):
        ...
        study.errors.InputError: 'mylab/spirals.py:train' must be package.module:object, names of Python with dots and
        one colon; did you mean 'mylab.spirals:train'?
    """
    module, _, name = text.partition(":")
    if _is_module(module) and _is_name(name) and not module.endswith(".py"):
        return Reference(module, name)
    guess = Reference(
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
