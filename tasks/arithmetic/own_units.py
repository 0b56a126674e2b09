"""Registry of user-defined units in the arithmetic tasks, by import string and identity of the code.

The key has both, so that a process can hold two versions of one class, such as before and after an edit in a notebook.
Traits are registered wherever a plan is read; classes only where the code is available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from units.traits import TRAITS, Traits

if TYPE_CHECKING:
    from units import Unit

_TRAITS: dict[str, Traits] = {}
_CLASSES: dict[str, type[Unit]] = {}


def unit_key(model: str, code: str) -> str:
    """Return the key of a user-defined unit.

    Example:
        >>> unit_key("mylab.units:Mine", "parsed:1a")
        'mylab.units:Mine (parsed:1a)'
    """
    return f"{model} ({code})"


def register(key: str, traits: Traits, class_: type[Unit] | None = None) -> None:
    """Register a unit's traits, and its class if it is given; both replace those of the same key.

    Args:
        key: from `unit_key`.
        traits: the unit's traits.
        class_: the unit's class; None where its code isn't available.
    """
    _TRAITS[key] = traits
    if class_ is not None:
        _CLASSES[key] = class_


def is_own(unit: str) -> bool:
    """Return True if a name is the key of a registered user-defined unit."""
    return unit in _TRAITS


def traits_of(unit: str) -> Traits:
    """Return the traits of a unit of `units.UNITS` or of a registered unit.

    Raises:
        KeyError: if the unit is unknown.
    """
    return _TRAITS[unit] if unit in _TRAITS else TRAITS[unit]


def class_of(unit: str) -> type[Unit]:
    """Return the class of a unit of `units.UNITS` or of a registered unit.

    Raises:
        KeyError: if the unit is unknown, or its code isn't available.
    """
    from units import UNITS  # imported late: torch takes seconds to import

    return _CLASSES[unit] if unit in _CLASSES else UNITS[unit]
