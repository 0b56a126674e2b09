"""The tables of a study file, as pydantic models: what all of them have in common."""

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
    """Leave a field's default out of a schema, where it would say nothing."""
    schema.pop("default", None)


def table_field(of: type) -> Any:
    """Make a field that holds a table, an empty one where the file has none."""
    return Field(default_factory=of, json_schema_extra=drop_default)


def optional() -> Any:
    """Make a field that is None where the file says nothing."""
    return Field(default=None, json_schema_extra=drop_default)


def values(type_: Any) -> Any:
    """Return the type of a list of at least one value."""
    return Annotated[list[type_], Field(min_length=1)]


class Table(BaseModel):
    """A table of the file that remembers the order of its keys.

    A class names in `_not_keys` the fields that hold what a file gives in place of the table.
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
        """The values that the file gives, in its order."""
        return {name: getattr(self, name) for name in self._order if name in self.model_fields_set}


def table_of(name: str, types: Mapping[str, Any]) -> type[Table]:
    """Make the class of tables with some optional keys."""
    fields: dict[str, Any] = {key: (type_, optional()) for key, type_ in types.items()}
    return create_model(name, __base__=Table, **fields)


def as_text(value: object) -> str:
    """Return text; a number is what it looks like."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"must be text, but got {quoted(value)}")
    return str(value)
