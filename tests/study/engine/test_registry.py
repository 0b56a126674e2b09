"""The choice of an engine for a cell and a device, and errors of wrong choices."""

from __future__ import annotations

import pytest

from study.engine import engine_for, passed_over
from study.errors import InputError
from study.records import Cell
from tasks.arithmetic import TASKS, ArithmeticTask
from tests.engines import ENGINES
from tests.study.builders import small_cell


def test_auto_takes_the_first_that_can():
    """On CPU and GPU, auto selects the fused engine, or the torch engine for cells that the fused one refuses."""
    assert engine_for("auto", small_cell(), "cpu").name == "fused"
    assert engine_for("auto", small_cell("NMU-normalized"), "cpu").name == "torch"
    assert engine_for("auto", small_cell(), "cuda").name == "fused-gpu"
    assert engine_for("auto", small_cell("NMU-normalized"), "cuda").name == "torch"


def test_auto_passes_over_engines_that_do_not_know_the_task(monkeypatch):
    """A task whose class no compiled engine knows goes to the torch engine, and refusals have a reason."""

    class Other(ArithmeticTask):
        pass

    simple = {"input_size": 4, "subset_ratio": None, "overlap_ratio": None, "simple": True}
    monkeypatch.setitem(TASKS, "simple", lambda **values: Other(**(simple | values)))
    cell = small_cell()
    assert engine_for("auto", cell, "cpu").name == engine_for("auto", cell, "cuda").name == "torch"
    reason = "it doesn't know the task simple (class Other), but ArithmeticTask only"
    assert passed_over(ENGINES["torch"], cell, "cpu") == {"fused": reason}
    assert passed_over(ENGINES["torch"], cell, "cuda") == {"fused-gpu": reason}
    with pytest.raises(InputError, match="fused: it doesn't know the task simple"):
        engine_for("fused", cell, "cpu")


@pytest.mark.parametrize("name", ENGINES)
def test_built_in_engines_refuse_user_tasks(name):
    """A built-in engine refuses a user's task without reading its cell."""
    cell = Cell("means:Means", "means:mlp", {"subset": 4, "iterations": 10})
    reason = "it trains only the built-in tasks arithmetic, simple, single-module, not means:Means"
    assert ENGINES[name].refuses(cell) == reason
    with pytest.raises(InputError, match=reason):
        engine_for(name, cell, ENGINES[name].devices[0])


def test_a_wrong_engine_is_an_error():
    """An unknown engine, or one that can't train the cell there, is an error with the reason."""
    with pytest.raises(InputError, match="must be auto, fused, fused-gpu, torch, or an engine"):
        engine_for("fast", small_cell(), "cpu")
    with pytest.raises(InputError, match="doesn't run on cuda"):
        engine_for("fused", small_cell(), "cuda")
    with pytest.raises(InputError, match="no family of tasks has a task called 'other'"):
        engine_for("auto", Cell("other", "NMU", {}), "cpu")


@pytest.mark.parametrize("name", ENGINES)
def test_preparing_may_be_repeated(name):
    """An engine can be prepared repeatedly, by any cell that it accepts."""
    ENGINES[name].prepare(small_cell())
    ENGINES[name].prepare(small_cell("linear"))
