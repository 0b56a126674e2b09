"""Configuration arguments: dataclasses, pydantic models, and nested dicts.

Each leaf of a configuration is a hyperparameter with a dotted name, such as ``model.width``. The leaves of an argument
called ``config`` have no prefix.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from study.interface.declarations import REQUIRED

CONFIG = "config"
"""Name of the argument whose leaves have no prefix."""

_OPEN = ("dict", "Mapping", "MutableMapping", "DictConfig")


class Leaf(typing.NamedTuple):
    """A value within a configuration.

    Args:
        name: the keys from the top, separated by dots.
        annotation: type of the value; None to use the type of the default.
        default: default value; `REQUIRED` without one.
    """

    name: str
    annotation: Any
    default: Any


def is_config(annotation: Any, default: Any) -> bool:
    """Return True if an argument is a configuration: a dataclass, a pydantic model, or a dict.

    `Mapping`, `MutableMapping` and OmegaConf's `DictConfig` count as dicts. Unions and other mappings don't count.

    Args:
        annotation: the argument's resolved annotation; None without one, where the default must be a dict.
        default: the argument's default; `REQUIRED` without one.
    """
    if annotation is None:
        return isinstance(default, dict)
    return _is_dataclass(annotation) or _is_pydantic(annotation) or _is_open(annotation)


def is_open(annotation: Any, default: Any) -> bool:
    """Return True if a configuration accepts any keys from a study file: a dict without a dict as default."""
    return not isinstance(default, dict) and (annotation is None or _is_open(annotation))


def leaves_of(annotation: Any, default: Any, prefix: str = "") -> Iterator[Leaf]:
    """Yield the leaves of a configuration, in the order of its fields.

    Args:
        annotation: the configuration's type, whose fields are known (not `is_open`); None if `default` is a dict.
        default: a configuration with the default values; `REQUIRED` without one.
        prefix: prefix of the leaves' names.

    Raises:
        ValueError: if the annotations of a dataclass can't be evaluated; it is raised while iterating.

    Example:
        >>> @dataclasses.dataclass
        ... class Model:
        ...     width: int = 32
        ...     layers: tuple[int, ...] = (8, 8)
        >>> [leaf.name for leaf in leaves_of(Model, REQUIRED, "model.")]
        ['model.width', 'model.layers']
        >>> [(leaf.name, leaf.default) for leaf in leaves_of(None, {"lr": 0.1, "model": {"width": 8}})]
        [('lr', 0.1), ('model.width', 8)]
    """
    for name, inner, value in _fields(annotation, default):
        if is_config(inner, value) and not is_open(inner, value):
            yield from leaves_of(inner, value, f"{prefix}{name}.")
        else:
            yield Leaf(f"{prefix}{name}", inner, value)


def built(
    annotation: Any,
    default: Any,
    values: Mapping[str, Any],
    convert: Callable[[Any, Any], Any] = lambda value, _: value,
) -> Any:
    """Build a configuration from nested tables.

    Args:
        annotation: the configuration's type; None for a dict.
        default: a configuration with the default values; `REQUIRED` without one. For a dict it is ignored.
        values: values by field; an inner configuration is a table.
        convert: converts a leaf's value to its annotation, or returns `REQUIRED` to omit it. Values in a dict are
            kept as they are, except that ``${...}`` in them is resolved.

    Raises:
        ValueError: if annotations can't be evaluated, a pydantic model rejects the values, or a dict needs OmegaConf
            and that isn't installed, doesn't accept a value or can't resolve an interpolation.
        TypeError: if a dataclass lacks the value of a field without a default.
        omegaconf.errors.GrammarParseError: if an interpolation isn't valid, such as ``${``.
        Exception: any error of a dataclass's own code, such as `__post_init__`.

    Example:
        >>> @dataclasses.dataclass
        ... class Config:
        ...     lr: float = 0.1
        ...     layers: tuple[int, ...] = (8, 8)
        >>> built(Config, REQUIRED, {"lr": 0.2})
        Config(lr=0.2, layers=(8, 8))
    """
    if annotation is None or _is_open(annotation):
        return _dict_of(annotation, values)
    arguments = {}
    for name, inner, value in _fields(annotation, default):
        given = values.get(name, REQUIRED)
        if is_config(inner, value) and not (given is REQUIRED and value is not REQUIRED):
            given = built(inner, value, {} if given is REQUIRED else given, convert)
        elif given is not REQUIRED:
            given = convert(given, inner)
        if given is REQUIRED and default is not REQUIRED:
            given = value
        if given is not REQUIRED:
            arguments[name] = given
    if _is_pydantic(annotation):
        aliases = {name: field.alias or name for name, field in annotation.model_fields.items()}
        arguments = {aliases[name]: value for name, value in arguments.items()}
    return annotation(**arguments)


def _fields(annotation: Any, default: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field's name, annotation and default; raise ValueError if a dataclass's annotations can't be read."""
    if annotation is None or _is_open(annotation):
        for name, value in default.items():
            yield str(name), None, value
        return
    if _is_pydantic(annotation):
        for name, field in annotation.model_fields.items():
            extras = (*field.metadata, *([_pydantic().Field(title=field.title)] if field.title else []))
            inner = Annotated[(field.annotation, *extras)] if extras else field.annotation
            given = REQUIRED if field.is_required() else field.get_default(call_default_factory=True)
            yield name, inner, getattr(default, name, given)
        return
    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except Exception as error:  # a string annotation may be any expression
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"the annotations of {annotation.__name__} can't be read ({reason}): their names must be defined when the "
            "module runs, so import them outside of `if TYPE_CHECKING`"
        ) from None
    for field in dataclasses.fields(annotation):
        if not field.init:
            continue
        given = field.default if field.default is not dataclasses.MISSING else REQUIRED
        if field.default_factory is not dataclasses.MISSING:
            given = field.default_factory()
        yield field.name, hints[field.name], getattr(default, field.name, given)


def _is_dataclass(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _pydantic() -> Any:
    """Return pydantic if it has been imported, else None, since importing it would slow down a trial's own process."""
    return sys.modules.get("pydantic")


def _is_pydantic(annotation: Any) -> bool:
    return _pydantic() is not None and isinstance(annotation, type) and issubclass(annotation, _pydantic().BaseModel)


def _is_open(annotation: Any) -> bool:
    return getattr(typing.get_origin(annotation) or annotation, "__name__", "") in _OPEN


def _dict_of(annotation: Any, values: Mapping[str, Any]) -> Any:
    """Return a DictConfig if annotated so, else a dict with interpolations such as ``${model.width}`` resolved.

    A DictConfig or an interpolation needs OmegaConf; ValueError if it isn't installed.
    """
    is_omegaconf = getattr(annotation, "__name__", "") == "DictConfig"
    if not is_omegaconf and not _has_interpolation(values):
        return dict(values)
    try:
        from omegaconf import OmegaConf
    except ImportError:
        raise ValueError("${...} in a configuration needs OmegaConf: pip install omegaconf") from None
    config = OmegaConf.create(dict(values))
    return config if is_omegaconf else OmegaConf.to_container(config, resolve=True)


def _has_interpolation(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_interpolation, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str) and "${" in value
