"""A study file to begin with, for a program that is there: its arguments, and where its results are."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from study.driver.new_study import CALL_S, LOWER, as_inline, file_text
from study.engine.calls import CallTrial, TrialOutput
from study.engine.program import command_of
from study.engine.program.process import Process, ProgramError
from study.engine.program.results import OutputReader, ResultsError, Steps, reader_of
from study.errors import InputError
from study.interface.program import Program, Results, words_of
from study.source import SourceCode, read_program_code
from study.spec.document import as_yaml

GUIDE = "docs/programs.md"
_SEEDS = ("seed", "random_seed", "rng_seed", "manual_seed")
_FOLDERS = re.compile(r"(out|output|save|log|result|results|checkpoint|work|run)_?(dir|path|folder)?")
_OPTION = re.compile(r"^\s{1,8}(?:-\w(?:[ =][^\s,]+)?,\s+)?--(?P<name>[\w.-]+)(?:[ =](?P<value>\{[^}]*\}|[^\s/]+))?")
_DEFAULT = re.compile(r"[(\[]\s*default(?: is|:|=)?\s*(?P<value>[^)\]]+?)\s*[)\]]", re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
_PRINTED = re.compile(rf"(?<![\w.])(?P<name>[A-Za-z]\w*)\s*[=:]\s*(?:{_NUMBER})(?![\w.])")
_NO_METRIC = re.compile(
    r"(^|[^a-z])(seed|epochs?|(global_)?steps?|iter(ation)?s?|batch(_size)?|lr|learning_rate|size|width|port|pid|"
    r"times?(stamp)?|seconds|device|gpus?|workers|threads|line)($|[^a-z])",
    re.IGNORECASE,
)
_STEPS = ("epoch", "global_step", "iteration", "iter")
_HELP_S = 20.0
_MOST_FIXED, _MOST_METRICS, _MOST_LINES = 6, 4, 10


@dataclass
class _Arguments:
    """The arguments of a program.

    Args:
        words: those of the command, with placeholders.
        values: the values of the placeholders.
        others: options that the program has besides, for readers.
    """

    words: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def study_of_program(name: str, command: str, folder: Path) -> str:
    """Return the text of a study file for a program, which is run once, for half a minute at most.

    Args:
        name: the study's name.
        command: the command as one would type it, such as ``python train.py --lr 0.1``.
        folder: the folder of the study file, to which paths in the command are relative.

    Raises:
        InputError: if the program doesn't exist, or fails.
    """
    try:
        words = list(words_of(command))
    except ValueError as error:
        raise InputError(f"the command can't be split into words: {error}: {command}") from None
    if not words:
        raise InputError("the command is empty; give one, such as --command 'python train.py --lr 0.1'")
    if of_shell := _program(words).shell_words:
        raise InputError(
            f"{of_shell[0]} is for shells: give the program alone, or write the file by hand, with shell: true"
        )
    code = read_program_code(_program(words), folder)
    ends = [place for place, word in enumerate(words, 1) if word in code.files or words[place - 2] == "-m"]
    head = ends[-1] if ends else 1
    with _run(_program([*words[:head], "--help"]), {}, code, _HELP_S) as (_, printed, _):
        arguments = _arguments(words[head:], _options(printed))
    program = _program([*words[:head], *arguments.words])
    with _run(program, arguments.values, code, CALL_S) as (scratch, printed, exit_code):
        if exit_code:
            last = "\n".join(printed.rstrip().splitlines()[-_MOST_LINES:]).replace(f"{code.unpacked()}/", "")
            raise InputError(f"{program.command} ended with exit code {exit_code}:\n{last}")
        results, metrics = _found(scratch, printed)
    command = as_yaml(program.command, width=float("inf")).removesuffix("...\n").strip()
    keys = [f"command: {command}"]
    if results is None:
        keys.append(f"results: metrics.json  # no results were found within {CALL_S:g} s: say where they are")
    else:
        table = {results.kind: results.where} | ({"step": results.step} if results.step else {})
        keys.append(f"results: {as_inline(table)}")
    text = file_text(name, keys, metrics, arguments.values, GUIDE)
    if "seed" not in program.placeholders:
        text += "# No argument for the seed was found: the program must read it from the variable STUDY_SEED.\n"
    return text + (f"# Other arguments: {', '.join(arguments.others)}\n" if arguments.others else "")


def _program(words: Sequence[str]) -> Program:
    # With results in MLflow's runs, the environment says where to write them; other programs don't mind.
    return Program(tuple(words), Results("mlflow", "."))


@contextmanager
def _run(
    program: Program, values: Mapping[str, Any], code: SourceCode, limit_s: float
) -> Iterator[tuple[Path, str, int | None]]:
    """Run a program, and yield its folder, what it printed, and its exit code; None if it had to be ended."""
    with tempfile.TemporaryDirectory(prefix="study-new-", ignore_cleanup_errors=True) as scratch:
        folder, log = Path(scratch, "trial"), Path(scratch, "log.txt")
        folder.mkdir()
        call = CallTrial(seed=0, values=values, metrics={})
        words, environment = command_of(program, call, folder, code=code.unpacked(), files=tuple(code.files))
        output = TrialOutput(log, is_shared=False)
        until_s = time.monotonic() + limit_s
        try:
            process = Process(words, environment, folder, output.descriptor)
            while process.exit_code is None and time.monotonic() < until_s:
                process.wait(until_s - time.monotonic())
            exit_code = process.exit_code
            process.terminate()
            while process.exit_code is None:
                process.wait(limit_s)
        except ProgramError as error:
            raise InputError(f"{words[0]} can't be run: {error}") from None
        output.close()
        yield folder, log.read_text(encoding="utf-8", errors="replace") if log.exists() else "", exit_code


def _found(folder: Path, printed: str) -> tuple[Results | None, list[str]]:
    """Return where a program's results seem to be, and the names of its metrics, the likeliest first."""
    for results in _candidates(folder, printed):
        steps = Steps()
        reader = reader_of(results, folder, steps)
        if isinstance(reader, OutputReader):
            reader.feed(printed.encode())
        with suppress(ResultsError):
            reader.read(has_ended=True)
            names = dict.fromkeys(name for numbers in steps.numbers.values() for name in numbers)
            if metrics := [name for name in names if not _NO_METRIC.search(name)]:
                step = next((name for name in _STEPS if name in names), "") if results.kind in ("file", "csv") else ""
                has_step = step and all(step in numbers for numbers in steps.numbers.values())
                return replace(results, step=step if has_step else ""), sorted(metrics, key=_likelihood)[:_MOST_METRICS]
    return None, []


def _candidates(folder: Path, printed: str) -> Iterator[Results]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "mlruns" not in path.parts)
    names = [path.relative_to(folder).as_posix() for path in files]
    yield from (Results("file", name) for name in names if name.endswith((".jsonl", ".ndjson")))
    yield from (Results("csv", name) for name in names if name.endswith(".csv"))
    if any("tfevents" in name for name in names):
        yield Results("tensorboard", ".")
    if (folder / "mlruns").is_dir():
        yield Results("mlflow", ".")
    yield from (Results("file", name) for name in names if name.endswith(".json"))
    yield Results("lines", "json")
    printed_names = Counter(match["name"] for match in _PRINTED.finditer(printed))
    likely = [name for name in printed_names if not _NO_METRIC.search(name)][:_MOST_METRICS]
    if likely:
        for number in (r"[-+.\w]+", _NUMBER):
            yield Results("pattern", "|".join(rf"\b{name}\s*[=:]\s*(?P<{name}>{number})" for name in likely))


def _likelihood(name: str) -> tuple[int, int]:
    """Rank a metric: those of validation and test before those of training, and what is better if higher first."""
    is_training = re.search(r"train|(?<![a-z])tr(?![a-z])", name, re.IGNORECASE) is not None
    is_held_out = re.search(r"val|test|eval|dev", name, re.IGNORECASE) is not None
    return int(is_training) - int(is_held_out), int(LOWER.search(name) is not None)


def _options(help_text: str) -> dict[str, tuple[str | None, str]]:
    """Return the options that a help text lists: what the value of each is called, None for a flag, and its default."""
    options: dict[str, tuple[str | None, str]] = {}
    blocks: list[list[str]] = []
    for line in help_text.splitlines():
        if _OPTION.match(line):
            blocks.append([line])
        elif blocks and line.startswith("  "):
            blocks[-1].append(line.strip())
    for block in blocks:
        match = _OPTION.match(block[0])
        assert match is not None
        default = _DEFAULT.search(" ".join(block))
        if match["name"] not in ("help", "version"):
            options[match["name"]] = (match["value"], "" if default is None else default["value"])
    return options


def _arguments(words: Sequence[str], options: Mapping[str, tuple[str | None, str]]) -> _Arguments:
    """Replace values of a command by placeholders, and add those of the seed and of the folder."""
    arguments, given, place = _Arguments(), set[str](), 0
    while place < len(words):
        word = words[place]
        place += 1
        option, equals, value = word.partition("=")
        option = option.removeprefix("--")
        if not word.startswith("--") or not option:
            arguments.words.append(word)
            continue
        given.add(option)
        if not equals:
            if place == len(words) or words[place].startswith("--") or options.get(option, ("", ""))[0] is None:
                arguments.words.append(word)  # a flag
                continue
            value, place = words[place], place + 1
        _add(arguments, option, _value(value), with_equals=bool(equals))
    for option, (kind, default) in options.items():
        if option in given:
            continue
        if kind is not None and (_name(option) in _SEEDS or _FOLDERS.fullmatch(_name(option))):
            _add(arguments, option, None)
        elif not words and kind is not None and _has_value(default) and len(arguments.values) < _MOST_FIXED:
            _add(arguments, option, _value(default))
        else:
            arguments.others.append(f"--{option}" + (f" (default {default})" if default else ""))
    return arguments


def _add(arguments: _Arguments, option: str, value: Any, *, with_equals: bool = False) -> None:
    name = _name(option)
    if name in _SEEDS:
        placeholder = "{seed}"
    elif value is None or (_FOLDERS.fullmatch(name) and isinstance(value, str)):
        placeholder = "{folder}"
    else:
        placeholder = f"{{{name}}}"
        arguments.values[name] = value
    arguments.words += [f"--{option}={placeholder}"] if with_equals else [f"--{option}", placeholder]


def _name(option: str) -> str:
    return option.replace("-", "_")


def _has_value(default: str) -> bool:
    return default not in ("", "None", "True", "False", "==SUPPRESS==")


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text
