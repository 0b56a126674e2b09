"""Units of a user's own in the arithmetic tasks, by import string and by what stands for their code.

A cell's unit is known by both, so that a process can have two versions of one class, such as a notebook after an edit.
Traits are known wherever a plan is read; classes only where the code is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from units.traits import TRAITS, Traits

if TYPE_CHECKING:
    from units import Unit

_TRAITS: dict[str, Traits] = {}
_CLASSES: dict[str, type[Unit]] = {}


def unit_key(model: str, code: str) -> str:
    """Return the name by which a unit of a user's own is known here.

    Example:
        >>> unit_key("mylab.units:Mine", "parsed:1a")
        'mylab.units:Mine (parsed:1a)'
    """
    return f"{model} ({code})"


def register(key: str, traits: Traits, class_: type[Unit] | None = None) -> None:
    """Make a unit known.

    Args:
        key: from `unit_key`.
        traits: of the unit.
        class_: the unit's class; None where the code isn't there.
    """
    _TRAITS[key] = traits
    if class_ is not None:
        _CLASSES[key] = class_


def is_own(unit: str) -> bool:
    """Tell whether a unit is a user's own one that is known."""
    return unit in _TRAITS


def traits_of(unit: str) -> Traits:
    """Return the traits of a unit: one of `units.UNITS`, or a registered one.

    Raises:
        KeyError: if there is none.
    """
    return _TRAITS[unit] if unit in _TRAITS else TRAITS[unit]


def class_of(unit: str) -> type[Unit]:
    """Return the class of a unit: one of `units.UNITS`, or a registered one.

    Raises:
        KeyError: if there is none, or its code isn't there.
    """
    from units import UNITS  # imported late: torch takes seconds to import

    return _CLASSES[unit] if unit in _CLASSES else UNITS[unit]
