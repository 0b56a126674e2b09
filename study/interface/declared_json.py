"""Declarations of hyperparameters as JSON, to read a study's results without its code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter

from study.interface.declarations import REQUIRED, Hyperparameter
from study.interface.values import quoted


def as_json(hyperparameter: Hyperparameter) -> dict[str, Any]:
    """Return a hyperparameter's declaration as JSON data.

    Returns:
        The JSON schema of its type as ``schema``, and its ``default``, ``title`` and ``unit`` if it has them. The
        default isn't converted, so that a tuple remains one.

    Raises:
        PydanticUserError: if pydantic can't make a JSON schema of its type.
    """
    declared: dict[str, Any] = {"schema": TypeAdapter(hyperparameter.type).json_schema()}
    if hyperparameter.default is not REQUIRED:
        declared["default"] = hyperparameter.default
    return declared | {name: text for name in ("title", "unit") if (text := getattr(hyperparameter, name))}


def from_json(declared: Mapping[str, Any]) -> Hyperparameter:
    """Return the hyperparameter declared by JSON data of `as_json`; its type converts values, but checks no limits.

    Nor does it check the texts, or the only value, of a Literal. `is_searchable` is True; fields that `as_json` omits
    have their defaults.

    Raises:
        KeyError: if the data have no key ``schema``.

    Example:
        >>> from pydantic import TypeAdapter
        >>> width = from_json(as_json(Hyperparameter(type=int, default=32)))
        >>> TypeAdapter(width.type).validate_python(8.0), width.default
        (8, 32)
    """
    schema = declared["schema"]
    return Hyperparameter(
        type=Annotated[Any, BeforeValidator(lambda value: _by_schema(schema, value)), _Schema(schema)],
        default=declared.get("default", REQUIRED),
        title=declared.get("title", ""),
        unit=declared.get("unit", ""),
        is_searchable=True,
    )


class _Schema:
    """Annotation that gives a type its JSON schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Mapping[str, Any]:
        return self._schema


def _by_schema(schema: Mapping[str, Any], value: Any) -> Any:
    """Convert a value by the first option of a JSON schema that matches its type; raise ValueError if none does.

    Limits aren't checked, nor the texts or the only value of a Literal.
    """
    if not schema:  # a field of a configuration without declared fields
        return value
    for option in schema.get("anyOf", [schema]):
        match option.get("type"):
            case "array" if isinstance(value, list | tuple):
                items = [*option.get("prefixItems", ()), *[option.get("items", {})] * len(value)]
                return [_by_schema(item, element) for item, element in zip(items, value, strict=False)]
            case "integer" if _is_number(value) and float(value).is_integer() and "enum" not in option:
                return int(value)
            case "number" if _is_number(value):
                return float(value)
            case "string" if isinstance(value, str):
                return value
            case "boolean" if isinstance(value, bool):
                return value
            case "null" if value is None:
                return None
            case _ if value in option.get("enum", [option.get("const", object())]):
                return value
    raise ValueError(f"must match the signature's schema {json.dumps(schema)}, but got {quoted(value)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
