"""Commands with placeholders: the words that a program gets."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.interface.program import Program, Results, nested, text_of, variable_of, words_of

RESULTS = Results("file", "metrics.json")
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def filled(command: str, **values: Any) -> list[str]:
    return Program(tuple(words_of(command)), RESULTS).filled(values)


def printed(text: str, **values: Any) -> bytes:
    """Run a shell command and return its output."""
    words = Program((text,), RESULTS, is_shell=True).filled(values)
    return subprocess.run(words, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train --lr {lr}", ["train", "--lr", "0.5"]),
        ("train --lr={lr} {lr}{n}", ["train", "--lr=0.5", "0.53"]),
        ("train {name}", ["train", "a b"]),
        ("train 'a {n} b'", ["train", "a 3 b"]),
        ("train {model.width} {batch-size}", ["train", "8", "16"]),
        ("train {layers}", ["train", "[8, 8]"]),
        ("train {empty} ''", ["train", "", ""]),
        ("train {{lr}} '{{not a name}}'", ["train", "{lr}", "{not a name}"]),
        ("train '{lr: 1}' {1} {}", ["train", " 1", "{1}", "{}"]),
    ],
)
def test_placeholders_are_replaced_in_words(command: str, words: list[str]) -> None:
    """A value becomes one word or a part of a word, whatever it contains; other text stays unchanged."""
    values = {"lr": 0.5, "n": 3, "name": "a b", "model.width": 8, "batch-size": 16, "layers": [8, 8], "empty": ""}
    assert filled(command, **values) == words


@pytest.mark.parametrize(
    ("command", "on", "off"),
    [
        ("train {fast:--fast}", ["train", "--fast"], ["train"]),
        ("train {fast:--fast|--slow}", ["train", "--fast"], ["train", "--slow"]),
        ("train {fast:|--slow}", ["train"], ["train", "--slow"]),
        ("train --mode={fast:quick|}", ["train", "--mode=quick"], ["train", "--mode="]),
        ("train {fast}", ["train", "true"], ["train", "false"]),
    ],
)
def test_flags(command: str, on: list[str], off: list[str]) -> None:
    """One text stands for true and another for false; a flag with no text drops its word."""
    assert (filled(command, fast=True), filled(command, fast=False)) == (on, off)


def test_a_flag_is_off_for_empty_values() -> None:
    """A flag is off for None, zero and an empty text, as in Python."""
    command = "train {decay:--decay}"
    assert [filled(command, decay=value) for value in (0.1, "no")] == [["train", "--decay"]] * 2
    assert [filled(command, decay=value) for value in (None, 0, "", [])] == [["train"]] * 4
    assert filled("train --verbose {fast:--fast}", fast=None) == ["train", "--verbose"]


def test_placeholders_are_listed_once() -> None:
    """Each placeholder is listed once; texts of flags and doubled braces aren't placeholders."""
    program = Program(("{code}/train", "--lr={lr}{seed}", "{fast:--lr}", "{{no}}", "{lr}"), RESULTS)
    assert program.placeholders == ["code", "lr", "seed", "fast"]


def test_values_are_written_as_json_and_texts_unchanged() -> None:
    values = [1, 1.0, 1e-05, 1e22, True, None, "adam", "true", [1, "a"], "\u00fc", ["\u00fc"]]
    texts = ["1", "1.0", "1e-05", "1e+22", "true", "null", "adam", "true", '[1, "a"]', "\u00fc", '["\u00fc"]']
    assert [text_of(value) for value in values] == texts


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.lists(st.booleans() | TEXTS))
def test_a_program_that_reads_json_reads_the_value(value: Any) -> None:
    """A program that parses the text as JSON gets the same value, to the last bit."""
    assert json.loads(text_of(value)) == value


def test_a_shell_gets_values_as_single_words() -> None:
    """The shell doesn't interpret blanks, quotes or commands in a value."""
    for value in ("a b", "it's", "$HOME", "`id`; $(id)", '"', "*", "", "a\nb"):
        assert printed("printf %s {name}", name=value).decode() == value


def test_a_shell_knows_pipes_and_its_own_variables() -> None:
    """In a shell command, pipes work, and doubled braces are the shell's braces."""
    assert printed("x={n}; echo ${{x}}0 | tr 3 4 {fast:&& echo done}", n=3, fast=True) == b"40\ndone\n"
    assert printed("x={n}; echo ${{x}}0 | tr 3 4 {fast:&& echo done}", n=3, fast=False) == b"40\n"


def test_a_command_is_written_as_a_user_would() -> None:
    """Placeholders aren't quoted; blanks and quotes are."""
    words = ("python", "train.py", "--lr={lr}", "{fast:--fast|}", "a b", "", 'say "a"')
    command = "python train.py --lr={lr} {fast:--fast|} 'a b' '' 'say \"a\"'"
    assert Program(words, RESULTS).command == command
    assert Program(("a | b > {x}",), RESULTS, is_shell=True).command == "a | b > {x}"


@given(st.lists(TEXTS, min_size=1))
def test_a_command_equals_its_list_of_words(words: list[str]) -> None:
    """Two programs with the same command are equal."""
    assert words_of(Program(tuple(words), RESULTS).command) == words


def test_dots_separate_tables() -> None:
    assert nested({"lr": 1, "a.b.c": 2, "a.d": [3], "a.b.e": None}) == {
        "lr": 1,
        "a": {"b": {"c": 2, "e": None}, "d": [3]},
    }


def test_names_of_variables_have_letters_digits_and_underscores() -> None:
    names = ["lr", "model.width", "batch-size", "Adam.beta_1"]
    assert list(map(variable_of, names)) == [
        "STUDY_PARAM_LR", "STUDY_PARAM_MODEL_WIDTH", "STUDY_PARAM_BATCH_SIZE", "STUDY_PARAM_ADAM_BETA_1"
    ]  # fmt: skip


def test_results_in_words() -> None:
    """The description of results has a fixed text for each kind, because it is part of a cell."""
    assert str(Results("csv", "log.csv")) == "csv log.csv"
    assert str(Results("csv", "log.csv", "epoch")) == "csv log.csv, step epoch"
    are_files = {kind: Results(kind, "x").are_files for kind in ("file", "csv", "lines", "pattern", "mlflow")}  # type: ignore[arg-type]
    assert are_files == {"file": True, "csv": True, "lines": False, "pattern": False, "mlflow": True}


def test_words_are_those_of_a_shell() -> None:
    command = "a 'b c' \"d\" e\\ f"
    assert words_of(command) == shlex.split(command) == ["a", "b c", "d", "e f"]
    with pytest.raises(ValueError, match="No closing quotation"):
        words_of("a 'b")
