"""Cells of the arithmetic family, with a typed field for each hyperparameter.

`tasks.arithmetic.canonical` makes them from a point's values.
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

# Approximate microseconds on one core, measured with the fused engine (benchmarks/README.md): per number drawn; per
# product of an input and a weight, forward and backward; per hidden unit of a row; per row.
_DRAWN_US, _PRODUCT_US, _HIDDEN_US, _ROW_US = 3e-4, 6e-5, 2e-4, 3e-3

# Factors by which other models cost more: three products, exponentials and logarithms, or products of factors.
_TIMES = {"NALU": 4.0, "NALU-separate": 4.0, "gated-NAU-NMU": 10.0}

_WHEN_OFF = {"sparsity_shape": "linear", "sparsity_scaling": "linear"}


@dataclass(frozen=True, kw_only=True)
class ArithmeticCell:
    """Everything that determines the result of a trial of the arithmetic family, except its seed.

    Args:
        task: name in `tasks.arithmetic.TASKS`.
        operation: ``add``, ``sub``, ``mul``, ``div``, ``squared`` or ``root``.
        input_size: numbers in one input row, n.
        subset_ratio: length of a subset, as a share of n; None if the task's subsets are fixed.
        overlap_ratio: overlap of neighbouring subsets, as a share of a subset; None if they are fixed.
        subsets: number of subsets.
        interpolation_range: range of training and validation inputs.
        extrapolation_range: range of test inputs.
        distribution: of inputs on these ranges; None for uniform.
        interpolation_mean: mean of normally distributed training and validation inputs; None for other distributions.
        extrapolation_mean: mean of normally distributed test inputs; None for other distributions.
        deviation: standard deviation of a normal distribution; None for other distributions.
        model: name in `tasks.arithmetic.MODELS`, or the key of a user-defined unit.
        hidden_size: hidden units; 1, the output, if there is only one layer, where a `Cell` has None.
        init_variance: variance of the initial weights; None for each unit's own default.
        init_range: interval of an NMU's uniform initial weights; None for U[1/4, 3/4].
        init_signs: ``two_negative`` to choose the signs of the first layer's rows so that two factors of the NMU start
            negative; None for drawn signs.
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
        outward_strength: strength of the regulariser that pushes an iNALU's parameters outward; None if off, or for
            other units.
        outward_start: first iteration with it; None when off.
        restart_memory: number of stored losses above which an iNALU may restart; None for never, or for other units.
        clip_norm: largest norm of a trial's gradient; None for no limit.
        clip_value: largest absolute value of a gradient element; None for no limit.
        optimizer: ``adam``, ``sgd`` or ``momentum``.
        learning_rate: step size.
        momentum: coefficient of ``momentum``; None for other optimisers.
        batch_size: rows drawn for each iteration.
        iterations: last iteration; a trial makes the updates 0..iterations inclusive.
        evaluate_every: iterations between evaluations; an evaluation precedes its iteration's update.
        best_step_window: number of last evaluations from which the best step is chosen.
        evaluation_rows: rows of the validation set, and of the test set.
        stop: ``never``, or ``when_decided`` to end a trial once its outcome can't change.
        relative_error: True if the relative error is measured too; otherwise None.
        init: ``independent`` if the cell has its own initial weights for each seed; None if cells share them.
        success_epsilon: ε of the success threshold; None if the threshold is given.
        success_threshold: given upper limit of the test MSE; None to compute it from ε.
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
        """The units of the cell's network.

        Raises:
            KeyError: if the model is neither built in nor a registered unit.
        """
        return model_of(self.task, self.model, self.input_size)

    @property
    def trained_on(self) -> Source:
        """The source of training and validation inputs."""
        return Source(self.interpolation_range, self.distribution, self.interpolation_mean, self.deviation)

    @property
    def tested_on(self) -> Source:
        """The source of test inputs."""
        return Source(self.extrapolation_range, self.distribution, self.extrapolation_mean, self.deviation)

    @property
    def evaluations(self) -> int:
        """The number of evaluations of a full run: at 0, evaluate_every, ... up to `iterations`."""
        return self.iterations // self.evaluate_every + 1

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """The values that must be equal among trials that share arrays: all but those of `_MAY_DIFFER`.

        May differ: the learning rate, the success threshold, the strength and schedule of the sparsity regulariser, the
        variance or range of initial weights, and the ranges, means and deviation of inputs. Trials of a pack have equal
        shapes by default; packs of `FusedEngine` may have several. A cell without sparsity regulariser counts as one
        with the default shape and scaling.
        """
        off = not self.sparsity_strength
        return tuple(
            _WHEN_OFF[f.name] if off and f.name in _WHEN_OFF else getattr(self, f.name)
            for f in fields(self)
            if f.name not in _MAY_DIFFER
        )

    @property
    def cost_us(self) -> float:
        """The estimated microseconds that one trial adds to an iteration of its pack on one core, without drawing rows.

        It counts the rows of the batch, and those of the evaluations, spread over the iterations between evaluations.
        Evaluations are forward passes only, a third of an update. A row costs the products of its inputs with each
        hidden unit, the hidden units and a constant; for some models, such as the NALU, a multiple of that.
        """
        rows = self.batch_size + 2 * self.evaluation_rows / self.evaluate_every / 3
        of_row = self.hidden_size * (_PRODUCT_US * self.input_size + _HIDDEN_US) + _ROW_US
        return rows * of_row * _TIMES.get(self.model, 1.0)

    @property
    def draw_us(self) -> float:
        """The estimated microseconds of drawing an iteration's rows; trials of one seed may share the draw."""
        return _DRAWN_US * self.batch_size * self.input_size

    @property
    def activations(self) -> int:
        """The number of float32 numbers that one trial adds to the activations of its pack."""
        return self.batch_size * (self.input_size + 4 * self.hidden_size)


def task_of(cell: ArithmeticCell) -> ArithmeticTask:
    """Build the task of the cell's trials.

    Raises:
        KeyError: if the task is unknown.
        ValueError: if it can't be constructed from the cell's values.
    """
    return TASKS[cell.task](**{name: getattr(cell, name) for name in TASK_NAMES})


@lru_cache(maxsize=4096)
def typed_cell(cell: Content) -> ArithmeticCell:
    """Return a cell of the arithmetic family with a typed field for each hyperparameter.

    A `hidden_size` of None becomes 1. The ``code`` of a user-defined unit becomes a part of `model`; see `unit_key`.

    Args:
        cell: a hashable cell with canonical values, such as a `study.records.Cell`.

    Raises:
        KeyError: if it lacks ``hidden_size``.
        TypeError: if another value without a default is missing, or a value isn't a field of `ArithmeticCell`.
    """
    hidden_size = cell.values["hidden_size"]  # None: only an output layer
    values = {**cell.values, "hidden_size": 1 if hidden_size is None else hidden_size}
    code = values.pop("code", None)
    model = cell.model if code is None else unit_key(cell.model, code)
    return ArithmeticCell(task=cell.task, model=model, **values)
