"""Engines: what trains a pack. `base` says what one must provide, `registry` names them.

`arithmetic` is what the engines of the built-in tasks share; its `gates` says what trained weights do.
"""

from study.engine.arithmetic.gates import effective_weights, mean_gates, stacked
from study.engine.base import Engine, Training
from study.engine.device import check_device
from study.engine.registry import ENGINES, engine_for, pack_key, passed_over, trials_at_once

__all__ = [
    "ENGINES",
    "Engine",
    "Training",
    "check_device",
    "effective_weights",
    "engine_for",
    "mean_gates",
    "pack_key",
    "passed_over",
    "stacked",
    "trials_at_once",
]
