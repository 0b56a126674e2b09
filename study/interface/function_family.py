"""Family of a training function: its hyperparameters, metrics and code identity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from study.interface.declarations import REQUIRED, Hyperparameter, Metric
from study.interface.declared_json import as_json, from_json
from study.interface.family import Check, Content, Family, Mistake, Values
from study.interface.signature import canonical

TASK = "function"
"""Task name of all cells of training functions."""

OWN_NAMES = ("code", "metrics", "iterations")
"""Values of a function's cell besides the hyperparameters."""

# A pack costs about 50 ms of reporting and storing. But a trial may take hours, and shouldn't wait for others of its
# pack while other workers are idle.
_PACKS_A_SLOT = 32
_MOST_IN_PACK = 64


class FunctionFamily(Family):
    """Family of one training function.

    Args:
        function: the function's import string, which is the model of the cells.
        hyperparameters: hyperparameters of its signature by name.
        metrics: its metrics by name; the first one chooses the best step.
        code: identity of its source code in trial ids.
        iterations: the last step of a trial; None if the function ends by itself.

    Example:
        >>> declared = {"width": Hyperparameter(type=int, default=32), "rate": Hyperparameter(type=float)}
        >>> family = FunctionFamily("lab:train", declared, {"loss": Metric()}, code="version:1")
        >>> family.canonical("function", "lab:train", {"rate": 1})
        {'width': 32, 'rate': 1.0, 'code': 'version:1', 'metrics': 'loss lower', 'iterations': None}
        >>> FunctionFamily.from_json(family.to_json()).canonical("function", "lab:train", {"rate": 2})["rate"]
        2.0
    """

    tasks = (TASK,)
    sources = ()
    leaves_out = True

    def __init__(
        self,
        function: str,
        hyperparameters: Mapping[str, Hyperparameter],
        metrics: Mapping[str, Metric],
        *,
        code: str,
        iterations: int | None = None,
    ) -> None:
        self.function = function
        self.models: Sequence[str] = (function,)
        self.hyperparameters = hyperparameters
        self.metrics = metrics
        self.code = code
        self.iterations = iterations

    @property
    def own_code(self) -> str:
        """Identity of the code in trial ids."""
        return self.code

    def may_be_left_out(self, name: str) -> bool:
        """Return True if an argument has a default.

        Raises:
            KeyError: if there is no such argument.
        """
        return self.hyperparameters[name].default is not REQUIRED

    @property
    def _own_values(self) -> dict[str, Any]:
        directions = (
            f"{name} {'higher' if metric.higher_is_better else 'lower'}" for name, metric in self.metrics.items()
        )
        return dict(zip(OWN_NAMES, (self.code, ", ".join(directions), self.iterations), strict=True))

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the function's arguments with defaults, and the values of `OWN_NAMES`.

        None is kept: the argument doesn't apply, or accepts None. Values of other names are ignored.

        Args:
            task: unused.
            model: unused.
            values: the values that are set, by argument.

        Raises:
            ValueError: if an argument without a default is missing, a value has the wrong type or violates a limit, or
                a limit in the signature can't be applied to its type, such as ``Ge(0)`` to a list.
        """
        filled = {}
        for name, declared in self.hyperparameters.items():
            value = values.get(name, declared.default)
            if value is REQUIRED:
                raise ValueError(self._missing_message(name))
            filled[name] = None if value is None else canonical(declared, value)
        return filled | self._own_values

    def _missing_message(self, name: str) -> str:
        return f"{name} has no default in {self.function}, so it must be given"

    @property
    def checks(self) -> Sequence[Check]:
        """A check of each argument without a default: a value must be given."""
        required = [name for name, declared in self.hyperparameters.items() if declared.default is REQUIRED]
        return [Check((name,)) for name in required]

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Any:
        """Yield a mistake if the value of the check's argument is missing."""
        mistakes: list[Mistake] = []
        if not values:
            (name,) = check.names
            mistakes.append(((), f"{self._missing_message(name)}, under fixed, grid or zip"))
        return iter(mistakes)

    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return an empty key: trials run one after another, so any trials can share a pack."""
        return ()

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Return the number of trials in the pack, since the duration of a call is unknown."""
        return float(len(cells))

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return a pack size so small that no worker waits long for another at the end of the study.

        It is trials / (32 slots), rounded down, at least 1 and at most 64.

        Args:
            cell: unused.
            trials: number of trials to train.
            slots: number of packs that are trained concurrently, >= 1.
        """
        return max(1, min(trials // (slots * _PACKS_A_SLOT), _MOST_IN_PACK))

    def to_json(self) -> str:
        """Return the declarations as JSON, to read a stored study without its code.

        Raises:
            PydanticUserError: if pydantic can't make a JSON schema of an argument's type.
            TypeError: if a default isn't JSON data.
        """
        content = {
            "function": self.function,
            "code": self.code,
            "iterations": self.iterations,
            "hyperparameters": {name: as_json(declared) for name, declared in self.hyperparameters.items()},
            "metrics": {name: vars(metric) for name, metric in self.metrics.items()},
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> FunctionFamily:
        """Return the family declared by the JSON text of `to_json`.

        Raises:
            ValueError: if the text isn't the declaration of a training function.
        """
        try:
            content = json.loads(text)
            hyperparameters = {name: from_json(declared) for name, declared in content["hyperparameters"].items()}
            metrics = {name: Metric(**fields) for name, fields in content["metrics"].items()}
            return cls(
                content["function"], hyperparameters, metrics, code=content["code"], iterations=content["iterations"]
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these aren't the declarations of a training function: {error!r}") from None
