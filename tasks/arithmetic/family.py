"""The arithmetic family, the interface between its tasks and a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, get_args, get_type_hints

import numpy.typing as npt

from study.interface.declarations import Metric
from study.interface.family import Arrays, Check, Content, Family, Mistake, Values
from study.interface.kinds import FLAG, NUMBER, RANGE, TEXT, WHOLE
from tasks.arithmetic import MODELS, SINGLE_MODULE, TASKS, model_of
from tasks.arithmetic.canonical import canonical
from tasks.arithmetic.cautions import zero_divisors
from tasks.arithmetic.cell import TASK_NAMES, ArithmeticCell, typed_cell
from tasks.arithmetic.checks import CHECKS
from tasks.arithmetic.hyperparameters import BOUNDS, HYPERPARAMETERS, OF_NORMAL, OUTWARD, RATIOS, SPARSITY
from tasks.arithmetic.models import Model
from tasks.arithmetic.module_training import l1_strengths
from tasks.arithmetic.task import ArithmeticTask, metrics_with
from tasks.arithmetic.threshold import Range

# Float32 numbers in a pack's activations; more trials would only exceed the cache.
_PACK_NUMBERS = 2**20

_SMALLEST_CAP, _LARGEST_CAP = 16, 256


def _kinds() -> dict[str, str]:
    """Map hyperparameters to column kinds, by the annotations of a cell's fields."""
    by_type = {int: WHOLE, float: NUMBER, str: TEXT, bool: FLAG, Range: RANGE}
    annotated = {name: type_ for name, type_ in get_type_hints(ArithmeticCell).items() if name not in ("task", "model")}
    types = {name: get_args(type_)[0] if isinstance(type_, UnionType) else type_ for name, type_ in annotated.items()}
    return {name: by_type[type_] for name, type_ in types.items()}


_KINDS = _kinds()
_FIELDS = tuple(get_type_hints(ArithmeticCell))
_OF_TASK = _FIELDS[1 : _FIELDS.index("model")]


class ArithmeticFamily(Family):
    """The arithmetic task, its variants and their models.

    Example:
        >>> family = ArithmeticFamily()
        >>> family.impossible("simple", "NMU", {"sparsity_start": 10, "sparsity_end": 5})
        'sparsity_start < sparsity_end must hold, but got start 10 and end 5'
    """

    hyperparameters = HYPERPARAMETERS
    metrics = ArithmeticTask.metrics
    tasks = tuple(TASKS)
    models = tuple(MODELS)
    question_fields = TASK_NAMES
    sources = ("init", "data", "evaluation")
    engines = ("fused", "fused-gpu", "torch")
    kinds = _KINDS
    task_columns = _OF_TASK

    @property
    def all_metrics(self) -> Mapping[str, Metric]:
        """The metrics of all cells, including the optional relative error."""
        return metrics_with(has_relative_error=True)

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell, with all defaults; see `tasks.arithmetic.canonical.canonical`.

        Raises:
            KeyError: if the task or the model is unknown.
            ValueError: if the task can't be constructed from these values.
        """
        content = dict(vars(canonical(task, model, values)))
        del content["task"], content["model"]
        return content | ({"hidden_size": None} if task == SINGLE_MODULE else {})

    def metrics_of(self, cells: Sequence[Content]) -> Mapping[str, Metric]:
        """Return the metrics of the cells' trials, with the relative error if any cell measures it."""
        return metrics_with(any(cell.values.get("relative_error") for cell in cells))

    @property
    def plainest_model(self) -> str:
        """A model without a regulariser."""
        return "linear"

    @property
    def checks(self) -> Sequence[Check]:
        """The checks of `mistakes`."""
        return tuple(CHECKS)

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield the mistakes that a check finds in some values.

        Raises:
            KeyError: if the check, the task or the model is unknown.
        """
        return CHECKS[check](task, model, values)

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return the reason why a hyperparameter has no effect with any values of the grid; None if none is known.

        Raises:
            KeyError: if the model is unknown.
        """
        network = model_of(task, model)
        if name in SPARSITY and not network.has_bounds:
            return f"{model} has no sparsity regulariser"
        if name == "init_range" and not network.has_nmu:
            return f"{model} has no NMU"
        if name == "init_signs" and not network.multiplies_sums:
            return f"{model} isn't an NMU after an NAU"
        if name in BOUNDS and not network.has_bounds:
            return f"{model} has no bounded weights"
        if name in BOUNDS[1:] and "regularized" not in values.get("bounds", ()):
            return "bounds must be regularized for that"
        if name == "l1_first_strength" and not _may_have_l1(network, values):
            return "l1_strength must be given for that"
        if name in OUTWARD and not network.pushes_outward:
            return f"{model} isn't an iNALU"
        pushes = values.get("outward_strength", (network.training.get("outward_strength"),))
        if name == "outward_start" and not any(pushes):
            return "outward_strength must be given for that"
        if name == "momentum" and "momentum" not in values.get("optimizer", ()):
            return "optimizer must be momentum for that"
        if name in OF_NORMAL and "normal" not in values.get("distribution", ()):
            return "distribution must be normal for that"
        if name in RATIOS and task in ("simple", SINGLE_MODULE):
            return f"the {task} task has fixed subsets"
        if name == "hidden_size" and task == SINGLE_MODULE:
            return "the single-module task has one layer, and so no hidden units"
        return None

    @property
    def search_order(self) -> Sequence[str]:
        """The searchable hyperparameters, each before those that depend on it."""
        return _SEARCH_ORDER

    def is_chosen(self, name: str, values: Values) -> bool:
        """Return True unless the values that a search has chosen so far leave a hyperparameter without effect.

        The model and an `out_of_bounds_strength` of 0 aren't considered. Without a value of `optimizer` or `bounds`,
        hyperparameters that depend on it count as without effect.
        """
        match name:
            case "out_of_bounds_strength" | "out_of_bounds_shape":
                return bool(values.get("bounds") == "regularized")
            case "sparsity_start" | "sparsity_end":
                return values.get("sparsity_strength") != 0 and values.get("sparsity_scaling") != "exponential"
            case "sparsity_scaling" | "sparsity_shape":
                return values.get("sparsity_strength") != 0
            case "l1_first_strength":
                return values.get("l1_strength") != 0
            case "outward_start":
                return values.get("outward_strength") != 0
            case "momentum":
                return bool(values.get("optimizer") == "momentum")
        return True

    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return the values that all trials of a pack must share."""
        return typed_cell(cell).shape

    def cautions(self, cells: Sequence[Content]) -> list[str]:
        """Return a warning about divisors that can be exactly 0, for users to read before training; else empty."""
        return zero_divisors([typed_cell(cell) for cell in cells])

    def rows_of(self, cell: Content) -> tuple[object, ...]:
        """Return the values that, with a seed, determine a trial's training rows: input and batch size, and source."""
        typed = typed_cell(cell)
        return (typed.input_size, typed.batch_size, typed.trained_on)

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the microseconds of a pack's full training on one core.

        Args:
            cells: the cell of each trial of the pack, at least one.
            draws: number of different draws of rows, which trials may share.
        """
        typed = typed_cell(cells[0])
        own_us = sum(trials * typed_cell(cell).cost_us for cell, trials in Counter(cells).items())
        return (typed.iterations + 1) * (own_us + draws * typed.draw_us)

    def effective_weights(self, cell: Content, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return each layer's effective weights and gate parameters; see `tasks.arithmetic.gates`.

        For a user-defined unit, they are its two-dimensional parameters with at most 10,000 elements.

        Raises:
            ValueError: if the arrays don't fit the cell's network; not for a user-defined unit.
            KeyError: if the cell's model is unknown; not for a user-defined unit.
        """
        if "code" in cell.values:  # a report doesn't have the code that computes them
            return super().effective_weights(cell, arrays)
        from tasks.arithmetic.gates import effective_weights  # imported late: torch takes seconds to import

        return effective_weights(cell, arrays)

    def mean_gates(self, cell: Content, arrays: Arrays, rows: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the mean openness of each gate; see `tasks.arithmetic.gates`. It is empty for a user-defined unit.

        Raises:
            ValueError: if the arrays don't fit the cell's network; not for a user-defined unit.
            KeyError: if the cell's model is unknown; not for a user-defined unit.
        """
        if "code" in cell.values:
            return super().mean_gates(cell, arrays, rows)
        from tasks.arithmetic.gates import mean_gates  # imported late: torch takes seconds to import

        return mean_gates(cell, arrays, rows)

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the largest useful number of a cell's trials in a pack, 16 to 256: fewer with larger activations."""
        return min(max(_PACK_NUMBERS // typed_cell(cell).activations, _SMALLEST_CAP), _LARGEST_CAP)


def _may_have_l1(network: Model, values: Mapping[str, Collection[Any]]) -> bool:
    if "l1_strength" in values:
        return any(values["l1_strength"])
    operations = values.get("operation", ("mul",))
    return network.second is None and any(l1_strengths(network.first, operation) for operation in operations)


_SEARCH_ORDER = (
    "hidden_size", "init_variance", "bounds", "out_of_bounds_strength", "out_of_bounds_shape", "sparsity_strength",
    "sparsity_scaling", "sparsity_shape", "sparsity_start", "sparsity_end", "l1_strength", "l1_first_strength",
    "outward_strength", "outward_start", "restart_memory", "clip_norm", "clip_value", "optimizer", "learning_rate",
    "momentum", "batch_size",
)  # fmt: skip
