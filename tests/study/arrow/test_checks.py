"""Checks of imported rows: ids must match their content, and texts must be such as an engine writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from study.arrow import complaint, names_complaint, results_table, with_short_errors
from study.arrow.checks import MOST_ERROR_CHARACTERS
from study.records import Cell, Outcome, Result, Sources, Trial

CELLS = [Cell("function", "mine:train", {"width": width, "layers": [1, 2]}) for width in (8, 8.5, 9)]
TRIALS = [Trial(cell, seed) for cell in CELLS for seed in (0, 1, 2**62, Sources(7, 3).seed)]


def table(**changes: Any) -> pa.Table:
    """Return results of all trials; `changes` replaces the last row's value in the named columns."""
    results = results_table(
        Result(trial=trial, outcome=Outcome.FINISHED, metrics={"loss": 0.5}, engine="function", device="cpu")
        for trial in TRIALS
    )
    for name, value in changes.items():
        values = [*results[name].to_pylist()[:-1], value]
        field = results.field(name)
        results = results.set_column(results.column_names.index(name), field, pa.array(values, field.type))
    return results


def test_rows_of_this_package_are_accepted() -> None:
    """Rows with integers among floats, lists, combined seeds or failures pass, as their recomputed ids match."""
    assert complaint(table()) is None
    assert complaint(table(outcome="failed", error='any """ text\x1b[2J', engine="", device="")) is None
    assert complaint(table().slice(0, 0)) is None


@pytest.mark.parametrize("name", ["torch", "fused", "my_lab.engine-2", "Größe 1"])
def test_engines_have_any_plain_name(name: str) -> None:
    """An engine may have any name of plain characters, such as a plug-in's."""
    assert complaint(table(engine=name)) is None


@pytest.mark.parametrize(
    "name",
    ["cuda", "cuda:0", "NVIDIA H100 80GB HBM3", "Tesla V100-PCIE-16GB", "Intel(R) Arc(TM) A770", "AMD MI250X / MI250"],
)
def test_devices_have_the_names_of_their_makers(name: str) -> None:
    """A device may have the name of its hardware model."""
    assert complaint(table(device=name)) is None


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("model", "mine:other", "cell id '.*' doesn't match its task, model and hyperparameters"),
        ("task", "simple", "cell id '.*' doesn't match its task, model and hyperparameters"),
        ("width", 10.0, "cell id '.*' doesn't match its task, model and hyperparameters"),
        ("layers", "[2, 1]", "cell id '.*' doesn't match its task, model and hyperparameters"),
        ("whole_numbers", None, "cell id '.*' doesn't match its task, model and hyperparameters"),
        ("cell_id", "0123456789abcdef", "cell id '0123456789abcdef' doesn't match"),
        ("seed", 100, "trial id '.*' doesn't match its cell and seed 100"),
        ("trial_id", "0123456789abcdef", "trial id '0123456789abcdef' doesn't match its cell and seed"),
        ("trial_id", None, "it has rows without trial_id"),
        ("outcome", None, "it has rows without outcome"),
        ("outcome", "won", "outcome must be one of solved, .*, but is 'won'"),
        ("engine", 'fused"""\nimport os', "engine must be the name of an engine"),
        ("engine", "x" * 201, "engine must be the name of an engine"),
        ("device", "cpu\n", "device must be the name of a device"),
        ("device", "<b>", "device must be the name of a device"),
        ("criterion", "loss < 1\x1b[2J", "criterion must have at most 10,000 characters and no control characters"),
    ],
)
def test_changed_columns_are_named(column: str, value: Any, reason: str) -> None:
    """A row whose ids don't match its content, or with an invalid text, is reported with the reason."""
    error = complaint(table(**{column: value}))
    assert error is not None
    assert pa.compute.match_substring_regex(pa.array([error]), reason)[0].as_py(), error
    assert error.isprintable()


def test_a_seed_that_no_sources_make_is_refused() -> None:
    """A negative seed that doesn't encode combined sources is refused, even with a matching trial id."""
    trial = Trial(CELLS[0], -1)
    results = results_table([Result(trial=trial, outcome=Outcome.FINISHED)])
    assert "seed -1 is negative, but doesn't encode" in str(complaint(results))


@pytest.mark.parametrize("name", ["loss\x1b]0;title\x07", "loss\r", "l" * 1001])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    """A metric whose name holds control characters or is too long is refused, also as metadata of a column."""
    plain = pa.field("loss", pa.float64(), metadata={"study.role": "metric", "study.kind": "number"})
    assert names_complaint(pa.schema([plain])) is None
    assert names_complaint(pa.schema([plain.with_name(name)])) is not None
    stands_for = plain.with_metadata({"study.role": "metric", "study.name": name})
    assert names_complaint(pa.schema([stands_for])) is not None


def test_long_errors_are_cut_off() -> None:
    """An error longer than the limit is cut off; others stay unchanged."""
    results = with_short_errors(table(outcome="failed", error="é" * MOST_ERROR_CHARACTERS * 2))
    texts = results["error"].to_pylist()
    assert (len(texts[-1]), texts[-1][-5:], texts[0]) == (MOST_ERROR_CHARACTERS, "(cut)", None)
    plain = table(outcome="failed", error="no")
    assert with_short_errors(plain) is plain
