"""Hyperparameters from the signature of a training function, a model builder or a frozen dataclass.

| annotation | value in a study file |
| --- | --- |
| `int`, `float`, `str`, `bool`, `None` | such a value: 3.0 is an int, 3 is a float, and true is neither |
| `Literal["a", 2, True]` | one of these values |
| `list[T]`, `tuple[T, ...]`, `tuple[T, U]` | a list; a function gets a tuple if annotated so |
| `T | None`, `Optional[T]`, `T | Literal["auto"]` | a value of any option; not `int | float`, where 1 and 1.0 differ |
| `Annotated[T, Field(gt=0)]`, `Annotated[T, Ge(0)]` | a value within the limits of pydantic or annotated_types |
| `Annotated[str, DataFile()]` | a path of data, which is replaced by their digest (fields of tasks only) |
| none, but a default such as 32, 0.1, True, "adam", [8, 8] or (8, 8) | a value of the default's type; 1 is an int |
| a dataclass, a pydantic model, or a dict as default (training functions only) | its fields: ``model.width: 32`` |

Other annotations are rejected, because a value is part of a trial's id and must be the same in files, stores and
Python. Use a Literal instead of an Enum. `Field(title="learning rate")` sets a title for reports.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from study.interface.configs import CONFIG, Leaf, built, is_config, is_open, leaves_of
from study.interface.data import DataFile
from study.interface.declarations import REQUIRED, Hyperparameter
from study.interface.program import nested
from study.interface.values import ChoiceError, number, whole

_SUPPORTED_TYPES = "int, float, str, bool, None, Literal, list, tuple, or a union of these, with limits by Annotated"
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class SignatureError(ValueError):
    """Signature that a study can't call; the message lists all mistakes.

    Args:
        place: file, line and name of the object with the signature.
        mistakes: pairs of a parameter's name, or an empty text for the whole signature, and a message.
    """

    def __init__(self, place: str, mistakes: Iterable[tuple[str, str]]) -> None:
        self.place = place
        self.mistakes = tuple(mistakes)
        count = len(self.mistakes)
        lines = [f"  {name}: {message}" if name else f"  {message}" for name, message in self.mistakes]
        super().__init__("\n".join([f"{place}: {count} mistake{'s' if count != 1 else ''} in its signature", *lines]))


def hyperparameters_of(
    called: Callable[..., Any],
    *,
    given: Collection[str] = ("seed",),
    optional: Collection[str] = ("resume", "trial"),
    reserved: Collection[str] = (),
    takes_configs: bool = False,
) -> dict[str, Hyperparameter]:
    """Read the hyperparameters of a function or class from its signature.

    Args:
        called: a function, or a class that is called to make an instance.
        given: required parameters that the study passes by name; they aren't hyperparameters.
        optional: parameters that the study passes if they exist; they aren't hyperparameters.
        reserved: names that hyperparameters must not have.
        takes_configs: True if arguments may be configurations, whose fields are hyperparameters. An open `config`
            (`has_open_config`) declares none.

    Returns:
        Hyperparameters by name, in the order of the signature. Their types and defaults use the values of study files,
        where a tuple is a list.

    Raises:
        SignatureError: if a study can't call the object; the message lists all mistakes.
        Exception: as the factory of a dataclass's default, or a validator in an annotation, raises.

    Example:
        >>> def train(seed, *, width: int = 32, activation: Literal["relu", "tanh"] = "relu", rate: float): ...
        >>> {name: declared.default for name, declared in hyperparameters_of(train).items()}
        {'width': 32, 'activation': 'relu', 'rate': REQUIRED}
    """
    mistakes: list[tuple[str, str]] = []
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        mistakes.append(("", "it is asynchronous, but a study calls plain functions and generators only"))
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        raise SignatureError(
            place_of(called), [("", "Python can't read its signature; wrap it in a function")]
        ) from None
    hyperparameters = {}
    for name, parameter in parameters.items():
        try:
            _check_kind(parameter)
            if name in given or name in optional:
                continue
            config = _config(called, parameter) if takes_configs else None
            if config is None:
                leaves = [Leaf(name, _annotation(called, parameter), _default(called, parameter))]
            elif is_open(*config):
                leaves = []
                if name != CONFIG:
                    raise ValueError("a dict without a default must be called config, or have a default with its keys")
            else:
                leaves = list(leaves_of(*config, "" if name == CONFIG else f"{name}."))
            for leaf in leaves:
                try:
                    if leaf.name in reserved or leaf.name in hyperparameters:
                        raise ValueError(
                            "the name is reserved in study files, or used twice in this signature; give it another one"
                        )
                    annotation = (
                        _type_of_default(leaf.name, leaf.default) if leaf.annotation is None else leaf.annotation
                    )
                    hyperparameters[leaf.name] = _declared(annotation, leaf.default)
                except ValueError as error:
                    mistakes.append((leaf.name, str(error)))
        except ValueError as error:
            mistakes.append((name, str(error)))
    mistakes += [
        (name, f"it is missing: a study gives it to each call, so there must be a parameter {name}")
        for name in given
        if name not in parameters
    ]
    if mistakes:
        raise SignatureError(place_of(called), mistakes)
    return hyperparameters


def arguments_of(called: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values of hyperparameters to keyword arguments: lists to tuples, dotted names to configurations.

    Args:
        called: a function, or a class that is called to make an instance.
        values: values of its hyperparameters, as in a study file. None is omitted if the argument doesn't accept it.
            Names that a configuration with declared fields lacks are ignored.

    Raises:
        ValueError: if the function has no such hyperparameter, Python can't read its signature, an argument's
            annotation is missing, unsupported or can't be read, a list isn't as long as its tuple, or a configuration
            rejects its values.
        TypeError: if a configuration lacks a value without a default, or as `nested` raises.
        AttributeError: as `nested` raises.
        Exception: as `built` raises, such as any error of a configuration's `__post_init__`.

    Example:
        >>> def train(seed, *, layers: tuple[int, ...] = (32,)): ...
        >>> arguments_of(train, {"layers": [8, 8]})
        {'layers': (8, 8)}
    """
    parameters = inspect.signature(called).parameters
    configs: dict[str, dict[str, Any]] = {}
    arguments: dict[str, Any] = {}
    unknown = []
    for name, value in values.items():
        argument, _, inner = name.partition(".")
        if name in parameters and name != CONFIG:
            if (given := _given(value, _annotation(called, parameters[name]))) is not REQUIRED:
                arguments[name] = given
        elif inner and argument in parameters and argument != CONFIG:
            configs.setdefault(argument, {})[inner] = value
        elif CONFIG in parameters:
            configs.setdefault(CONFIG, {})[name] = value
        else:
            unknown.append(name)
    if unknown:
        raise ValueError(f"{place_of(called)} has no hyperparameter {', '.join(unknown)}")
    for name, leaves in configs.items():
        if (config := _config(called, parameters[name])) is None:  # a plain argument called config
            arguments |= leaves
        else:
            arguments[name] = built(*config, nested(leaves), _given)
    return arguments


def has_open_config(called: Callable[..., Any]) -> bool:
    """Return True if there is an argument `config` that accepts any hyperparameters.

    It is annotated as a dict, Mapping, MutableMapping or DictConfig, and has no dict as default, not even an empty
    one; or it has neither annotation nor default.

    Raises:
        ValueError: if the annotation of `config` can't be evaluated, or Python can't read the signature.

    Example:
        >>> def train(seed, config): ...
        >>> def other(seed, config={"lr": 0.1}): ...
        >>> has_open_config(train), has_open_config(other)
        (True, False)
    """
    parameter = inspect.signature(called).parameters.get(CONFIG)
    config = None if parameter is None else _config(called, parameter)
    return config is not None and is_open(*config)


def _config(called: Callable[..., Any], parameter: inspect.Parameter) -> tuple[Any, Any] | None:
    """Return the annotation and default of a configuration argument; None for other arguments."""
    has_annotation = parameter.annotation is not inspect.Parameter.empty
    annotation = _resolved(called, parameter) if has_annotation else None
    default = _default(called, parameter)
    is_bare = annotation is None and default is REQUIRED and parameter.name == CONFIG
    return (annotation, default) if is_bare or is_config(annotation, default) else None


def _given(value: Any, annotation: Any) -> Any:
    """Return a value with lists as an annotation's tuples; `REQUIRED` for a None that the annotation doesn't accept."""
    if annotation is None:
        return value
    if value is None and not _fits(None, annotation):
        return REQUIRED
    return _with_tuples(value, annotation) if isinstance(value, list) else value


def canonical(hyperparameter: Hyperparameter, value: object) -> Any:
    """Return a value's canonical JSON form for trial ids, the same for all notations of a value.

    Args:
        hyperparameter: the declaration.
        value: the value in a study file.

    Raises:
        ValueError: if the value has the wrong type or violates a limit; the message states the requirement. Also if a
            limit can't be applied to the type, such as ``Ge(0)`` to a list.
        PydanticUserError: if pydantic doesn't support the declared type.
        Exception: as a validator in the annotation raises, other than ValueError and TypeError.

    Example:
        >>> def train(seed, *, width: int, rate: float): ...
        >>> declared = hyperparameters_of(train)
        >>> canonical(declared["width"], 32.0), canonical(declared["rate"], 1)
        (32, 1.0)
    """
    try:
        return plain(TypeAdapter(hyperparameter.type).validate_python(value))
    except ValidationError as error:
        raise ValueError("; ".join(dict.fromkeys(_message(mistake) for mistake in error.errors()))) from None
    except TypeError as error:
        raise ValueError(f"can't be compared with the limits of its annotation: {error}") from None


def place_of(called: Any) -> str:
    """Return an object's file, line and name (its repr without one) for messages; the name alone without a known file.

    Example:
        >>> place_of(len)
        'len'
    """
    function = inspect.unwrap(called.func if hasattr(called, "func") else called)
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__init__", None), "__code__", None)
    if code is None or code.co_filename.startswith("<"):  # written in C, or generated as for a dataclass
        return name
    return f"{code.co_filename}:{code.co_firstlineno}: {name}"


def _check_kind(parameter: inspect.Parameter) -> None:
    if parameter.kind in _VARIADIC:
        stars = _VARIADIC[parameter.kind]
        raise ValueError(f"{stars}{parameter.name} hides the hyperparameters; name each of them instead")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ValueError("it is positional only, but a study passes values by name; move it behind the /")


def _declared(annotation: Any, default: Any) -> Hyperparameter:
    """Return the hyperparameter of an annotation and a default; raise ValueError unless they are valid and fit."""
    declared = Hyperparameter(
        type=_strict(annotation), title=_title(annotation), is_searchable=True, data=_data(annotation)
    )
    try:
        TypeAdapter(declared.type)
    except Exception as error:  # pydantic raises various exceptions for limits that don't fit the type
        raise ValueError(f"its annotation can't be used: {' '.join(str(error).split())}") from None
    if default is REQUIRED:
        return declared
    try:
        return dataclasses.replace(declared, default=canonical(declared, default))
    except ValueError as error:
        raise ValueError(f"its default is invalid: it {error}") from None


def _annotation(called: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return a parameter's annotation, else the type of its default; raise ValueError if there is no valid one."""
    if parameter.annotation is not inspect.Parameter.empty:
        return _resolved(called, parameter)
    return _type_of_default(parameter.name, _default(called, parameter))


def _type_of_default(name: str, default: Any) -> Any:
    type_ = _type_of(default)
    if type_ is None:
        detail = "" if default is REQUIRED else f", and its default {default!r} implies none"
        raise ValueError(f"it has no annotation{detail}; write its type, such as {name}: float")
    return type_


def _type_of(default: Any) -> Any:
    """Return the annotation implied by a default; None if it implies none, as an empty list does."""
    if type(default) in (bool, int, float, str):
        return type(default)
    if type(default) not in (list, tuple) or len(items := {_type_of(item) for item in default}) != 1 or None in items:
        return None
    (item,) = items
    return list[item] if type(default) is list else tuple[item, ...]  # type: ignore[valid-type]


def _default(called: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return REQUIRED
    if dataclasses.is_dataclass(called):
        for field in dataclasses.fields(called):
            if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
                return field.default_factory()
    return parameter.default


def _resolved(called: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return a parameter's annotation with strings evaluated; raise ValueError if one can't be."""
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return typing.get_type_hints(holder, _names(called, parameter.name), include_extras=True)[parameter.name]
    except Exception as error:  # a string annotation may be any expression
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"its annotation {parameter.annotation!r} can't be read ({reason})") from None


def _names(called: Any, name: str) -> dict[str, Any]:
    """Return the globals of an annotation's module; for an inherited field, those of the base class."""
    if isinstance(called, partial):
        return _names(called.func, name)
    if not isinstance(called, type):
        return getattr(inspect.unwrap(called), "__globals__", {})
    for class_ in called.__mro__:
        if name in vars(class_).get("__annotations__", {}):
            return vars(sys.modules[class_.__module__])
    return getattr(inspect.unwrap(called.__init__), "__globals__", {})  # type: ignore[misc]


def _title(annotation: Any) -> str:
    extras = getattr(annotation, "__metadata__", ())
    return next((extra.title for extra in extras if isinstance(extra, FieldInfo) and extra.title), "")


def _data(annotation: Any) -> DataFile | None:
    extras = getattr(annotation, "__metadata__", ())
    return next((extra for extra in extras if isinstance(extra, DataFile)), None)


def _strict(annotation: Any) -> Any:
    """Return a type that accepts values of study files only; pydantic alone would accept "3" for 3 and true for 1.

    An annotation that isn't supported raises ValueError.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _annotated(annotation.__origin__, annotation.__metadata__)
    if isinstance(annotation, type) and annotation in _CHECKS:
        return Annotated[annotation, BeforeValidator(_CHECKS[annotation])]
    if annotation in (None, types.NoneType):
        return None
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is list and len(arguments) == 1:
        return _list(arguments[0])
    if origin is tuple and arguments:
        return _tuple(arguments)
    raise ValueError(f"a study file can't give its type {_name_of(annotation)}; it must be {_SUPPORTED_TYPES}")


def _annotated(inner: Any, limits: tuple[Any, ...]) -> Any:
    strict = _strict(inner)
    if typing.get_origin(inner) in (Union, types.UnionType):  # pydantic would apply the limits to None, too
        raise ValueError(
            f"limits can't apply to {_name_of(inner)}: give them to one type, such as Annotated[int, ...] | None"
        )
    if typing.get_origin(strict) is Annotated:  # the check runs before the limits, which need a number
        return Annotated[(strict.__origin__, *limits, *strict.__metadata__)]
    return Annotated[(strict, *limits)]


def _literal(choices: tuple[Any, ...]) -> Any:
    """Return a type that accepts a Literal's choices only, where true isn't 1; ValueError for an unsupported choice."""
    if wrong := [choice for choice in choices if type(choice) not in (str, int, bool, types.NoneType)]:
        raise ValueError(f"a Literal must be of texts, whole numbers, True, False or None, but has {wrong[0]!r}")

    def check(value: object) -> Any:
        for choice in choices:
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return choice
        raise ChoiceError(value, choices)

    return Annotated[Literal[choices], BeforeValidator(check)]


def _union(options: tuple[Any, ...]) -> Any:
    bare = {option.__origin__ if typing.get_origin(option) is Annotated else option for option in options}
    if {int, float} <= bare:
        raise ValueError("int | float would make two trials of 1 and 1.0; write float")
    return Union[tuple(_strict(option) for option in options)]  # noqa: UP007 (the options are computed)


def _list(item: Any) -> Any:
    return Annotated[list[_strict(item)], BeforeValidator(_sequence)]  # type: ignore[misc]


def _tuple(items: tuple[Any, ...]) -> Any:
    """Return a type that accepts lists with the item types of a tuple, and with its length unless it ends in `...`."""
    if len(items) == 2 and items[1] is Ellipsis:
        return _list(items[0])

    def check(value: object) -> list[Any]:
        if len(sequence := _sequence(value)) != len(items):
            raise ValueError(f"must be a list of {len(items)}, but got {value!r}")
        return sequence

    types_ = tuple(_strict(item) for item in items)
    return Annotated[tuple[types_], BeforeValidator(check)]  # type: ignore[valid-type]


def _with_tuples(value: Any, annotation: Any) -> Any:
    """Convert lists to the tuples of an annotation, at any depth."""
    while typing.get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if not isinstance(value, list):
        return value
    if origin in (Union, types.UnionType):
        fitting = [option for option in arguments if _fits(value, option)]
        return _with_tuples(value, fitting[0]) if fitting else value
    if origin is tuple:
        items = (arguments[0],) * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_with_tuples(item, type_) for item, type_ in zip(value, items, strict=True))
    return [_with_tuples(item, arguments[0]) for item in value] if arguments else value


def _fits(value: object, annotation: Any) -> bool:
    try:
        TypeAdapter(_strict(annotation)).validate_python(value)
    except ValidationError:
        return False
    return True


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text, but got {value!r}")
    return value


def _sequence(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):  # pydantic would accept a set, too, whose order is arbitrary
        raise ValueError(f"must be a list, but got {value!r}")
    return list(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, but got {value!r}")
    return value


_CHECKS: dict[type, Callable[[object], Any]] = {
    int: whole,
    float: lambda value: float(number(value)),
    str: _text,
    bool: _boolean,
}


def plain(value: Any) -> Any:
    """Return a value as JSON data, with tuples as lists.

    Raises:
        ValueError: if it isn't a text, a number, a bool, None or a list of these, as after a user's validator, or a
            number is NaN, infinite or beyond 64 bits.
    """
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or type(value) in (bool, str):
        return value
    if type(value) in (int, float):
        return number(value)
    raise ValueError(f"must be a text, a number, true, false, nothing or a list, but is {_name_of(type(value))}")


def _message(mistake: Any) -> str:
    """Rewrite pydantic's message to state the requirement and the value."""
    if mistake["type"] == "value_error":
        return str(mistake["ctx"]["error"])
    message = str(mistake["msg"])
    must = f"must {message.removeprefix('Input should ')}" if message.startswith("Input should ") else message
    return f"{must}, but got {mistake['input']!r}"


def _name_of(type_: Any) -> str:
    return type_.__name__ if isinstance(type_, type) and not typing.get_args(type_) else str(type_)
