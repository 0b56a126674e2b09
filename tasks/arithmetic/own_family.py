"""The arithmetic family with user-defined units."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from study.interface.family import Check, Family, Mistake, Values
from tasks.arithmetic.family import ArithmeticFamily
from tasks.arithmetic.models import MODELS
from tasks.arithmetic.own_units import register, unit_key
from units.traits import TRAITS, Traits

if TYPE_CHECKING:
    from units import Unit


@dataclass(frozen=True, eq=False)
class OwnUnitsFamily(ArithmeticFamily):
    """The arithmetic tasks with the built-in models and user-defined units.

    A user-defined unit is a model with two layers of that unit, or with one in the single-module task. It doesn't
    change the cells of other models.

    Args:
        units: the traits of each unit, by import string.
        code: the identity of their code in the ids of trials; None without such units.
        aliases: import strings by the names under which installed packages offer them.

    Example:
        >>> family = OwnUnitsFamily({"mylab.units:Mine": Traits()}, code="version:1")
        >>> family.canonical("simple", "mylab.units:Mine", {})["code"], "code" in family.canonical("simple", "NMU", {})
        ('version:1', False)
    """

    units: Mapping[str, Traits] = field(default_factory=dict)
    code: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Register the units' traits, so that plans can be checked."""
        for model, traits in self.units.items():
            register(unit_key(model, str(self.code)), traits)

    @property
    def models(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the built-in models, and the import strings of the units."""
        return (*MODELS, *self.units)

    @property
    def own_code(self) -> str | None:
        """The identity of the units' code in the ids of trials; None without such units."""
        return self.code

    def _model_key(self, model: str) -> str:
        return unit_key(model, str(self.code)) if model in self.units else model

    def with_models(self, models: Mapping[str, Any], code: str, aliases: Mapping[str, str]) -> Family:
        """Register user-defined units, and return the family with them instead of this family's.

        Args:
            models: the units' classes, by import string.
            code: the identity of their code in the ids of trials.
            aliases: import strings by the names under which installed packages offer them.

        Raises:
            TypeError: if a value isn't a class derived from `units.Unit`, or lacks a method.
        """
        classes = _checked_units(models)
        for name, class_ in classes.items():
            register(unit_key(name, code), class_.traits, class_)
        return OwnUnitsFamily({name: class_.traits for name, class_ in classes.items()}, code, aliases)

    def from_declared(self, content: Mapping[str, Any]) -> Family:
        """Return the family from the content of a `to_json` text, and register its units' traits.

        Raises:
            ValueError: if an entry is missing or of a wrong type, or a unit has unknown bounds.
        """
        try:
            units = {str(name): _traits_from(kept) for name, kept in content["units"].items()}
            aliases = {str(name): str(import_string) for name, import_string in content["aliases"].items()}
            return OwnUnitsFamily(units, str(content["code"]), aliases)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"units must have traits, a code and aliases, but got {content!r}") from error

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell, with the code of a user-defined unit.

        Raises:
            KeyError: if the task or the model is unknown.
            ValueError: if the task can't be constructed from these values.
        """
        content = super().canonical(task, self._model_key(model), values)
        return content | {"code": self.code} if model in self.units else content

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield the mistakes that a check finds in some values, with units named by their import strings.

        Raises:
            KeyError: if the check, the task or the model is unknown.
        """
        for names, message in super().mistakes(check, task, self._model_key(model), values):
            yield names, message.replace(self._model_key(model), model)

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return the reason why a hyperparameter has no effect with any values of the grid; None if none is known.

        Raises:
            KeyError: if the model is unknown.
        """
        reason = super().why_without_effect(name, task, self._model_key(model), values)
        return None if reason is None else reason.replace(self._model_key(model), model)

    def own_engine(self, code: Any) -> Any:
        """Return the torch engine with the units' `code`, a `study.engine.own_code.OwnCode`."""
        from tasks.arithmetic.engine.torch.own_units import OwnUnitsEngine  # imported late: torch takes seconds

        return OwnUnitsEngine(code=code, identity=str(self.code), units=tuple(self.units))

    def to_json(self) -> str:
        """Return the units' traits, the identity of their code and the aliases as JSON, for a store."""
        units = {name: asdict(traits) for name, traits in self.units.items()}
        return json.dumps({"family": self.tasks[0], "units": units, "code": self.code, "aliases": dict(self.aliases)})


ARITHMETIC = OwnUnitsFamily()
"""The family of a study without user-defined units."""


def _checked_units(models: Mapping[str, Any]) -> Mapping[str, type[Unit]]:
    """Return the classes of units, by import string.

    Raises:
        TypeError: if a value isn't a class derived from `units.Unit`, or lacks a method.
    """
    from inspect import isabstract

    from units import Unit

    for name, class_ in models.items():
        if not (isinstance(class_, type) and issubclass(class_, Unit)):
            raise TypeError(
                f"{name} must be a class derived from units.Unit to be a model of these tasks, but is {class_!r}"
            )
        if isabstract(class_):
            raise TypeError(f"{name} must define the methods {', '.join(sorted(class_.__abstractmethods__))}")
    return models


def _traits_from(kept: Mapping[str, Any]) -> Traits:
    known = {kind for traits in TRAITS.values() for kind in traits.bounded.values()}
    bounded = {str(parameter): kind for parameter, kind in kept["bounded"].items()}
    if not known.issuperset(bounded.values()):
        raise ValueError(f"bounds must be one of {', '.join(sorted(known))}, but got {bounded}")
    return Traits(bounded=bounded, largest_init_variance=float(kept["largest_init_variance"]))
