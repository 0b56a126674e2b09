"""Schema of a claim in a study file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue

from study.interface.values import number, quoted
from study.spec.table import Table, optional

CLAIM_KEYS = ("exceeds", "below", "by", "at")
EVERY = "every"

_By = Annotated[float, Field(ge=0), BeforeValidator(number)]


def _compared(value: object) -> object:
    """Return a number, or cells to compare with: a name, or a table of their values; raise ValueError for others."""
    if isinstance(value, str | Mapping) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    raise ValueError(
        f"must be a number, a name of cells to compare with, or a table of their values, but got {quoted(value)}"
    )


def _cell_values(value: object) -> object:
    if isinstance(value, Mapping) and value and all(isinstance(name, str) for name in value):
        return {str(name): content for name, content in value.items()}
    words = value.split(" ", 1) if isinstance(value, str) else []
    if len(words) == 2 and words[0] == EVERY:
        return {} if words[1] == "cell" else {words[1]: EVERY}
    raise ValueError(
        "must be `every NAME` of a swept hyperparameter or axis, `every cell`, or a table such as "
        f"{{hidden_size: 2, schedule: every}}, but got {quoted(value)}"
    )


class ClaimTable(Table):
    """A claim: a quantity of some cells exceeds, or is below, a number or the quantity of other cells.

    Args:
        subject: the name of the cells: a model, a label, or both; the key in the file.
        quantity: success_rate, solved_at, time_to_success or a metric; the key's value in the file.
        exceeds: a number, or the cells to compare with.
        below: a number, or the cells to compare with.
        by: the least difference from the compared cells.
        at: the values of swept hyperparameters and axes; empty for every cell, None if the file has none.
    """

    subject: str
    quantity: str
    exceeds: Annotated[Any, BeforeValidator(_compared)] = None
    below: Annotated[Any, BeforeValidator(_compared)] = None
    by: _By | None = optional()
    at: Annotated[Any, BeforeValidator(_cell_values)] = None

    @model_validator(mode="before")
    @classmethod
    def _from_key(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        subjects = [key for key in data if key not in CLAIM_KEYS]
        if len(subjects) != 1 or not isinstance(data[subjects[0]], str):
            raise ValueError(
                "must have one key that names the cells, with the quantity, such as {NMU: success_rate, exceeds: 0.9}, "
                f"and keys among {', '.join(CLAIM_KEYS)}, but has {', '.join(map(repr, data)) or 'none'}"
            )
        others = {key: value for key, value in data.items() if key in CLAIM_KEYS}
        return {"subject": str(subjects[0]), "quantity": data[subjects[0]]} | others

    @model_validator(mode="after")
    def _check(self) -> ClaimTable:
        if (self.exceeds is None) == (self.below is None):
            given = "neither" if self.exceeds is None else "both"
            raise ValueError(f"must have either exceeds or below, but has {given}")
        if self.by is not None and isinstance(self.bound, float | int):
            raise ValueError("by needs cells to compare with, but got a number: add by to it")
        return self

    @property
    def bound(self) -> Any:
        """The number, name or table of values under `exceeds` or `below`."""
        return self.exceeds if self.exceeds is not None else self.below

    @property
    def relation(self) -> str:
        """``exceeds`` or ``below``."""
        return "exceeds" if self.exceeds is not None else "below"

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        bound: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "object"}]}
        where: dict[str, Any] = {"anyOf": [{"type": "string", "pattern": f"^{EVERY} "}, {"type": "object"}]}
        table = {
            "type": "object",
            "description": "the cells with a quantity, and the number or cells that it exceeds or is below",
            "properties": {"exceeds": bound, "below": bound, "by": {"type": "number", "minimum": 0}, "at": where},
            "additionalProperties": {"type": "string"},
        }
        return {"anyOf": [table | {"required": [relation]} for relation in ("exceeds", "below")]}
