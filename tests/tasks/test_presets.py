"""Presets: each can be planned, and has the published size."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from study.driver.own_engine import own_engine
from study.engine import engine_for
from study.engine.packed.engine import PackedEngine, as_layout
from study.engine.packed.members import PackLayout
from study.engine.packed.proof import Proof
from study.interface.packed_family import recipe_text
from study.plan.packs import make_packs, shape_key
from study.plan.plan import make_plan, study_cells
from study.plugins.presets import preset_names, preset_text
from study.records import Cell, Pack, Trial
from study.spec import check_size, load_spec
from tasks.arithmetic.published.rows import matches, published
from tests.mnist import mnist, mnist_folder

__all__ = ["mnist", "mnist_folder"]
pytestmark = pytest.mark.usefixtures("mnist")

# Numbers of cells and trials.
SIZES = {
    "claims": (9, 180),
    "demo": (20, 400),
    "digits-addition": (8, 80),
    "digits-counting": (8, 80),
    "digits-product": (10, 100),
    "digits-sum": (8, 80),
    "division": (171, 4275),
    "division-10": (36, 900),
    "gate": (8, 200),
    "hidden-size": (45, 2250),
    "hidden-size-ablation": (36, 1800),
    "identity": (18, 1800),
    "init-variance": (30, 600),
    "input-size": (84, 1008),
    "language": (5, 100),
    "learning-rate": (165, 1980),
    "mnist-product": (11, 110),
    "mnist-product-short": (11, 55),
    "mnist-sum": (8, 80),
    "mnist-sum-short": (8, 40),
    "near-zero": (60, 1500),
    "npu-large": (16, 160),
    "npu-simple": (6, 120),
    "overlap": (36, 432),
    "range": (42, 504),
    "recurrent": (9, 90),
    "reproduction": (5, 100),
    "simple": (4, 400),
    "single-module": (297, 7425),
    "single-module-10": (297, 7425),
    "sources": (4, 1600),
    "sparsity": (24, 240),
    "static": (66, 6600),
    "subset": (24, 288),
    "tabular": (28, 280),
    "time-tracking": (4, 40),
}

# Digests of the ids of all cells, and of the trials of their first three seeds.
IDS = {
    "claims": ("73ca458169fff860b14fec487ab49218", "c96762a2a9a8cbfe6040be95d73fdb3a"),
    "demo": ("944a223adc2657f8065a4a2d68ecf8f9", "927e260c053c64e6542176fbecc9a5da"),
    "digits-addition": ("cd432d4e33ca0b420e25e3a84794bb0d", "590da4a088088d9150155bf521ca8451"),
    "digits-counting": ("7dc6aa3a54fbca4546c33067fb7f72ef", "c3e262e309e37b43fa4cada3807b81fe"),
    "digits-product": ("4206c27e11034cf5962b5a062290f811", "d94da2e1f236e932c791d5ca72221315"),
    "digits-sum": ("e656bcb6204aa57f652b2080fb375d7f", "7aa5ae0f772128d9c3151457d0211a24"),
    "division": ("8d12eef8faa788f3ba14153ec1c7f99e", "e80362b110f05eee621ea5c9824637f1"),
    "division-10": ("08bd735027d55a5e37df6a5ac60f68da", "6974513de75652c8a60f523870df099f"),
    "gate": ("5642ee09fa4ebdf42372d4d19000b2ae", "be92c54f969c3ffe38187f3d91e27acd"),
    "hidden-size": ("e24d7c6e878ec2c05c8e5e95d77de578", "bed90cef771dd40b3053f3fa4d85dec0"),
    "hidden-size-ablation": ("593f85fcccd9a8d28f06d196f6d62f8a", "ab8e38a23c68f5dfb914a3ec7509677b"),
    "identity": ("dfc86f9ebd422138f7e9dc199a46ff2f", "a63b41d09a36e5ce8e04b847e343c12e"),
    "init-variance": ("d441be5c33a7b97b96ecb5c85601d5d5", "df36d173bdc449ea96a5372d86719d02"),
    "input-size": ("a5b7770e8a50ec6f82b3c1475cd65b46", "b69b4c7d718163bfd49023b586484cf4"),
    "language": ("0acc200052c3742a785e07ff0d169796", "a09b534a55daefe90bce5cffe3cb8666"),
    "learning-rate": ("b73fced511341f13c89b09405b15983c", "f048fea983a656f0f16ff4f55d36c3eb"),
    "mnist-product": ("28bab7e40802f0a67f7d8e394ad3e383", "9370ea3963ea2b5b979e8ac38183395d"),
    "mnist-product-short": ("89a9b0104500a2736f2125d83e7a1902", "c253642615fb6ca5cf9c0df15e0a5f3f"),
    "mnist-sum": ("7fdda37ea95ac91f71f7eaadf562480b", "c06e139f542079340661ceaac9991c1e"),
    "mnist-sum-short": ("ab9855c105fb66080ea3a677c73f879b", "cc49a2251d2c3571d31c7d6501a3d5c8"),
    "near-zero": ("43ad897be6ebea5534189813b1f5f9a7", "ff9fccbbaa959e53f33533fe7c935911"),
    "npu-large": ("015c6e908eca002b68ec67d39770c79d", "f8fa9360ab1c1b11cf860f0762d21e53"),
    "npu-simple": ("4567043076de108497b5e675166e6cfb", "a1e9f2e1479a02ed376aca06273f5804"),
    "overlap": ("ef8570586be4df7ac1cb368c7a33f33e", "8d1d1c6f9e2fd75055616d0665d1c26e"),
    "range": ("03b304df88b4775e6e02b4a4d1383b78", "2fdd25fc4adbc988f9f8baf373273b34"),
    "recurrent": ("1afdaa343830b69be84d43cfccb2e83c", "e38e76d609aa42d1ad443b0803f8abee"),
    "reproduction": ("a71611e9dad5a6cfec99ffbad2373b35", "3257cf60d934399ef5c07691ed409abe"),
    "simple": ("41c89b115f6b8f504597cd7275d31426", "7ecd3a8928e2c50563cb1d68fa79ee57"),
    "single-module": ("4a67f492ed10d25ca086dce0a9605cd7", "2b7cebf060f7350e8f57b4d566c88a53"),
    "single-module-10": ("8f28df5a04924bf43498f17101b847d5", "8052cc1bc377d80f7695bdf880efdfcb"),
    "sources": ("ef39c728d5670c4f6b57248d8a1aea66", "cb67e9e3d644bc665ce21cd5ca4c1656"),
    "sparsity": ("94de2f7366627c0a00d9258c220ee3e0", "e2dc3c40ad47653980acad53f195e30d"),
    "static": ("86c45df6611c38dc249e1050797b2162", "1af8b8508587f47918c8a0bc192b6b2d"),
    "subset": ("f5a1f5097a25416fa274f1a4373c9e39", "74ac3ec5c0b4eb9e3d0b08d7206e420c"),
    "tabular": ("abe79e74a9b7198eaa567c85ad62ea7f", "7efbb496e3ce8b818540df71ae6300c4"),
    "time-tracking": ("a724cbb0b1189363c158914cdb1413b5", "ebb1ea53b7f83c023bbd6b1d00bfb624"),
}


def test_presets_are_listed() -> None:
    """The list of presets is as expected."""
    assert preset_names() == sorted(SIZES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_presets_have_their_size(name: str) -> None:
    """A preset has its study's name, a question, a source, and the right number of trials."""
    spec = load_spec(name)
    check_size(spec, yes=False)
    plan = make_plan(spec)
    assert spec.study == name
    assert spec.question.endswith("?")
    assert preset_text(name).startswith("# ")
    assert (len(plan.cells), len(plan.trials)) == SIZES[name]
    assert sum(len(pack.trials) for pack in make_packs(plan.trials, slots=4)) == len(plan.trials)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_ids_never_change(name: str) -> None:
    """Cells and trials keep the ids of earlier versions, since results are stored under them."""
    plan = make_plan(load_spec(name))
    cell_ids = "".join(cell.id for cell in plan.cells)
    trial_ids = "".join(Trial(cell, seed).id for cell in plan.cells for seed in list(plan.seeds(cell))[:3])
    assert tuple(sha256(ids.encode()).hexdigest()[:32] for ids in (cell_ids, trial_ids)) == IDS[name]


@pytest.mark.parametrize(
    ("name", "table", "count"),
    [
        ("simple", "simple_summary", 3),
        ("hidden-size", "hidden_size", 45),
        ("hidden-size-ablation", "hidden_size_ablation", 36),
        ("static", "static_seeds", 20),
    ],
)
def test_presets_repeat_the_published_cells(name: str, table: str, count: int) -> None:
    """Every published cell of a table is repeated by a cell of its preset."""
    cells = make_plan(load_spec(name)).cells
    rows = [row for row in published() if row.table == table]
    assert sum(any(matches(cell, row) for cell in cells) for row in rows) == len(rows) == count


def test_the_demo_has_three_schedules() -> None:
    """The demo trains the NMU with three labelled schedules, and NAC-mul once, without a schedule."""
    plan = make_plan(load_spec("demo"))
    labels = [plan.labels.get(cell.id, {}).get("schedule") for cell in plan.cells]
    assert labels == ["off", "early strong", "late mild"] * 5 + [None] * 5


# Sequences of a thousand steps take minutes, so these presets are tested on short ones.
SHORTER: dict[str, dict[tuple[str, ...], Any]] = {
    "recurrent": {("task", "test_lengths"): [10, 20]},
    **{
        name: {("task", "test_lengths"): [2, 3], ("success",): {"test_mse_at_2": "below_references"}}
        for name in ("mnist-sum", "mnist-sum-short", "mnist-product", "mnist-product-short")
    },
}


def marks_of(preset: str) -> list[pytest.MarkDecorator]:
    """Return a preset's marks: `slow` or `long` if its evaluations classify thousands of images."""
    if not preset.startswith("mnist"):
        return []
    return [pytest.mark.slow if preset.endswith("short") else pytest.mark.long]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in preset_names()])
def test_presets_run(name: str) -> None:
    """A trial of every shape in a preset trains for a few iterations, on its usual engine."""
    spec = load_spec(name, SHORTER.get(name, {}))
    own = own_engine(spec)
    shapes: dict[object, Cell] = {}
    for cell in study_cells(spec):
        shapes.setdefault(shape_key(cell), cell)
    brief = {"iterations": 2, "evaluate_every": 1, "evaluation_rows": 8, "batch_size": 8, "best_step_window": 1}
    for cell in shapes.values():
        shortened = cell.replace(**{name: value for name, value in brief.items() if cell.value(name) is not None})
        if isinstance(own, PackedEngine):  # other tests cover the proof of packing
            own = replace(own, layouts={recipe_text(shortened): as_layout(Proof(layout=PackLayout()))})
        pack = Pack((Trial(shortened, 0),))
        training = engine_for("auto", shortened, "cpu", own).start(pack, device="cpu")
        while not training.done:
            training.advance(1.0)
        (result,), (curve,), _ = training.finish()
        assert result.iterations == 2
        assert len(curve.iteration) == 3
