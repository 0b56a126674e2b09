"""Values that stand in for those of a file: in ids, in the study's text, and in errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import InputError, SpecError
from study.plan.plan import make_plan
from study.spec import dump, load_spec, parse_overrides, parse_spec
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
    """Overridden or written: the same ids; and the text of the study reads back as the same study."""
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


@pytest.mark.parametrize("text", ["seeds", "=5", "grid.=5", "seeds=[1", ".seeds=2"])
def test_what_is_no_override_is_refused(text: str) -> None:
    """It is a key of the file and a value."""
    with pytest.raises(InputError, match="must be KEY=VALUE"):
        parse_overrides([text])


def test_mistakes_are_those_of_the_value() -> None:
    """A value from the command line has no line; those of the file keep theirs."""
    with pytest.raises(SpecError) as raised:
        parse_spec(FILE.replace("[NMU]", "[NMUU]"), source="mine.yaml", overrides=parse_overrides(["seeds=0"]))
    message = str(raised.value)
    assert "line 5: models[1]: must be one of" in message
    assert "\n  KEY=VALUE: seeds: must be at least 1" in message
    with pytest.raises(InputError, match=r"models\.NMU: models is no table"):
        parse_spec(FILE, source="mine.yaml", overrides=parse_overrides(["models.NMU=1"]))
    with pytest.raises(InputError, match="seeds must be given once"):
        parse_overrides(["seeds=1", "seeds=2"])


def test_a_mapping_is_written_as_a_file_has_it() -> None:
    """Equal lists are written out each, and what no file has is refused."""
    sizes = [2, 3]
    text = dump({"study": "off", "grid": {"a": sizes, "b": sizes}, "rate": 1e-5})
    assert "&" not in text
    assert parse_spec(dump({"study": "a", "task": {"name": "simple"}, "models": ["NMU"], "seeds": 1}), source="x").seeds
    with pytest.raises(InputError, match="only texts, numbers, lists and tables"):
        dump({"study": Path("a")})


def test_commands_take_them(tmp_path: Path) -> None:
    """`study plan FILE KEY=VALUE ...`, and what goes on repeats them."""
    (tmp_path / "mine.yaml").write_text(FILE)
    words = (str(tmp_path / "mine.yaml"), "seeds=3", "grid.hidden_size=[2,4,6]", "--store", str(tmp_path / "studies"))
    assert "3 cells × 3 seeds = 9 trials" in invoke("plan", *words, "--quick").output
    refused = invoke("plan", str(tmp_path / "mine.yaml"), "grid.hidden_size=two", "--store", str(tmp_path / "studies"))
    assert refused.exit_code == 2
    assert "grid.hidden_size: must be a list" in refused.output
