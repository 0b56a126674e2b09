"""Conditions of hyperparameters on the values of others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any


@dataclass(frozen=True)
class Conditions:
    """Conditions of hyperparameters on the values of others.

    All methods but `cycle` need conditions without a cycle.

    Args:
        allowed: for each hyperparameter with a condition, the allowed values of the hyperparameters in it.

    Example:
        >>> conditions = Conditions({"momentum": {"optimizer": ["sgd"]}, "nesterov": {"momentum": [0.9]}})
        >>> sorted(conditions.inapplicable({"optimizer": "adam", "momentum": 0.9, "nesterov": True}))
        ['momentum', 'nesterov']
        >>> conditions.in_order(["nesterov", "lr", "momentum", "optimizer"])
        ['optimizer', 'momentum', 'nesterov', 'lr']
    """

    allowed: Mapping[str, Mapping[str, list[Any]]] = field(default_factory=dict)

    @cached_property
    def _texts(self) -> list[tuple[str, dict[str, set[str]]]]:
        """The conditions in topological order, with values as JSON to distinguish 1, 1.0 and true."""
        graph = {name: list(condition) for name, condition in self.allowed.items()}
        order = [name for name in TopologicalSorter(graph).static_order() if name in self.allowed]
        return [
            (name, {other: {json.dumps(value) for value in values} for other, values in self.allowed[name].items()})
            for name in order
        ]

    @property
    def cycle(self) -> list[str]:
        """The hyperparameters of one cycle of conditions, with the first repeated at the end; empty without a cycle."""
        try:
            _ = self._texts
        except CycleError as error:
            names: list[str] = error.args[1]
            return names
        return []

    def inapplicable(self, values: Mapping[str, Any]) -> set[str]:
        """Return the hyperparameters whose condition isn't met.

        Values are compared as JSON, so 1, 1.0 and True differ.

        Args:
            values: the values that are set. Hyperparameters that aren't set, or don't apply, meet no condition.
        """
        missing: set[str] = set()
        for name, condition in self._texts:
            if any(
                other in missing or other not in values or json.dumps(values[other]) not in texts
                for other, texts in condition.items()
            ):
                missing.add(name)
        return missing

    def controls(self, names: Iterable[str]) -> set[str]:
        """Return the direct and indirect dependencies of the named hyperparameters."""
        controls: set[str] = set()
        left = list(names)
        while left:
            new = set(self.allowed.get(left.pop(), ())) - controls
            controls |= new
            left += new
        return controls

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return the names with dependencies before their dependents, in the given order otherwise.

        Unnamed hyperparameters are skipped, with the dependencies through them.
        """
        ordered: dict[str, None] = {}

        def add(name: str) -> None:
            for other in self.allowed.get(name, ()):
                if other in known and other not in ordered:
                    add(other)
            ordered[name] = None

        known = list(names)
        for name in known:
            add(name)
        return list(ordered)

    def __or__(self, own: Conditions) -> Conditions:
        """Return the union with another level's conditions; for the same hyperparameter, the other level's holds."""
        return Conditions({**self.allowed, **own.allowed})

    def without(self, names: Iterable[str]) -> Conditions:
        """Return the conditions without those of the named hyperparameters."""
        removed = set(names)
        return Conditions({name: allowed for name, allowed in self.allowed.items() if name not in removed})
