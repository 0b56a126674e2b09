"""Engines that train packs: the interface (`base`) and the lookup by name (`registry`)."""

from study.engine.base import Engine, Training
from study.engine.registry import engine_for, engine_named, pack_key, passed_over, trials_at_once

__all__ = ["Engine", "Training", "engine_for", "engine_named", "pack_key", "passed_over", "trials_at_once"]
