"""The cells of the arithmetic family, with a typed field for each hyperparameter.

`tasks.arithmetic.canonical` makes them of a point's values.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

from study.interface.family import Content
from tasks.arithmetic import TASKS, ArithmeticTask, Model, model_of
from tasks.arithmetic.distributions import Source
from tasks.arithmetic.own_units import unit_key
from tasks.arithmetic.threshold import Range

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
    "init_range",
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
        task: name in `tasks.arithmetic.TASKS`.
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
        model: name in `tasks.arithmetic.MODELS`, or the key of a unit of a user's own.
        hidden_size: hidden units; 1, the output, if there is but one layer, where a `Cell` has None.
        init_variance: variance of the initial weights; None for each unit's own default.
        init_range: ends of the interval of an NMU's initial weights, which are uniform; None for U[1/4, 3/4].
        init_signs: ``two_negative`` if rows of an NMU's first layer get signs with which two factors start negative;
            None for those that are drawn.
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
        init: ``independent`` if the cell has initial weights of its own for each seed; None if cells share them.
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
    init_range: Range | None = None
    init_signs: str | None = None
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
    init: str | None = None
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


def task_of(cell: ArithmeticCell) -> ArithmeticTask:
    """Build the task of the cell's trials."""
    return TASKS[cell.task](**{name: getattr(cell, name) for name in TASK_NAMES})


@lru_cache(maxsize=4096)
def typed_cell(cell: Content) -> ArithmeticCell:
    """Return a cell of the arithmetic family with a typed field for each hyperparameter.

    Args:
        cell: hashable, such as a `study.records.Cell`, whose values have been canonical before.
    """
    hidden_size = cell.values["hidden_size"]  # None where there are none: then the only layer's output is meant
    values = {**cell.values, "hidden_size": 1 if hidden_size is None else hidden_size}
    code = values.pop("code", None)
    model = cell.model if code is None else unit_key(cell.model, code)
    return ArithmeticCell(task=cell.task, model=model, **values)
