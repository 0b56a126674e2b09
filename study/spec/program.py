"""Programs of studies: their code, their hyperparameters as given in the file, and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from study.errors import nearest
from study.interface.program import CONFIG_FILES, GIVEN, NAME, Program, variable_of, words_of
from study.interface.program_family import OWN_NAMES, ProgramFamily, kind_of_values
from study.source import SourceCode, read_program_code
from study.source.program_code import CODE, SCRIPTS
from study.spec.calls import call_mistakes
from study.spec.document import Path as Place
from study.spec.own_code import RESERVED
from study.spec.program_tables import ProgramSpec
from study.spec.settings_form import given_values


def load_program(
    spec: ProgramSpec, data: Mapping[str, Any], folder: Path, identify: Callable[[str, SourceCode], str]
) -> tuple[ProgramFamily, SourceCode]:
    """Read a program's files in the study's folder, and return its family and code.

    Args:
        spec: the study that names the program.
        data: the file's content.
        folder: the folder of the study file, to which paths in the command are relative.
        identify: returns the code's identity from the study's name and the code; unused if the file has `version`.

    Raises:
        InputError: as `read_program_code` does, such as for a script that doesn't exist.
        Exception: as `identify` raises.
        ValueError: if the command can't be split into words, as `command_mistakes` reports.
    """
    program = spec.program
    code = read_program_code(program, folder, spec.include)
    identity = identify(spec.study, code) if spec.version is None else code.identity(spec.version)
    return program_family(spec, data, identity), code


def program_family(spec: ProgramSpec, data: Mapping[str, Any], identity: str) -> ProgramFamily:
    """Return the family of a program's trials, with the hyperparameters of the study file.

    Args:
        spec: the study that names the program.
        data: the file's content.
        identity: the identity of the program's code, part of trial ids.

    Raises:
        ValueError: if the command can't be split into words, as `command_mistakes` reports.
    """
    kinds = {name: kind_of_values(values) if values else "any" for name, values in given_values(data).items()}
    kinds |= dict.fromkeys(_ranges_of_numbers(data), "number")
    return ProgramFamily(
        program_name(spec.program),
        spec.program,
        kinds,
        spec.declared_metrics,
        code=identity,
        iterations=spec.iterations,
    )


def _ranges_of_numbers(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hyperparameters with ranges whose ends are both written as floats, such as 0.0 and 1.0."""
    ranges = data.get("ranges")
    for name, limits in ranges.items() if isinstance(ranges, Mapping) else ():
        if isinstance(limits, Mapping) and all(isinstance(limits.get(end), float) for end in ("low", "high")):
            yield str(name)


def program_name(program: Program) -> str:
    """Return a program's short name: its script or module, or else the executable.

    Example:
        >>> from study.interface.program import Results
        >>> results = Results("file", "metrics.json")
        >>> for command in ("python -u src/train.py --lr {lr}", "python -m lab.train", "./simulate {x}"):
        ...     print(program_name(Program(tuple(command.split()), results)))
        train.py
        lab.train
        simulate
    """
    words = program.command.split() if program.is_shell else list(program.words)
    for before, word in pairwise(["", *(word.removeprefix(CODE) for word in words)]):
        if before == "-m" or (re.fullmatch(r"[^-{}=\s][^{}=\s]*", word) and PurePosixPath(word).suffix in SCRIPTS):
            return PurePosixPath(word).name
    return PurePosixPath(words[0]).name


def command_mistakes(spec: ProgramSpec) -> Iterator[tuple[Place, str]]:
    """Yield each mistake in the command, and in results that prevent `resume`, with its place."""
    if spec.shell and isinstance(spec.command, list):
        yield ("command",), "must be a single text with shell: true, but is a list"
    if not spec.shell and not isinstance(spec.command, list):
        try:
            words_of(spec.command)
        except ValueError as error:
            yield ("command",), f"can't be split into words: {error}"
    if spec.resume and not spec.results.results.are_files:
        yield (("resume",), "needs results in files, since the output of an interrupted attempt isn't read again")


def program_mistakes(spec: ProgramSpec, data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield the mistakes in a program's hyperparameters, command, conditions, pattern and metrics, with their places.

    Of each hyperparameter, only the first is yielded. Mistakes of `study.spec.calls.call_mistakes` are among them.

    Raises:
        ValueError: if the command can't be split into words, as `command_mistakes` reports.
    """
    given = given_values(data)
    reserved = {*RESERVED, *OWN_NAMES}
    for name in given:
        tables = [other for other in given if name.startswith(f"{other}.")]
        if name in reserved or name in GIVEN:
            yield _place_of(name, data), "the name means something else in a study file; give it another one"
        elif not re.fullmatch(NAME, name):
            yield _place_of(name, data), "must be a name: letters, digits and '_', in parts joined by '.' or '-'"
        elif others := [other for other in given if other < name and variable_of(other) == variable_of(name)]:
            yield _place_of(name, data), f"must have its own environment variable, but shares that of {others[0]}"
        elif tables:
            yield _place_of(name, data), f"{tables[0]} can't be both a hyperparameter and the table of {name}"
    for word in spec.program.shell_words:
        yield (
            ("command",),
            f"{word} would be an argument of the program: add shell: true to run the command in a shell",
        )
    for name in spec.when.explicit if spec.shell else ():
        if name in spec.program.placeholders:
            variable = variable_of(name)
            yield (
                ("when", name),
                f"a shell command can't omit {{{name}}}: write ${{{variable}:+--{name} ${variable}}} instead",
            )
    known = [*given, *GIVEN]
    for name in spec.program.placeholders:
        if name not in known:
            hint = nearest(name, known) or f"; for the text itself write {{{{{name}}}}}"
            must = f"must be a hyperparameter (under fixed, grid, zip, points or ranges), or one of {', '.join(GIVEN)}"
            yield ("command",), f"{{{name}}} {must}{hint}"
    groups = re.compile(spec.results.pattern or "").groupindex
    for name in spec.metrics if spec.results.pattern is not None else ():
        if name not in groups:
            yield ("results", "pattern"), f"must have a group for each metric, but has no (?P<{name}>...)"
    yield from call_mistakes(spec, reserved, given, "there is a hyperparameter of that name; give it another one")


def program_notices(spec: ProgramSpec, data: Mapping[str, Any], code: SourceCode | None) -> Iterator[str]:
    """Yield a notice for each likely oversight: no seed, unused hyperparameters, code that isn't part of trial ids.

    Args:
        spec: the study that names the program.
        data: the file's content.
        code: the program's code; None for a stored study, whose code isn't checked.

    Raises:
        ValueError: if the command can't be split into words, as `command_mistakes` reports.
    """
    placeholders = spec.program.placeholders
    if "seed" not in placeholders:
        yield "the command has no {seed}, so all seeds of a cell are alike unless the program reads STUDY_SEED"
    unused = [name for name in given_values(data) if name not in placeholders]
    if unused and not CONFIG_FILES.keys() & set(placeholders):
        yield (
            f"the command doesn't use {', '.join(unused)}: the program gets them only in its environment, such as "
            f"{variable_of(unused[0])}"
        )
    if code is not None and not code.files and spec.version is None:
        yield (
            "the command names no file of the study's folder, so trial ids don't depend on the program's code: change "
            "version when you change the code"
        )


def _place_of(name: str, data: Mapping[str, Any]) -> Place:
    for table in ("fixed", "grid", "ranges"):
        if isinstance(data.get(table), Mapping) and name in data[table]:
            return (table, name)
    return ("zip",)
