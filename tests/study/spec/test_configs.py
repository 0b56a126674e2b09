"""Configurations: dataclasses, pydantic models, nested dicts and files, as hyperparameters with dotted names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import SpecError
from study.interface.declarations import Metric
from study.interface.function.call import FunctionCall
from study.plan.plan import make_plan
from study.source import CodeFolder, parse_import_string
from study.spec import Spec, parse_spec
from study.spec.overrides import parse_overrides

CODE = """\
from dataclasses import dataclass
from typing import Literal
import pydantic
from omegaconf import DictConfig
from study import seeded

@dataclass(frozen=True)
class Model:
    width: int = 32
    layers: tuple[int, ...] = (8, 8)

class Optimizer(pydantic.BaseModel):
    name: Literal["adam", "sgd"] = "adam"
    lr: float = pydantic.Field(0.1, gt=0, title="learning rate")

@dataclass
class Whole:
    model: Model
    optimizer: Optimizer
    momentum: float = 0.0

def seen(*given):
    with open("seen", "w") as file:
        file.write(repr(given))
    return {"loss": 1.0}

@seeded
def train(seed, *, model: Model = Model(width=64), optimizer: Optimizer = Optimizer(), data={"rows": 4}):
    return seen(model, optimizer, data)

@seeded
def whole(seed, config: Whole):
    return seen(config)

@seeded
def anything(seed, config):
    return seen(config)

@seeded
def omega(seed, config: DictConfig):
    return seen(type(config).__name__, config.model.half, config.lr)

@seeded
def wrong(seed, data: dict):
    return {"loss": 1.0}
"""
CONFIG = """\
lr: 0.1
model:
  width: 8
  act: relu
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.py").write_text(CODE)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text(CONFIG)
    return tmp_path


def parsed(folder: Path, overrides: tuple[str, ...] = (), **tables: Any) -> Spec:
    content = {"study": "made", "metrics": {"loss": "lower"}, "seeds": 2, **tables}
    text = yaml.safe_dump(content, sort_keys=False)
    return parse_spec(text, source="study.yaml", folder=folder, overrides=parse_overrides(overrides))


def hyperparameters(spec: Spec) -> list[dict[str, Any]]:
    function_keys = {"code", "metrics", "iterations", "command", "results"}
    return [{name: v for name, v in cell.values.items() if name not in function_keys} for cell in make_plan(spec).cells]


def received(folder: Path, spec: Spec, values: Mapping[str, Any]) -> str:
    """Call the study's function with some values, and return the values received."""
    assert spec.source_code is not None
    with CodeFolder(spec.source_code.unpacked()) as opened:
        function = opened.load(parse_import_string(spec.family.models[0]))
        FunctionCall(function, seed=0, values=values, metrics={"loss": Metric()}).next_step()
    return (folder / "seen").read_text()


def test_fields_are_hyperparameters_and_functions_get_objects(folder: Path) -> None:
    """Defaults of the argument override those of its class."""
    spec = parsed(folder, train="lab:train", grid={"model.width": [8]}, fixed={"optimizer.lr": 1, "data.rows": 2})
    (values,) = hyperparameters(spec)
    assert values == {
        "model.width": 8, "model.layers": [8, 8], "optimizer.name": "adam", "optimizer.lr": 1.0, "data.rows": 2,
    }  # fmt: skip
    assert received(folder, spec, values) == (
        "(Model(width=8, layers=(8, 8)), Optimizer(name='adam', lr=1.0), {'rows': 2})"
    )
    assert spec.family.hyperparameters["optimizer.lr"].title == "learning rate"
    assert hyperparameters(parsed(folder, train="lab:train"))[0]["model.width"] == 64


def test_an_argument_config_is_the_whole_configuration(folder: Path) -> None:
    """Fields of an argument named `config` have names without a prefix."""
    spec = parsed(folder, train="lab:whole", grid={"model.width": [8]}, fixed={"momentum": 0.5})
    (values,) = hyperparameters(spec)
    assert received(folder, spec, values) == (
        "(Whole(model=Model(width=8, layers=(8, 8)), optimizer=Optimizer(name='adam', lr=0.1), momentum=0.5),)"
    )


def test_inapplicable_values_arent_passed(folder: Path) -> None:
    """If a value doesn't apply, the function's default is used."""
    spec = parsed(folder, train="lab:whole")
    (values,) = hyperparameters(spec)
    assert "momentum=0.0" in received(folder, spec, {**values, "momentum": None})


def test_a_plain_config_has_the_files_values(folder: Path) -> None:
    spec = parsed(folder, train="lab:anything", fixed={"model": {"width": 8}}, grid={"lr": [0.1, 1]})
    assert hyperparameters(spec) == [{"model.width": 8, "lr": 0.1}, {"model.width": 8, "lr": 1.0}]
    assert received(folder, spec, hyperparameters(spec)[0]) == "({'model': {'width': 8}, 'lr': 0.1},)"


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        ("lab:omega", "('DictConfig', 0.05, 0.1)"),
        ("lab:anything", "({'model': {'width': 8, 'half': 0.05}, 'lr': 0.1},)"),
    ],
    ids=["DictConfig", "dict"],
)
def test_interpolations_are_replaced_for_each_trial(folder: Path, train: str, expected: str) -> None:
    """Functions may take OmegaConf's object or a dict; each cell has its own interpolated value."""
    (folder / "more.yaml").write_text("lr: 1\nmodel:\n  width: 8\n  half: ${lr}\n")
    spec = parsed(folder, train=train, config="more.yaml", grid={"lr": [0.05, 0.1]})
    first, second = hyperparameters(spec)
    assert first == {"model.width": 8, "model.half": "${lr}", "lr": 0.05}
    assert received(folder, spec, second) == expected.replace("0.05", "0.1")


def test_nested_tables_are_dotted_names(folder: Path) -> None:
    """Ids don't depend on the notation, and a mistake has its line."""
    dotted = parsed(folder, train="lab:train", grid={"model.width": [8, 16], "optimizer.lr": [0.1]})
    nested = parsed(folder, train="lab:train", grid={"model": {"width": [8, 16]}, "optimizer": {"lr": [0.1]}})
    assert make_plan(nested).cells == make_plan(dotted).cells
    with pytest.raises(SpecError, match=r"line 10: grid.model.width\[2\]: must be a whole number, but got 0.5"):
        parsed(folder, train="lab:train", grid={"model": {"width": [8, 0.5]}})


def test_a_nested_hyperparameter_can_be_overridden(folder: Path) -> None:
    file = {"train": "lab:train", "grid": {"model": {"width": [8, 16]}}}
    spec = parsed(folder, ("fixed.model.width=4", "grid.optimizer.lr=[1, 2]"), **file)
    assert [
        (values_of_cell["model.width"], values_of_cell["optimizer.lr"]) for values_of_cell in hyperparameters(spec)
    ] == [(4, 1.0), (4, 2.0)]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"train": "lab:train", "fixed": {"model": {"widht": 8}}},
            "fixed.model.widht: unknown key; did you mean 'model.w",
        ),
        ({"train": "lab:train", "fixed": {"optimizer": {"lr": -1}}}, "optimizer.lr: must be > 0, but got -1"),
        ({"train": "lab:whole", "grid": {"model": {"width": [8]}, "model.width": [4]}}, "model.width: is given twice"),
        ({"train": "lab:wrong"}, "data: a dict without a default must be called config"),
    ],
)
def test_a_mistake_says_where_it_is(folder: Path, tables: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parsed(folder, **tables)


# --- a configuration file


def test_a_configuration_file_gives_the_fixed_values(folder: Path) -> None:
    """The study's own values override it; the stored text needs no other file."""
    spec = parsed(folder, train="lab:anything", config="conf/config.yaml", grid={"model": {"width": [16]}})
    assert hyperparameters(spec) == [{"lr": 0.1, "model.act": "relu", "model.width": 16}]
    reread = parse_spec(spec.text, source="study.yaml", folder=folder)
    (folder / "conf" / "config.yaml").unlink()
    assert make_plan(reread).cells == make_plan(spec).cells


def test_a_program_gets_the_configuration_as_a_file(folder: Path) -> None:
    spec = parsed(folder, command="python lab.py {config.yaml} {seed}", results="m.json", config="conf/config.yaml")
    assert hyperparameters(spec) == [{"lr": 0.1, "model.width": 8, "model.act": "relu"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model: {width: 8}\nmode: 1\n", "conf/config.yaml, line 2: fixed.mode: unknown key; the keys here are model."),
        ("model:\n  width: 1.5\n", "conf/config.yaml, line 2: fixed.model.width: must be a whole number, but got 1.5"),
        ("model:\n  width: ???\n", r"fixed.model.width: conf/config.yaml leaves model.width open \(\?\?\?\)"),
        ("defaults: [model: small]\n", "only Hydra can compose"),
        ("a: [1\n", "config: conf/config.yaml: line 2: must be YAML"),
        ("[1, 2]\n", "config: conf/config.yaml: must be a table"),
    ],
)
def test_a_mistake_in_a_configuration_file_has_its_line_there(folder: Path, content: str, message: str) -> None:
    (folder / "conf" / "config.yaml").write_text(content)
    with pytest.raises(SpecError, match=message):
        parsed(folder, train="lab:train", config="conf/config.yaml")


def test_a_missing_configuration_file_is_an_error(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"line 6: config: other.yaml can't be read: No such file"):
        parsed(folder, train="lab:train", config="other.yaml")
    with pytest.raises(SpecError, match=r"config: other\0 can't be read: embedded null byte"):
        parsed(folder, train="lab:train", config="other\0")
