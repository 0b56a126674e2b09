"""Schema of a study file that names a program."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field, model_validator

from study.interface.program import Program, Results, ResultsKind, words_of
from study.interface.program_family import TASK
from study.interface.values import quoted
from study.spec.calls import CallSpec
from study.spec.table import Table, optional
from study.spec.tables import AnySettings

_KINDS: tuple[ResultsKind, ...] = get_args(ResultsKind)


class ResultsTable(Table):
    """Source of a program's results: exactly one of these keys, and `step`.

    Args:
        file: a JSON file, or a file of one JSON object per line if its name ends with .jsonl.
        csv: a file of comma-separated values, with a header.
        lines: ``json`` for JSON objects in lines of the output.
        pattern: a regular expression with named groups, for lines of the output.
        tensorboard: a folder of TensorBoard event files.
        mlflow: a folder of MLflow runs.
        step: the key or column of the step.
    """

    file: str | None = optional()
    csv: str | None = optional()
    lines: str | None = optional()
    pattern: str | None = optional()
    tensorboard: str | None = optional()
    mlflow: str | None = optional()
    step: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        return {"csv" if data.lower().endswith(".csv") else "file": data}

    @model_validator(mode="after")
    def _check(self) -> ResultsTable:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"must have one of {', '.join(_KINDS)}, but has {' and '.join(given) or 'none'}")
        results = self.results
        if results.kind == "lines" and results.where != "json":
            raise ValueError(f"lines must be json, for JSON objects in lines of the output, but got {results.where}")
        if results.kind == "pattern":
            _check_pattern(results.where)
        elif results.kind != "lines":
            path = PurePosixPath(results.where)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"must be a relative path in the trial's folder, but got {results.where!r}")
            if not path.parts and results.kind in ("file", "csv"):
                raise ValueError(f"must name a file in the trial's folder, but got {results.where!r}")
            if any("**" in part and part != "**" for part in path.parts):
                raise ValueError(f"can have ** only between slashes, as in **/metrics.json, but got {results.where!r}")
        return self

    @property
    def results(self) -> Results:
        """The source of results as a record."""
        kind = next(kind for kind in _KINDS if getattr(self, kind) is not None)
        return Results(kind, getattr(self, kind), self.step)


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"pattern can't be read: {error}, in {pattern!r}") from None
    if not groups:
        raise ValueError(rf"pattern must have a group named like a metric, such as loss=(?P<loss>\S+): {pattern!r}")


def _command(value: object) -> str | list[str]:
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise ValueError(f"must be a command, such as python train.py --seed {{seed}}, but got {quoted(value)}")
    if words == ["TODO"]:
        raise ValueError("must be the command of a trial, such as python train.py --seed {seed}, but is still TODO")
    if isinstance(value, list):
        return [str(word) for word in words]
    if not str(value).strip():
        raise ValueError("must be a command, but is empty")
    return str(value)


class ProgramSpec(CallSpec):
    """A study of a program.

    Args:
        command: the program and its arguments, with placeholders.
        shell: whether a shell runs the command.
        results: the source of its results.
        resume: whether the program continues from files of an interrupted attempt in the trial's folder.
    """

    task: ClassVar[str] = TASK

    command: Annotated[Any, BeforeValidator(_command), Field(json_schema_extra={"type": ["string", "array"]})]
    shell: bool = False
    results: ResultsTable
    resume: bool = False

    @property
    def program(self) -> Program:
        """The program with its command and results.

        Raises:
            ValueError: if the command can't be split into words, as `study.spec.program.command_mistakes` reports.
        """
        command = self.command
        words = tuple(command) if isinstance(command, list) else (command,) if self.shell else tuple(words_of(command))
        return Program(words, self.results.results, self.shell, self.resume)


class AnyProgramSpec(AnySettings, ProgramSpec):
    """A study of a program with any hyperparameters, for checks before these are known."""

    points: Any = ()
