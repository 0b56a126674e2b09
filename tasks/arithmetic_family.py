"""The arithmetic family, as a study knows it: hyperparameters, what must hold between them, and packs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from tasks import MODELS, SINGLE_MODULE, TASKS, arithmetic_cell, model_of
from tasks.arithmetic import OPERATIONS, ArithmeticTask, check_range
from tasks.arithmetic_cell import TASK_NAMES, ArithmeticCell, typed_cell
from tasks.declarations import Hyperparameter
from tasks.distributions import DISTRIBUTIONS
from tasks.family import Check, Content, Family, Mistake, Values
from tasks.models import SINGLE_LAYERS, Model
from tasks.module_training import l1_strengths
from tasks.threshold import Range
from tasks.values import Count, Iteration, NotNegative, Positive, Share, ShareOrNone, choice, number, quoted, whole

# Float32 numbers in a pack's activations; beyond them, more trials only fall out of the cache.
_PACK_NUMBERS = 2**20

_SMALLEST_CAP, _LARGEST_CAP = 16, 256

_NUMBER_BYTES = 4
_MOST_TRIAL_BYTES = 16 * 2**30


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


# With more subsets, `mul` of numbers above 1 is infinite, and the layer is wider than any that is trained.
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


def _of_protocol(type_: Any, meaning: str, otherwise: str) -> Hyperparameter:
    return _declared("protocol", type_, meaning, otherwise)


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
    "subsets": _of_task(_Subsets, "how many, at most 1,000", "2"),
    "interpolation_range": _of_task(
        _Range,
        "where training and validation inputs lie: `[low, high]`, or two intervals of equal width "
        "`[[low, high], [low, high]]`",
        "`[1, 2]`",
        title="trained on",
    ),
    "extrapolation_range": _of_task(_Range, "where test inputs lie, in the same way", "`[2, 6]`", title="tested on"),
    "distribution": _of_task(
        choice(("uniform", *DISTRIBUTIONS)),
        "of inputs: `uniform` on their range; `halves`: the first half of each row from the first of two intervals, "
        "the others from the second; `normal`, cut to the range; `benford`: whole numbers, such as those of [10, 99], "
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
    "bounds": _of_training(
        choice(("clipped", "regularized")),
        "`clipped`: weights are clamped after every update; `regularized`: in the forward pass only, with a "
        "regulariser",
        "`clipped`, for models with bounded weights",
    ),
    "out_of_bounds_strength": _of_training(NotNegative, "weight of that regulariser, >= 0", "1, if `regularized`"),
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
        NotNegative,
        "β₁, the last strength of the L1 penalty of all parameters, gates among them, >= 0; 0 is off",
        f"{_PUBLISHED} in `single-module`, else off",
        title="L1 strength",
        none="off",
    ),
    "l1_first_strength": _of_training(
        Positive,
        "β₀, its first strength, > 0, which grows tenfold at every 10,000th iteration until β₁",
        f"{_PUBLISHED}; with a β₁ of your own, β₁",
        title="first L1 strength",
    ),
    "outward_strength": _of_training(
        NotNegative,
        "of the regulariser that pushes an iNALU's parameters outward, while the last validation MSE is below 1; 0 is "
        "off",
        "0.05 in `single-module`, else off",
        none="off",
    ),
    "outward_start": _of_training(Iteration, "the first iteration with it", "10,001"),
    "restart_memory": _of_training(
        _CountOrNone,
        "an iNALU starts anew, at every 10th iteration, if it has trained for more iterations than this since its "
        "start, and its validation MSE is above 1 and doesn't fall; `null`: never",
        "5,000 in `single-module`, else `null`",
        none="never",
    ),
    "clip_norm": _of_training(
        _PositiveOrNone,
        "the norm that a trial's gradient is scaled down to, > 0, or `null`",
        f"{_PUBLISHED} in `single-module`, else `null`",
        title="gradient norm",
        none="unlimited",
    ),
    "clip_value": _of_training(
        _PositiveOrNone,
        "the size that each number of a gradient is clipped to, > 0, or `null`",
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
        choice(("never", "when_decided")),
        "`never`, or `when_decided`: see the [glossary](glossary.md#stop-when_decided)",
        "`never`",
    ),
    "relative_error": _of_protocol(
        bool, "whether the mean of abs(y - t) / abs(t) on the test rows is measured too", "`false`"
    ),
    "success_epsilon": _of_success(_Epsilon, "ε, in (0, 1/2), from which the threshold is computed", "1e-5"),
    "success_threshold": _of_success(Positive, "a test MSE to fall below", "computed from ε"),
}
"""By name; the order of a file's tables."""

_BOUNDS = ("bounds", "out_of_bounds_strength", "out_of_bounds_shape")
_SPARSITY = ("sparsity_strength", "sparsity_start", "sparsity_end", "sparsity_shape", "sparsity_scaling")
_OF_NORMAL = ("interpolation_mean", "extrapolation_mean", "deviation")
_L1 = ("l1_strength", "l1_first_strength")
_OUTWARD = ("outward_strength", "outward_start", "restart_memory")
_RATIOS = ("subset_ratio", "overlap_ratio")
_LENGTH = ("iterations", "evaluate_every")
_SIZES = ("input_size", "hidden_size", "batch_size", "evaluation_rows")
_SUCCESS = ("success_epsilon", "success_threshold")


class ArithmeticFamily(Family):
    """The arithmetic task and its variants, and the models of the field.

    Example:
        >>> family = ArithmeticFamily()
        >>> family.impossible("simple", "NMU", {"sparsity_start": 10, "sparsity_end": 5})
        'sparsity_start < sparsity_end must hold, but got start 10 and end 5'
    """

    hyperparameters = HYPERPARAMETERS
    metrics = ArithmeticTask.metrics
    tasks = tuple(TASKS)
    models = tuple(MODELS)

    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell; see `tasks.arithmetic_cell.canonical`."""
        content = dict(vars(arithmetic_cell.canonical(task, model, values)))
        del content["task"], content["model"]
        return content | ({"hidden_size": None} if task == SINGLE_MODULE else {})

    @property
    def plainest_model(self) -> str:
        """A model without a regulariser."""
        return "linear"

    @property
    def checks(self) -> Sequence[Check]:
        """What `mistakes` checks."""
        return tuple(_CHECKS)

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield what a check finds wrong with some values."""
        return _CHECKS[check](task, model, values)

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return why a hyperparameter has no effect, or None if it has one."""
        network = model_of(task, model)
        if name in _SPARSITY and not network.has_bounds:
            return f"{model} has no sparsity regulariser"
        if name in _BOUNDS and not network.has_bounds:
            return f"{model} has no bounded weights"
        if name in _BOUNDS[1:] and "regularized" not in values.get("bounds", ()):
            return "bounds must be regularized for that"
        if name == "l1_first_strength" and not _may_have_l1(network, values):
            return "l1_strength must be given for that"
        if name in _OUTWARD and not network.pushes_outward:
            return f"{model} isn't an iNALU"
        pushes = values.get("outward_strength", (network.training.get("outward_strength"),))
        if name == "outward_start" and not any(pushes):
            return "outward_strength must be given for that"
        if name == "momentum" and "momentum" not in values.get("optimizer", ()):
            return "optimizer must be momentum for that"
        if name in _OF_NORMAL and "normal" not in values.get("distribution", ()):
            return "distribution must be normal for that"
        if name in _RATIOS and task in ("simple", SINGLE_MODULE):
            return f"the {task} task has fixed subsets"
        if name == "hidden_size" and task == SINGLE_MODULE:
            return "the single-module task has one layer, and so no hidden units"
        return None

    @property
    def search_order(self) -> Sequence[str]:
        """The hyperparameters that a search may choose, each before those that depend on it."""
        return _SEARCH_ORDER

    def is_chosen(self, name: str, values: Values) -> bool:
        """Tell whether a hyperparameter has an effect, given the values that a search has chosen so far."""
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
        """Return what must be equal among the trials of a pack."""
        return typed_cell(cell).shape

    def rows_of(self, cell: Content) -> tuple[object, ...]:
        """Return what determines, with a seed, the rows that a trial of a cell sees."""
        typed = typed_cell(cell)
        return (typed.input_size, typed.batch_size, typed.trained_on)

    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the microseconds that a pack takes on one core, by the engine that draws rows once for all."""
        typed = typed_cell(cells[0])
        own_us = sum(trials * typed_cell(cell).cost_us for cell, trials in Counter(cells).items())
        return (typed.iterations + 1) * (own_us + draws * typed.draw_us)

    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the most trials of a cell that are useful in a pack."""
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


def _layer_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if task == SINGLE_MODULE and model not in SINGLE_LAYERS:
        alone = ", ".join(SINGLE_LAYERS)
        yield (), f"the single-module task has one layer, and {model} alone is linear: take one of {alone}"


def _task_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    """Make the task and compute its threshold; the task's own errors say what is wrong."""
    try:
        task_ = TASKS[task](**arithmetic_cell.task_values(values))
        epsilon = arithmetic_cell.success(values)["success_epsilon"]
        if epsilon is not None:
            task_.threshold(epsilon)
    except ValueError as error:
        message = str(error)
        names = [name for name in TASK_NAMES if name in message]
        yield (*sorted(names, key=message.index), "success_epsilon"), message


def _variance_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    variance = values.get("init_variance")
    if variance is None:
        return
    largest = model_of(task, model).largest_init_variance
    if largest == 0:
        yield ("init_variance",), f"the initial weights of {model} have distributions of their own: leave it out"
    elif variance > largest:
        yield (
            ("init_variance",),
            f"the weights of {model} can have a variance of at most {largest:.6g}, but got {variance:g}",
        )


def _schedule_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    network = model_of(task, model, values.get("input_size", 2))
    regulariser = arithmetic_cell.sparsity(network, values)
    start, end = regulariser.get("sparsity_start"), regulariser.get("sparsity_end")
    if start is None or end is None or end > start:
        return
    defaults = [name for name in ("sparsity_start", "sparsity_end") if name not in values]
    default = f" ({' and '.join(defaults)} as published for {model})" if defaults else ""
    yield (
        ("sparsity_end", "sparsity_start"),
        f"sparsity_start < sparsity_end must hold, but got start {start} and end {end}{default}",
    )


def _l1_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    network = model_of(task, model, values.get("input_size", 2))
    penalty = arithmetic_cell.l1(network, values.get("operation", "mul"), values)
    first, last = penalty.get("l1_first_strength"), penalty.get("l1_strength")
    if first is not None and last is not None and first > last:
        default = "" if "l1_strength" in values else f", as published for {model}"
        yield (
            ("l1_first_strength", "l1_strength"),
            f"l1_first_strength <= l1_strength must hold, but got {first:g} and {last:g}{default}",
        )


def _length_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    cell = arithmetic_cell.canonical(task, model, values)
    if cell.iterations < cell.evaluate_every:
        yield (
            ("evaluate_every", "iterations"),
            "evaluate_every <= iterations must hold, or a trial is evaluated only before its first update; "
            f"but got evaluate_every {cell.evaluate_every} and iterations {cell.iterations}",
        )


def _success_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    if len(values) == 2:
        yield (
            ("success_threshold",),
            "success takes an epsilon, from which the threshold is computed, or a threshold, but got both",
        )


def trial_bytes(cell: ArithmeticCell) -> int:
    """Return an upper estimate of one trial's memory: weights, a batch, evaluation rows, masks and its curve.

    Example:
        >>> trial_bytes(arithmetic_cell.canonical("arithmetic", "NMU", {})) / 2**20
        8.171...
    """
    weights = 12 * cell.hidden_size * (cell.input_size + 1)
    batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
    rows = 2 * cell.evaluation_rows * (cell.input_size + 4)
    return _NUMBER_BYTES * (weights + batch + rows + cell.subsets * cell.input_size + 3 * cell.evaluations)


def _memory_mistakes(task: str, model: str, values: Values) -> Iterator[Mistake]:
    try:
        cell = arithmetic_cell.canonical(task, model, values)
    except ValueError:  # `_task_mistakes` reports it
        return
    needed = trial_bytes(cell)
    if needed > _MOST_TRIAL_BYTES:
        largest = sorted(_SIZES, key=lambda name: int(getattr(cell, name)), reverse=True)
        sizes = ", ".join(f"{name} {getattr(cell, name)}" for name in (*_SIZES, *_LENGTH))
        yield (
            (*largest, "iterations"),
            f"one trial must fit into {_MOST_TRIAL_BYTES / 2**30:g} GiB of memory, but takes about "
            f"{needed / 2**30:,.0f} GiB with {sizes}",
        )


_CHECKS: Mapping[Check, Callable[[str, str, Values], Iterator[Mistake]]] = {
    Check(()): _layer_mistakes,
    Check((*TASK_NAMES, *_SUCCESS)): _task_mistakes,
    Check(("init_variance",)): _variance_mistakes,
    Check((*_SPARSITY, "input_size"), may_be_chosen=True): _schedule_mistakes,
    Check((*_L1, "operation", "input_size"), may_be_chosen=True): _l1_mistakes,
    Check(_LENGTH): _length_mistakes,
    Check((*_SIZES, "subsets", *_LENGTH)): _memory_mistakes,
    Check(_SUCCESS): _success_mistakes,
}

ARITHMETIC = ArithmeticFamily()
"""The family, for whoever needs no other."""
