"""Study files that name a program: contents, mistakes, and warnings about likely omissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import SpecError
from study.interface.program import Program, Results
from study.interface.program_family import ProgramFamily
from study.plan.plan import make_plan, study_cells
from study.spec import Spec, parse_spec
from study.spec.program_tables import ProgramSpec

TEN_LINES = """
study: rates
command: python train.py --lr {lr} --optimizer={optimizer} --seed {seed}
results: metrics.json
metrics: {accuracy: higher, loss: lower}
success: {accuracy: {at_least: 0.9}}
grid:
  lr: [0.001, 0.01, 1]
  optimizer: [adam, sgd]
seeds: 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a program."""
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "base.yaml").write_text("depth: 3\n")
    return tmp_path


def study_with(folder: Path, **changed: Any) -> ProgramSpec:
    """Parse the study of ten lines with some values changed; None removes a key."""
    spec = parse_spec(text_with(**changed), source="rates.yaml", folder=folder)
    assert isinstance(spec, ProgramSpec)
    return spec


def text_with(**changed: Any) -> str:
    content = {name: value for name, value in (yaml.safe_load(TEN_LINES) | changed).items() if value is not None}
    return yaml.safe_dump(content, sort_keys=False)


def ids(spec: Spec) -> list[str]:
    return [cell.id for cell in study_cells(spec)]


def test_ten_lines_are_a_study(folder: Path) -> None:
    """Cells have the values of the file, without further declarations."""
    spec = parse_spec(TEN_LINES, source="rates.yaml", folder=folder)
    assert isinstance(spec, ProgramSpec)
    words = ("python", "train.py", "--lr", "{lr}", "--optimizer={optimizer}", "--seed", "{seed}")
    assert spec.program == Program(words, Results("file", "metrics.json"))
    assert spec.source_code is not None
    assert list(spec.source_code.files) == ["train.py"]
    cells = study_cells(spec)
    assert {(cell.task, cell.model) for cell in cells} == {("program", "train.py")}
    assert {(cell.value("lr"), cell.value("optimizer")) for cell in cells} == {
        (lr, optimizer) for lr in (0.001, 0.01, 1) for optimizer in ("adam", "sgd")
    }
    assert len(make_plan(spec).trials) == 120
    assert spec.notices == ()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("metrics.json", Results("file", "metrics.json")),
        ("out/log.jsonl", Results("file", "out/log.jsonl")),
        ("out/log.CSV", Results("csv", "out/log.CSV")),
        ({"csv": "log.csv", "step": "epoch"}, Results("csv", "log.csv", "epoch")),
        ({"lines": "json"}, Results("lines", "json")),
        (
            {"pattern": r"accuracy (?P<accuracy>\S+) loss (?P<loss>\S+)"},
            Results("pattern", r"accuracy (?P<accuracy>\S+) loss (?P<loss>\S+)"),
        ),
        ({"tensorboard": "."}, Results("tensorboard", ".")),
        ({"file": "**/metrics.json"}, Results("file", "**/metrics.json")),
        ({"mlflow": "runs"}, Results("mlflow", "runs")),
    ],
)
def test_results_are_named_in_a_word_or_a_table(folder: Path, results: object, expected: Results) -> None:
    """A text alone is a file, and its suffix gives the format."""
    assert study_with(folder, results=results).program.results == expected


def test_a_command_may_be_a_list_or_a_text_for_a_shell(folder: Path) -> None:
    """A list needs no quoting; a shell's text is unchanged, including an apostrophe in a comment."""
    words = ["python", "train.py", 8, "a b", "{seed}"]
    assert study_with(folder, command=words).program.words == ("python", "train.py", "8", "a b", "{seed}")
    text = "# it's a pipe\npython {code}/train.py {lr} {optimizer} {seed} | tee log.txt"
    program = study_with(folder, command=text, shell=True).program
    assert (program.words, program.is_shell) == ((text,), True)


@pytest.mark.parametrize(
    ("command", "shell", "name"),
    [
        ("python -u train.py {seed}", False, "train.py"),
        ("python -m lab.train {seed}", False, "lab.train"),
        ("sh {code}/conf/base.yaml {seed}", False, "sh"),
        ("simulate {seed} data.csv", False, "simulate"),
        ("/usr/bin/simulate {seed}", False, "simulate"),
        ("cd {folder} && python {code}/train.py {seed} > log.txt", True, "train.py"),
        ("ulimit -t 9; simulate {seed} > log.txt", True, "ulimit"),
    ],
)
def test_the_program_has_a_short_name(folder: Path, command: str, shell: bool, name: str) -> None:
    """Readers see its script, module, or else the program, as the model."""
    assert study_with(folder, command=command, shell=shell).called == name


PATTERN = r"acc=(?P<accuracy>\S+)"
MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown placeholder": (
        {"command": "python train.py {lr} {sede} {optimizer}"},
        [
            "command: {sede} must be a hyperparameter (under fixed, grid, zip, points or ranges), or one of "
            "seed, folder, config, config.yaml, code; did you mean 'seed'?"
        ],
    ),
    "own braces": (
        {"command": "python train.py {lr} {HOME}"},
        [
            "command: {HOME} must be a hyperparameter (under fixed, grid, zip, points or ranges), or one of "
            "seed, folder, config, config.yaml, code; for the text itself write {{HOME}}"
        ],
    ),
    "no results": ({"results": None}, ["results: must be given, but is missing"]),
    "no kind of results": (
        {"results": {"step": "epoch"}},
        ["results: must have one of file, csv, lines, pattern, tensorboard, mlflow, but has none"],
    ),
    "two kinds of results": (
        {"results": {"file": "a.json", "csv": "a.csv"}},
        ["results: must have one of file, csv, lines, pattern, tensorboard, mlflow, but has file and csv"],
    ),
    "unknown kind of results": (
        {"results": {"fiel": "a.json", "file": "b.json"}},
        ["results.fiel: unknown key; did you mean 'file'?"],
    ),
    "bad pattern": (
        {"results": {"pattern": "(?P<loss>"}},
        ["results: pattern can't be read: missing ), unterminated subpattern at position 0, in '(?P<loss>'"],
    ),
    "pattern without a group": (
        {"results": {"pattern": "loss=(.*)"}},
        [
            r"results: pattern must have a group named like a metric, such as loss=(?P<loss>\S+): "
            "'loss=(.*)'"
        ],
    ),
    "pattern without a metric's group": (
        {"results": {"pattern": PATTERN}},
        ["results.pattern: must have a group for each metric, but has no (?P<loss>...)"],
    ),
    "lines of another kind": (
        {"results": {"lines": "csv"}},
        ["results: lines must be json, for JSON objects in lines of the output, but got csv"],
    ),
    "absolute path": (
        {"results": "/tmp/metrics.json"},
        ["results: must be a relative path in the trial's folder, but got '/tmp/metrics.json'"],
    ),
    "path outside the folder": (
        {"results": {"tensorboard": "a/../../b"}},
        ["results: must be a relative path in the trial's folder, but got 'a/../../b'"],
    ),
    "no path": ({"results": ""}, ["results: must name a file in the trial's folder, but got ''"]),
    "the folder as a file": (
        {"results": {"csv": "."}},
        ["results: must name a file in the trial's folder, but got '.'"],
    ),
    "impossible wildcard": (
        {"results": "runs**/a.json"},
        ["results: can have ** only between slashes, as in **/metrics.json, but got 'runs**/a.json'"],
    ),
    "resume with output": (
        {"results": {"lines": "json"}, "resume": True},
        ["resume: needs results in files, since the output of an interrupted attempt isn't read again"],
    ),
    "reserved names": (
        {
            "grid": None,
            "fixed": {"lr": 1, "optimizer": "a", "folder": "x", "command": "x"},
            "zip": {"z": [{"results": 1}, {"results": 2}]},
        },
        [
            "fixed.folder: the name means something else in a study file; give it another one",
            "fixed.command: the name means something else in a study file; give it another one",
            "zip: the name means something else in a study file; give it another one",
        ],
    ),
    "odd names": (
        {"fixed": {"learning rate": 1, "2x": 2}},
        [
            "fixed.learning rate: must be a name: letters, digits and '_', in parts joined by '.' or '-'",
            "fixed.2x: must be a name: letters, digits and '_', in parts joined by '.' or '-'",
        ],
    ),
    "a value and a table": (
        {"fixed": {"net.width": 8, "net": "mlp"}},
        ["fixed.net.width: net can't be both a hyperparameter and the table of net.width"],
    ),
    "reserved metrics": (
        {"metrics": {"outcome": "lower", "command": "lower", "lr": "lower"}, "success": None},
        [
            "metrics.outcome: the name means something else in a study's results; give it another one",
            "metrics.command: the name means something else in a study's results; give it another one",
            "metrics.lr: there is a hyperparameter of that name; give it another one",
        ],
    ),
    "misspelt script": (
        {"command": "python trian.py {seed}"},
        ["command: the command names trian.py, and there is no such file in FOLDER; did you mean 'train.py'?"],
    ),
    "misspelt script in {code}": (
        {"command": "cat {code}/conf/bse.yaml {seed}"},
        [
            "command: the command names conf/bse.yaml, and there is no such file in FOLDER; did you mean "
            "'conf/base.yaml'?"
        ],
    ),
    "missing program": (
        {"command": "./simulate {seed}"},
        ["command: the command names ./simulate, and there is no such file in FOLDER"],
    ),
    "a shell with a file of the folder": (
        {"command": "python train.py {seed} > log.txt", "shell": True},
        [
            "command: the command names the file train.py, which a shell looks for in the trial's folder: "
            "write {code}/train.py"
        ],
    ),
    "a shell with a list": (
        {"command": ["python", "{code}/train.py"], "shell": True},
        ["command: must be a single text with shell: true, but is a list"],
    ),
    "open quotation": ({"command": "python train.py 'x"}, ["command: can't be split into words: No closing quotation"]),
    "no command": ({"command": ""}, ["command: must be a command, but is empty"]),
    "a command of something else": (
        {"command": {"run": "x"}},
        ["command: must be a command, such as python train.py --seed {seed}, but got {'run': 'x'}"],
    ),
    "no values": ({"grid": {"lr": [], "optimizer": ["adam"]}}, ["grid.lr: must have at least 1 value, but is empty"]),
    "unknown file to include": ({"include": ["data/*.csv"]}, ["command: 'data/*.csv' matches no file in FOLDER"]),
    "a metric that success misspells": (
        {"success": {"acuracy": {"at_least": 0.9}}},
        ["success.acuracy: must be one of the metrics, accuracy, loss, but got 'acuracy'; did you mean 'accuracy'?"],
    ),
    "an unknown key": ({"result": "x.json"}, ["result: unknown key; did you mean 'results'?"]),
    "a search for times without an end": (
        {
            "grid": None,
            "fixed": {"optimizer": "adam"},
            "ranges": {"lr": {"low": 0.1, "high": 1.0}},
            "search": {"objective": "solved_at", "trials": 600},
        },
        ["search.objective: solved_at needs a number of iterations for unsolved trials: set iterations"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_shows_its_place_and_rule(folder: Path, mistake: str) -> None:
    """Each mistake has the line of its key; a missing key has the first line."""
    changed, expected = MISTAKES[mistake]
    with pytest.raises(SpecError) as caught:
        study_with(folder, **changed)
    problems, lines = caught.value.problems, text_with(**changed).splitlines()
    assert [f"{problem.where}: {problem.message}".replace(str(folder), "FOLDER") for problem in problems] == expected
    for problem in problems:
        assert problem.line is not None
        key = lines[problem.line - 1].strip().partition(":")[0]
        assert problem.where.endswith(key) or "is missing" in problem.message


def test_all_mistakes_are_found_at_once(folder: Path) -> None:
    """Mistakes of tables and of their combinations are all found."""
    with pytest.raises(SpecError) as caught:
        study_with(
            folder,
            command="python train.py {lr} {optimizer} {sed}",
            metrics={"accuracy": "hihger", "loss": "lower"},
            success={"los": {"below": 1}},
            seeds=0,
            resources={"cpu": 2},
        )
    assert [problem.where for problem in caught.value.problems] == [
        "command", "metrics.accuracy", "success.los", "seeds", "resources.cpu"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "notices"),
    [
        ({}, []),
        (
            {"command": "python train.py {lr} {optimizer}"},
            ["the command has no {seed}, so all seeds of a cell are alike unless the program reads STUDY_SEED"],
        ),
        (
            {"command": "python train.py {optimizer} {seed}", "fixed": {"net.width": 8}},
            [
                "the command doesn't use net.width, lr: the program gets them only in its environment, such as "
                "STUDY_PARAM_NET_WIDTH"
            ],
        ),
        ({"command": "python train.py {config} {seed}"}, []),
        (
            {"command": "simulate {lr} {optimizer} {seed}"},
            [
                "the command names no file of the study's folder, so trial ids don't depend on the program's code: "
                "change version when you change the code"
            ],
        ),
        ({"command": "simulate {lr} {optimizer} {seed}", "version": 2}, []),
        ({"command": "simulate --out ./results {lr} {optimizer} {seed}", "version": 2}, []),
    ],
)
def test_likely_omissions_are_reported(folder: Path, changed: dict[str, Any], notices: list[str]) -> None:
    assert list(study_with(folder, **changed).notices) == notices


def test_the_code_is_part_of_the_ids(folder: Path) -> None:
    """A changed line of the script changes the id, unless the file has a version; a comment doesn't."""
    before, versioned = study_with(folder), study_with(folder, version=3)
    (folder / "train.py").write_text("print(1)  # a comment\n")
    assert ids(study_with(folder)) == ids(before)
    (folder / "train.py").write_text("print(2)\n")
    assert set(ids(study_with(folder))).isdisjoint(ids(before))
    assert ids(study_with(folder, version=3)) == ids(versioned) != ids(study_with(folder, version=4))


def test_keys_without_effect_on_numbers_arent_part_of_ids(folder: Path) -> None:
    """Success, resources and resuming may change later; command, results and length may not."""
    before = ids(study_with(folder))
    same = [{"success": {"loss": {"below": 1}}}, {"resume": True}, {"resources": {"time_limit_s": 9}}, {"keep": []}]
    assert [ids(study_with(folder, **changed)) for changed in same] == [before] * len(same)
    command = "python train.py --lr={lr} --optimizer={optimizer} --seed {seed}"
    others = [{"command": command}, {"results": {"file": "metrics.json", "step": "epoch"}}, {"iterations": 3}]
    assert not set(before) & {cell for changed in others for cell in ids(study_with(folder, **changed))}
    assert ids(study_with(folder, grid={"lr": [0.001, 0.01, 1.0], "optimizer": ["adam", "sgd"]})) == before


def test_a_stored_study_is_planned_without_its_code(folder: Path) -> None:
    """Stored declarations give the same trials; the files may be deleted."""
    spec = study_with(folder, zip={"pair": [{"depth": 1, "width": 4}, {"depth": 2.0, "width": 0.5}]})
    declared = ProgramFamily.from_json(spec.family.to_json())  # type: ignore[attr-defined]
    (folder / "train.py").unlink()
    stored = parse_spec(spec.text, source="spec.yaml", declared=declared)
    assert stored.source_code is None
    assert [trial.id for trial in make_plan(stored).trials] == [trial.id for trial in make_plan(spec).trials]


def test_a_search_draws_whole_numbers_where_its_limits_are(folder: Path) -> None:
    """A hyperparameter's kind is that of all its values in the file."""
    search = {"objective": "accuracy", "trials": 600}
    ranges = {"lr": {"low": 0.001, "high": 1, "scale": "log"}, "width": {"low": 4, "high": 64}}
    spec = study_with(folder, grid=None, fixed={"optimizer": "adam"}, ranges=ranges, search=search)
    kinds = json.loads(spec.family.to_json())["kinds"]  # type: ignore[attr-defined]
    assert kinds == {"optimizer": "text", "lr": "number", "width": "whole"}


def test_a_search_draws_numbers_where_its_limits_are_written_as_such(folder: Path) -> None:
    """Between 0.0 and 1.0 there are more than two integers; a single limit doesn't decide."""
    ranges = {"lr": {"low": 0.0, "high": 1.0}, "optimizer": {"low": 1, "high": 4.0}}
    spec = study_with(folder, grid=None, ranges=ranges, search={"objective": "loss", "trials": 100})
    assert {name: hyperparameter.kind for name, hyperparameter in spec.family.hyperparameters.items()} == {
        "lr": "number",
        "optimizer": "whole",
    }


def test_points_of_an_axis_have_labels(tmp_path: Path) -> None:
    """A label names a point, and isn't a hyperparameter."""
    text = (
        "{study: p, command: 'x {lr} {seed} {width}', results: a.json, metrics: {loss: lower}, seeds: 1, "
        "zip: {size: [{label: small, lr: 0.1, width: 2}, {label: large, lr: 0.2, width: 4}]}}"
    )
    plan = make_plan(parse_spec(text, source="p.yaml", folder=tmp_path))
    assert [cell.values["width"] for cell in plan.cells] == [2, 4]
    assert list(plan.names.values()) == ["small", "large"]


def test_two_names_of_one_environment_variable(tmp_path: Path) -> None:
    text = (
        "{study: p, command: 'x {a_b} {a.b} {seed}', results: a.json, metrics: {loss: lower}, seeds: 1, "
        "fixed: {a_b: 1, a.b: 2}}"
    )
    with pytest.raises(SpecError, match=r"must have its own environment variable, but shares that of a\.b"):
        parse_spec(text, source="p.yaml", folder=tmp_path)


def test_words_of_shells_need_a_shell(tmp_path: Path) -> None:
    text = "{study: p, command: 'x {seed} && y', results: a.json, metrics: {loss: lower}, seeds: 1, SHELL}"
    with pytest.raises(SpecError, match="command: && would be an argument of the program: add shell: true"):
        parse_spec(text.replace("SHELL", "shell: false"), source="p.yaml", folder=tmp_path)
    assert parse_spec(text.replace("SHELL", "shell: true"), source="p.yaml", folder=tmp_path).study == "p"
