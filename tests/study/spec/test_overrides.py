"""Overrides of a file's values: in ids, in the study's text, and in errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import InputError, SpecError
from study.plan.plan import make_plan
from study.spec import dump, load_spec, parse_overrides, parse_spec
from study.spec.document import read
from tests.commands import invoke

FILE = """
study: mine  # a comment
question: Why?
task: {name: simple}
models: [NMU]
grid: {hidden_size: [2, 3]}
seeds: 5
fixed: {learning_rate: 1e-3}
"""


def ids(spec) -> list[str]:
    return [trial.id for trial in make_plan(spec).trials]


def test_trials_are_those_of_a_file_with_the_values() -> None:
    """Overridden and written values give the same ids, and the study's text reads back as the same study."""
    overrides = parse_overrides(
        ["seeds=7", "grid.hidden_size=[2, 4]", "fixed.learning_rate=1e-2", "protocol.iterations=9000"]
    )
    spec = parse_spec(FILE, source="mine.yaml", overrides=overrides)
    written = FILE.replace("seeds: 5", "seeds: 7").replace("[2, 3]", "[2, 4]").replace("1e-3", "1e-2")
    assert ids(spec) == ids(parse_spec(written + "protocol: {iterations: 9000}\n", source="mine.yaml"))
    assert ids(parse_spec(spec.text, source="store")) == ids(spec)
    assert spec.text.startswith("# mine.yaml, with seeds=7 grid.hidden_size=[2, 4] fixed.learning_rate=0.01 ")
    assert parse_spec(FILE, source="mine.yaml").text == FILE
    assert len(ids(load_spec("demo", parse_overrides(["seeds=50"])))) == 1000


def test_a_value_of_several_lines_stays_in_the_comment() -> None:
    """The first lines of a stored file, which name the overrides, are comments, whatever a value holds."""
    spec = load_spec("demo", {("question",): "one\ntwo: 2"})
    assert parse_spec(spec.text, source="stored.yaml").question == "one\ntwo: 2"


def test_a_value_that_no_file_can_have_is_refused() -> None:
    """Python code may pass any object, but a study file can't name it."""
    with pytest.raises(InputError, match="a study's values must be texts, numbers, lists or tables"):
        load_spec("demo", {("seeds",): object()})


@pytest.mark.parametrize("text", ["seeds", "=5", "grid.=5", "seeds=[1", ".seeds=2"])
def test_malformed_overrides_are_refused(text: str) -> None:
    """An override must be KEY=VALUE, with a key of the file and a valid value."""
    with pytest.raises(InputError, match="must be KEY=VALUE"):
        parse_overrides([text])


def test_mistakes_are_those_of_the_value() -> None:
    """A value from the command line has no line; mistakes of the file keep theirs."""
    with pytest.raises(SpecError) as raised:
        parse_spec(FILE.replace("[NMU]", "[NMUU]"), source="mine.yaml", overrides=parse_overrides(["seeds=0"]))
    message = str(raised.value)
    assert "line 5: models[1]: must be one of" in message
    assert "\n  KEY=VALUE: seeds: must be at least 1" in message
    with pytest.raises(InputError, match=r"models\.NMU: models isn't a table"):
        parse_spec(FILE, source="mine.yaml", overrides=parse_overrides(["models.NMU=1"]))
    with pytest.raises(InputError, match="seeds must be given once"):
        parse_overrides(["seeds=1", "seeds=2"])


def test_a_mapping_is_written_as_yaml() -> None:
    """Equal lists are written without YAML anchors, and unrepresentable values are refused."""
    sizes = [2, 3]
    text = dump({"study": "off", "grid": {"a": sizes, "b": sizes}, "rate": 1e-5})
    assert "&" not in text
    assert parse_spec(dump({"study": "a", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 1}), source="x").seeds
    with pytest.raises(InputError, match="must be texts, numbers, lists or tables"):
        dump({"study": Path("a")})


def test_commands_take_them(tmp_path: Path) -> None:
    """`study plan FILE KEY=VALUE ...` plans the overridden values; a wrong value is an error with exit code 2."""
    (tmp_path / "mine.yaml").write_text(FILE)
    words = (str(tmp_path / "mine.yaml"), "seeds=3", "grid.hidden_size=[2,4,6]", "--store", str(tmp_path / "studies"))
    assert "3 cells × 3 seeds = 9 trials" in invoke("plan", *words, "--quick").output
    refused = invoke("plan", str(tmp_path / "mine.yaml"), "grid.hidden_size=two", "--store", str(tmp_path / "studies"))
    assert refused.exit_code == 2
    assert "grid.hidden_size: must be a list" in refused.output


ZIPPED = """
study: mine
task: {name: simple}
models: [NMU]
grid: {hidden_size: [2, 3]}
zip:
  length:
    - {label: short, iterations: 1000}
    - {label: long, iterations: 2000}
  schedule:
    - {label: early, sparsity_start: 100, iterations: 5000}
    - {label: late, sparsity_start: 200}
    - {label: later, sparsity_start: 200, clip_norm: 1}
seeds: 5
"""
LENGTH, SCHEDULE = ZIPPED.split("  length:")[1].split("  schedule:")


def test_a_value_for_all_models_replaces_those_of_axes() -> None:
    """KEY=VALUE overrides zip and grid; points that become equal are merged, with a note."""
    file = ZIPPED.replace(f"  length:{LENGTH}", "")
    spec = parse_spec(file, source="mine.yaml", overrides=parse_overrides(["protocol.iterations=1000"]))
    written = file.replace(", iterations: 5000", "") + "protocol: {iterations: 1000}\n"
    assert ids(spec) == ids(parse_spec(written, source="mine.yaml")) == ids(parse_spec(spec.text, source="store"))
    assert spec.notices == ("protocol.iterations replaces iterations of the axis zip.schedule",)

    spec = parse_spec(
        file, source="mine.yaml", overrides=parse_overrides(["fixed.clip_norm=2", "grid.sparsity_start=[7, 8]"])
    )
    cells = make_plan(spec).cells
    assert {cell.value("sparsity_start") for cell in cells} == {7, 8}
    assert {cell.value("clip_norm") for cell in cells} == {2.0}
    assert [notice.partition(", whose")[0] for notice in spec.notices] == [
        "fixed.clip_norm replaces clip_norm of the axis zip.schedule",
        "grid.sparsity_start replaces sparsity_start of the axis zip.schedule",
    ]


def test_an_axis_without_other_values_is_dropped() -> None:
    """An axis that sets only the overridden value is dropped, and so is a list of the grid."""
    file = ZIPPED.replace(f"  schedule:{SCHEDULE.split('seeds')[0]}", "")
    overrides = parse_overrides(["protocol.iterations=1000", "fixed.hidden_size=4"])
    spec = parse_spec(file, source="mine.yaml", overrides=overrides)
    (cell,) = make_plan(spec).cells
    assert (cell.iterations, cell.value("hidden_size")) == (1000, 4)
    assert spec.notices == (
        "protocol.iterations replaces iterations of the axis zip.length, which sets nothing else and is removed",
        "fixed.hidden_size replaces grid.hidden_size of the file",
    )


def test_points_that_differ_in_the_replaced_value_alone_are_merged() -> None:
    """Equal points are merged, without a label if theirs differ."""
    file = ZIPPED.replace(f"  length:{LENGTH}", "").replace(", iterations: 5000", "")
    spec = parse_spec(file, source="mine.yaml", overrides=parse_overrides(["fixed.clip_norm=2"]))
    planned = make_plan(spec)
    assert [cell.value("sparsity_start") for cell in planned.cells] == [100, 200, 100, 200]
    assert [planned.labels.get(cell.id) for cell in planned.cells[:2]] == [{"schedule": "early"}, None]
    assert spec.notices == ("fixed.clip_norm replaces clip_norm of the axis zip.schedule, whose 3 points become 2",)


def test_two_overrides_of_one_value_are_a_mistake_as_in_a_file() -> None:
    """Two values for one key are ambiguous."""
    overrides = parse_overrides(["protocol.iterations=1000", "grid.iterations=[1, 2]"])
    with pytest.raises(SpecError, match="iterations is also set under"):
        parse_spec(FILE, source="mine.yaml", overrides=overrides)


def test_a_models_own_value_stays() -> None:
    """A model's own value overrides a value for all models, whatever its source."""
    file = FILE.replace("[NMU]", "[NMU, {name: linear, fixed: {iterations: 3000}}]")
    spec = parse_spec(file, source="mine.yaml", overrides=parse_overrides(["protocol.iterations=1000"]))
    assert {(cell.model, cell.iterations) for cell in make_plan(spec).cells} == {("NMU", 1000), ("linear", 3000)}


@pytest.mark.parametrize("preset", ["input-size", "near-zero"])
def test_presets_that_zip_iterations_can_be_cut_short(preset: str) -> None:
    """`study run PRESET protocol.iterations=1000` is a study of the same questions, each with 1000 iterations."""
    original, short = (
        make_plan(load_spec(preset)),
        make_plan(load_spec(preset, parse_overrides(["protocol.iterations=1000"]))),
    )
    assert {cell.iterations for cell in short.cells} == {1000}
    assert len(short.cells) == len(original.cells)


@pytest.mark.parametrize("text", ["1e6", "0.1e5", "08", "1E5", "-.5e3", "null", "2001-01-02", "yes", "0-99", "a\nb"])
def test_texts_that_look_like_numbers_stay_texts(text: str) -> None:
    """Texts written as YAML for the store round-trip."""
    assert read(dump({"value": text, "list": [text]})).data == {"value": text, "list": [text]}
