"""Lookup of the engine that trains a cell: by name, or the first that the cell's family prefers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from study.engine.base import Engine
from study.errors import InputError, nearest
from study.plugins import offers
from study.plugins.families import family_of
from study.records import Cell


def engine_for(name: str, cell: Cell, device: str, own: Engine | None = None) -> Engine:
    """Choose the engine that trains a cell.

    Args:
        name: name of `own`, of one of its backends or of an engine that an installed package offers; or ``auto`` for
            `own`, else for the first engine of the cell's family that has the device and doesn't refuse the cell.
        cell: the cell to train.
        device: ``cpu`` or ``cuda``.
        own: the study's own engine; None without one. Cells that it refuses are trained by engines of their family, if
            there are any.

    Raises:
        InputError: if there is no such engine; if an engine or the cell's family can't be imported, isn't one, or is
            offered by several packages; if the named engine refuses the cell or lacks the device, or no engine takes
            it.
    """
    engines = _engines(name, cell, own)
    passed: dict[str, str] = {}
    for engine in engines:
        reason = _objection(engine, cell, device)
        if reason is None:
            return engine
        passed[engine.name] = reason
    reasons = "; ".join(f"{engine}: {reason}" for engine, reason in passed.items())
    raise InputError(f"no engine trains {cell.model} (cell {cell.id}) on {device}: {reasons}")


def engine_named(name: str) -> Engine:
    """Return the engine that an installed package offers under a name; it is imported once.

    Raises:
        InputError: if there is none, several packages offer it, it can't be imported, or it isn't an engine of that
            name.
    """
    return _engine(name, offers.load("engines", name))


def pack_key(name: str, cell: Cell, devices: Iterable[str], own: Engine | None = None) -> tuple[object, ...]:
    """Return the key that all trials of a pack share, on any of the given devices.

    Args:
        name: as for `engine_for`.
        cell: as for `engine_for`.
        devices: any of ``cpu`` and ``cuda``.
        own: as for `engine_for`.

    Raises:
        InputError: as `engine_for` does.
    """
    engines = [engine_for(name, cell, device, own) for device in devices]
    return tuple((engine.name, engine.pack_key(cell)) for engine in engines)


def passed_over(engine: Engine, cell: Cell, device: str) -> dict[str, str]:
    """Return the engines that the cell's family prefers to this one and that can't train the cell, with their reasons.

    Args:
        engine: the chosen engine.
        cell: the cell that it trains.
        device: ``cpu`` or ``cuda``; engines without it aren't listed.

    Returns:
        The reasons by engine; empty if there is no such engine, or if this one isn't an engine of the family.

    Raises:
        ValueError: if no family has the cell's task.
        InputError: as `study.plugins.families.family_of` and `engine_named` do.

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> passed_over(engine_named("torch"), canonical_cell("simple", "NMU-normalized", {}), "cpu")
        {'fused': 'it has no gradient for the unit NMU-normalized'}
    """
    preferred = family_of(cell).engines
    before = preferred[: preferred.index(engine.name)] if engine.name in preferred else ()
    reasons = {other.name: other.refuses(cell) for other in map(engine_named, before) if device in other.devices}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def trials_at_once(name: str, cells: Sequence[Cell], own: Engine | None = None) -> list[int | None]:
    """Return, for each cell, the number of trials that this machine's GPU trains side by side.

    None stands for no limit, or for an unknown one, such as without a GPU.

    Args:
        name: as for `engine_for`.
        cells: the cells.
        own: as for `engine_for`.

    Raises:
        InputError: as `engine_for` does, also if no engine trains a cell on ``cuda``; or if trials can't be trained
            there.
        ValueError: if a value of a cell is invalid, or its success threshold can't be computed.
        OSError: if the copy of the user's code or data can't be written.
    """
    return [engine_for(name, cell, "cuda", own).trials_at_once(cell) for cell in cells]


def _engines(name: str, cell: Cell, own: Engine | None) -> Sequence[Engine]:
    """Return the engines that may train a cell, in order of preference; an unknown name or task raises InputError."""
    preferred = _family_engines(cell)
    if own is not None and name in ("auto", own.name, *own.backends) and (own.refuses(cell) is None or not preferred):
        return [own]
    if name == "auto":
        return [engine_named(preferred_name) for preferred_name in preferred]
    if name in preferred or offers.is_offered("engines", name):
        return [engine_named(name)]
    known = preferred or ([] if own is None else [own.name])
    raise InputError(
        f"--engine must be {', '.join(['auto', *known])}, or an engine that an installed package offers, but got "
        f"{name!r}{nearest(name, known)}"
    )


def _family_engines(cell: Cell) -> Sequence[str]:
    try:
        return family_of(cell).engines
    except ValueError as error:
        raise InputError(f"no engine trains {cell.model} (cell {cell.id}): {error}") from None


@cache
def _engine(name: str, class_: Any) -> Engine:
    entry = offers.find_plugin("engines", name)
    if not (isinstance(class_, type) and issubclass(class_, Engine)):
        raise InputError(f"{entry} must be a class derived from study.Engine, but is {class_!r}")
    engine: Engine = class_()
    if engine.name != name:
        raise InputError(f"{entry} calls itself {engine.name!r}, but is offered under the name {name!r}")
    return engine


def _objection(engine: Engine, cell: Cell, device: str) -> str | None:
    return engine.refuses(cell) if device in engine.devices else f"it doesn't run on {device}"
