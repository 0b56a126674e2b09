"""Base class and field helpers of a study file's tables, as pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidatorFunctionWrapHandler,
    create_model,
    model_validator,
)

from study.interface.values import quoted


def drop_default(schema: dict[str, Any]) -> None:
    """Remove an empty default, or None, from a field's JSON schema, in place."""
    schema.pop("default", None)


def table_field(type_: type) -> Any:
    """Make a field that holds a table; by default an empty one."""
    return Field(default_factory=type_, json_schema_extra=drop_default)


def optional() -> Any:
    """Make a field that is None by default."""
    return Field(default=None, json_schema_extra=drop_default)


def values(type_: Any) -> Any:
    """Return the type of a list of at least one value."""
    return Annotated[list[type_], Field(min_length=1)]


class Table(BaseModel):
    """A table of the file that keeps the order of its keys.

    `_not_keys` lists fields for a value that a file gives in place of the table.
    """

    _not_keys: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(frozen=True, extra="forbid")
    _order: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _remember_order(cls, data: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        table: Self = handler(data)
        if isinstance(data, Mapping):
            table._order = tuple(data)
        return table

    @property
    def explicit(self) -> dict[str, Any]:
        """The values given in the file, in its order."""
        return {name: getattr(self, name) for name in self._order if name in self.model_fields_set}


def table_of(name: str, types: Mapping[str, Any]) -> type[Table]:
    """Make the class of tables with these optional keys."""
    fields: dict[str, Any] = {key: (type_, optional()) for key, type_ in types.items()}
    return create_model(name, __base__=Table, **fields)


def as_text(value: object) -> str:
    """Return a text or number as text.

    Raises:
        ValueError: if it is neither.
    """
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"must be text, but got {quoted(value)}")
    return str(value)
