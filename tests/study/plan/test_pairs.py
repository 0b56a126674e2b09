"""Properties of pairs: compared cells differ in their model, and in no axis swept over both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.errors import InputError
from study.plan.pairs import pairs
from study.plan.plan import study_cells
from study.records import Cell
from study.spec import parse_spec

HEAD = "study: a\ntask: {name: simple}\nseeds: 2\n"


def swept(text: str) -> list[Cell]:
    return study_cells(parse_spec(HEAD + text, source="a.yaml"))


def test_a_schedule_of_one_model_meets_the_same_cell_of_the_other() -> None:
    """Each schedule of the NMU is compared with the NAC-mul cell that has as many hidden units."""
    compared = pairs(
        swept(
            "models: [NMU, NAC-mul]\ngrid: {hidden_size: [2, 3]}\n"
            "zip: {s: [{sparsity_strength: 0}, {sparsity_strength: 1}]}"
        ),
        "NAC-mul",
    )
    assert [
        (a.model, a.value("hidden_size"), a.value("sparsity_strength"), b.model, b.value("hidden_size"))
        for a, b in compared
    ] == [
        ("NMU", 2, 0.0, "NAC-mul", 2),
        ("NMU", 2, 1.0, "NAC-mul", 2),
        ("NMU", 3, 0.0, "NAC-mul", 3),
        ("NMU", 3, 1.0, "NAC-mul", 3),
    ]


def test_a_models_own_fixed_value_doesnt_prevent_pairs() -> None:
    """A model with its own fixed learning rate is still compared, because the rate belongs to the model."""
    ((cell, counterpart),) = pairs(swept("models: [{name: NMU, fixed: {learning_rate: 0.01}}, NAC-mul]"), "NAC-mul")
    assert (cell.value("learning_rate"), counterpart.value("learning_rate")) == (0.01, 0.001)


def test_several_sweeps_of_the_other_model_are_all_compared() -> None:
    """If only the reference model is swept, a cell is compared with each of the reference's cells."""
    compared = pairs(
        swept("models:\n  - NAC-mul\n  - {name: NMU, zip: {s: [{sparsity_strength: 0}, {sparsity_strength: 1}]}}"),
        "NMU",
    )
    assert [(a.model, b.value("sparsity_strength")) for a, b in compared] == [("NAC-mul", 0.0), ("NAC-mul", 1.0)]


@given(st.permutations(["NMU", "NAC-mul", "NALU", "NAC-add"]), st.sampled_from(["NMU", "NAC-mul"]))
def test_every_other_cell_has_a_counterpart_whatever_the_order(models: list[str], versus: str) -> None:
    """With models in any order, each cell of the other models is compared once, with its counterpart."""
    compared = pairs(swept(f"models: {models}\ngrid: {{hidden_size: [2, 3], learning_rate: [1, 0.1]}}"), versus)
    assert {(a.model, a.value("hidden_size"), a.value("learning_rate")) for a, _ in compared} == {
        (model, size, rate) for model in models if model != versus for size in (2, 3) for rate in (1.0, 0.1)
    }
    assert len(compared) == 12
    assert all(b.model == versus and b.value("hidden_size") == a.value("hidden_size") for a, b in compared)
    assert all(b.value("learning_rate") == a.value("learning_rate") for a, b in compared)


def test_a_cell_without_a_counterpart_is_reported() -> None:
    """If one model is swept further than the other, the cells without a counterpart are named."""
    cells = swept("models: [{name: NMU, grid: {hidden_size: [2, 5]}}, NAC-mul]\nfixed: {learning_rate: 0.1}")
    with pytest.raises(InputError, match=r"different_from: NMU with hidden_size 5 has no counterpart .* NAC-mul"):
        pairs(cells, "NAC-mul")
