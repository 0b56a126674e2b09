"""Initial study files, and the files of presets and stored studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.plugins.presets import preset_text
from study.spec import load_spec
from tests.commands import invoke


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_file_is_a_study() -> None:
    """A new file is a small study or a copy of a preset with its comments; no file is overwritten."""
    assert "study run mine.yaml" in invoke("new", "mine").output
    assert load_spec("mine.yaml").study == "mine"
    assert invoke("new", "more", "--from", "recurrent").exit_code == 0
    assert load_spec("more.yaml").study == "more"
    text = Path("more.yaml").read_text()
    assert text == preset_text("recurrent").replace("study: recurrent", "study: more")
    repeated = invoke("new", "mine", "--from", "demo")
    assert repeated.exit_code == 2
    assert "there is a file mine.yaml already" in repeated.output
    assert load_spec("mine.yaml").study == "mine"


FUNCTION = """
from study import seeded

@seeded
def train(seed, lr=0.1, layers=(8, 8), name="adam", fail=False):
    if fail:
        raise RuntimeError("no luck")
    for epoch in range(1000):
        yield {"step": epoch, "val_acc": lr * epoch / 1000, "train_loss": 1 / (1 + epoch)}

@seeded
def wide(seed, width): ...

@seeded
def broken(seed):
    return {"loss": 1 / 0}
"""


def test_a_new_file_begins_with_a_training_function() -> None:
    """The file has the function's parameters and metrics, marks the lines to check, and runs unchanged."""
    Path("mine.py").write_text(FUNCTION)
    result = invoke("new", "first", "--train", "mine:train")
    assert result.exit_code == 0, result.output
    assert Path("first.yaml").read_text().splitlines()[1:] == [
        "study: first",
        "train: mine:train",
        "metrics: {val_acc: higher, train_loss: lower}  # check which is better; the first chooses the best step",
        "# success: {val_acc: {at_least: 0.9}}  # when a trial is solved; without it, means",
        "fixed: {layers: [8, 8], name: adam, fail: false}",
        "grid: {lr: [0.1, 0.01]}",
        "seeds: 20",
    ]
    result = invoke("run", "first.yaml", "seeds=2", "--local", "--tracking-uri", "off")
    assert "4/4 trials" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--train", "mine:wide"), "width: it has no annotation"),
        (("--train", "mine:broken"), "correct it, or give other defaults: Traceback"),
        (("--train", "mine:nosuch"), "mine has no nosuch"),
        (("--train", "mine:train", "--from", "demo"), "--from, --train and --command can't be combined"),
    ],
)
def test_a_function_that_a_file_cannot_begin_with_is_refused(words: tuple[str, ...], message: str) -> None:
    Path("mine.py").write_text(FUNCTION)
    refused = invoke("new", "first", *words)
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("first.yaml").exists()


PROGRAM = """
import argparse, json, sys
parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.1, help="how fast (default: 0.1)")
parser.add_argument("--layers", type=int, default=2, help="(default: 2)")
parser.add_argument("--fast", action="store_true")
parser.add_argument("--seed", type=int)
parser.add_argument("--out-dir")
args = parser.parse_args()
if args.layers == 0:
    sys.exit("no layers")
"""
WRITES = {
    "json": ('open(f"{args.out_dir}/metrics.json", "w").write(json.dumps({"loss": 0.5}))', "{file: metrics.json}"),
    "json lines": (
        'open(f"{args.out_dir}/log.jsonl", "w").write(json.dumps({"loss": 0.5, "epoch": 0}))',
        "{file: log.jsonl, step: epoch}",
    ),
    "csv": ('open(f"{args.out_dir}/log.csv", "w").write("epoch,loss\\n0,0.5\\n")', "{csv: log.csv, step: epoch}"),
    "lines": ('print("begins"); print(json.dumps({"loss": 0.5}))', "{lines: json}"),
    "pattern": ('print("epoch 0: loss = 0.5, lr=0.1, 12 s")', r"{pattern: '\bloss\s*[=:]\s*(?P<loss>[-+.\w]+)'}"),
}


@pytest.mark.parametrize("how", WRITES)
def test_a_new_file_begins_with_a_program(how: str) -> None:
    """The file has the arguments of the command and --help and the results of a first run, and runs unchanged."""
    code, results = WRITES[how]
    Path("train.py").write_text(PROGRAM + code)
    result = invoke("new", "first", "--command", "python train.py --learning-rate 0.2")
    assert result.exit_code == 0, result.output
    assert Path("first.yaml").read_text().splitlines()[1:] == [
        "study: first",
        "command: python train.py --learning-rate {learning_rate} --seed {seed} --out-dir {folder}",
        f"results: {results}",
        "metrics: {loss: lower}  # check which is better; the first chooses the best step",
        "# success: {loss: {below: 0.1}}  # when a trial is solved; without it, means",
        "grid: {learning_rate: [0.2, 0.02]}",
        "seeds: 20",
        "# Other arguments: --layers (default 2), --fast",
    ]
    result = invoke("run", "first.yaml", "seeds=2", "--local", "--tracking-uri", "off")
    assert "4/4 trials" in result.output, result.output


def test_a_new_file_has_the_defaults_of_a_program_without_arguments() -> None:
    Path("train.py").write_text(PROGRAM + WRITES["lines"][0])
    assert invoke("new", "first", "--command", "python train.py").exit_code == 0
    lines = Path("first.yaml").read_text().splitlines()
    assert "grid: {learning_rate: [0.1, 0.01]}" in lines
    assert "fixed: {layers: 2}" in lines
    assert lines[-1] == "# Other arguments: --fast"


def test_results_that_were_not_found_are_asked_for() -> None:
    Path("quiet.sh").write_text("exit 0")
    assert invoke("new", "first", "--command", "sh quiet.sh").exit_code == 0
    text = Path("first.yaml").read_text()
    assert "results: metrics.json  # no results were found within 30 s: say where they are" in text
    assert "# No argument for the seed was found: the program must read it from the variable STUDY_SEED." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("python trian.py",), "the command names trian.py, and there is no such file in"),
        (("python train.py {foo}",), "{foo} has no value here; for the text itself write {{foo}}"),
        (("python train.py --layers 0",), "ended with exit code 1:\nno layers"),
        (("nosuchprogram",), "nosuchprogram can't be run: No such file or directory"),
        (("python 'train.py",), "the command can't be split into words: No closing quotation"),
        (("",), "the command is empty"),
        (("python train.py | tee log",), "| needs a shell: give the program alone"),
        (("python train.py", "--from", "demo"), "--from, --train and --command can't be combined"),
    ],
)
def test_a_program_that_a_file_cannot_begin_with_is_refused(words: tuple[str, ...], message: str) -> None:
    Path("train.py").write_text(PROGRAM)
    refused = invoke("new", "first", "--command", *words)
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("first.yaml").exists()


def test_invalid_study_names_are_refused() -> None:
    """An invalid study name or an unknown preset writes nothing."""
    for words, message in (
        (("a/b",), "study: must"),
        (("a\\1", "--from", "demo"), "study: must"),
        (("mine", "--from", "demmo"), "no preset is called 'demmo'; did you mean 'demo'?"),
    ):
        refused = invoke("new", *words)
        assert refused.exit_code == 2
        assert message in refused.output
    assert not list(Path().iterdir())


def test_a_preset_is_shown_until_the_store_has_a_study_of_its_name() -> None:
    """`show` prints the file of a preset, and the table of a study; `--file` prints the study's file."""
    assert invoke("show", "demo").output.strip() == preset_text("demo").strip()
    small = ("protocol.iterations=20", "protocol.evaluate_every=10", "seeds=1", "grid.hidden_size=[2]")
    result = invoke("run", "demo", *small, "--local", "--engine", "torch", "--tracking-uri", "off")
    assert result.exit_code == 0, result.output
    assert "success rate" in invoke("show", "demo").output
    assert invoke("show", "demo", "--file").output.startswith("# preset demo, with protocol.iterations=20 ")
    assert "no study 'demmo'" in invoke("show", "demmo").output
