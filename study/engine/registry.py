"""The engines by name, the preferred first; those of installed plug-ins only if they are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from study.engine.base import Engine
from study.engine.cpu.engine import FusedEngine
from study.engine.gpu.engine import GpuEngine
from study.engine.torch.engine import TorchEngine
from study.errors import InputError, nearest
from study.records import Cell
from study.source import CodeFolder, find_plugin, is_offered

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (FusedEngine(), GpuEngine(), TorchEngine())}


def engine_for(name: str, cell: Cell, device: str, own: Engine | None = None) -> Engine:
    """Choose the engine that trains a cell.

    Args:
        name: in `ENGINES`, that of a plug-in, or ``auto`` for the first of `ENGINES` that has the device and doesn't
            refuse the cell.
        cell: what is to be trained.
        device: ``cpu`` or ``cuda``.
        own: the engine of a study that brings its own, which is the only one that can train it.

    Raises:
        InputError: if the engine named refuses the cell, or none takes it.
    """
    engines = ENGINES if own is None else {own.name: own}
    if name != "auto" and name not in engines:
        if not is_offered("engines", name):
            raise InputError(
                f"--engine must be auto, one of {', '.join(engines)}, or an engine that an installed package offers, "
                f"but got {name!r}{nearest(name, engines)}"
            )
        engines = {name: _installed(name)}
    passed: dict[str, str] = {}
    for engine in engines.values() if name == "auto" else [engines[name]]:
        reason = _against(engine, cell, device)
        if reason is None:
            return engine
        passed[engine.name] = reason
    reasons = "; ".join(f"{engine}: {reason}" for engine, reason in passed.items())
    raise InputError(f"no engine trains {cell.model} (cell {cell.id}) on {device}: {reasons}")


def pack_key(name: str, cell: Cell, devices: Iterable[str], own: Engine | None = None) -> tuple[object, ...]:
    """Return what must be equal among the trials of a pack that any of some devices may train.

    Args:
        name: as for `engine_for`, as are cell and own.
        cell: see there.
        devices: of ``cpu`` and ``cuda``.
        own: see there.
    """
    engines = [engine_for(name, cell, device, own) for device in devices]
    return tuple((engine.name, engine.pack_key(cell)) for engine in engines)


def passed_over(engine: Engine, cell: Cell, device: str) -> dict[str, str]:
    """List the engines for the device that come before this one and can't train the cell, each with the reason.

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> passed_over(ENGINES["torch"], canonical_cell("simple", "NMU-normalized", {}), "cpu")
        {'fused': 'it has no gradient for the unit NMU-normalized'}
    """
    before = list(ENGINES.values())[: list(ENGINES).index(engine.name)]
    reasons = {other.name: other.refuses(cell) for other in before if device in other.devices}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def trials_at_once(name: str, cells: Sequence[Cell], own: Engine | None = None) -> list[int | None]:
    """Count, for each cell, the trials that the GPU of this machine trains side by side; see `Engine`."""
    return [engine_for(name, cell, "cuda", own).trials_at_once(cell) for cell in cells]


@cache
def _installed(name: str) -> Engine:
    """Import the engine that an installed package offers under a name."""
    import_string = find_plugin("engines", name)
    with CodeFolder(None) as folder:
        class_ = folder.load(import_string, (Engine,))
    if not (isinstance(class_, type) and issubclass(class_, Engine)):
        raise InputError(f"{import_string} must be a class derived from study.engine.base.Engine, but is {class_!r}")
    engine: Engine = class_()
    if engine.name != name:
        raise InputError(f"{import_string} calls itself {engine.name!r}, but is offered under the name {name!r}")
    return engine


def _against(engine: Engine, cell: Cell, device: str) -> str | None:
    return engine.refuses(cell) if device in engine.devices else f"it doesn't run on {device}"
