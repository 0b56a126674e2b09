"""Hyperparameters from signatures: accepted and refused parameters, and one message with all mistakes."""

from __future__ import annotations

import functools
import inspect
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Optional

import pytest
from annotated_types import Ge, Interval, MaxLen
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field, PositiveInt

from study.interface.declarations import REQUIRED, Hyperparameter
from study.interface.signature import SignatureError, arguments_of, canonical, hyperparameters_of

Rate = Annotated[float, Field(gt=0, title="learning rate")]


def train(
    seed,
    resume,
    *,
    width: PositiveInt = 32,
    rate: Rate = 1,
    share: Annotated[float, Interval(ge=0, le=1)],
    momentum: Optional[Annotated[float, Ge(0)]] = None,  # noqa: UP045 (as users write it)
    name: str = "relu",
    nesterov: bool = False,
    kind: Literal["a", 2, True, None] = "a",
    patience: float | Literal["auto"] = "auto",
    layers: Annotated[list[int], MaxLen(3)] = [8, 8],  # noqa: B006 (nobody changes it)
    ranges: tuple[tuple[float, float], ...] = ((1, 2),),
    pair: tuple[int, str] = (1, "b"),
): ...


DEFAULTS = {
    "width": 32, "rate": 1.0, "share": REQUIRED, "momentum": None, "name": "relu", "nesterov": False, "kind": "a",
    "patience": "auto", "layers": [8, 8], "ranges": [[1.0, 2.0]], "pair": [1, "b"],
}  # fmt: skip


def test_hyperparameters_are_the_parameters_in_their_order():
    """Names, canonical defaults and titles are read, even from string annotations; seed and resume are skipped."""
    declared = hyperparameters_of(train)
    assert {name: hyperparameter.default for name, hyperparameter in declared.items()} == DEFAULTS
    assert list(declared) == list(DEFAULTS)
    assert isinstance(declared["rate"].default, float)
    assert declared["rate"].title == "learning rate"
    assert isinstance(train.__annotations__["width"], str)


def bare(seed, width=32, rate=0.1, nesterov=False, name="adam", layers=(8, 8), sizes=[4], grid=((1, 2), (3, 4))): ...  # noqa: B006


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("width", 8.0, 8),
        ("rate", 1, 1.0),
        ("nesterov", True, True),
        ("name", "sgd", "sgd"),
        ("layers", [16], [16]),
        ("sizes", [1, 2], [1, 2]),
        ("grid", [[5, 6]], [[5, 6]]),
    ],
)
def test_a_default_gives_the_type_of_a_parameter_without_annotation(name, value, expected):
    """Without annotations, values of the default's type are accepted, and tuples arrive as tuples."""
    assert canonical(hyperparameters_of(bare)[name], value) == expected
    argument = arguments_of(bare, {name: expected})[name]
    assert type(argument) is type(inspect.signature(bare).parameters[name].default)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", 0.5, "must be a whole number, but got 0.5"),
        ("rate", "a", "must be a number"),
        ("nesterov", 1, "must be true or false"),
        ("layers", ["a"], "must be a number, but got 'a'"),
    ],
)
def test_a_value_of_another_type_than_the_default_is_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        canonical(hyperparameters_of(bare)[name], value)


@pytest.mark.parametrize("default", [None, {}, (), [1, "a"], object])
def test_a_default_without_a_type_needs_an_annotation(default):
    def train(seed, value=default): ...

    with pytest.raises(SignatureError, match="no annotation, and its default"):
        hyperparameters_of(train)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("width", 8.0, 8),
        ("rate", 3, 3.0),
        ("momentum", 0, 0.0),
        ("momentum", None, None),
        ("kind", True, True),
        ("kind", 2, 2),
        ("patience", 2, 2.0),
        ("layers", [1.0, 2], [1, 2]),
        ("ranges", ((1, 2), (3, 4)), [[1.0, 2.0], [3.0, 4.0]]),
    ],
)
def test_values_are_canonical(name, value, expected):
    """All notations of a value give one JSON value of one type."""
    value = canonical(hyperparameters_of(train)[name], value)
    assert json.dumps(value) == json.dumps(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", 0, "must be greater than 0, but got 0"),
        ("width", True, "must be a number, but got true"),
        ("width", "3", "must be a number, but got '3'"),
        ("width", 2.5, "must be a whole number, but got 2.5"),
        ("width", 2**63, "must fit into 64 bits, but got 9223372036854775808"),
        ("rate", 0, "must be greater than 0, but got 0.0"),
        ("rate", float("inf"), "must be a finite number, but got inf"),
        ("rate", float("nan"), "must be a finite number, but got nan"),
        ("rate", 10**400, "must fit into 64 bits"),
        ("share", 1.5, "must be less than or equal to 1, but got 1.5"),
        ("momentum", -1, "must be greater than or equal to 0, but got -1.0"),
        ("name", 3, "must be a text, but got 3"),
        ("nesterov", 1, "must be true or false, but got 1"),
        ("kind", 1, "must be one of a, 2, True, None, but got 1"),
        ("patience", "never", "must be a number, but got 'never'; must be one of auto, but got 'never'"),
        ("layers", [1, 2, 3, 4], "at most 3 items"),
        ("layers", {1, 2}, "must be a list, but got {1, 2}"),
        ("pair", [1], "must be a list of 2, but got [1]"),
        ("pair", ["b", 1], "must be a number, but got 'b'; must be a text, but got 1"),
    ],
)
def test_values_of_the_wrong_type_are_refused(name, value, message):
    """Values aren't coerced: a text isn't a number, and true isn't 1; limits hold."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        canonical(hyperparameters_of(train)[name], value)
    assert message in str(refused.value)


def test_a_value_whose_type_its_limits_do_not_fit_is_refused():
    """A limit of the items, given to the list by mistake, is an error at the first value."""

    def sized(seed, sizes: Annotated[list[int], Ge(0)]): ...

    with pytest.raises(ValueError, match="can't be compared with the limits of its annotation"):
        canonical(hyperparameters_of(sized)["sizes"], [1, 2])


def test_a_function_gets_annotated_tuples():
    """Lists become tuples at any depth where annotated so; other values are unchanged."""
    values = {"ranges": [[1.0, 2.0]], "pair": [1, "b"], "layers": [1, 2], "width": 3, "patience": "auto"}
    expected = values | {"ranges": ((1.0, 2.0),), "pair": (1, "b")}
    assert arguments_of(train, values) == expected

    def choose(seed, *, shape: list[list[int]] | tuple[int, ...] | None = None): ...

    assert arguments_of(choose, {"shape": [1, 2]}) == {"shape": (1, 2)}
    assert arguments_of(choose, {"shape": [[1], [2]]}) == {"shape": [[1], [2]]}
    with pytest.raises(ValueError, match="has no hyperparameter widht"):
        arguments_of(train, {"widht": 3})


class Text: ...


def wrong(
    first,
    /,
    *rest,
    width: int = 3.5,
    unknown: Nope = 1,  # noqa: F821 (that is the mistake)
    table: dict = {},  # noqa: B006
    number: int | float = 1,
    size: int = None,  # noqa: RUF013 (that is the mistake)
    model: int = 3,
    low: Annotated[int, Ge(1)] = 0,
    text: Annotated[str, Ge(1)] = "a",
    optional: Annotated[int | None, Ge(1)] = None,
    choice: Literal[b"a"] = b"a",
    own: Text = Text(),  # noqa: B008
    any_: Any = 1,
    bare: tuple = (),
    rate=None,
    **more,
): ...


MISTAKES = {
    "first": "positional only",
    "rest": "*rest hides",
    "width": "its default is invalid: it must be a whole number, but got 3.5",
    "unknown": "its annotation 'Nope' can't be read (NameError",
    "table": "a study file can't give its type dict",
    "number": "int | float would make two trials",
    "size": "its default is invalid: it must be a number, but got nothing",
    "model": "the name is reserved in study files",
    "low": "its default is invalid: it must be greater than or equal to 1, but got 0",
    "text": "its default is invalid: it can't be compared with the limits of its annotation",
    "optional": "limits can't apply to",
    "choice": "a Literal must be of texts, whole numbers, True, False or None, but has b'a'",
    "own": "a study file can't give its type Text",
    "any_": "a study file can't give its type",
    "bare": "a study file can't give its type tuple",
    "rate": "it has no annotation, and its default None implies none; write its type, such as rate: float",
    "more": "**more hides",
    "seed": "it is missing",
}


def test_one_message_has_all_mistakes():
    """The message names each faulty parameter with its rule, and the function's file and line."""
    with pytest.raises(SignatureError) as refused:
        hyperparameters_of(wrong, reserved={"model", "seeds"})
    assert [name for name, _ in refused.value.mistakes] == list(MISTAKES)
    for name, message in refused.value.mistakes:
        assert MISTAKES[name] in message
        assert f"  {name}: {message}" in str(refused.value)
    line = inspect.getsourcelines(wrong)[1]
    assert str(refused.value).startswith(f"{__file__}:{line}: wrong: 18 mistakes in its signature")


def test_a_decorated_function_has_its_own_signature():
    """A wrapper by functools.wraps has the signature, file, line and annotations of the wrapped function."""

    @functools.wraps(train)
    def wrapper(*args, **kwargs):
        return train(*args, **kwargs)

    assert list(hyperparameters_of(wrapper)) == list(DEFAULTS)


async def late(seed): ...


@pytest.mark.parametrize(
    ("called", "message"), [(late, "it is asynchronous"), (dict.fromkeys, "missing"), (7, "can't read its signature")]
)
def test_uncallable_functions_are_refused(called, message):
    """Functions that don't return a dict, or have no readable signature, are refused with a message."""
    with pytest.raises(SignatureError, match=message):
        hyperparameters_of(called)


@dataclass(frozen=True)
class Base:
    turns: Annotated[float, Field(gt=0)] = 2
    known: ClassVar[int] = 3


@dataclass(frozen=True, kw_only=True)
class Spirals(Base):
    sizes: list[int] = field(default_factory=lambda: [4, 8])
    classes: int
    cached: int = field(default=0, init=False)


def test_the_fields_of_a_dataclass_are_hyperparameters():
    """Inherited fields and those with a factory are read; fields outside the constructor aren't."""
    declared = hyperparameters_of(Spirals, given=())
    defaults = {name: hyperparameter.default for name, hyperparameter in declared.items()}
    assert defaults == {"turns": 2.0, "sizes": [4, 8], "classes": REQUIRED}


class Network:
    def __init__(self, inputs: int, outputs: int, *, hidden: int = 8) -> None: ...


def test_a_builder_is_given_other_names():
    """The caller names the arguments that a builder of models gets from the study."""
    assert list(hyperparameters_of(Network, given=("inputs", "outputs"), optional=())) == ["hidden"]
    with pytest.raises(SignatureError, match="it is missing: a study gives it to each call"):
        hyperparameters_of(Network, given=("inputs", "outputs", "seed"))


@given(st.one_of(st.integers(-(2**63) + 1, 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_canonical_values_stay_as_they_are(value):
    """A canonical value survives JSON and `canonical` unchanged."""
    declared = Hyperparameter(type=hyperparameters_of(loose)["value"].type)
    canonical_value = canonical(declared, value)
    assert json.dumps(canonical(declared, json.loads(json.dumps(canonical_value)))) == json.dumps(canonical_value)


def loose(seed, *, value: float | str): ...


def test_a_validator_must_return_a_json_value():
    """A user's validator may change a value, but only to one that JSON can hold."""

    def half(
        seed,
        *,
        value: Annotated[int, AfterValidator(lambda value: value / 2)],
        set_: Annotated[int, AfterValidator(lambda value: {value})],
    ): ...

    declared = hyperparameters_of(half)
    assert canonical(declared["value"], 3) == 1.5
    with pytest.raises(ValueError, match="must be a text, a number, true, false, nothing or a list, but is set"):
        canonical(declared["set_"], 3)
