"""Every preset is a study that can be planned, of the size that was published."""

from __future__ import annotations

import pytest

from study.analysis.comparison import matches
from study.analysis.published import published
from study.engine import engine_for
from study.plan.packs import make_packs, shape_key
from study.plan.plan import cells, make_plan
from study.presets import preset_names, preset_text
from study.records import Cell, Pack, Trial
from study.spec import check_size, load_spec

# Cells and trials.
SIZES = {
    "demo": (20, 400),
    "gate": (8, 200),
    "hidden-size": (45, 2250),
    "hidden-size-ablation": (36, 1800),
    "init-variance": (30, 600),
    "input-size": (70, 700),
    "learning-rate": (9, 225),
    "overlap": (30, 300),
    "range": (35, 350),
    "reproduction": (5, 100),
    "simple": (4, 400),
    "sparsity": (24, 240),
    "static": (66, 6600),
    "subset": (20, 200),
}


def test_presets_are_listed() -> None:
    """The presets are these, and no file is forgotten."""
    assert preset_names() == sorted(SIZES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_presets_have_their_size(name: str) -> None:
    """A preset is called after its study, asks a question, names its source, and has the right number of trials."""
    spec = load_spec(name)
    check_size(spec, yes=False)
    found = make_plan(spec)
    assert spec.study == name
    assert spec.question.endswith("?")
    assert preset_text(name).startswith("# ")
    assert (len(found.cells), len(found.trials)) == SIZES[name]
    assert sum(len(pack.trials) for pack in make_packs(found.trials, slots=4)) == len(found.trials)


@pytest.mark.parametrize(
    ("name", "table", "count"),
    [
        ("simple", "simple_summary", 3),
        ("hidden-size", "hidden_size", 45),
        ("hidden-size-ablation", "hidden_size_ablation", 36),
        ("static", "static_seeds", 20),
    ],
)
def test_presets_repeat_what_was_published(name: str, table: str, count: int) -> None:
    """Every published cell of a table is repeated by a cell of its preset."""
    cells = make_plan(load_spec(name)).cells
    rows = [row for row in published() if row.table == table]
    assert sum(any(matches(cell, row) for cell in cells) for row in rows) == len(rows) == count


def test_the_demo_has_three_schedules() -> None:
    """The NMU of the demo is trained with three labelled schedules, and NAC-mul, which has none, once."""
    found = make_plan(load_spec("demo"))
    labels = [found.labels.get(cell.id, {}).get("schedule") for cell in found.cells]
    assert labels == ["off", "early strong", "late mild"] * 5 + [None] * 5


@pytest.mark.parametrize("name", preset_names())
def test_presets_run(name: str) -> None:
    """A trial of every shape that a preset asks for trains for a few iterations, on the engine that would take it."""
    shapes: dict[object, Cell] = {}
    for cell in cells(load_spec(name)):
        shapes.setdefault(shape_key(cell), cell)
    brief = {"iterations": 4, "evaluate_every": 2, "evaluation_rows": 20, "batch_size": 8}
    for cell in shapes.values():
        pack = Pack((Trial(cell.replace(**brief), 0),))
        training = engine_for("auto", cell, "cpu").start(pack, device="cpu")
        while not training.done:
            training.advance(1.0)
        (result,), (curve,), _ = training.finish()
        assert result.iterations == 4
        assert len(curve.iteration) == 3
