"""Properties of the plan: ids depend on content only, and packs hold each trial once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.arrow import cell_columns
from study.interface.packed_family import PackedFamily
from study.plan.costs import count_draws, pack_cost
from study.plan.packs import bundle_share, make_bundles, make_packs, shape_key
from study.plan.plan import Plan, make_plan, study_cells
from study.records import Cell, Pack, Trial
from study.spec import load_spec, parse_spec
from tasks.arithmetic.cell import typed_cell
from tests.engines import ENGINES

DEMO = """
study: demo
question: Why?
task: {name: simple}
models: [NMU, NAC-mul]
grid: {hidden_size: [2, 3]}
zip:
  schedule:
    - {label: off, sparsity_strength: 0}
    - {label: early, sparsity_strength: 10, sparsity_start: 20, sparsity_end: 40}
seeds: 50
"""


def planned(text: str = DEMO, **replaced: str) -> Plan:
    for old, new in replaced.items():
        assert f"{old}:" in text
        lines = [f"{old}: {new}" if line.startswith(f"{old}:") else line for line in text.splitlines()]
        text = "\n".join(lines)
    return make_plan(parse_spec(text, source="demo"))


def test_ids_never_change() -> None:
    """The ids of known cells and trials never change: stored results are found by them."""
    plan = planned()
    assert [cell.id for cell in plan.cells[:2]] == ["c4a95f7d3bbbc776", "a5185d9a70b160ac"]
    assert plan.trials[0].id == "5cf5112e3ae37b1c"


def test_names_and_order_are_not_in_ids() -> None:
    """Renaming the study, its question, an axis or a label changes no id."""
    renamed = planned(DEMO.replace("schedule", "plan").replace("early", "soon"), study="other", question="How?")
    assert {trial.id for trial in renamed.trials} == {trial.id for trial in planned().trials}


def test_more_seeds_leave_old_trials() -> None:
    """From 50 to 300 seeds, the first 50 trials stay the same."""
    before, after = planned(), planned(seeds="300")
    old, new = ({trial.id for trial in p.trials} for p in (before, after))
    assert old < new
    assert len(new - old) == 250 * len(before.cells)


OTHER: dict[str, Any] = {
    "task": "arithmetic",
    "operation": "add",
    "input_size": 10,
    "subset_ratio": 0.5,
    "overlap_ratio": 0.25,
    "subsets": 3,
    "interpolation_range": ((1.0, 2.5),),
    "extrapolation_range": ((-6.0, -2.0), (2.0, 6.0)),
    "distribution": "halves",
    "interpolation_mean": 1.0,
    "extrapolation_mean": 2.0,
    "deviation": 3.0,
    "model": "NAU",
    "hidden_size": 5,
    "init_variance": 0.01,
    "init_range": ((0.5, 1.0),),
    "init_signs": "two_negative",
    "bounds": "regularized",
    "out_of_bounds_strength": 1.0,
    "out_of_bounds_shape": "linear",
    "sparsity_strength": 1.0,
    "sparsity_start": 5,
    "sparsity_end": 500,
    "sparsity_shape": "squared",
    "sparsity_scaling": "exponential",
    "l1_strength": 1e-3,
    "l1_first_strength": 1e-4,
    "outward_strength": 0.1,
    "outward_start": 100,
    "restart_memory": 1000,
    "clip_norm": 1.0,
    "clip_value": 0.5,
    "optimizer": "sgd",
    "learning_rate": 0.5,
    "momentum": 0.9,
    "batch_size": 64,
    "iterations": 7000,
    "evaluate_every": 10,
    "best_step_window": 10,
    "evaluation_rows": 100,
    "stop": "when_decided",
    "relative_error": True,
    "init": "independent",
    "success_epsilon": 1e-4,
    "success_threshold": 1.0,
}


@pytest.mark.parametrize("name", cell_columns())
def test_every_field_is_in_the_id(name: str) -> None:
    """A change of any field of a cell changes its id and its trials' ids."""
    cell = planned().cells[1]
    changed = cell.replace(**{name: OTHER[name]})
    assert changed.id != cell.id
    assert Trial(changed, 0).id != Trial(cell, 0).id


def test_equal_cells_are_merged_in_order() -> None:
    """A model outside a zip has one cell for all points of the zip, without a label."""
    plan = planned()
    assert [(c.model, c.value("hidden_size"), c.value("sparsity_strength")) for c in plan.cells] == [
        ("NMU", 2, 0.0),
        ("NMU", 2, 10.0),
        ("NMU", 3, 0.0),
        ("NMU", 3, 10.0),
        ("NAC-mul", 2, None),
        ("NAC-mul", 3, None),
    ]
    assert [plan.labels.get(c.id, {}) for c in plan.cells] == [
        {"schedule": "off"},
        {"schedule": "early"},
        {"schedule": "off"},
        {"schedule": "early"},
        {},
        {},
    ]
    assert study_cells(plan.spec) == list(plan.cells)


def test_trials_are_cells_with_seeds() -> None:
    """The plan has one trial for each cell and seed, and `count` is their number."""
    plan = planned(seeds="[7, 3]")
    assert [(t.cell, t.seed) for t in plan.trials] == [(c, s) for c in plan.cells for s in (7, 3)]
    assert plan.trials_count == len(plan.trials) == 12


@pytest.mark.parametrize("name", cell_columns())
def test_shape_key_lets_the_right_fields_differ(name: str) -> None:
    """Trials share a pack only if they differ in fields that change no shape."""
    cell = planned().cells[1]
    may_differ = {
        "sparsity_strength",
        "sparsity_start",
        "sparsity_end",
        "learning_rate",
        "init_variance",
        "init_range",
        "interpolation_range",
        "extrapolation_range",
        "interpolation_mean",
        "extrapolation_mean",
        "deviation",
        "success_epsilon",
        "success_threshold",
    }
    same = shape_key(cell.replace(**{name: OTHER[name]})) == shape_key(cell)
    assert same == (name in may_differ)


def test_trials_without_sparsity_share_a_pack() -> None:
    """A cell without regulariser trains beside cells with one."""
    off, on, *_ = planned().cells
    assert off.value("sparsity_shape") is None
    assert on.value("sparsity_shape") == "linear"
    assert shape_key(off) == shape_key(on)


POOL = planned(seeds="30").trials


def ids(packs: Sequence[Pack]) -> list[str]:
    return [trial.id for pack in packs for trial in pack.trials]


@settings(max_examples=60)
@given(data=st.data())
def test_every_trial_is_in_one_pack(data: st.DataObject) -> None:
    """Every pending, checkpointed or requested trial is in exactly one pack, beside trials of its shape."""
    pending = data.draw(st.lists(st.sampled_from(POOL), unique=True, max_size=120))
    slots = data.draw(st.integers(1, 12))
    size = data.draw(st.none() | st.integers(1, 40))
    trial_ids = st.lists(st.sampled_from(POOL).map(lambda trial: trial.id), max_size=4)
    kept = data.draw(st.lists(trial_ids, max_size=4))
    packs = make_packs(pending, slots=slots, size=size, checkpointed=kept)
    assert sorted(ids(packs)) == sorted(trial.id for trial in pending)
    assert all(len({shape_key(trial.cell) for trial in pack.trials}) == 1 for pack in packs)
    assert all(pack.trials for pack in packs)
    restored = {tuple(pack_ids) for pack_ids in kept}
    if size is not None:
        new = [pack for pack in packs if tuple(trial.id for trial in pack.trials) not in restored]
        assert all(len(pack.trials) <= size for pack in new)


def test_kept_packs_are_formed_again() -> None:
    """A pack with a checkpoint is restored, unless one of its trials is done or already taken."""
    first = [trial.id for trial in POOL[5:9]][::-1]
    overlapping = [POOL[8].id, POOL[9].id]
    finished = [POOL[20].id, "0123456789abcdef"]
    apart = [POOL[25].id]
    packs = make_packs(POOL, slots=2, checkpointed=[first, overlapping, finished, apart])
    formed = [[trial.id for trial in pack.trials] for pack in packs]
    assert first in formed
    assert apart in formed
    assert overlapping not in formed
    assert finished not in formed


def test_trials_of_different_shapes_are_not_formed_again() -> None:
    """A stored pack of two shapes is ignored, because engines can't train it."""
    packs = make_packs(POOL, slots=1, checkpointed=[[POOL[0].id, POOL[-1].id]])
    assert [POOL[0].id, POOL[-1].id] not in [[t.id for t in pack.trials] for pack in packs]


def test_all_slots_are_kept_busy() -> None:
    """With enough trials there are as many packs as slots, of balanced sizes, the costliest first."""
    trials = make_plan(load_spec("simple")).trials
    for slots in (1, 2, 3, 8):
        packs = make_packs(trials, slots=slots)
        assert len(packs) >= min(slots, 4)
        for model in ("linear", "NMU"):
            sizes = [len(pack.trials) for pack in packs if pack.trials[0].cell.model == model]
            assert max(sizes) - min(sizes) <= 1
    costs = [pack_cost(pack.trials) for pack in make_packs(planned().trials, slots=2, size=20)]
    assert costs == sorted(costs, reverse=True)


def test_packs_have_the_tasks_declared_size_and_cost() -> None:
    """The task's declared pack size and number of updates decide sizes and costs, whatever its name."""
    spec = load_spec("language")
    trials = make_plan(spec).trials
    family = spec.family
    assert isinstance(family, PackedFamily)
    assert {len(pack.trials) for pack in make_packs(trials, slots=1, family=family)} == {20}
    one_by_one = replace(family, trials_at_once=1)
    assert {len(pack.trials) for pack in make_packs(trials, slots=1, family=one_by_one)} == {1}
    assert pack_cost(trials[:20], replace(family, update_us=3000.0)) > 1.5 * pack_cost(trials[:20], family)


FUSED = ENGINES["fused"]


@pytest.mark.parametrize("slots", [1, 2, 16])
@pytest.mark.parametrize("seeds", [1, 3, 16, 50])
def test_cells_of_a_seed_share_a_pack_and_leave_no_slot_idle(slots: int, seeds: int) -> None:
    """Many seeds are drawn once for all cells; few seeds are divided so that all slots end at the same time."""
    trials = make_plan(load_spec("hidden-size")).trials
    chosen = [trial for trial in trials if trial.seed < seeds]
    packs = make_packs(chosen, slots=slots, key_of=FUSED.pack_key)
    assert sorted(ids(packs)) == sorted(trial.id for trial in chosen)
    draws = sum(count_draws(pack.trials) for pack in packs)
    assert draws == seeds if seeds > 8 * slots else draws <= seeds + len(packs)
    costs = [pack_cost(pack.trials) for pack in packs]
    ends = [0.0] * slots
    for cost in costs:
        ends[ends.index(min(ends))] += cost
    assert max(ends) < 1.2 * max(pack_cost(chosen) / slots, max(pack_cost([trial]) for trial in chosen))


@given(st.lists(st.sampled_from(make_plan(load_spec("hidden-size")).trials[::7]), unique=True), st.integers(1, 12))
@settings(max_examples=30)
def test_every_trial_is_in_one_pack_of_any_shapes(pending: Sequence[Trial], slots: int) -> None:
    """Also with packs of mixed shapes, each trial is in one pack and packs aren't empty."""
    packs = make_packs(pending, slots=slots, key_of=FUSED.pack_key)
    assert sorted(ids(packs)) == sorted(trial.id for trial in pending)
    assert all(pack.trials for pack in packs)
    assert all(len({FUSED.pack_key(trial.cell) for trial in pack.trials}) == 1 for pack in packs)


@pytest.mark.parametrize("name", cell_columns())
def test_the_fused_engine_packs_cells_with_the_same_rows(name: str) -> None:
    """The fused engine puts cells into one pack if they have equal row sizes and training lengths."""
    cell = planned().cells[1]
    must_be_equal = {
        "task", "input_size", "batch_size", "iterations", "evaluate_every", "best_step_window", "evaluation_rows",
        "stop",
    }  # fmt: skip
    same = FUSED.pack_key(cell.replace(**{name: OTHER[name]})) == FUSED.pack_key(cell)
    assert same == (name not in must_be_equal)


def test_packs_do_not_depend_on_chance() -> None:
    """Packing is deterministic."""
    assert make_packs(POOL, slots=3) == make_packs(POOL, slots=3)


def test_nothing_to_do_needs_no_packs() -> None:
    """Without trials the list of packs is empty; slots and sizes below one are refused."""
    assert make_packs([], slots=2) == []
    with pytest.raises(ValueError, match="slots and size must be >= 1, but got slots=0"):
        make_packs(POOL, slots=0)
    with pytest.raises(ValueError, match="slots and size must be >= 1, but got slots=1 and size=0"):
        make_packs(POOL, slots=1, size=0)


def test_larger_networks_cost_more() -> None:
    """The cost grows with every size."""
    cell: Cell = planned().cells[0]
    larger = ({"input_size": 8}, {"hidden_size": 4}, {"batch_size": 256}, {"evaluation_rows": 20_000})
    assert all(typed_cell(cell.replace(**change)).cost_us > typed_cell(cell).cost_us for change in larger)  # type: ignore[arg-type]


@given(
    counts=st.lists(st.integers(1, 1200), min_size=1, max_size=6), slots=st.integers(1, 12), most=st.integers(1, 600)
)
def test_loads_fill_devices_and_leave_none_idle(counts, slots, most):
    """Each trial is in one pack of one bundle; no bundle overfills a device, and no device idles with work left."""
    shapes = [planned().cells[0].replace(hidden_size=2 + i) for i in range(len(counts))]
    trials = [Trial(cell, seed) for cell, count in zip(shapes, counts, strict=True) for seed in range(count)]

    def at_once(cell: Cell) -> int:
        return max(1, most // cell.value("hidden_size"))

    packs = make_packs(trials, slots=slots, at_once=at_once)
    together = make_bundles(packs, slots=slots, at_once=at_once)
    assert [pack for bundle in together for pack in bundle] == packs
    assert sorted(t.id for pack in packs for t in pack.trials) == sorted(t.id for t in trials)
    for bundle in together:
        assert sum(bundle_share(pack.trials, at_once) for pack in bundle) <= 1 + 1e-9
        assert len(bundle) <= 32
    assert len(together) >= min(slots, len(packs))
    assert len(packs) >= min(slots, len(trials))


def test_an_unknown_device_gets_packs_like_a_core():
    """If an engine can't fill a device, packs have their usual size, and each is a bundle of its own."""
    trials = [Trial(planned().cells[0], seed) for seed in range(600)]
    packs = make_packs(trials, slots=1, at_once=lambda cell: None)
    assert [len(p.trials) for p in packs] == [len(p.trials) for p in make_packs(trials, slots=1)]
    assert all(len(bundle) == 1 for bundle in make_bundles(packs, slots=1, at_once=lambda cell: None))
