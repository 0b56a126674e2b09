"""Family of a program: its command, hyperparameters, metrics and code identity."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from study.interface.declarations import Hyperparameter, Metric
from study.interface.family import Values
from study.interface.function_family import FunctionFamily
from study.interface.program import Program, Results
from study.interface.signature import plain
from study.interface.values import number, whole

TASK = "program"
"""Task name of all cells of programs."""

OWN_NAMES = ("command", "results", "code", "metrics", "iterations")
"""Values of a program's cell besides the hyperparameters."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text, as its other values are, but got {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, as its other values are, but got {value!r}")
    return value


_TYPES: dict[str, Any] = {
    "whole": Annotated[int, BeforeValidator(whole)],
    "number": Annotated[float, BeforeValidator(number)],
    "flag": Annotated[bool, BeforeValidator(_flag)],
    "text": Annotated[str, BeforeValidator(_text)],
    "any": Annotated[Any, BeforeValidator(plain)],
}


def hyperparameter_of(kind: str) -> Hyperparameter:
    """Return a program's hyperparameter whose values are of a kind (`kind_of_values`); its default is None.

    Raises:
        KeyError: if there is no such kind.
    """
    return Hyperparameter(type=_TYPES[kind], default=None, is_searchable=True)


def kind_of_values(values: Sequence[Any]) -> str:
    """Infer the kind of a program's hyperparameter from all its values in a study file.

    Returns:
        ``whole`` (ints, and whole floats of magnitude below 2**53), ``number``, ``flag``, ``text``, or ``any`` for
        other or mixed values, None included. No values give ``flag``.

    Example:
        >>> [kind_of_values(given) for given in ([1, 2.0], [1, 0.5], [True], ["adam"], [1, "auto"], [[8, 8]])]
        ['whole', 'number', 'flag', 'text', 'any', 'any']
    """
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "whole" if all(isinstance(_whole(value), int) for value in values) else "number"
    return "text" if all(isinstance(value, str) for value in values) else "any"


class ProgramFamily(FunctionFamily):
    """Family of one program.

    Args:
        name: short name of the program, which is the model of the cells.
        program: the program.
        kinds: kinds of its hyperparameters by name (`kind_of_values`).
        metrics: its metrics by name; the first one chooses the best step.
        code: identity of its source code in trial ids.
        iterations: the last step that counts; None for no limit.

    Example:
        >>> program = Program(("python", "train.py", "{lr}"), Results("file", "metrics.json"))
        >>> family = ProgramFamily("train.py", program, {"lr": "number"}, {"loss": Metric()}, code="version:1")
        >>> cell = family.canonical("program", "train.py", {"lr": 1.0})
        >>> cell["lr"], cell["command"], cell["results"]
        (1, 'python train.py {lr}', 'file metrics.json')
        >>> family.from_json(family.to_json()).canonical("program", "train.py", {"lr": 1}) == cell
        True
    """

    tasks = (TASK,)

    def __init__(
        self,
        name: str,
        program: Program,
        kinds: Mapping[str, str],
        metrics: Mapping[str, Metric],
        *,
        code: str,
        iterations: int | None = None,
    ) -> None:
        hyperparameters = {field: hyperparameter_of(kind) for field, kind in kinds.items()}
        super().__init__(name, hyperparameters, metrics, code=code, iterations=iterations)
        self.program = program
        self._kinds = kinds

    @property
    def _own_values(self) -> dict[str, Any]:
        program = self.program
        command = f"/bin/sh -c {shlex.quote(program.command)}" if program.is_shell else program.command
        return {"command": command, "results": str(program.results), **super()._own_values}

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of the hyperparameters, and those of `OWN_NAMES`.

        Floats that are whole numbers below 2**53 become ints, also in lists, so that 1 and 1.0 give the program the
        same text. Hyperparameters without a value are None, and aren't passed to the program, unless a shell runs it.
        Task and model are ignored. Values aren't checked.
        """
        return {name: _whole(values.get(name)) for name in self.hyperparameters} | self._own_values

    def to_json(self) -> str:
        """Return the declarations as JSON, to read a stored study without its code."""
        program = self.program
        content = {
            "program": self.function,
            "words": program.words,
            "is_shell": program.is_shell,
            "resumes": program.resumes,
            "results": vars(program.results),
            "code": self.code,
            "iterations": self.iterations,
            "kinds": dict(self._kinds),
            "metrics": {name: vars(metric) for name, metric in self.metrics.items()},
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> ProgramFamily:
        """Return the family declared by the JSON text of `to_json`.

        Raises:
            ValueError: if the text isn't the declaration of a program.
        """
        try:
            content = json.loads(text)
            program = Program(
                tuple(content["words"]), Results(**content["results"]), content["is_shell"], content["resumes"]
            )
            metrics = {name: Metric(**fields) for name, fields in content["metrics"].items()}
            code, iterations = content["code"], content["iterations"]
            return cls(content["program"], program, content["kinds"], metrics, code=code, iterations=iterations)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these aren't the declarations of a program: {error!r}") from None


def _whole(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
