"""Hyperparameters of the arithmetic family, with types, limits, meanings and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from study.interface.declarations import Hyperparameter
from study.interface.l1_strengths import FIRST_MEANING, LAST_MEANING
from study.interface.values import (
    Count,
    Iteration,
    NotNegative,
    Positive,
    Share,
    ShareOrNone,
    choice,
    number,
    quoted,
    whole,
)
from tasks.arithmetic.distributions import DISTRIBUTIONS
from tasks.arithmetic.task import OPERATIONS, check_range
from tasks.arithmetic.threshold import Range


def _or_none(value: object) -> float | int | None:
    return None if value is None else number(value)


def _range(value: object) -> Range:
    message = "must be [low, high], or two intervals [[low, high], [low, high]]"
    if not isinstance(value, list) or not value:
        raise ValueError(f"{message}, but got {quoted(value)}")
    intervals = value if all(isinstance(v, list) for v in value) else [value]
    if any(not isinstance(v, list) or len(v) != 2 for v in intervals):
        raise ValueError(f"{message}, but got {quoted(value)}")
    range_ = tuple((float(number(low)), float(number(high))) for low, high in intervals)
    check_range("a range", range_)
    return range_


def _unit_range(value: object) -> Range:
    range_ = _range(value)
    if len(range_) != 1 or not 0 <= range_[0][0] < range_[0][1] <= 1:
        raise ValueError(f"must be [low, high] with 0 <= low < high <= 1, but got {quoted(value)}")
    return range_


# With more subsets, `mul` of numbers above 1 is infinite, and the layer is wider than any trained one.
_Subsets = Annotated[int, Field(ge=1, le=1000), BeforeValidator(whole)]
_Momentum = Annotated[float, Field(ge=0, lt=1), BeforeValidator(number)]
_Epsilon = Annotated[float, Field(gt=0, lt=0.5), BeforeValidator(number)]
_Variance = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(_or_none)]
_INTERVAL = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_Range = Annotated[
    Range,
    BeforeValidator(_range),
    WithJsonSchema({"anyOf": [_INTERVAL, {"type": "array", "items": _INTERVAL, "minItems": 1, "maxItems": 2}]}),
]
_UnitRange = Annotated[Range, BeforeValidator(_unit_range), WithJsonSchema(_INTERVAL)]
_PositiveOrNone = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(_or_none)]
_CountOrNone = Annotated[Count | None, BeforeValidator(_or_none)]
_Number = Annotated[float, BeforeValidator(number)]
_Shape = choice(("linear", "squared"))


def _declared(table: str, type_: Any, meaning: str, otherwise: str, **more: Any) -> Hyperparameter:
    return Hyperparameter(type=type_, table=table, meaning=meaning, otherwise=otherwise, **more)


def _of_task(type_: Any, meaning: str, otherwise: str, **more: Any) -> Hyperparameter:
    return _declared("task", type_, meaning, otherwise, **more)


def _of_training(type_: Any, meaning: str, otherwise: str, *, is_method: bool = True, **more: Any) -> Hyperparameter:
    return _declared("", type_, meaning, otherwise, is_method=is_method, is_searchable=True, **more)


def _of_protocol(type_: Any, meaning: str, otherwise: str, **more: Any) -> Hyperparameter:
    return _declared("protocol", type_, meaning, otherwise, **more)


def _of_success(type_: Any, meaning: str, otherwise: str) -> Hyperparameter:
    return _declared("success", type_, meaning, otherwise)


_PUBLISHED = "as published for the model"
HYPERPARAMETERS: Mapping[str, Hyperparameter] = {
    "operation": _of_task(choice(OPERATIONS), ", ".join(f"`{name}`" for name in OPERATIONS), "`mul`"),
    "input_size": _of_task(Count, "numbers in a row, >= 1", "100; 4 in `simple`, 2 in `single-module`", title="inputs"),
    "subset_ratio": _of_task(
        Share, "length of a subset as a share of `input_size`, in (0, 1]", "0.25; none in `simple` and `single-module`"
    ),
    "overlap_ratio": _of_task(
        ShareOrNone,
        "overlap of neighbouring subsets as a share of a subset, in [0, 1]",
        "0.5; none in `simple` and `single-module`",
    ),
    "subsets": _of_task(_Subsets, "number of subsets, at most 1,000", "2"),
    "interpolation_range": _of_task(
        _Range,
        "range of training and validation inputs: `[low, high]`, or two intervals of equal width "
        "`[[low, high], [low, high]]`",
        "`[1, 2]`",
        title="trained on",
    ),
    "extrapolation_range": _of_task(_Range, "range of test inputs, in the same form", "`[2, 6]`", title="tested on"),
    "distribution": _of_task(
        choice(("uniform", *DISTRIBUTIONS)),
        "of inputs. `uniform`: on their range. `halves`: the first half of each row from the first of two intervals, "
        "the others from the second. `normal`: cut to the range. `benford`: whole numbers, such as those of [10, 99], "
        "whose first digit follows Benford's law",
        "`uniform`",
        none="uniform",
    ),
    "interpolation_mean": _of_task(
        _Number, "mean of a `normal` distribution of training and validation inputs", "none", title="trained around"
    ),
    "extrapolation_mean": _of_task(
        _Number, "mean of a `normal` distribution of test inputs", "none", title="tested around"
    ),
    "deviation": _of_task(Positive, "standard deviation of a `normal` distribution, > 0", "none"),
    "hidden_size": _of_training(
        Count, "hidden units, >= 1", "2; none in `single-module`", title="hidden units", is_method=False
    ),
    "init_variance": _of_training(
        _Variance,
        "variance of the initial weights, > 0, or `null` for each unit's own",
        "`null`",
        title="init variance",
        none="default",
    ),
    "init_range": _declared(
        "",
        _UnitRange,
        "where the initial weights of an NMU lie, which are uniform: `[low, high]` in [0, 1]; see [numbers below "
        "0](../../tasks/docs/theory.md#negative-inputs-of-an-nmu)",
        "`[0.25, 0.75]`, for models with an NMU",
        title="NMU starts in",
        none="default",
        is_method=True,
    ),
    "init_signs": _declared(
        "",
        choice(("drawn", "two_negative")),
        "`drawn`, or `two_negative`: rows of the first layer's weights are multiplied by -1, so that two of an NMU's "
        "factors start negative. This makes it [more reliable with many hidden "
        "units](../../tasks/docs/results/hidden-size/README.md#a-start-with-two-negative-factors)",
        "`drawn`",
        title="signs",
        none="drawn",
        is_method=True,
    ),
    "bounds": _of_training(
        choice(("clipped", "regularized")),
        "`clipped`: weights are clamped after every update; `regularized`: in the forward pass only, with a "
        "regulariser",
        "`clipped`, for models with bounded weights",
    ),
    "out_of_bounds_strength": _of_training(
        NotNegative, "weight of the out-of-bounds regulariser, >= 0", "1, if `regularized`"
    ),
    "out_of_bounds_shape": _of_training(_Shape, "`linear` or `squared`", "`linear`, if `regularized`"),
    "sparsity_strength": _of_training(NotNegative, "λ̂, >= 0; 0 is off", _PUBLISHED, title="λ̂", none="off"),
    "sparsity_start": _of_training(Iteration, "iteration at which λ starts to grow", _PUBLISHED, title="λ start"),
    "sparsity_end": _of_training(Iteration, "iteration at which λ reaches λ̂", _PUBLISHED, title="λ end"),
    "sparsity_shape": _of_training(_Shape, "`linear` or `squared`", "`linear`"),
    "sparsity_scaling": _of_training(
        choice(("linear", "exponential")),
        "growth of λ: `linear`, from start to end; `exponential`, λ̂ (1 - exp(-1e-5 t)), without start and end",
        "`linear`",
    ),
    "l1_strength": _of_training(
        NotNegative, LAST_MEANING, f"{_PUBLISHED} in `single-module`, else off", title="L1 strength", none="off"
    ),
    "l1_first_strength": _of_training(
        Positive, FIRST_MEANING, f"{_PUBLISHED}; with a β₁ of your own, β₁", title="first L1 strength"
    ),
    "outward_strength": _of_training(
        NotNegative,
        "strength of the regulariser that pushes an iNALU's parameters outward while the last validation MSE is below "
        "1; 0 is off",
        "0.05 in `single-module`, else off",
        none="off",
    ),
    "outward_start": _of_training(Iteration, "first iteration of the outward regulariser", "10,001"),
    "restart_memory": _of_training(
        _CountOrNone,
        "an iNALU restarts if it has trained for more iterations than this since its last start, and its validation "
        "MSE is above 1 and doesn't fall. This is checked every 10th iteration. `null`: never",
        "5,000 in `single-module`, else `null`",
        none="never",
    ),
    "clip_norm": _of_training(
        _PositiveOrNone,
        "largest norm of a trial's gradient, > 0, or `null`",
        f"{_PUBLISHED} in `single-module`, else `null`",
        title="gradient norm",
        none="unlimited",
    ),
    "clip_value": _of_training(
        _PositiveOrNone,
        "largest absolute value of a gradient element, > 0, or `null`",
        f"{_PUBLISHED} in `single-module`, else `null`",
        title="gradient size",
        none="unlimited",
    ),
    "optimizer": _of_training(choice(("adam", "sgd", "momentum")), "`adam`, `sgd`, `momentum`", "`adam`"),
    "learning_rate": _of_training(Positive, "> 0", f"1e-3; {_PUBLISHED} in `single-module`"),
    "momentum": _of_training(_Momentum, "in [0, 1), if the optimiser is `momentum`", "0.9"),
    "batch_size": _of_training(Count, "rows drawn afresh each iteration", "128", title="batch"),
    "iterations": _of_protocol(
        Iteration,
        "the last iteration; updates are 0, 1, ..., `iterations`",
        "5e6; 2e5 in `simple`; in `single-module` 5e4 with two inputs, else 1e5",
    ),
    "evaluate_every": _of_protocol(Count, "iterations between evaluations", "1000"),
    "best_step_window": _of_protocol(Count, "the best step is sought among that many last evaluations", "5000"),
    "evaluation_rows": _of_protocol(Count, "rows of the validation set, and of the test set", "10000"),
    "stop": _of_protocol(
        choice(("never", "when_decided")), "`never`, or [`when_decided`](#stop-when_decided)", "`never`"
    ),
    "relative_error": _of_protocol(bool, "also measure the mean of abs(y - t) / abs(t) on the test rows", "`false`"),
    "init": _of_protocol(
        choice(("shared", "independent")),
        "`shared`: trials of one seed begin with the same numbers in all cells; `independent`: each cell draws its own "
        "(see [what a seed shares](../explanation/statistics/comparisons.md#shared-rows-and-initial-weights))",
        "`shared`",
        none="shared",
    ),
    "success_epsilon": _of_success(_Epsilon, "ε, in (0, 1/2), from which the threshold is computed", "1e-5"),
    "success_threshold": _of_success(Positive, "a test MSE to fall below", "computed from ε"),
}
"""The hyperparameters by name, in the order of a file's tables."""

BOUNDS = ("bounds", "out_of_bounds_strength", "out_of_bounds_shape")
SPARSITY = ("sparsity_strength", "sparsity_start", "sparsity_end", "sparsity_shape", "sparsity_scaling")
OF_NORMAL = ("interpolation_mean", "extrapolation_mean", "deviation")
OUTWARD = ("outward_strength", "outward_start", "restart_memory")
RATIOS = ("subset_ratio", "overlap_ratio")
