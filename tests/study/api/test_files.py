"""Study files to begin with, and those of presets and stored studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.plugins.presets import preset_text
from study.spec import load_spec
from tests.commands import invoke


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_file_is_a_study() -> None:
    """Small, or that of a preset with its comments, under its own name; none is overwritten."""
    assert "study run mine.yaml" in invoke("new", "mine").output
    assert load_spec("mine.yaml").study == "mine"
    assert invoke("new", "more", "--from", "recurrent").exit_code == 0
    assert load_spec("more.yaml").study == "more"
    text = Path("more.yaml").read_text()
    assert text == preset_text("recurrent").replace("study: recurrent", "study: more")
    again = invoke("new", "mine", "--from", "demo")
    assert again.exit_code == 2
    assert "there is a file mine.yaml already" in again.output
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
    """It has what the function takes and reports, runs as it is, and says what to check."""
    Path("mine.py").write_text(FUNCTION)
    done = invoke("new", "first", "--train", "mine:train")
    assert done.exit_code == 0, done.output
    assert Path("first.yaml").read_text().splitlines()[1:] == [
        "study: first",
        "train: mine:train",
        "metrics: {val_acc: higher, train_loss: lower}  # check which is better; the first chooses the best step",
        "# success: {val_acc: {at_least: 0.9}}  # when a trial is solved; without it, means",
        "fixed: {layers: [8, 8], name: adam, fail: false}",
        "grid: {lr: [0.1, 0.01]}",
        "seeds: 20",
    ]
    ran = invoke("run", "first.yaml", "seeds=2", "--local", "--tracking-uri", "off")
    assert "4/4 trials" in ran.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--train", "mine:wide"), "width: it has no annotation"),
        (("--train", "mine:broken"), "mine:broken fails with its defaults: Traceback"),
        (("--train", "mine:nosuch"), "mine has no nosuch"),
        (("--train", "mine:train", "--from", "demo"), "only one of --from, --train and --command"),
    ],
)
def test_a_function_that_a_file_cannot_begin_with_is_refused(words: tuple[str, ...], message: str) -> None:
    Path("mine.py").write_text(FUNCTION)
    refused = invoke("new", "first", *words)
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("first.yaml").exists()


def test_what_no_study_can_be_called_is_refused() -> None:
    """Nothing is written."""
    for words, said in (
        (("a/b",), "study: must"),
        (("a\\1", "--from", "demo"), "study: must"),
        (("mine", "--from", "demmo"), "no preset is called 'demmo'; did you mean 'demo'?"),
    ):
        refused = invoke("new", *words)
        assert refused.exit_code == 2
        assert said in refused.output
    assert not list(Path().iterdir())


def test_a_preset_is_shown_until_the_store_has_a_study_of_its_name() -> None:
    """`show` prints the file of a preset, and the table of a study; `--file` prints the study's file."""
    assert invoke("show", "demo").output.strip() == preset_text("demo").strip()
    small = ("protocol.iterations=20", "protocol.evaluate_every=10", "seeds=1", "grid.hidden_size=[2]")
    ran = invoke("run", "demo", *small, "--local", "--engine", "torch", "--tracking-uri", "off")
    assert ran.exit_code == 0, ran.output
    assert "success rate" in invoke("show", "demo").output
    assert invoke("show", "demo", "--file").output.startswith("# preset demo, with protocol.iterations=20 ")
    assert "no study 'demmo'" in invoke("show", "demmo").output
