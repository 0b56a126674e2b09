"""Schema of a comparison in a study file: factor, matched and tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue

from study.interface.values import quoted
from study.spec.table import Table

_KEYS = ("factor", "at", "tune")


def _names(value: object) -> object:
    """Return a name, or a list of names, as a tuple without repeats; raise ValueError for anything else."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"must be the name of a swept hyperparameter or axis, or a list of such names, but got {quoted(value)}"
        )
    return tuple(dict.fromkeys(names))


def as_list(value: object) -> object:
    """Return the value of ``compare`` as a list; the file may give a single comparison."""
    return value if isinstance(value, list | tuple) else [value]


_Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class CompareTable(Table):
    """A comparison of methods.

    Args:
        factor: the hyperparameters or axes of the grid, or the model, in which the methods differ.
        at: all other swept hyperparameters and axes; methods are compared at each of their values. May be left out.
        tune: hyperparameters that are tuned for each method, by other seeds than those of the comparison.
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
            raise ValueError(f"each name may be in only one of {', '.join(_KEYS)}, but {repeated[0]} is in two")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the comparison."""
        return (*self.factor, *self.at, *self.tune)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        name: dict[str, Any] = {"type": "string"}
        names: dict[str, Any] = {"anyOf": [name, {"type": "array", "items": name, "minItems": 1}]}
        table = {
            "type": "object",
            "description": "the factor in which methods differ, and the hyperparameters that each may tune",
            "properties": dict.fromkeys(_KEYS, names),
            "required": ["factor"],
            "additionalProperties": False,
        }
        return {"anyOf": [name, table]}
