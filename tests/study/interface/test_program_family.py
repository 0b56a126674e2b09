"""Families of programs: cells don't depend on their notation or on the code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from study.interface.declarations import Metric
from study.interface.family import Family
from study.interface.program import Program, Results
from study.interface.program_family import OWN_NAMES, ProgramFamily, kind_of_values
from study.plugins.families import declared_family, family_of
from study.records import Cell

KINDS = {"lr": "number", "width": "whole", "name": "text", "fast": "flag", "layers": "any"}
VALUES = {"lr": 0.1, "width": 8, "name": "adam", "fast": True, "layers": [8, 8]}
METRICS = {"loss": Metric(), "accuracy": Metric(higher_is_better=True, low=0.0, high=1.0)}
PROGRAM = Program(("python", "train.py", "--lr={lr}"), Results("csv", "log.csv", "epoch"))
NUMBERS = st.floats(-1e6, 1e6) | st.integers(-(2**60), 2**60) | st.integers(-(10**6), 10**6).map(float)


def family_with(program: Program = PROGRAM, **changed: Any) -> ProgramFamily:
    settings = {"kinds": KINDS, "metrics": METRICS, "code": "version:1", "iterations": 9} | changed
    return ProgramFamily("train.py", program, **settings)


FAMILY = family_with()
STORED = declared_family(FAMILY.to_json())


def cell(values: dict[str, Any], family: Family = FAMILY) -> Cell:
    return Cell("program", "train.py", family.canonical("program", "train.py", VALUES | values))


def test_integers_and_equal_floats_are_one_cell() -> None:
    """1 and 1.0 give a program the same text, so they are one cell; 1 and true aren't."""
    assert cell({"lr": 1.0}).id == cell({"lr": 1}).id != cell({"lr": 1.5}).id
    assert cell({"layers": [1.0, [2.0]]}).id == cell({"layers": (1, [2])}).id
    assert cell({"layers": True}).id != cell({"layers": 1}).id != cell({"layers": "1"}).id
    assert type(cell({"lr": 1.0}).value("lr")) is int
    assert cell({"lr": 1e300}).value("lr") == 1e300


@given(NUMBERS, NUMBERS)
def test_numbers_are_one_cell_if_they_are_equal(first: float, second: float) -> None:
    assert (cell({"lr": first}).id == cell({"lr": second}).id) == (first == second)
    assert cell({"lr": first}).value("lr") == first


@given(st.fixed_dictionaries(dict.fromkeys(KINDS, NUMBERS | st.text() | st.none() | st.lists(NUMBERS))))
def test_a_cell_is_the_same_without_the_code(values: dict[str, Any]) -> None:
    """The stored declaration of a program gives the same ids in the same order."""
    before, after = cell(values), cell(values, STORED)
    assert (before.id, list(before.values)) == (after.id, list(after.values))


def test_everything_is_stored() -> None:
    assert isinstance(STORED, ProgramFamily)
    assert STORED.to_json() == FAMILY.to_json()
    assert (STORED.program, STORED.metrics, STORED.iterations) == (PROGRAM, METRICS, 9)
    shell = Program(("a | b",), Results("lines", "json"), is_shell=True, resumes=True)
    assert ProgramFamily.from_json(family_with(shell).to_json()).program == shell


def test_a_cell_has_everything_that_determines_its_numbers() -> None:
    """A cell has the command, results, code, metrics and length, but not the resume setting."""
    values = cell({}).values
    assert [values[name] for name in OWN_NAMES] == [
        "python train.py --lr={lr}", "csv log.csv, step epoch", "version:1", "loss lower, accuracy higher", 9
    ]  # fmt: skip
    words, results = PROGRAM.words, PROGRAM.results
    others = [
        family_with(Program((*words, "-v"), results)),
        family_with(Program(words, Results("csv", "log.csv"))),
        family_with(code="version:2"),
        family_with(metrics={"loss": Metric()}),
        family_with(iterations=None),
    ]
    assert len({cell({}, family).id for family in (FAMILY, *others)}) == 6
    assert cell({}, family_with(Program(words, results, resumes=True))).id == cell({}).id


def test_a_shell_makes_another_cell() -> None:
    """The same command in a shell is another cell, because a shell may interpret it differently."""
    text = "train --name $HOME"
    in_shell = family_with(Program((text,), PROGRAM.results, is_shell=True))
    without_shell = family_with(Program(tuple(text.split()), PROGRAM.results))
    assert cell({}, in_shell).id != cell({}, without_shell).id
    assert cell({}, in_shell).value("command") == "/bin/sh -c 'train --name $HOME'"


def test_a_missing_value_is_none() -> None:
    """A missing value is None in the cell, and the program uses its own default."""
    assert FAMILY.canonical("program", "train.py", {})["lr"] is None
    assert FAMILY.checks == []


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "whole"),
        ([1, 2.0], "whole"),
        ([1, 0.5], "number"),
        ([float("inf")], "number"),
        ([1e20, 1], "number"),
        ([2**62, 1.0], "whole"),
        ([True, False], "flag"),
        (["a", ""], "text"),
        ([True, 1], "any"),
        ([1, "auto"], "any"),
        ([None, 0.1], "any"),
        ([[8, 8]], "any"),
    ],
)
def test_a_hyperparameter_has_the_kind_of_all_its_values(values: list[Any], kind: str) -> None:
    assert kind_of_values(values) == kind


@pytest.mark.parametrize(
    ("name", "value", "must"),
    [
        ("lr", "fast", "must be a number"),
        ("lr", float("nan"), "must be a finite number"),
        ("width", 1.5, "must be a whole number"),
        ("fast", 1, "must be true or false, as its other values are, but got 1"),
        ("name", 1, "must be a text, as its other values are, but got 1"),
        ("layers", {"a": 1}, "must be a text, a number, true, false, nothing or a list"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: Any, must: str) -> None:
    """A value of another kind than the declared ones is refused, as in overrides of the command line."""
    with pytest.raises(ValidationError, match=must):
        TypeAdapter(FAMILY.hyperparameters[name].type).validate_python(value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"function": "lab:train"}', FAMILY.to_json().replace("whole", "x")])
def test_foreign_declarations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"these aren't the declarations of a program|Expecting value"):
        ProgramFamily.from_json(text)


def test_cells_of_programs_have_a_family() -> None:
    assert family_of(cell({})).shape(cell({})) == ()
