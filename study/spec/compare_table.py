"""A comparison that a study file asks for: by what methods differ, and what each may tune."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue

from study.interface.values import quoted
from study.spec.table import Table

_KEYS = ("factor", "at", "tune")


def _names(value: object) -> object:
    """Return a name, or a list of names, as a tuple."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"must be the name of what is swept, or a list of such names, but got {quoted(value)}")
    return tuple(dict.fromkeys(names))


def as_list(value: object) -> object:
    """Return what a study file says under ``compare`` as a list: it may be a single comparison."""
    return value if isinstance(value, list | tuple) else [value]


_Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class CompareTable(Table):
    """A comparison of methods.

    Args:
        factor: what the methods differ in: hyperparameters, the model or axes of the grid.
        at: what they are compared at each value of: all else that is swept; may be left out.
        tune: of which hyperparameters each method takes its own best values, chosen by other seeds than those compared.
    """

    factor: _Names
    at: _Names = ()
    tune: _Names = ()

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return data if isinstance(data, Mapping) else {"factor": data}

    @model_validator(mode="after")
    def _check(self) -> CompareTable:
        repeated = [name for name in self.factor if name in (*self.at, *self.tune)]
        repeated += [name for name in self.at if name in self.tune]
        if repeated:
            raise ValueError(f"each name may stand in one of {', '.join(_KEYS)}, but {repeated[0]} stands in two")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """All names in it."""
        return (*self.factor, *self.at, *self.tune)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        name: dict[str, Any] = {"type": "string"}
        names: dict[str, Any] = {"anyOf": [name, {"type": "array", "items": name, "minItems": 1}]}
        table = {
            "type": "object",
            "description": "what methods differ in, and which hyperparameters each may tune",
            "properties": dict.fromkeys(_KEYS, names),
            "required": ["factor"],
            "additionalProperties": False,
        }
        return {"anyOf": [name, table]}
