"""The engines by name, the preferred first."""

from __future__ import annotations

from study.engine.base import Engine
from study.engine.torch_engine import TorchEngine
from study.errors import InputError
from study.records import Cell

ENGINES: dict[str, Engine] = {"torch": TorchEngine()}


def engine_for(name: str, cell: Cell) -> Engine:
    """Choose the engine that trains a cell.

    Args:
        name: in `ENGINES`, or ``auto`` for the first that doesn't refuse the cell.
        cell: what is to be trained.

    Raises:
        InputError: if the engine named refuses the cell, or none takes it.
    """
    candidates = list(ENGINES.values()) if name == "auto" else [ENGINES[name]]
    reasons = []
    for engine in candidates:
        reason = engine.refuses(cell)
        if reason is None:
            return engine
        reasons.append(f"{engine.name}: {reason}")
    raise InputError(f"no engine trains cell {cell.id} ({cell.model}): " + "; ".join(reasons))
