"""Parsing of study files: values of valid files, and error messages with all mistakes at once."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from study.arrow import cell_columns
from study.errors import InputError, Problem, SpecError
from study.plan.plan import make_plan, study_cells
from study.plugins.presets import preset_names, preset_text
from study.spec import Spec, check_size, load_spec, parse_spec, schema
from tasks.arithmetic import MODELS, TASKS
from tasks.arithmetic.cell import ArithmeticCell, typed_cell
from tasks.arithmetic.hyperparameters import HYPERPARAMETERS


def parse(**changed: Any) -> Spec:
    data = {"study": "a", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 2} | changed
    return parse_spec(yaml.safe_dump(data, sort_keys=False), source="a.yaml")


def problems(text: str | bytes) -> list[Problem]:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, source="a.yaml")
    return list(caught.value.problems)


def mistakes(**changed: Any) -> str:
    with pytest.raises(SpecError) as caught:
        parse(**changed)
    return str(caught.value)


def typed_cells(spec: Spec) -> list[ArithmeticCell]:
    return [typed_cell(cell) for cell in study_cells(spec)]


def only_cell(**changed: Any) -> ArithmeticCell:
    (cell,) = typed_cells(parse(**changed))
    return cell


FIVE = """\
study: five
task: {name: arithmetic, operation: mull}
models:
  - NMU
  - {name: NAC-mul, fixed: {sparsity_strength: 10}}
grid:
  hiden_size: [2, 3]
zip:
  schedule:
    - {label: off, sparsity_strength: 0}
    - {label: on, sparsity_start: 20000, sparsity_end: 10000}
seeds: 0
"""


def test_five_mistakes_are_reported_in_one_message() -> None:
    """The message names all five mistakes with their lines and nearest names."""
    reported = problems(FIVE)
    assert [problem.line for problem in reported] == [2, 5, 7, 11, 12]
    assert [problem.where for problem in reported] == [
        "task.operation",
        "models[2].fixed.sparsity_strength",
        "grid.hiden_size",
        "zip.schedule[2].sparsity_end",
        "seeds",
    ]
    messages = [problem.message for problem in reported]
    assert "did you mean 'mul'?" in messages[0]
    assert "NAC-mul has no sparsity regulariser" in messages[1]
    assert "did you mean 'hidden_size'?" in messages[2]
    assert "got start 20000 and end 10000" in messages[3]
    assert "at least 1" in messages[4]


def test_mistakes_have_exit_code_2() -> None:
    """A mistake in the file is bad input to the command line."""
    assert SpecError.exit_code == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sucess": {}}, "sucess: unknown key; did you mean 'success'?"),
        ({"task": {"name": "simpel"}}, "did you mean 'simple'?"),
        ({"task": {"name": "simple", "opration": "mul"}}, "did you mean 'operation'?"),
        ({"task": "simple"}, "task: must be a table"),
        ({"protocol": {"stopp": "never"}}, "did you mean 'stop'?"),
        ({"protocol": {"stop": "off"}}, "must be one of never, when_decided, but got 'off'"),
        ({"protocol": {"evaluate_every": 0}}, "must be >= 1, but got 0"),
        ({"protocol": {"iterations": 10}}, "evaluate_every <= iterations must hold"),
        ({"success": {"epsilon": 0.5}}, "must be < 0.5, but got 0.5"),
        ({"success": {"epsilon": 1e-5, "threshold": 1.0}}, "got both"),
        ({"models": []}, "models: must have at least 1 value"),
        ({"models": "NMU"}, "models: must be a list, but got 'NMU'; write [NMU]"),
        ({"models": ["nmu"]}, "did you mean 'NMU'?"),
        ({"models": [{"name": "NMU", "fixt": {}}]}, "models[1].fixt: unknown key; did you mean 'fixed'?"),
        ({"models": [{"name": "NMU", "fixed": {"learning_rat": 1}}]}, "did you mean 'learning_rate'?"),
        ({"models": [{"fixed": {}}]}, "must be given, but is missing"),
        ({"fixed": {"hidden_size": [2, 3]}}, "to sweep it, put it under grid"),
        ({"fixed": {"optimizer": ["adam", "sgd"]}}, "to sweep it, put the list under grid"),
        ({"fixed": {"hidden_size": 2.5}}, "must be a whole number, but got 2.5"),
        ({"fixed": {"hidden_size": True}}, "must be a number, but got true"),
        ({"fixed": {"hidden_size": "two"}}, "must be a number, but got 'two'"),
        ({"fixed": {"learning_rate": float("inf")}}, "must be a finite number, but got inf"),
        ({"fixed": {"learning_rate": float("nan")}}, "must be a finite number, but got nan"),
        ({"fixed": {"learning_rate": 0}}, "must be > 0, but got 0"),
        ({"fixed": {"learning_rate": None}}, "must be a number, but got nothing"),
        ({"fixed": {"learning_rate": 1e200}}, "must fit into 32 bits"),
        ({"fixed": {"momentum": 0.5}}, "optimizer must be momentum for that"),
        ({"fixed": {"out_of_bounds_strength": 1}}, "bounds must be regularized for that"),
        ({"fixed": {"subset_ratio": 0.5}}, "the simple task has fixed subsets"),
        ({"fixed": {"input_size": 5}}, "fixed.input_size: the simple task has input_size 4"),
        ({"fixed": {"init_variance": 0.5}}, "the weights of NMU can have a variance of at most 0.08333"),
        ({"fixed": {"init_variance": 0}}, "must be > 0, but got 0"),
        ({"fixed": {"sparsity_end": 10}}, "got start 1000000 and end 10 (sparsity_start as published for NMU)"),
        ({"models": ["NALU"], "fixed": {"bounds": "clipped"}}, "has no effect on any model of the study"),
        ({"fixed": {"interpolation_range": [2, 1]}}, "low < high must hold"),
        ({"fixed": {"interpolation_range": [[0, 1], [2, 4]]}}, "equal width"),
        ({"fixed": {"interpolation_range": 3}}, "must be [low, high]"),
        ({"fixed": {"operation": "sub", "subsets": 3}}, "operation 'sub' takes 2 subsets"),
        ({"fixed": {"operation": "div", "extrapolation_range": [-1, 1]}}, "divisor can be 0"),
        ({"grid": {"hidden_size": []}}, "grid.hidden_size: must have at least 1 value"),
        ({"grid": {"hidden_size": 3}}, "grid.hidden_size: must be a list, but got 3; write [3]"),
        ({"grid": {"hidden_size": [2, 0]}}, "grid.hidden_size[2]: must be >= 1, but got 0"),
        ({"zip": {"a": []}}, "zip.a: must have at least 1 value"),
        ({"zip": {"a": [{"hiden_size": 3}]}}, "zip.a[1].hiden_size: unknown key; did you mean 'hidden_size'?"),
        ({"fixed": {"hidden_size": 2}, "grid": {"hidden_size": [3]}}, "is also set under 'fixed'"),
        ({"task": {"name": "simple", "operation": "mul"}, "grid": {"operation": ["add"]}}, "under 'task'"),
        ({"seeds": 0}, "must be at least 1"),
        ({"seeds": []}, "at least 1 seed"),
        ({"seeds": [1, -1]}, "0 <= seed < 2**63, but got -1"),
        ({"seeds": [2**63]}, "0 <= seed < 2**63"),
        ({"seeds": [3, 1, 3]}, "got 3 again"),
        ({"seeds": "many"}, "must be a count, a list of seeds, or a range such as 100-149"),
        ({"seeds": True}, "must be a count, a list of seeds, or a range such as 100-149"),
        (
            {"seeds": {}},
            "must be a count, a range, a list of seeds, or a table with the key 'until' alone, or with keys among init",
        ),
        ({"seeds": {"untill": {"half_width": 0.1, "max": 9}}}, "init, data, evaluation, and design, but has 'untill'"),
        ({"seeds": {"until": 3}}, "seeds.until: must be a table"),
        ({"seeds": {"until": {"half_width": 0.1}}}, "seeds.until.max: must be given, but is missing"),
        (
            {"seeds": {"until": {"max": 9}}},
            "seeds.until: must have exactly one of half_width, different_from and claims, but has none",
        ),
        ({"seeds": {"until": {"half_width": 0.5, "max": 9}}}, "must be < 0.5, but got 0.5"),
        ({"seeds": {"until": {"half_width": 0, "max": 9}}}, "must be > 0, but got 0"),
        ({"seeds": {"until": {"half_width": 0.1, "max": 0}}}, "seeds.until.max: must be >= 1, but got 0"),
        ({"seeds": {"until": {"different_from": "NAU", "max": 0}}}, "one of the study's models, NMU, but"),
        ({"seeds": {"until": {"half_width": 0.1, "max": 9, "batch": 10}}}, "batch <= max must hold, but got 10"),
        ({"seeds": {"until": {"half_with": 0.1, "max": 9}}}, "half_with: unknown key; did you mean 'half_width'?"),
        ({"seeds": {"until": {"different_from": "NMUU", "max": 9}}}, "but got 'NMUU'; did you mean 'NMU'?"),
        ({"seeds": {"until": {"different_from": "NMU", "max": 9}}}, "models has no other"),
        ({"seeds": {"until": {"different_from": "NAU", "max": 9}}}, "one of the study's models, NMU, but got 'NAU'"),
    ],
)
def test_a_mistake_says_what_must_hold(changed: dict[str, Any], message: str) -> None:
    """Each kind of mistake is reported with its value and the rule."""
    assert message in mistakes(**changed)


def test_subsets_must_fit_in_every_combination() -> None:
    """Subsets that don't fit in some combination of the grid are one mistake."""
    text = mistakes(task={"name": "arithmetic"}, grid={"subset_ratio": [0.25, 0.8], "overlap_ratio": [0.0, 0.5, 1.0]})
    assert "need 160 numbers, but input_size is 100" in text
    assert text.count("subsets of") == 1


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "", "a" * 81, "ä", "a b", "..", "-x", "mlflow.db", "a\n"])
def test_names_stay_in_the_store(name: str) -> None:
    """A name that leaves the store's folder, or is hidden in it, is refused."""
    assert "study: must" in mistakes(study=name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"- a\n- b\n", "must be a table (`key: value` lines), but is a list"),
        (b"just words", "must be a table"),
        (b"a: [1", "must be YAML"),
        (b"a: b: c", "must be YAML"),
        (b"a: \x00", "must be YAML"),
        (b'a: "\\U00110000"', "isn't a character of Unicode"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"a: &x [1]\nb: *x\n", "anchors and aliases"),
        (b"a: !!python/object/apply:os.getcwd []\n", "tags aren't allowed"),
        (b"a: 1\n---\nb: 2\n", "one document"),
        (b"[" * 1000, "nest at most 20 deep"),
        (b"a: [" + b"1," * 100_000 + b"]", "at most 50,000 values"),
        (b"#" * 2_000_000, "at most 1,048,576 bytes"),
        (b"seeds: " + b"9" * 5000, "must be a count"),
    ],
    ids=range(16),
)
def test_files_without_a_study_are_refused(content: bytes, message: str) -> None:
    """A file that isn't a YAML table, or is malicious, is named without building its content."""
    assert message in " ".join(problem.message for problem in problems(content))


HUGE = "9" * 399


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"protocol: {{iterations: {HUGE}}}", "must fit into 64 bits, but got 999"),
        (f"grid: {{learning_rate: [{HUGE}]}}", "must fit into 64 bits, but got 999"),
        (f"fixed: {{init_variance: -{HUGE}}}", "must fit into 64 bits, but got -999"),
        (f"seeds: {HUGE}", "below 2**63"),
        ("task: {name: arithmetic, input_size: 2147483647}", "fit into 16 GiB of memory, but takes about "),
        ("fixed: {hidden_size: 2147483647}", "one trial must fit into 16 GiB of memory"),
        ("fixed: {batch_size: 2147483647}", "one trial must fit into 16 GiB of memory"),
        ("protocol: {evaluation_rows: 2147483647}", "one trial must fit into 16 GiB of memory"),
        ("protocol: {iterations: 4294967294, evaluate_every: 1}", "iterations 4294967294, evaluate_every 1"),
        ("task: {name: arithmetic, subsets: 2000000000}", "must be <= 1000, but got 2e+09"),
        ("task: {name: arithmetic, subsets: 2000000000, overlap_ratio: 1}", "must be <= 1000"),
        ("task: {name: arithmetic, subsets: 1000, overlap_ratio: 1}", "takes too long"),
        ("task: {name: arithmetic, extrapolation_range: [0, 1e308]}", "has no finite success threshold"),
        ("task: {name: arithmetic, extrapolation_range: [1e-320, 1e-310]}", "has no finite success threshold"),
        ('task: {name: arithmetic, extrapolation_range: [1, 1], "\\ud800": 2}', "half of a surrogate pair"),
    ],
)
def test_unrepresentable_numbers_are_refused_without_allocation(line: str, message: str) -> None:
    """An unrepresentable number is one mistake, reported without allocating an array of that size."""
    keys = {"study": "s", "task": "{name: arithmetic}", "models": "[NMU]", "seeds": "1"}
    keys |= dict([line.split(": ", 1)])
    text = "\n".join(f"{key}: {value}" for key, value in keys.items())
    tracemalloc.start()
    reported = problems(text)
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    assert len(reported) == 1
    assert message in reported[0].message


def test_keys_given_twice_are_reported() -> None:
    """A repeated key is a mistake at any level, though YAML readers take the last value."""
    text = "study: a\ntask: {name: simple}\nmodels: [NMU]\nseeds: 1\nfixed:\n  hidden_size: 2\n  hidden_size: 3\n"
    (problem,) = problems(text)
    assert (problem.where, problem.line) == ("fixed.hidden_size", 7)
    assert "first on line 6" in problem.message


def test_numbers_and_words_are_parsed_as_in_yaml_1_2() -> None:
    """`1e5` is a number and `off` a word, contrary to YAML 1.1."""
    spec = parse_spec(
        "study: a\ntask: {name: simple}\nmodels: [NMU]\nseeds: 010\n"
        "zip: {s: [{label: off, sparsity_strength: 1e1, sparsity_start: 1e5, sparsity_end: 200_000}]}\n",
        source="a.yaml",
    )
    (cell,) = typed_cells(spec)
    assert (cell.sparsity_strength, cell.sparsity_start, cell.sparsity_end) == (10.0, 100_000, 200_000)
    assert list(spec.first_seeds) == list(range(10))
    assert spec.zip["s"][0].explicit["label"] == "off"


def test_a_spec_is_frozen_and_keeps_its_text() -> None:
    """A parsed spec is immutable, and keeps its text for the store."""
    text = preset_text("demo")
    spec = parse_spec(text, source="demo")
    assert spec.text == text
    with pytest.raises(ValueError, match="frozen"):
        spec.study = "other"


def test_files_and_presets_are_found(tmp_path: Path) -> None:
    """FILE is a path or a preset's name; for other names the nearest preset is suggested."""
    path = tmp_path / "mine.yaml"
    path.write_text(preset_text("demo"), encoding="utf-8")
    assert study_cells(load_spec(path)) == study_cells(load_spec("demo"))
    with pytest.raises(InputError, match="did you mean 'demo'") as caught:
        load_spec("demmo")
    assert caught.value.exit_code == 2
    with pytest.raises(InputError, match="a folder isn't a study file"):
        load_spec(tmp_path)


def test_huge_studies_are_refused_at_once() -> None:
    """10^9 accidental trials are refused without making one; above 100,000 they must be confirmed."""
    huge = {"learning_rate": [0.001 + i / 1e6 for i in range(1000)], "batch_size": list(range(1, 1001))}
    with pytest.raises(InputError, match="1,000,000,000 trials"):
        check_size(parse(grid=huge, seeds=1000), yes=True)
    large = parse(grid={"hidden_size": list(range(1, 202))}, seeds=500)
    with pytest.raises(InputError, match="allow this number with --yes"):
        check_size(large, yes=False)
    check_size(large, yes=True)
    check_size(parse(seeds=100_000), yes=False)
    with pytest.raises(InputError, match=r"at most 10,000,000 seeds, .* but combine to 1,000,000,000,000"):
        parse(seeds={"init": 10**6, "data": 10**6})
    with pytest.raises(InputError, match="1,000,000 cells, but 100,000 is the most"):
        check_size(parse(grid=huge, seeds=1), yes=True)


@pytest.mark.parametrize("seeds", [10**9, 10**18, {"until": {"half_width": 0.1, "max": 10**9}}])
def test_no_plan_is_made_of_more_than_can_be_planned(seeds: object) -> None:
    """Limits hold for every plan, also from a stored file, whose size nobody has confirmed."""
    with pytest.raises(InputError, match="10,000,000 is the most that can be planned"):
        make_plan(parse(seeds=seeds))


@pytest.mark.parametrize("name", ["index.html", "Index.HTML", "mlflow", "MLflow-2"])
def test_names_of_the_store_itself_are_reserved(name: str) -> None:
    """A study can't have the name of the store's own files, in any case."""
    with pytest.raises(SpecError, match="the store"):
        parse(study=name)


def test_inapplicable_hyperparameters_are_none() -> None:
    """A cell holds None if a hyperparameter doesn't apply, whatever was set for all models."""
    schedule = {"sparsity_strength": 5, "sparsity_start": 10, "sparsity_end": 20}
    spec = parse(models=["NMU", "NAC-mul"], fixed=schedule)
    nmu, nac = typed_cells(spec)
    assert (nmu.sparsity_strength, nmu.sparsity_start, nmu.bounds) == (5.0, 10, "clipped")
    assert all(getattr(nac, name) is None for name in cell_columns() if name.startswith("sparsity"))
    assert nac.bounds is None
    off = only_cell(fixed=schedule | {"sparsity_strength": 0})
    assert (off.sparsity_strength, off.sparsity_start, off.sparsity_shape) == (0.0, None, None)
    growing = only_cell(fixed={"sparsity_scaling": "exponential", "sparsity_strength": 0.1})
    assert (growing.sparsity_scaling, growing.sparsity_start, growing.sparsity_end) == ("exponential", None, None)


def test_defaults_are_the_published_ones() -> None:
    """Omitted values are the published ones of the model and the task."""
    for name, model in MODELS.items():
        (cell,) = typed_cells(parse(models=[name], task={"name": "arithmetic"}))
        published = (model.sparsity_strength, model.sparsity_start, model.sparsity_end)
        assert (cell.sparsity_strength, cell.sparsity_start, cell.sparsity_end) == published
        assert (cell.input_size, cell.subset_ratio, cell.overlap_ratio) == (100, 0.25, 0.5)
        assert (cell.iterations, cell.learning_rate, cell.optimizer) == (5_000_000, 1e-3, "adam")
    assert only_cell().iterations == 200_000
    assert only_cell(fixed={"optimizer": "momentum"}).momentum == 0.9
    assert only_cell(fixed={"bounds": "regularized"}).out_of_bounds_strength == 1.0


def test_numbers_have_one_spelling() -> None:
    """10, 10.0 and 1e1 are one number, also in ids."""
    ids = set()
    for spelling in ("10", "10.0", "1e1", "+10"):
        text = f"study: a\ntask: {{name: simple}}\nmodels: [NMU]\nseeds: 1\nfixed: {{sparsity_strength: {spelling}}}\n"
        text += f"grid: {{hidden_size: [{spelling}]}}\nprotocol: {{iterations: 1e4}}\n"
        ids |= {cell.id for cell in study_cells(parse_spec(text, source="a.yaml"))}
    assert len(ids) == 1


def test_a_models_value_overrides_the_common_one() -> None:
    """A model's own value overrides the common one in fixed, grid and zip."""
    own = {"name": "NMU", "grid": {"learning_rate": [0.1]}, "fixed": {"hidden_size": 7, "sparsity_start": 5}}
    spec = parse(
        models=[own, "NMU"],
        fixed={"learning_rate": 0.5},
        grid={"hidden_size": [2, 3]},
        zip={"s": [{"sparsity_start": 10, "sparsity_end": 50}, {"sparsity_start": 20, "sparsity_end": 60}]},
    )
    values = [(c.learning_rate, c.hidden_size, c.sparsity_start, c.sparsity_end) for c in typed_cells(spec)]
    mine = [(0.1, 7, 5, 50), (0.1, 7, 5, 60)]
    common = [(0.5, h, s, e) for h in (2, 3) for s, e in ((10, 50), (20, 60))]
    assert values == mine + common


def test_every_hyperparameter_of_a_cell_can_be_set() -> None:
    """All fields of a cell but task and model can be fixed, swept and zipped."""
    assert set(HYPERPARAMETERS) == set(cell_columns()) - {"task", "model"}


def test_schema_has_every_name() -> None:
    """The JSON schema is plain JSON, completes every hyperparameter, and lists models and operations.

    Only a user's task may have unlisted fields.
    """
    stored_schema = json.loads(json.dumps(schema()))
    tables = stored_schema["$defs"]
    assert set(tables["Fixed"]["properties"]) == set(HYPERPARAMETERS)
    assert set(tables["Grid"]["properties"]) == set(HYPERPARAMETERS)
    assert set(tables["Point"]["properties"]) == {"label", *HYPERPARAMETERS}
    assert tables["ModelTable"]["anyOf"][0]["enum"] == list(MODELS)
    alone, with_condition = tables["Fixed"]["properties"]["operation"]["anyOf"]
    assert "mul" in alone["enum"]
    assert with_condition["required"] == ["value"]
    assert tables["Fixed"]["properties"]["hidden_size"]["anyOf"][0]["minimum"] == 1
    assert [name for name, table in tables.items() if table.get("additionalProperties")] == ["AnyTask"]


def test_schema_describes_keys_where_editors_show_them() -> None:
    """A key of a table has its meaning as description; the table's own description is one sentence."""
    table = schema()["$defs"]["ResourcesTable"]
    assert table["description"] == "Resources of a trial."
    assert table["properties"]["gpus"]["description"] == "the number of GPUs, or a share of one; 0 hides all GPUs."
    assert "Args:" not in json.dumps(schema())


def fits(value: Any, rule: dict[str, Any], tables: dict[str, Any]) -> bool:
    """Return True if a value fits a rule of JSON Schema; fail on keywords outside the supported part."""
    known = {
        "$ref", "$schema", "$defs", "anyOf", "enum", "type", "properties", "additionalProperties", "required", "items",
        "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern",
        "minProperties", "title", "description", "default",
    }  # fmt: skip
    assert set(rule) <= known, set(rule) - known
    if "$ref" in rule:
        return fits(value, tables[rule["$ref"].split("/")[-1]], tables)
    if "anyOf" in rule:
        return any(fits(value, option, tables) for option in rule["anyOf"])
    if "enum" in rule:
        return value in rule["enum"]
    if set(rule) <= {"title", "description", "default"}:
        return True
    match rule.get("type"):
        case "object":
            keys, extra = rule.get("properties", {}), rule.get("additionalProperties", True)
            return (
                isinstance(value, dict)
                and set(rule.get("required", ())) <= set(value)
                and (extra is not False or set(value) <= set(keys))
                and all(
                    fits(v, keys.get(k, extra if isinstance(extra, dict) else {}), tables) for k, v in value.items()
                )
            )
        case "array":
            least, most = (rule.get("minItems", 0), rule.get("maxItems", len(value) if isinstance(value, list) else 0))
            return (
                isinstance(value, list)
                and least <= len(value) <= most
                and all(fits(item, rule.get("items", {}), tables) for item in value)
            )
        case "string":
            return isinstance(value, str) and re.search(rule.get("pattern", ""), value) is not None
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            return (
                isinstance(value, int if kind == "integer" else int | float)
                and rule.get("minimum", value) <= value <= rule.get("maximum", value)
                and value > rule.get("exclusiveMinimum", value - 1)
                and value < rule.get("exclusiveMaximum", value + 1)
            )
    return not rule


@pytest.mark.parametrize("name", preset_names())
def test_schema_accepts_presets(name: str) -> None:
    """Every preset fits the JSON schema, and fails with an unknown key."""
    from study.spec.document import read

    rules, data = schema(), read(preset_text(name)).data
    assert fits(data, rules, rules["$defs"])
    assert not fits(data | {"colour": 1}, rules, rules["$defs"])
    is_known = data["task"]["name"] in TASKS  # only its class knows the models of a task that trains in packs
    assert fits(data | {"models": ["NMUU"]}, rules, rules["$defs"]) != is_known
    assert not fits(data | {"models": [3]}, rules, rules["$defs"])


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_KEYS = ["study", "question", "task", "models", "fixed", "grid", "zip", "seeds", "protocol", "success"]


@given(changed=st.dictionaries(st.sampled_from(_KEYS), _ANY, min_size=1, max_size=4))
def test_nonsense_is_reported_without_a_crash(changed: dict[str, Any]) -> None:
    """With any values anywhere, the file is either a study or has mistakes, without a crash."""
    try:
        assert parse(**changed).study
    except SpecError:
        assert mistakes(**changed)


@given(text=st.text(max_size=60))
def test_any_text_is_a_study_or_a_mistake(text: str) -> None:
    """Random text gives a list of problems, without a crash."""
    assert problems(text)


UNTIL = """\
study: until
task: {name: simple}
models:
  - NMU
grid:
  hiden_size: [2, 3]
seeds:
  until:
    half_width: 0.7
    different_form: NAC-mul
    max: 10
    batch: 20
"""


def test_mistakes_of_until_are_reported_with_all_others() -> None:
    """Each mistake under `seeds` has its line and nearest name, in one message with mistakes of other tables."""
    reported = {problem.where: problem for problem in problems(UNTIL)}
    assert {place: problem.line for place, problem in reported.items()} == {
        "grid.hiden_size": 6,
        "seeds.until.half_width": 9,
        "seeds.until.different_form": 10,
        "seeds.until.batch": 12,
    }
    assert reported["seeds.until.half_width"].message == "must be < 0.5, but got 0.7"
    assert "did you mean 'different_from'?" in reported["seeds.until.different_form"].message
    assert reported["seeds.until.batch"].message == "batch <= max must hold, but got 20 and max 10"


def test_a_width_excludes_a_compared_model() -> None:
    """A width and a compared model are two questions: both together are a mistake at `until`."""
    text = UNTIL.replace("0.7", "0.1").replace("form", "from").replace("hiden", "hidden").replace("20", "5")
    (problem,) = problems(text.replace("- NMU", "- NMU\n  - NAC-mul"))
    assert (problem.where, problem.line) == ("seeds.until", 9)
    assert (
        problem.message
        == "must have exactly one of half_width, different_from and claims, but has half_width and different_from"
    )


def test_cells_compared_with_a_model_need_a_counterpart() -> None:
    """A cell without a counterpart of the compared model is refused when the study is planned."""
    spec = parse(
        models=[{"name": "NMU", "grid": {"hidden_size": [2, 5]}}, "NAC-mul"],
        seeds={"until": {"different_from": "NAC-mul", "max": 9}},
    )
    with pytest.raises(InputError, match="NMU with hidden_size 5 has no counterpart among the cells of NAC-mul"):
        study_cells(spec)


def test_until_counts_as_its_most_seeds() -> None:
    """A study's size is its maximum; it begins with a batch, of 20 seeds by default."""
    spec = parse(seeds={"until": {"half_width": 0.1, "max": 50}})
    assert (spec.most_seeds, list(spec.first_seeds)) == (50, list(range(20)))
    with pytest.raises(InputError, match="up to 1,000,000 trials"):
        check_size(parse(seeds={"until": {"half_width": 0.1, "max": 1_000_000}}), yes=False)
    assert list(parse(seeds={"until": {"half_width": 0.1, "max": 3}}).first_seeds) == [0, 1, 2]


@pytest.mark.parametrize(
    ("seeds", "fitting"),
    [
        ({"until": {"half_width": 0.1, "max": 9, "batch": 3}}, True),
        ({"until": {"different_from": "NMU", "max": 9}}, True),
        ({"until": {"half_width": 0.1}}, False),
        ({"until": {"half_width": 0.6, "max": 9}}, False),
        ({"until": {"half_width": 0.1, "max": 9, "bach": 3}}, False),
        ({}, False),
    ],
)
def test_schema_knows_until(seeds: Any, fitting: bool) -> None:
    """Editors accept the tables that the parser accepts, and mark the others."""
    data = {"study": "a", "task": {"name": "simple"}, "models": ["NMU"], "seeds": seeds}
    rules = schema()
    assert fits(data, rules, rules["$defs"]) == fitting
