"""Properties of a training function's family: cells don't depend on their notation or on the code."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from study.interface.declarations import Metric
from study.interface.function_family import OWN_NAMES, FunctionFamily
from study.interface.signature import hyperparameters_of
from study.plugins.families import family_of


def train(
    seed: int,
    *,
    rate: Annotated[float, Field(gt=0)],
    width: int = 32,
    decay: float | None = None,
    activation: Literal["relu", "tanh", 2] = "relu",
    layers: tuple[int, ...] = (8, 8),
    pair: tuple[int, float] = (1, 2.0),
    betas: list[float] = [0.9],  # noqa: B006
    is_deep: bool = False,
    name: str = "a",
) -> dict[str, float]:
    return {"loss": rate}


FAMILY = FunctionFamily(
    "lab:train",
    hyperparameters_of(train),
    {"loss": Metric(), "accuracy": Metric(higher_is_better=True, low=0.0, high=1.0)},
    code="version:1",
    iterations=10,
)
STORED = FunctionFamily.from_json(FAMILY.to_json())
NUMBERS = st.floats(0.1, 1e6) | st.integers(1, 10**6)
VALUES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"rate": NUMBERS},
    optional={
        "width": st.integers(-(2**31), 2**31) | st.integers(-(10**6), 10**6).map(float),
        "decay": st.none() | NUMBERS,
        "activation": st.sampled_from(["relu", "tanh", 2]),
        "layers": st.lists(st.integers(0, 10**6)),
        "pair": st.tuples(st.integers(0, 9), NUMBERS).map(list),
        "betas": st.lists(NUMBERS),
        "is_deep": st.booleans(),
        "name": st.text(),
    },
)


def typed(value: Any) -> Any:
    """Return a value with its type, so that 1 and 1.0 differ."""
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(VALUES)
def test_a_cell_is_the_same_without_the_code(values: dict[str, Any]) -> None:
    """The stored declarations give equal values of equal types, so ids don't change."""
    before, after = (family.canonical("function", "lab:train", values) for family in (FAMILY, STORED))
    assert list(before) == list(after)
    assert {name: typed(value) for name, value in before.items()} == {
        name: typed(value) for name, value in after.items()
    }


def test_defaults_are_filled_in() -> None:
    """A default written out gives the same cell, as do 32.0 for an int and 1 for a float."""
    plain = FAMILY.canonical("function", "lab:train", {"rate": 1.0})
    assert plain == FAMILY.canonical("function", "lab:train", {"rate": 1, "width": 32.0, "layers": [8, 8]})
    assert plain["layers"] == [8, 8]
    assert type(plain["width"]) is int
    assert type(plain["rate"]) is float
    assert list(plain)[-3:] == list(OWN_NAMES)
    assert plain["metrics"] == "loss lower, accuracy higher"


@pytest.mark.parametrize("values", [{}, {"rate": "fast"}, {"rate": 1.0, "width": 1.5}, {"rate": 1.0, "pair": [1]}])
@pytest.mark.parametrize("family", [FAMILY, STORED], ids=["declared", "stored"])
def test_uncallable_arguments_are_refused(family: FunctionFamily, values: dict[str, Any]) -> None:
    """A missing required argument and a value of another type are errors, both with and without the code."""
    if family is STORED and "pair" in values:
        pytest.skip("the lengths of stored lists aren't checked again")
    with pytest.raises(ValueError, match="must"):
        family.canonical("function", "lab:train", values)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"function": 1, "hyperparameters": 2}'])
def test_foreign_declarations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"declarations|Expecting"):
        FunctionFamily.from_json(text)


def test_packs_are_small_where_trials_are_few() -> None:
    """Few trials are spread over the workers; many trials are put into larger packs."""
    sizes = [FAMILY.most_in_pack(None, trials, 2) for trials in (1, 60, 640, 100_000)]  # type: ignore[arg-type]
    assert sizes == [1, 1, 10, 64]


def test_a_task_of_no_family_is_an_error() -> None:
    from study.records import Cell

    assert isinstance(family_of(Cell("function", "lab:train", {})), FunctionFamily)
    with pytest.raises(ValueError, match="juggling"):
        family_of(Cell("juggling", "NMU", {}))
