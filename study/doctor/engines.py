"""Compilation of the engines of installed packages, before a study needs it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from study.doctor.nodes import Check
from study.engine import Engine, engine_named
from study.errors import InputError
from study.interface.family import Family
from study.plugins.families import families
from study.records import Cell
from study.spec import canonical_cell
from study.worker.prepare import prepare


def compile_engines() -> Check:
    """Compile each engine that isn't on disk for this processor, about half a minute each.

    An engine is left out if it can't tell, or trains no cell of its family's first task with default values.

    Returns:
        A check whose finding lists the engines that were compiled now. If one can't be compiled, the check failed, its
        finding names only that one, and later ones aren't tried.

    Raises:
        InputError: if a family of tasks or an engine can't be imported or isn't valid, no package offers the engine, or
            two packages offer one of the same name.
        ValueError: if a model has a value without a default.
    """
    compiled = []
    for engine, cell in _engines():
        if engine.is_compiled(cell) is False:
            began_s = time.monotonic()
            try:
                prepare(engine, cell)
            except Exception as error:  # from an unknown package
                finding = f"{engine.name} can't be compiled: {error!r}"
                return Check("engines", "failed", finding, "report it to the package that offers the engine")
            compiled.append(f"{engine.name} was compiled in {time.monotonic() - began_s:.0f} s")
    return Check("engines", "ok", "; ".join(compiled) or "nothing is left to compile")


def _engines() -> Iterator[tuple[Engine, Cell]]:
    """Yield each engine that an installed family names, with a cell that it trains; those that train none are left out.

    Raises InputError if a family or an engine can't be imported, or two packages offer one of the same name.
    """
    names = set()
    for family in families():
        for engine in map(engine_named, family.engines):
            cell = next((cell for cell in _cells(family) if engine.refuses(cell) is None), None)
            if engine.name not in names and cell is not None:
                names.add(engine.name)
                yield engine, cell


def _cells(family: Family) -> Iterator[Cell]:
    """Yield a cell with default values for each model, on the family's first task; none if a value has no default."""
    for model in family.models:
        with suppress(InputError, ValueError):  # it has required values without defaults
            yield canonical_cell(family.tasks[0], model, {})
