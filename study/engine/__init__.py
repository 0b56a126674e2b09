"""Engines: what trains a pack. `base` says what one must provide, `registry` names them."""

from study.engine.base import Engine, Training
from study.engine.registry import ENGINES, engine_for, passed_over, trials_at_once
from study.engine.torch_engine import check_device

__all__ = ["ENGINES", "Engine", "Training", "check_device", "engine_for", "passed_over", "trials_at_once"]
