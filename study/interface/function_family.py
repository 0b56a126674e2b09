"""The trials of a training function, as a study knows them: arguments, metrics, what stands for its code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from study.interface.declarations import REQUIRED, Hyperparameter, Metric
from study.interface.declared_json import as_json, from_json
from study.interface.family import Check, Content, Family, Mistake, Values
from study.interface.signature import canonical

TASK = "function"
"""The name of the task of all cells of training functions."""

OWN_NAMES = ("code", "metrics", "iterations")
"""What a cell of a function has besides the function's hyperparameters."""

# A worker reports and stores a pack as a whole, which costs some 50 ms; a trial may take hours, and isn't to wait for
# others of its pack while other workers are idle.
_PACKS_A_SLOT = 32
_MOST_IN_PACK = 64


class FunctionFamily(Family):
    """The trials of one training function.

    Args:
        function: its import string, which is the cells' model.
        hyperparameters: what its signature declares.
        metrics: what it reports; the first one chooses the best step.
        code: what stands for its source code in the ids of trials.
        iterations: the greatest step that a trial may report; None if it ends by itself.

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
        """The identity of the code in the ids of trials."""
        return self.code

    def may_be_left_out(self, name: str) -> bool:
        """Return whether an argument has a default."""
        return self.hyperparameters[name].default is not REQUIRED

    @property
    def _own_values(self) -> dict[str, Any]:
        directions = (f"{name} {'higher' if one.higher_is_better else 'lower'}" for name, one in self.metrics.items())
        return dict(zip(OWN_NAMES, (self.code, ", ".join(directions), self.iterations), strict=True))

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell: the function's arguments, and what stands for its code and its reports.

        A value None stays: the argument doesn't apply, or takes None.

        Raises:
            ValueError: if an argument without a default is missing, or a value isn't of its type.
        """
        filled = {}
        for name, declared in self.hyperparameters.items():
            value = values.get(name, declared.default)
            if value is REQUIRED:
                raise ValueError(self._must_be_given(name))
            filled[name] = None if value is None else canonical(declared, value)
        return filled | self._own_values

    def _must_be_given(self, name: str) -> str:
        return f"{name} has no default in {self.function}, so it must be given"

    @property
    def checks(self) -> Sequence[Check]:
        """What `mistakes` checks: that each argument without a default is given."""
        required = [name for name, declared in self.hyperparameters.items() if declared.default is REQUIRED]
        return [Check((name,)) for name in required]

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Any:
        """Yield what a check finds wrong."""
        found: list[Mistake] = []
        if not values:
            (name,) = check.names
            found.append(((), f"{self._must_be_given(name)}, under fixed, grid or zip"))
        return iter(found)

    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return what must be equal among the trials of a pack: trials are called one after another."""
        return ()

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Count the trials of a pack, since nothing is known of how long a call takes."""
        return float(len(cells))

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the most trials of a pack: few where there are few, so that no worker waits for another at the end."""
        return max(1, min(trials // (slots * _PACKS_A_SLOT), _MOST_IN_PACK))

    def to_json(self) -> str:
        """Write the declarations for the store, from which a study is read where its code isn't."""
        content = {
            "function": self.function,
            "code": self.code,
            "iterations": self.iterations,
            "hyperparameters": {name: as_json(one) for name, one in self.hyperparameters.items()},
            "metrics": {name: vars(one) for name, one in self.metrics.items()},
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> FunctionFamily:
        """Read what `to_json` wrote.

        Raises:
            ValueError: if it isn't that.
        """
        try:
            content = json.loads(text)
            hyperparameters = {name: from_json(one) for name, one in content["hyperparameters"].items()}
            metrics = {name: Metric(**one) for name, one in content["metrics"].items()}
            return cls(
                content["function"], hyperparameters, metrics, code=content["code"], iterations=content["iterations"]
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these aren't the declarations of a training function: {error!r}") from None
