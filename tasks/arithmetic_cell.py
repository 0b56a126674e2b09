"""The cells of the arithmetic family, with a typed field for each hyperparameter.

`canonical` makes them of a point's values: with defaults, and None where something doesn't apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from tasks import SINGLE_MODULE, TASKS, Model, model_of
from tasks.distributions import Source
from tasks.family import Content
from tasks.module_training import l1_strengths
from tasks.threshold import Range

_LEARNING_RATE = 1e-3
_MOMENTUM = 0.9
_OUT_OF_BOUNDS_STRENGTH = 1.0
_ITERATIONS = {"simple": 200_000, SINGLE_MODULE: 100_000}
_MOST_ITERATIONS = 5_000_000
_PAIR_ITERATIONS = 50_000  # of the single-module task with two inputs
_OF_NORMAL = ("interpolation_mean", "extrapolation_mean", "deviation")
_OUTWARD_START = 10_001

TASK_NAMES = (
    "operation",
    "input_size",
    "subset_ratio",
    "overlap_ratio",
    "subsets",
    "interpolation_range",
    "extrapolation_range",
    "distribution",
    "interpolation_mean",
    "extrapolation_mean",
    "deviation",
)

_MAY_DIFFER = {
    "sparsity_strength",
    "sparsity_start",
    "sparsity_end",
    "learning_rate",
    "init_variance",
    "interpolation_range",
    "extrapolation_range",
    "interpolation_mean",
    "extrapolation_mean",
    "deviation",
    "success_epsilon",
    "success_threshold",
}

# Microseconds of one core, roughly, as the fused engine has them (benchmarks/README.md): a number drawn; a product of
# an input and a weight, there and back; a hidden unit of a row, and a row.
_DRAWN_US, _PRODUCT_US, _HIDDEN_US, _ROW_US = 3e-4, 6e-5, 2e-4, 3e-3

# What other models take of that: three products, exponentials and logarithms, or products of factors.
_TIMES = {"NALU": 4.0, "NALU-separate": 4.0, "gated-NAU-NMU": 10.0}

_WHEN_OFF = {"sparsity_shape": "linear", "sparsity_scaling": "linear"}


@dataclass(frozen=True, kw_only=True)
class ArithmeticCell:
    """Everything that determines the result of a trial of the arithmetic family, except its seed.

    Args:
        task: name in `tasks.TASKS`.
        operation: ``add``, ``sub``, ``mul``, ``div``, ``squared`` or ``root``.
        input_size: numbers in one input row, n.
        subset_ratio: length of a subset, as a share of n; None where the task's subsets are fixed.
        overlap_ratio: overlap of neighbouring subsets, as a share of a subset; None where they are fixed.
        subsets: number of subsets.
        interpolation_range: where training and validation inputs are drawn.
        extrapolation_range: where test inputs are drawn.
        distribution: of inputs on these ranges; None for a uniform one.
        interpolation_mean: of a normal distribution of training and validation inputs; None for others.
        extrapolation_mean: of a normal distribution of test inputs; None for others.
        deviation: standard deviation of a normal distribution; None for others.
        model: name in `tasks.MODELS`.
        hidden_size: hidden units; 1, the output, if there is but one layer, where a `Cell` has None.
        init_variance: variance of the initial weights; None for each unit's own default.
        bounds: ``clipped`` or ``regularized``; None for a model without bounded weights.
        out_of_bounds_strength: weight of the out-of-bounds regulariser; None unless ``regularized``.
        out_of_bounds_shape: ``linear`` or ``squared``; None unless ``regularized``.
        sparsity_strength: λ̂ of the sparsity regulariser; None for a model without one.
        sparsity_start: iteration at which λ starts to grow; None when off or exponential.
        sparsity_end: iteration at which λ reaches λ̂; None when off or exponential.
        sparsity_shape: ``linear`` or ``squared``; None when off.
        sparsity_scaling: ``linear`` or ``exponential`` growth of λ; None when off.
        l1_strength: β_1, the last strength of the L1 penalty; None when off.
        l1_first_strength: β_0, its first strength; None when off.
        outward_strength: of the regulariser that pushes an iNALU's parameters outward; None when off, and of others.
        outward_start: the first iteration with it; None when off.
        restart_memory: with more stored losses than this, an iNALU may start anew; None for never, and of others.
        clip_norm: the largest norm of a trial's gradient; None for no limit.
        clip_value: the largest size of a number of a gradient; None for no limit.
        optimizer: ``adam``, ``sgd`` or ``momentum``.
        learning_rate: step size.
        momentum: coefficient of ``momentum``; None for the others.
        batch_size: rows that are drawn for each iteration.
        iterations: last iteration; a trial makes the updates 0..iterations inclusive.
        evaluate_every: iterations between evaluations, which come before the update.
        best_step_window: number of the last evaluations from which the best step is chosen.
        evaluation_rows: rows of the validation set, and of the test set.
        stop: ``never``, or ``when_decided`` to end a trial once its outcome can't change.
        relative_error: True if the relative error is measured too; None if not.
        success_epsilon: ε of the success threshold; None when the threshold is given.
        success_threshold: the test MSE to fall below, if it is given; None to compute it from ε.
    """

    task: str
    operation: str
    input_size: int
    subset_ratio: float | None
    overlap_ratio: float | None
    subsets: int
    interpolation_range: Range
    extrapolation_range: Range
    distribution: str | None = None
    interpolation_mean: float | None = None
    extrapolation_mean: float | None = None
    deviation: float | None = None
    model: str
    hidden_size: int
    init_variance: float | None = None
    bounds: str | None = None
    out_of_bounds_strength: float | None = None
    out_of_bounds_shape: str | None = None
    sparsity_strength: float | None = None
    sparsity_start: int | None = None
    sparsity_end: int | None = None
    sparsity_shape: str | None = None
    sparsity_scaling: str | None = None
    l1_strength: float | None = None
    l1_first_strength: float | None = None
    outward_strength: float | None = None
    outward_start: int | None = None
    restart_memory: int | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    momentum: float | None = None
    batch_size: int = 128
    iterations: int = 5_000_000
    evaluate_every: int = 1000
    best_step_window: int = 5000
    evaluation_rows: int = 10_000
    stop: str = "never"
    relative_error: bool | None = None
    success_epsilon: float | None = 1e-5
    success_threshold: float | None = None

    @property
    def network(self) -> Model:
        """The units of the cell's network."""
        return model_of(self.task, self.model, self.input_size)

    @property
    def trained_on(self) -> Source:
        """Where training and validation inputs come from."""
        return Source(self.interpolation_range, self.distribution, self.interpolation_mean, self.deviation)

    @property
    def tested_on(self) -> Source:
        """Where test inputs come from."""
        return Source(self.extrapolation_range, self.distribution, self.extrapolation_mean, self.deviation)

    @property
    def evaluations(self) -> int:
        """The number of evaluations of a full run: at 0, evaluate_every, ... up to `iterations`."""
        return self.iterations // self.evaluate_every + 1

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """What must be equal among the trials of a pack.

        A cell whose sparsity regulariser is off counts as one with the default shape and scaling.
        """
        off = not self.sparsity_strength
        return tuple(
            _WHEN_OFF[f.name] if off and f.name in _WHEN_OFF else getattr(self, f.name)
            for f in fields(self)
            if f.name not in _MAY_DIFFER
        )

    @property
    def cost_us(self) -> float:
        """The estimated microseconds that one trial adds to an iteration of its pack, on one core, rows apart.

        The rows are those of the batch and those of the evaluations, which are forward passes only and are spread over
        the iterations between them. The cost of a row is that of the products of its inputs with each hidden unit, and
        that of the hidden units.
        """
        rows = self.batch_size + 2 * self.evaluation_rows / self.evaluate_every / 3
        of_row = self.hidden_size * (_PRODUCT_US * self.input_size + _HIDDEN_US) + _ROW_US
        return rows * of_row * _TIMES.get(self.model, 1.0)

    @property
    def draw_us(self) -> float:
        """The estimated microseconds of drawing the rows of an iteration, which trials of one seed may share."""
        return _DRAWN_US * self.batch_size * self.input_size

    @property
    def activations(self) -> int:
        """The number of float32 numbers that one trial adds to the activations of its pack."""
        return self.batch_size * (self.input_size + 4 * self.hidden_size)


@lru_cache(maxsize=4096)
def typed_cell(cell: Content) -> ArithmeticCell:
    """Return a cell of the arithmetic family with a typed field for each hyperparameter.

    Args:
        cell: hashable, such as a `study.records.Cell`, whose values have been canonical before.
    """
    hidden_size = cell.values["hidden_size"]  # None where there are none: then the only layer's output is meant
    values = {**cell.values, "hidden_size": 1 if hidden_size is None else hidden_size}
    return ArithmeticCell(task=cell.task, model=cell.model, **values)


def canonical(task: str, model: str, values: Mapping[str, Any]) -> ArithmeticCell:
    """Make the cell of a point.

    Args:
        task: name in `tasks.TASKS`.
        model: name in `tasks.MODELS`.
        values: values of the hyperparameters that are set, by name.

    Raises:
        ValueError: if the task doesn't exist with these values.

    Example:
        >>> cell = canonical("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.sparsity_strength, cell.iterations
        (None, 200000)
    """
    task_ = TASKS[task](**task_values(values))
    network = model_of(task, model, task_.input_size)
    plain = ("batch_size", "evaluate_every", "best_step_window", "evaluation_rows", "stop")
    return ArithmeticCell(
        task=task,
        **{name: getattr(task_, name) for name in TASK_NAMES},
        model=model,
        hidden_size=1 if task == SINGLE_MODULE else values.get("hidden_size", 2),
        init_variance=values.get("init_variance"),
        iterations=values.get("iterations", network.training.get("iterations", _iterations(task, task_.input_size))),
        learning_rate=values.get("learning_rate", network.training.get("learning_rate", _LEARNING_RATE)),
        **{name: values[name] for name in plain if name in values},
        **bounds(network, values),
        **sparsity(network, values),
        **l1(network, task_.operation, values),
        **outward(network, values),
        **limits(network, values),
        **optimizer(values),
        relative_error=values.get("relative_error") or None,
        **success(values),
    )


def task_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task is made with: without what a uniform distribution, or one that isn't normal, has not."""
    given = {name: values[name] for name in TASK_NAMES if name in values}
    if given.get("distribution") == "uniform":
        del given["distribution"]
    if given.get("distribution") != "normal":
        return {name: value for name, value in given.items() if name not in _OF_NORMAL}
    return given


def _iterations(task: str, input_size: int) -> int:
    if task == SINGLE_MODULE and input_size == 2:
        return _PAIR_ITERATIONS
    return _ITERATIONS.get(task, _MOST_ITERATIONS)


def bounds(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say how weights are kept in their bounds."""
    if not model.has_bounds:
        return {}
    mode = values.get("bounds", "clipped")
    if mode == "clipped":
        return {"bounds": mode}
    strength = values.get("out_of_bounds_strength", _OUT_OF_BOUNDS_STRENGTH)
    shape = values.get("out_of_bounds_shape", "linear") if strength else None
    return {"bounds": mode, "out_of_bounds_strength": strength, "out_of_bounds_shape": shape}


def sparsity(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the sparsity regulariser and its schedule."""
    if not model.has_bounds:
        return {}
    strength = values.get("sparsity_strength", model.sparsity_strength or 0.0)
    if not strength:
        return {"sparsity_strength": 0.0}
    regulariser = {
        "sparsity_strength": strength,
        "sparsity_shape": values.get("sparsity_shape", "linear"),
        "sparsity_scaling": values.get("sparsity_scaling", "linear"),
    }
    if regulariser["sparsity_scaling"] == "exponential":
        return regulariser
    return regulariser | {
        "sparsity_start": values.get("sparsity_start", model.sparsity_start),
        "sparsity_end": values.get("sparsity_end", model.sparsity_end),
    }


def l1(model: Model, operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the L1 penalty; without a first strength, it has its last one from the start."""
    published = l1_strengths(model.first, operation) if model.second is None else None
    first, last = published or (None, None)
    strength = values.get("l1_strength", last)
    if not strength:
        return {}
    default = first if "l1_strength" not in values else None
    return {"l1_strength": strength, "l1_first_strength": values.get("l1_first_strength", default) or strength}


def outward(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of what the training of an iNALU adds."""
    if not model.pushes_outward:
        return {}
    chosen = {**model.training, **values}
    fields = {"restart_memory": chosen.get("restart_memory")}
    if strength := chosen.get("outward_strength"):
        fields |= {"outward_strength": strength, "outward_start": chosen.get("outward_start", _OUTWARD_START)}
    return fields


def limits(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the limits of gradients."""
    chosen = {**model.training, **values}
    return {name: chosen.get(name) for name in ("clip_norm", "clip_value")}


def optimizer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the optimiser."""
    name = values.get("optimizer", "adam")
    return {"optimizer": name, "momentum": values.get("momentum", _MOMENTUM) if name == "momentum" else None}


def success(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the success criterion: a threshold in the file replaces the computed one."""
    threshold = values.get("success_threshold")
    epsilon = values.get("success_epsilon", 1e-5) if threshold is None else None
    return {"success_epsilon": epsilon, "success_threshold": threshold}
