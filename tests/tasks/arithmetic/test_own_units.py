"""A user's units on the arithmetic tasks, beside the built-in ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from study.api import load, open_study
from study.driver.own_engine import own_engine
from study.engine import engine_for
from study.errors import InputError, SpecError
from study.plan.plan import Plan, make_plan
from study.plugins.families import declared_family
from study.records import Pack, Trial
from study.spec import parse_spec
from tests.study.source.builders import deactivate, installed, write

UNITS = '''
from torch import nn

from units import Unit
from units.kernels import contract
from units.nmu import NMU, nmu_initial


class Selecting(Unit):
    """Add what is selected: y_o = sum_i W_oi x_i, W in [0, 1]."""

    traits = NMU.traits
    weight: nn.Parameter

    def forward(self, x):
        return contract(self._within_bounds("weight"), x)

    @classmethod
    def initial_values(cls, sizes, uniform, init_variance):
        return {"weight": nmu_initial(uniform(0), init_variance, "Selecting")}

    def effective_weights(self):
        return [self._within_bounds("weight")]


class Half(Unit):
    pass


class Module(nn.Module):
    pass
'''
MINE = "mylab.mine:Selecting"
STUDY = {
    "study": "mine",
    "task": {"name": "single-module", "operation": "add"},
    "models": ["NAU", MINE],
    "seeds": 3,
    "protocol": {"iterations": 3000, "evaluate_every": 500, "evaluation_rows": 100},
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Change to a folder with a package `mylab`, and yield the folder; copies are deactivated at the end."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write(tmp_path / "lab", mylab__="", mylab__mine=UNITS)
    monkeypatch.chdir(folder)
    yield folder
    deactivate()


def planned(folder: Path, **changed: object) -> Plan:
    """Return the plan of the study with changed keys."""
    return make_plan(parse_spec(yaml.safe_dump(STUDY | changed), source="mine.yaml", folder=folder))


def test_only_cells_of_own_units_have_their_code(lab: Path) -> None:
    """Cells without the unit don't depend on its code: their ids stay the same after an edit."""
    of_nau, own = planned(lab).cells
    assert of_nau == planned(lab, models=["NAU"]).cells[0]
    assert str(own.value("code")).startswith("parsed:")
    write(lab, mylab__mine=UNITS.replace("y_o = ", "y = "))
    assert planned(lab).cells == (of_nau, own)  # a docstring isn't code
    write(lab, mylab__mine=UNITS.replace("nmu_initial(uniform(0)", "nmu_initial(1 - uniform(0)"))
    assert planned(lab).cells[0] == of_nau
    assert planned(lab).cells[1].id != own.id
    assert planned(lab, version=3).cells[1].value("code") == "version:3"


@pytest.mark.parametrize("task", ["single-module", "simple", "arithmetic"])
def test_a_trial_does_not_depend_on_its_pack(lab: Path, task: str) -> None:
    """The torch engine trains own units in packs with the bits of trials alone; other cells use their usual engine."""
    short = {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 20}
    plan = planned(lab, task={"name": task, "operation": "add"}, protocol=short)
    engine = own_engine(plan.spec)
    of_nau, own = plan.cells
    assert engine_for("auto", of_nau, "cpu", engine).name == "fused"
    chosen = engine_for("auto", own, "cpu", engine)
    assert (chosen.name, chosen is engine) == ("torch", True)

    def ended(*seeds: int) -> list[tuple[object, ...]]:
        training = chosen.start(Pack(tuple(Trial(own, seed) for seed in seeds)), device="cpu")
        while not training.done:
            training.advance(0.0)
        results, curves, weights = training.finish()
        return [
            (r.outcome, r.metrics, c.metrics["test_mse"].tobytes(), {n: a.tobytes() for n, a in w.arrays.items()})
            for r, c, w in zip(results, curves, weights, strict=True)
        ]

    assert ended(0, 1, 2) == [*ended(0), *ended(1), *ended(2)]
    with pytest.raises(InputError, match=f"it doesn't have the code of {MINE}"):
        engine_for("torch", own, "cpu")


def test_a_study_is_trained_read_and_repeated(lab: Path) -> None:
    """A study runs and is reported without its code, and repeated trials have the same bits."""
    study = load(STUDY, tracking_uri="off")
    study.run(local=True)
    rates = dict(zip(study.cells()["model"], study.cells()["solved"], strict=True))
    assert set(rates) == {"NAU", MINE}
    assert rates[MINE] == 3
    engines = study.trials().groupby("model")["engine"].unique().map(list).to_dict()
    assert engines == {"NAU": ["fused"], MINE: ["torch"]}
    assert study.verify(share=1.0).differing == []
    assert "nothing is left to do" in str(load(STUDY, tracking_uri="off").plan(quick=True))
    shutil.move(lab / "mylab", lab.parent / "away")
    reopened = open_study("mine")
    assert reopened.cells().equals(study.cells())
    assert all(path.exists() for path in reopened.report("report"))
    declared = (Path("studies") / "mine" / "declared.json").read_text()
    family = declared_family(declared)
    assert (family.own_code, json.loads(family.to_json())) == (json.loads(declared)["code"], json.loads(declared))
    trial = reopened.trials().query("model == @MINE")["trial_id"].iloc[0]
    with pytest.raises(InputError, match="is your own code; without --script"):
        reopened.script(trial)


@pytest.mark.parametrize(
    "changed",
    [
        {"family": "nosuch"},
        {"family": ["simple"]},
        {"units": [MINE]},
        {"units": {MINE: {"bounded": {"weight": "loose"}, "largest_init_variance": 1}}},
        {"units": {MINE: {"bounded": {"weight": []}, "largest_init_variance": 1}}},
        {"units": {MINE: {"bounded": {}, "largest_init_variance": "large"}}},
        {"aliases": None},
    ],
)
def test_a_declaration_that_was_changed_is_refused(lab: Path, changed: dict[str, object]) -> None:
    """A stored declaration with an invalid unit is an error that names it."""
    content = json.loads(planned(lab).spec.family.to_json()) | changed
    with pytest.raises(ValueError, match=r"offers a family|must have traits|bounds must be|could not convert"):
        declared_family(json.dumps(content))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("mylab.mine:Selectin", "did you mean 'Selecting'"),
        ("mylab.mine:Half", "must define the methods effective_weights, forward, initial_values"),
        ("mylab.mine:Module", r"must be a class derived from units\.Unit"),
        ("mylab.nowhere:Selecting", "neither mylab/nowhere.py nor"),
    ],
)
def test_invalid_units_are_named(lab: Path, model: str, message: str) -> None:
    """A missing, incomplete or invalid unit is an error with its place in the file."""
    with pytest.raises(SpecError, match=rf"models\[2\].*{message}"):
        planned(lab, models=["NAU", model])


def test_other_mistakes_are_reported_too(lab: Path) -> None:
    """A file with an own unit and other mistakes has all of them in one message."""
    models = [{"fixed": {"init_variance": 0.1}}, MINE]
    with pytest.raises(SpecError, match="4 mistakes") as error:
        planned(lab, models=models, include="all", seeds=0, fixed={"learnin_rate": 1})
    for place in ("models[1]", "include", "seeds", "fixed.learnin_rate"):
        assert place in str(error.value)


def test_traits_of_own_units_are_checked(lab: Path) -> None:
    """Bounds and variances are checked against the own unit's traits, as for any unit."""
    (own,) = planned(lab, models=[MINE], protocol={"iterations": 3_000_000}, fixed={"sparsity_strength": 0.01}).cells
    assert (own.value("sparsity_start"), own.value("sparsity_end")) == (1_000_000, 2_000_000)
    with pytest.raises(SpecError, match=rf"the weights of {MINE} can have a variance of at most 0\.0833333"):
        planned(lab, models=[MINE], fixed={"init_variance": 0.2})
    with pytest.raises(SpecError, match=rf"outward_strength.*{MINE} isn't an iNALU"):
        planned(lab, models=[MINE], fixed={"outward_strength": 0.1})


def test_a_package_offers_its_units_by_name(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in's unit is a model of the arithmetic tasks, and its version stands for its code."""
    site = write(tmp_path / "site", unitlab__="", unitlab__mine=UNITS)
    entry = "[seeded_study.units]\nselecting = unitlab.mine:Selecting\n"
    monkeypatch.syspath_prepend(installed(site, entry_points=entry, name="unitlab"))
    (own,) = planned(lab, models=["selecting"]).cells
    assert (own.model, own.value("code")) == ("unitlab.mine:Selecting", "unitlab==1.2")
    study = load(STUDY | {"models": ["selecting"], "seeds": 1}, tracking_uri="off")
    study.run(local=True)
    monkeypatch.undo()  # simulates a machine without the package
    monkeypatch.chdir(lab)
    assert list(open_study("mine").cells()["model"]) == ["unitlab.mine:Selecting"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_of_ray_have_the_code(lab: Path) -> None:
    """Workers of Ray train own units with the code sent to them."""
    study = load(STUDY, tracking_uri="off")
    study.run(cpus=1)
    assert list(study.cells()["failed"]) == [0, 0]
