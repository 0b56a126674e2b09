"""The shape of a claim in a study file."""

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


def _other(value: object) -> object:
    """Return a number, or whom the subject is compared with: a name, or the values in which its cell differs."""
    if isinstance(value, str | Mapping) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    raise ValueError(
        f"must be a number, the name of whom it is compared with, or a table of values, but got {quoted(value)}"
    )


def _where(value: object) -> object:
    if isinstance(value, Mapping) and value and all(isinstance(name, str) for name in value):
        return {str(name): content for name, content in value.items()}
    words = value.split(" ", 1) if isinstance(value, str) else []
    if len(words) == 2 and words[0] == EVERY:
        return {} if words[1] == "cell" else {words[1]: EVERY}
    raise ValueError(
        "must be `every NAME` of what is swept, `every cell`, or a table such as {hidden_size: 2, schedule: every}, "
        f"but got {quoted(value)}"
    )


class ClaimTable(Table):
    """A claim: whose, of what, and that it exceeds or stays below a number or another's.

    Args:
        subject: a model's name, an axis's label, or both, as the file's key.
        quantity: what the key stands before: success_rate, solved_at, time_to_success or a metric.
        exceeds: a number, or whom it is compared with.
        below: the same.
        by: by how much more, or less, where it is compared with another.
        at: of what is swept, which values; empty for every cell, None where the file doesn't say.
    """

    subject: str
    quantity: str
    exceeds: Annotated[Any, BeforeValidator(_other)] = None
    below: Annotated[Any, BeforeValidator(_other)] = None
    by: _By | None = optional()
    at: Annotated[Any, BeforeValidator(_where)] = None

    @model_validator(mode="before")
    @classmethod
    def _from_key(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        whose = [key for key in data if key not in CLAIM_KEYS]
        if len(whose) != 1 or not isinstance(data[whose[0]], str):
            raise ValueError(
                "must begin with whose claim it is and of what, such as {NMU: success_rate, exceeds: 0.9}; its other "
                f"keys are {', '.join(CLAIM_KEYS)}; but has {', '.join(map(repr, data)) or 'none'}"
            )
        rest = {key: value for key, value in data.items() if key in CLAIM_KEYS}
        return {"subject": str(whose[0]), "quantity": data[whose[0]]} | rest

    @model_validator(mode="after")
    def _check(self) -> ClaimTable:
        if (self.exceeds is None) == (self.below is None):
            which = "neither" if self.exceeds is None else "both"
            raise ValueError(f"must say exceeds or below, but has {which}")
        if self.by is not None and isinstance(self.bound, float | int):
            raise ValueError("by goes with the name of another: add it to the number")
        return self

    @property
    def bound(self) -> Any:
        """What it exceeds, or is below: a number, a name or a table of values."""
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
            "description": "whose claim it is and of what, and what that exceeds or stays below",
            "properties": {"exceeds": bound, "below": bound, "by": {"type": "number", "minimum": 0}, "at": where},
            "additionalProperties": {"type": "string"},
        }
        return {"anyOf": [table | {"required": [relation]} for relation in ("exceeds", "below")]}
