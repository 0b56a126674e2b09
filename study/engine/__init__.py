"""Engines: what trains a pack. `base` says what one must provide, `registry` names them."""

from study.engine.base import Engine, Training
from study.engine.registry import ENGINES, engine_for

__all__ = ["ENGINES", "Engine", "Training", "engine_for"]
