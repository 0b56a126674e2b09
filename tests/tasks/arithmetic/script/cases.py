"""Trials whose scripts are compared with an engine: each model, and each hyperparameter that changes a script."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.arithmetic import MODELS
from tasks.arithmetic.models import SINGLE_LAYERS
from tests.study.builders import GIVEN, INPUTS

Values = dict[str, Any]

LATER = ("NPU", "RealNPU", "RealNPU-modified", "NRU", "NMRU", "iNALU", "iNALU-Primer", "G-NALU")

NEAR_ZERO = {
    "NAC-mul", "NAC-mul-sigma", "NAC-mul-NMU", "NALU", "NALU-separate", "NPU", "RealNPU", "RealNPU-modified", "NMRU"
}  # fmt: skip
"""Models that amplify rounding: the second layer takes logarithms or reciprocals of numbers that may be near 0."""

METHODS: dict[str, Values] = {
    "plain": {},
    "own initial weights": {"init": "independent", "optimizer": "sgd", "learning_rate": 1e-6},
    "variance": {"init_variance": 0.02, "optimizer": "momentum", "learning_rate": 1e-6},
    "two intervals": {"interpolation_range": ((-2.0, -1.1), (0.2, 1.1)), "optimizer": "sgd", "learning_rate": 1e-6},
}
STARTS: dict[str, Values] = {"start": {"init_range": ((0.55, 0.9),), "learning_rate": 1e-4}}
SIGNS: dict[str, Values] = {"signs": {"init_signs": "two_negative", "hidden_size": 5, "learning_rate": 1e-4}}
BOUNDED: dict[str, Values] = {
    "squared": {"sparsity_shape": "squared", "sparsity_start": 3, "sparsity_end": 20},
    "at its bounds": {"learning_rate": 0.1, "sparsity_start": 0, "sparsity_end": 1},
    "exponential": {"sparsity_scaling": "exponential", "sparsity_strength": 1e3},
    "regularized": {"bounds": "regularized", "sparsity_start": 0, "sparsity_end": 20},
    "all squared": {
        "bounds": "regularized", "sparsity_start": 0, "sparsity_end": 20, "out_of_bounds_strength": 3.0,
        "sparsity_shape": "squared", "out_of_bounds_shape": "squared", "learning_rate": 0.1,
    },
}  # fmt: skip
METHOD_CASES = [
    pytest.param(model, values, id=f"{model}, {name}")
    for model in MODELS
    for name, values in {
        **METHODS,
        **(BOUNDED if MODELS[model].has_bounds else {}),
        **(STARTS if MODELS[model].has_nmu else {}),
        **(SIGNS if MODELS[model].multiplies_sums else {}),
    }.items()
    if "init_variance" not in values
    or MODELS[model].largest_init_variance > 0  # otherwise the variance can't be chosen
]

TASKS: dict[str, Values] = {
    "add": {"operation": "add", "subsets": 3},
    "sub": {"operation": "sub"},
    "mul": {"operation": "mul", "overlap_ratio": 1.0},
    "div": {"operation": "div"},
    "squared": {"operation": "squared", "subsets": 1},
    "root": {"operation": "root"},
}
TASK_CASES = [pytest.param("NAU", {"input_size": 11, **values}, id=name) for name, values in TASKS.items()]

ALONE: Values = {"task": "single-module"}
_SIGNS: Values = {"input_size": 3, "interpolation_range": ((-2.0, -1.0), (1.0, 2.0))}
_RAMP: Values = {"sparsity_start": 3, "sparsity_end": 20}
ALONE_CASES = [
    *(
        pytest.param(model, {**ALONE, **_SIGNS, "operation": "div"}, id=f"{model} alone, with signs")
        for model in SINGLE_LAYERS
    ),
    *(
        pytest.param(model, {**ALONE, "operation": operation}, id=f"{model} alone, {operation}")
        for model in LATER
        for operation in ("mul", "div")
    ),
    *(
        pytest.param(model, {**ALONE, **_SIGNS, **_RAMP, **values}, id=f"{model} alone, {bounds}")
        for model in ("NMU", "RealNPU-modified", "NRU", "NMRU")
        for bounds, values in {"clipped": {}, "regularized": {"bounds": "regularized"}}.items()
    ),
    pytest.param("NALU", {**ALONE, "operation": "div", "input_size": 7}, id="NALU alone, seven inputs"),
    pytest.param(
        "linear",
        {**ALONE, "operation": "sub", "extrapolation_range": ((-6.0, -2.0), (2.0, 6.0))},
        id="linear alone, tested on two intervals",
    ),
]

_L1: Values = {"l1_first_strength": 0.01, "l1_strength": 0.5}
_OUTWARD: Values = {"outward_strength": 0.05, "outward_start": 5, "learning_rate": 0.05}
_HIGH: Values = {"operation": "sub", "interpolation_range": ((10.0, 20.0),), "restart_memory": 15, "iterations": 80}
PARTS: dict[str, tuple[str, Values]] = {
    "L1 of one strength": ("NMU", {"l1_strength": 0.1, **_RAMP}),
    "L1 in steps": ("G-NALU", _L1),
    "L1 of a gate": ("NPU", {**ALONE, **_SIGNS, **_L1}),
    "limited norm": ("NMU", {"clip_norm": 0.1, **_RAMP}),
    "limited size": ("NRU", {"clip_value": 0.01, "optimizer": "momentum", "momentum": 0.5}),
    "both limits": ("gated-NAU-NMU", {"clip_norm": 1.0, "clip_value": 0.05, "bounds": "regularized", **_L1, **_RAMP}),
    "limits of signs": ("RealNPU-modified", {**ALONE, "clip_norm": 0.1, "clip_value": 0.05, **_L1, **_RAMP}),
    "outward": ("iNALU", {**ALONE, **_OUTWARD, "clip_value": None}),
    "outward, seldom evaluated": ("iNALU-Primer", {**ALONE, **_OUTWARD, "operation": "add", "evaluate_every": 4}),
    "outward, two layers": ("iNALU-Primer", {**_OUTWARD, "operation": "add", "clip_norm": 10.0}),
    "new starts": ("iNALU", {**ALONE, **_HIGH, "learning_rate": 1e-30}),
    "new starts, seldom evaluated": ("iNALU-Primer", {**ALONE, **_HIGH, "learning_rate": 1e-30, "evaluate_every": 7}),
    "new starts, two layers": ("iNALU-Primer", {**_HIGH, "learning_rate": 1e-30, "evaluate_every": 3}),
    "no new start": ("iNALU", {**ALONE, "operation": "div", "restart_memory": 15, "learning_rate": 1e-30}),
    "new starts of what learns": ("iNALU", {**_HIGH, "learning_rate": 0.3, "evaluate_every": 7}),
}
_GIVEN: Values = {**ALONE, **GIVEN}
PARTS |= {
    "halves": ("NMRU", {**_GIVEN, **INPUTS["halves"], "operation": "div", "input_size": 5}),
    "a normal distribution": ("NRU", {**_GIVEN, **INPUTS["normal"]}),
    "Benford's law": ("NMU", {**_GIVEN, **_RAMP, **INPUTS["benford"]}),
    "a reciprocal": ("NRU", {**_GIVEN, "operation": "reciprocal", "input_size": 1, "subsets": 1}),
    "a reciprocal of two inputs": ("NMRU", {**_GIVEN, "operation": "reciprocal", "input_size": 2}),
}
PART_CASES = [pytest.param(model, values, id=name) for name, (model, values) in PARTS.items()]

CASES = [*METHOD_CASES, *TASK_CASES, *ALONE_CASES, *PART_CASES]
