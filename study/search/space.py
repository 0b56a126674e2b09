"""Space of a search: its parameters, and the cells of their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from study.records import Cell
from study.spec import Spec, canonical_cell, model_level
from study.spec.cells import applied
from study.spec.grid import Level
from study.spec.tables import RangeTable
from study.summaries.search import Parameter

MODEL = "model"

Values = Mapping[str, Any]

Draw = Callable[[Parameter], Any]
"""Chooses a value for a parameter."""


@dataclass(frozen=True)
class Space:
    """The space that the ranges of a study span.

    Args:
        spec: the search's study file.

    Example:
        >>> from study.spec import parse_spec
        >>> text = '''
        ... study: a
        ... task: {name: simple}
        ... models: [NMU]
        ... ranges: {sparsity_strength: {low: 0.1, high: 10, scale: log}}
        ... seeds: 20
        ... search: {objective: success_rate, trials: 200}
        ... '''
        >>> space = Space(parse_spec(text, source="a.yaml"))
        >>> params = space.choose(lambda parameter: parameter.high)
        >>> params, space.cell(params).value("sparsity_strength")
        ({'sparsity_strength': 10.0}, 10.0)
    """

    spec: Spec

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters, by name: ``model``, if there are several, and all ranges."""
        names = [model.name for model in self.spec.model_tables]
        parameters = [Parameter(MODEL, MODEL, choices=tuple(names))] if len(names) > 1 else []
        for model in names:
            parameters += self._by_model[model].values()
        return {parameter.name: parameter for parameter in parameters}

    @cached_property
    def _by_model(self) -> dict[str, dict[str, Parameter]]:
        """The parameters of each model by hyperparameter, in the order of choice."""
        by_model = {}
        for model, level in self._levels.items():
            names = level.conditions.in_order(self.spec.family.search_order)
            by_model[model] = {
                name: self._parameter(_name(name, model, level.ranges[name].path), name, level.ranges[name].value)
                for name in names
                if name in level.ranges
            }
        return by_model

    @cached_property
    def _levels(self) -> dict[str, Level]:
        return {model.name: model_level(self.spec, i) for i, model in enumerate(self.spec.model_tables)}

    @cached_property
    def fixed(self) -> dict[str, dict[str, Any]]:
        """The fixed values of each model's cells, by hyperparameter."""
        return {
            model: {name: setting.value for name, setting in level.fixed.items()}
            for model, level in self._levels.items()
        }

    @cached_property
    def most_iterations(self) -> int:
        """The most iterations of any cell; cells of one model have equal numbers."""
        # A hyperparameter without a default needs a value; any will do.
        chosen = {
            model: {name: p.choices[0] if p.choices else p.low for name, p in parameters.items()}
            for model, parameters in self._by_model.items()
        }
        return max(self._cell_of(model, chosen[model] | values).iterations for model, values in self.fixed.items())

    def _parameter(self, name: str, hyperparameter: str, table: RangeTable) -> Parameter:
        declared = self.spec.family.hyperparameters[hyperparameter]
        if table.choices is not None:
            return Parameter(name, hyperparameter, choices=tuple(table.choices), title=declared.title)
        return Parameter(
            name,
            hyperparameter,
            low=table.low,
            high=table.high,
            step=table.step,
            is_log=table.scale == "log",
            is_whole=declared.kind == "whole",
            title=declared.title,
        )

    def choose(self, draw: Draw) -> dict[str, Any]:
        """Choose a value by `draw` for each parameter that applies, and return the values by name."""
        params: dict[str, Any] = {}
        model = self.spec.model_tables[0].name
        if MODEL in self.parameters:
            params[MODEL] = model = draw(self.parameters[MODEL])
        values = dict(self.fixed[model])
        for name, parameter in self._by_model[model].items():
            is_left_out = name in self._levels[model].conditions.inapplicable(values)
            if not is_left_out and self.spec.family.is_chosen(name, values):
                params[parameter.name] = values[name] = draw(parameter)
        return params

    def cell(self, params: Values) -> Cell:
        """Return the cell of the parameters' values.

        Raises:
            ValueError: if the values make no valid cell, for example because a schedule ends before it starts.
        """
        model = self._model(params)
        values = self._applied(model, self.fixed[model] | self.by_hyperparameter(params))
        reason = self.spec.family.impossible(self.spec.task_name, model, values)
        if reason is not None:
            raise ValueError(reason)
        return self._cell_of(model, values)

    def left_out(self, cell: Cell) -> dict[str, Any]:
        """Return the hyperparameters that conditions leave out of a cell, each with a valid value for other cells.

        Empty if the family doesn't leave hyperparameters out of calls. A study file of the cell alone needs both the
        values and the conditions that leave them out.
        """
        if not self.spec.family.leaves_out:
            return {}
        parameters, missing = self._by_model[cell.model], self._levels[cell.model].conditions.inapplicable(cell.values)
        values = {name: p.choices[0] if p.choices else p.low for name, p in parameters.items()}
        return {name: value for name, value in (self.fixed[cell.model] | values).items() if name in missing}

    def conditions_of(self, cell: Cell, names: Collection[str]) -> dict[str, Any]:
        """Return the condition of each named hyperparameter for a cell's model, as in a study file; each must exist."""
        allowed = self._levels[cell.model].conditions.allowed
        return {name: dict(allowed[name]) for name in names}

    @property
    def choosing(self) -> dict[str, Any]:
        """The settings besides parameters that affect choices: conditions and points, if there are any."""
        conditions = {model: allowed for model, level in self._levels.items() if (allowed := level.conditions.allowed)}
        return ({"when": conditions} if conditions else {}) | (
            {"points": self.first_choices} if self.spec.points else {}
        )

    @property
    def first_choices(self) -> list[dict[str, Any]]:
        """The values of the study file's points, by the parameters' names."""
        parameters = {p.hyperparameter: p.name for p in self.parameters.values()}
        return [{parameters[name]: value for name, value in point.explicit.items()} for point in self.spec.points]

    def makes(self, cell: Cell, values: Values) -> bool:
        """Return True if these values, with defaults for all others, make the cell."""
        try:
            return self._cell_of(cell.model, values) == cell
        except ValueError:  # a value without a default is missing
            return False

    def _applied(self, model: str, values: Values) -> dict[str, Any]:
        """Return the values without those that a model's conditions exclude; None for these if calls leave them out."""
        return applied(values, self._levels[model].conditions.inapplicable(values), self.spec.family)

    def _cell_of(self, model: str, values: Values) -> Cell:
        return canonical_cell(self.spec.task_name, model, values, self.spec.family)

    def by_hyperparameter(self, params: Values) -> dict[str, Any]:
        """Return the parameters' values by hyperparameter, without the model."""
        parameters = self._by_model[self._model(params)]
        return {name: params[p.name] for name, p in parameters.items() if p.name in params}

    def _model(self, params: Values) -> str:
        return str(params.get(MODEL, self.spec.model_tables[0].name))


def _name(name: str, model: str, path: tuple[str | int, ...]) -> str:
    return f"{model}.{name}" if path[0] == "models" else name
