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
