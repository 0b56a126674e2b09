"""Distinguishing columns of rows, and rows that share a question."""

from __future__ import annotations

from study import words
from study.arrow import results_table
from study.records import Outcome, Result, Trial, value
from study.reports import cell_rows
from study.spec import canonical_cell
from study.summaries.questions import cell_questions, varying
from tasks.arithmetic.family import ArithmeticFamily
from tests.study.builders import published_cell, summarised


def test_varying_tells_every_cell_apart(demo):
    """No two cells have the same values in all varying columns."""
    summaries, labels = demo
    cells = [s.cell for s in summaries]
    for chosen_labels in (labels, {}):
        keys = varying(cells, chosen_labels)
        assert len({tuple(value(cell, key, chosen_labels) for key in keys) for cell in cells}) == len(cells)


def test_a_label_stands_for_the_hyperparameters_that_move_together(demo):
    """With labels, the schedule is one column; without labels, the strength distinguishes schedules."""
    summaries, labels = demo
    cells = [s.cell for s in summaries]
    assert varying(cells, labels) == ["model", "schedule", "hidden_size"]
    assert varying(cells) == ["model", "hidden_size", "sparsity_strength"]


def test_prescribed_values_of_a_model_dont_vary():
    """Schedules and bounds prescribed by models don't count as varying columns."""
    assert varying([published_cell("NMU"), published_cell("NAU"), published_cell("NALU")]) == ["model"]
    assert varying([published_cell("NMU")]) == []


def test_a_default_beside_a_value_varies():
    """The default None counts as a value: a default and a given initial variance are two points."""
    cells = [published_cell("NMU"), published_cell("NMU", init_variance=0.01)]
    assert varying(cells) == ["init_variance"]
    assert [words.format_cell_value(cell, "init_variance", {}) for cell in cells] == ["default", "0.01"]


def test_tables_and_statistics_have_the_same_questions(demo):
    """Rows that a table compares have the same restriction time."""
    summaries, labels = demo
    rows = cell_rows(summaries, labels)
    assert cell_questions([s.cell for s in summaries], labels) == rows.questions()


def test_cells_of_a_question_are_restricted_to_the_shortest_plan():
    """Each swept length has its own restriction time; compared points of a named axis share the smallest one."""
    short, long = (published_cell("NMU", iterations=i) for i in (1000, 5000))
    results = results_table(
        Result(trial=Trial(cell, seed), outcome=Outcome.UNSOLVED, iterations=cell.iterations)
        for cell in (short, long)
        for seed in range(3)
    )
    assert [s.time_to_success_until for s in summarised(results)] == [1000, 5000]
    labels = {short.id: {"protocol": "short"}, long.id: {"protocol": "long"}}
    assert [s.time_to_success_until for s in summarised(results, labels=labels)] == [1000, 1000]
    assert summarised(results.slice(3), planned={short: 3}, labels=labels)[1].time_to_success_until == 1000


def test_an_axis_of_task_values_belongs_to_the_question():
    """Ranges of numbers are questions, whatever their names; schedules are compared."""
    ranged_cells = [
        single_cell(model, low, high)
        for low, high in ((1.0, 2.0), (-2.0, -1.0))
        for model in ("NRU", "RealNPU-modified")
    ]
    labels = {cell.id: {"range": str(cell.value("interpolation_range"))} for cell in ranged_cells}
    fields = ArithmeticFamily().question_fields
    rows = cell_rows(summarised(results_table([]), planned=dict.fromkeys(ranged_cells, 3)), labels, (), fields)
    assert rows.methods == {"model"}
    assert len(set(rows.questions())) == 2
    cells = [published_cell("NMU", sparsity_strength=s) for s in (0.0, 1.0)]
    schedules = {cell.id: {"schedule": str(cell.value("sparsity_strength"))} for cell in cells}
    compared = cell_rows(summarised(results_table([]), planned=dict.fromkeys(cells, 3)), schedules, (), fields)
    assert "schedule" in compared.methods


def single_cell(model, low, high):
    """Build a cell of the single-module task with inputs between two numbers."""
    ends = {"interpolation_range": ((low, high),), "extrapolation_range": ((2 * low, 2 * high),)}
    threshold = {"success_epsilon": None, "success_threshold": 1e-5}
    return canonical_cell("single-module", model, {"operation": "div"} | ends | threshold)
