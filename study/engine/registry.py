"""The engines by name, the preferred first."""

from __future__ import annotations

from study.engine.base import Engine
from study.engine.fused_engine import FusedEngine
from study.engine.torch_engine import TorchEngine
from study.errors import InputError
from study.records import Cell

ENGINES: dict[str, Engine] = {"fused": FusedEngine(), "torch": TorchEngine()}


def engine_for(name: str, cell: Cell, device: str) -> Engine:
    """Choose the engine that trains a cell.

    Args:
        name: in `ENGINES`, or ``auto`` for the first that has the device and doesn't refuse the cell.
        cell: what is to be trained.
        device: ``cpu`` or ``cuda``.

    Raises:
        InputError: if the engine named refuses the cell, or none takes it.
    """
    if name != "auto" and name not in ENGINES:
        raise InputError(f"--engine must be auto or one of {', '.join(ENGINES)}, but got {name!r}")
    reasons = []
    for engine in ENGINES.values() if name == "auto" else [ENGINES[name]]:
        reason = engine.refuses(cell) if device in engine.devices else f"it doesn't run on {device}"
        if reason is None:
            return engine
        reasons.append(f"{engine.name}: {reason}")
    raise InputError(f"no engine trains {cell.model} (cell {cell.id}) on {device}: " + "; ".join(reasons))
