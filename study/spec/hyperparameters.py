"""What can be fixed or swept: each hyperparameter with its type and limits.

The names are those of `study.records.Cell`, except task and model, which have tables of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from study.errors import nearest
from study.records import Range
from tasks import OPERATIONS
from tasks.arithmetic import check_range

_MOST = 2**31 - 1
_MOST_ITERATIONS = 2**32 - 2  # the stream's counter has 32 bits for the iteration


def quoted(value: object) -> str:
    """Return a value as text for a message, shortened if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _number(value: object) -> float | int:
    if isinstance(value, list):
        raise ValueError(f"must be one number, but got the list {quoted(value)}; to sweep it, put it under grid")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, but got {quoted(value)}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"must fit into 64 bits, but got {quoted(value)}")
    if not math.isfinite(value):
        raise ValueError(f"must be a finite number, but got {value}")
    return value


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError(f"must be a whole number, but got {number:g}")
    return int(number)


def _variance(value: object) -> float | int | None:
    return None if value is None else _number(value)


def _range(value: object) -> Range:
    message = "must be [low, high], or two intervals [[low, high], [low, high]]"
    if not isinstance(value, list) or not value:
        raise ValueError(f"{message}, but got {quoted(value)}")
    intervals = value if all(isinstance(v, list) for v in value) else [value]
    if any(not isinstance(v, list) or len(v) != 2 for v in intervals):
        raise ValueError(f"{message}, but got {quoted(value)}")
    range_ = tuple((float(_number(low)), float(_number(high))) for low, high in intervals)
    check_range("a range", range_)
    return range_


def choice(names: Iterable[str]) -> Any:
    """Return the type of a value that must be one of several names."""
    valid = tuple(names)

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in valid:
            must = f"must be one of {', '.join(valid)}, but got {quoted(value)}"
            if isinstance(value, list):
                raise ValueError(f"{must}; to sweep it, put the list under grid")
            raise ValueError(must + nearest(value, valid))
        return value

    return Annotated[str, BeforeValidator(check), WithJsonSchema({"enum": list(valid)})]


def _float32(value: float) -> float:
    if value > 3e38:
        raise ValueError(f"must fit into 32 bits, but got {value:g}")
    return value


# With more subsets, `mul` of numbers above 1 is infinite, and the layer is wider than any that is trained.
_MOST_SUBSETS = 1000
Subsets = Annotated[int, Field(ge=1, le=_MOST_SUBSETS), BeforeValidator(_whole)]
Count = Annotated[int, Field(ge=1, le=_MOST), BeforeValidator(_whole)]
Iteration = Annotated[int, Field(ge=0, le=_MOST_ITERATIONS), BeforeValidator(_whole)]
Positive = Annotated[float, Field(gt=0), BeforeValidator(_number), AfterValidator(_float32)]
NotNegative = Annotated[float, Field(ge=0), BeforeValidator(_number), AfterValidator(_float32)]
Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(_number)]
ShareOrNone = Annotated[float, Field(ge=0, le=1), BeforeValidator(_number)]
Momentum = Annotated[float, Field(ge=0, lt=1), BeforeValidator(_number)]
Keep = Annotated[float, Field(gt=0, lt=1), BeforeValidator(_number)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1), BeforeValidator(_whole)]
HalfWidth = Annotated[float, Field(gt=0, lt=0.5), BeforeValidator(_number)]
Epsilon = Annotated[float, Field(gt=0, lt=0.5), BeforeValidator(_number)]
Variance = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(_variance)]
_INTERVAL = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
NumberRange = Annotated[
    Range,
    BeforeValidator(_range),
    WithJsonSchema({"anyOf": [_INTERVAL, {"type": "array", "items": _INTERVAL, "minItems": 1, "maxItems": 2}]}),
]
Shape = choice(("linear", "squared"))

TASK: dict[str, Any] = {
    "operation": choice(OPERATIONS),
    "input_size": Count,
    "subset_ratio": Share,
    "overlap_ratio": ShareOrNone,
    "subsets": Subsets,
    "interpolation_range": NumberRange,
    "extrapolation_range": NumberRange,
}
PROTOCOL: dict[str, Any] = {
    "iterations": Iteration,
    "evaluate_every": Count,
    "best_step_window": Count,
    "evaluation_rows": Count,
    "stop": choice(("never", "when_decided")),
}
SUCCESS: dict[str, Any] = {"success_epsilon": Epsilon, "success_threshold": Positive}
TRAINING: dict[str, Any] = {
    "hidden_size": Count,
    "init_variance": Variance,
    "bounds": choice(("clipped", "regularized")),
    "out_of_bounds_strength": NotNegative,
    "out_of_bounds_shape": Shape,
    "sparsity_strength": NotNegative,
    "sparsity_start": Iteration,
    "sparsity_end": Iteration,
    "sparsity_shape": Shape,
    "sparsity_scaling": choice(("linear", "exponential")),
    "optimizer": choice(("adam", "sgd", "momentum")),
    "learning_rate": Positive,
    "momentum": Momentum,
    "batch_size": Count,
}
WHOLE = ("hidden_size", "sparsity_start", "sparsity_end", "batch_size")
"""Names of the whole numbers."""
NUMBERS = (
    *WHOLE, "init_variance", "out_of_bounds_strength", "sparsity_strength", "learning_rate", "momentum",
)  # fmt: skip
"""Names in `TRAINING` that a search can choose from a range; it chooses the others from a list of choices."""

HYPERPARAMETERS: dict[str, Any] = TASK | TRAINING | PROTOCOL | SUCCESS
"""The type of every hyperparameter, by name."""
