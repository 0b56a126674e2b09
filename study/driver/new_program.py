"""Draft of a study file for an existing program: its arguments, metrics and results."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from study.driver.new_study import CALL_S, LOWER, as_inline, file_text
from study.driver.program_options import arguments_of, options_in
from study.engine.calls import CallTrial, TrialOutput
from study.engine.program import command_of
from study.engine.program.process import Process, ProgramError
from study.engine.program.results import OutputReader, ResultsError, Steps, reader_of
from study.errors import InputError
from study.interface.program import Program, Results, words_of
from study.source import SourceCode, read_program_code
from study.spec.document import as_yaml

GUIDE = "docs/guides/programs.md"

_NONE: Mapping[str, Any] = {}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
_PRINTED = re.compile(rf"(?<![\w.])(?P<name>[A-Za-z]\w*)\s*[=:]\s*(?:{_NUMBER})(?![\w.])")
_NO_METRIC = re.compile(
    r"(^|[^a-z])(seed|epochs?|(global_)?steps?|iter(ation)?s?|batch(_size)?|lr|learning_rate|size|width|port|pid|"
    r"times?(stamp)?|seconds|device|gpus?|workers|threads|line)($|[^a-z])",
    re.IGNORECASE,
)
_STEPS = ("epoch", "global_step", "iteration", "iter")
_HELP_S = 20.0
_MOST_METRICS, _MOST_LINES = 4, 10


@dataclass(frozen=True)
class TriedProgram:
    """A program that was run once.

    Args:
        program: the program, with placeholders for its arguments.
        values: values of arguments, from the command or their defaults.
        others: other options of the program, for readers.
        results: place of its results; None if none were found.
        metrics: names of its metrics.
        failure: reason of its failure; empty if it succeeded.
    """

    program: Program
    values: Mapping[str, Any]
    others: Sequence[str]
    results: Results | None
    metrics: Sequence[str]
    failure: str = ""

    @property
    def keys(self) -> list[str]:
        """Lines of a study file for the command and its results."""
        return [command_line(self.program), results_line(self.results)]

    @property
    def remarks(self) -> list[str]:
        """Comments for the end of a study file; empty if there is nothing to remark."""
        remarks = []
        if "seed" not in self.program.placeholders:
            remarks = ["# No argument for the seed was found: the program must read it from the variable STUDY_SEED."]
        return remarks + ([f"# Other arguments: {', '.join(self.others)}"] if self.others else [])


def study_of_program(name: str, command: str, folder: Path) -> str:
    """Return a draft of a study file for a program, from its ``--help`` (at most 20 s) and one run (at most 30 s).

    Args:
        name: the study's name.
        command: the command as typed in a shell, such as ``python train.py --lr 0.1``.
        folder: folder of the study file; paths in the command are relative to it.

    Raises:
        InputError: if the command is empty, can't be split into words, needs a shell or has a placeholder of a
            hyperparameter, such as ``{lr}``; or if the program doesn't exist, can't be read or fails.
        OSError: if the cache of code can't be written.
    """
    tried = try_program(split_command(command), folder)
    if tried.failure:
        raise InputError(tried.failure)
    text = file_text(name, tried.keys, tried.metrics, tried.values, GUIDE)
    return text + "".join(f"{line}\n" for line in tried.remarks)


def split_command(command: str) -> list[str]:
    """Split a command into words.

    Raises:
        InputError: if it is empty, a quotation isn't closed, or only a shell understands it.
    """
    try:
        words = list(words_of(command))
    except ValueError as error:
        raise InputError(f"the command can't be split into words: {error}: {command}") from None
    if not words:
        raise InputError("the command is empty; give one, such as --command 'python train.py --lr 0.1'")
    if shell_words := _program(words).shell_words:
        raise InputError(
            f"{shell_words[0]} needs a shell: give the program alone, or write the study file by hand with shell: true"
        )
    return words


def try_program(
    words: Sequence[str],
    folder: Path,
    swept: Mapping[str, Any] = _NONE,
    *,
    options: Mapping[str, str] = _NONE,
    include: Sequence[str] = (),
    seed: int = 0,
) -> TriedProgram:
    """Read a program's options from its help (at most 20 s), and run it once (at most 30 s).

    An exit code other than 0 is described in `failure`; a run that is ended after 30 s isn't one.

    Args:
        words: the words of the command.
        folder: folder of the study file; paths in the command are relative to it.
        swept: hyperparameters of a sweep with values; the command gets an option for each one without a placeholder,
            unless it has the placeholder of a configuration file, ``{config}``.
        options: the program's option name for each hyperparameter with another name.
        include: files of the code that the command doesn't name.
        seed: the seed of the run.

    Raises:
        InputError: if the program can't be started, its code can't be read, or the words have a placeholder of a
            hyperparameter that isn't in `swept`.
        OSError: if the cache of code can't be written.
    """
    code = read_program_code(_program(words), folder, include)
    ends = [place for place, word in enumerate(words, 1) if word in code.files or words[place - 2] == "-m"]
    head = ends[-1] if ends else 1
    with _run(_program([*words[:head], "--help"]), {}, code, _HELP_S) as (_, printed, _):
        listed = options_in(printed)
    arguments = arguments_of(words[head:], listed, {name: options.get(name, name) for name in swept})
    values = {name: value for name, value in arguments.values.items() if name not in swept}
    program, failure = _program([*words[:head], *arguments.words]), ""
    with _run(program, {**values, **swept}, code, CALL_S, seed) as (scratch, printed, exit_code):
        if exit_code:
            last = "\n".join(printed.rstrip().splitlines()[-_MOST_LINES:]).replace(f"{code.unpacked()}/", "")
            failure = f"{program.command} ended with exit code {exit_code}:\n{last}"
        results, metrics = (None, []) if failure else find_results(scratch, printed)
    return TriedProgram(program, values, arguments.others, results, metrics, failure)


def command_line(program: Program) -> str:
    """Return the `command` line of a study file."""
    command = as_yaml(program.command, width=float("inf")).removesuffix("...\n").strip()
    return f"command: {command}"


def results_line(results: Results | None) -> str:
    """Return the `results` line of a study file; for None, a placeholder with a remark that no results were found."""
    if results is None:
        return f"results: metrics.json  # no results were found within {CALL_S:g} s: say where they are"
    table = {results.kind: results.where} | ({"step": results.step} if results.step else {})
    return f"results: {as_inline(table)}"


def _program(words: Sequence[str]) -> Program:
    # For results in MLflow, the environment names the place; other programs ignore that.
    return Program(tuple(words), Results("mlflow", "."))


@contextmanager
def _run(
    program: Program, values: Mapping[str, Any], code: SourceCode, limit_s: float, seed: int = 0
) -> Iterator[tuple[Path, str, int | None]]:
    """Run a program for at most `limit_s`; yield its folder, its output and its exit code (None if it was ended).

    Raise InputError if it can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="study-new-", ignore_cleanup_errors=True) as scratch:
        folder, log = Path(scratch, "trial"), Path(scratch, "log.txt")
        folder.mkdir()
        call = CallTrial(seed=seed, values=values, metrics={})
        try:
            words, environment = command_of(program, call, folder, code=code.unpacked(), files=tuple(code.files))
        except KeyError as error:
            advice = f"for the text itself write {{{{{error.args[0]}}}}}"
            raise InputError(f"command: {{{error.args[0]}}} has no value here; {advice}") from None
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
            raise InputError(f"command: {error}") from None
        output.close()
        yield folder, log.read_text(encoding="utf-8", errors="replace") if log.exists() else "", exit_code


def find_results(folder: Path, printed: str) -> tuple[Results | None, list[str]]:
    """Find the results of a program that has run.

    Args:
        folder: the folder in which it ran.
        printed: its output.

    Returns:
        The place of the results and the names of at most four metrics, the likeliest first; None and an empty list if
        no results are found. Names of counters and settings, such as ``epoch`` or ``lr``, aren't metrics.
    """
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
    """Yield the places where a program's results may be, the likeliest first."""
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
    likely = [name for name in printed_names if name.isidentifier() and not _NO_METRIC.search(name)][:_MOST_METRICS]
    if likely:
        for number in (r"[-+.\w]+", _NUMBER):
            yield Results("pattern", "|".join(rf"\b{name}\s*[=:]\s*(?P<{name}>{number})" for name in likely))


def _likelihood(name: str) -> tuple[int, int]:
    """Return a sort key: metrics of held-out data first, then those that are better if higher."""
    is_training = re.search(r"train|(?<![a-z])tr(?![a-z])", name, re.IGNORECASE) is not None
    is_held_out = re.search(r"val|test|eval|dev", name, re.IGNORECASE) is not None
    return int(is_training) - int(is_held_out), int(LOWER.search(name) is not None)
