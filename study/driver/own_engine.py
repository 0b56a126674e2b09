"""The engine of a study's own code, with the proof of its trials' layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.engine.base import Engine
from study.engine.calls import CallEngine, Limits
from study.engine.function import FunctionEngine
from study.engine.own_code import OwnCode
from study.engine.program import ProgramEngine
from study.errors import InputError
from study.interface.packed_family import recipe_text
from study.plan.plan import Plan
from study.records import Cell
from study.results.layouts import stored_layouts
from study.spec import Spec
from study.spec.calls import CallSpec
from study.spec.function_tables import FunctionSpec
from study.spec.packed_tables import PackedSpec
from study.spec.program_tables import ProgramSpec
from study.store import Store

if TYPE_CHECKING:
    from study.engine.packed.engine import PackedEngine


def own_engine(spec: Spec) -> Engine | None:
    """Make the engine of a study's own code; None if engines of installed packages train the study.

    The engine of packed tasks has no proofs yet; see `proven`.

    Raises:
        InputError: if the study was read without its code, as from a store.
    """
    if isinstance(spec, FunctionSpec):
        return FunctionEngine(function=spec.train, is_isolated=spec.isolation is not None, **_call_arguments(spec))
    if isinstance(spec, ProgramSpec):
        files = () if spec.source_code is None else tuple(spec.source_code.files)
        return ProgramEngine(program_name=spec.called, program=spec.program, files=files, **_call_arguments(spec))
    if isinstance(spec, PackedSpec):
        return _packed_engine(spec)
    if spec.family.own_code is not None:
        engine: Engine = spec.family.own_engine(_code(spec, "its models"))
        return engine
    return None


def _call_arguments(spec: CallSpec) -> dict[str, Any]:
    """Return the constructor arguments that the engines of functions and programs share."""
    resources = spec.resources
    return {
        "code": _code(spec, spec.called),
        "metrics": spec.declared_metrics,
        "criterion": spec.criterion,
        "pruning": spec.pruning,
        "limits": Limits(
            cpus=resources.cpus, gpus=resources.gpus, memory_gb=resources.memory_gb, time_limit_s=resources.time_limit_s
        ),
    }


def _packed_engine(spec: PackedSpec) -> PackedEngine:
    """Make the engine of packed tasks, without proofs."""
    from study.engine.packed.engine import PackedEngine

    declared = spec.declared
    return PackedEngine(
        task=declared.task,
        fields=tuple(declared.task_fields),
        models={model: tuple(arguments) for model, arguments in declared.arguments.items()},
        code=_code(spec, declared.task),
        metrics=declared.metrics,
        criterion=spec.criterion,
        data=spec.source_data,
    )


def _code(spec: Spec, name: str) -> OwnCode:
    code = spec.source_code
    if code is None:
        raise InputError(f"study {spec.study!r} was read without the code of {name}, so it can't be trained")
    return OwnCode(archive=code.archive if code.files else b"", digest=code.digest, distributions=code.distributions)


def as_packed(own: Engine | None) -> PackedEngine | None:
    """Return the engine if it trains packed tasks, else None; import torch only where needed."""
    if own is None or isinstance(own, CallEngine):
        return None
    from study.engine.packed.engine import PackedEngine

    return own if isinstance(own, PackedEngine) else None


def proven(own: Engine | None, plan: Plan, root: str | Path) -> Engine | None:
    """Return the engine with a proven layout for each recipe; engines of other kinds, and None, are unchanged.

    A recipe without a stored proof is proven now, by training a few trials; the new proof isn't stored.

    Args:
        own: the study's own engine; None without one.
        plan: the study's plan.
        root: the store's address; proofs in the study's folder aren't repeated.

    Raises:
        InputError: if a recipe can't be trained.
        StoreError: if the stored proofs can't be read.
        OSError: if the copy of the code or the data can't be written.
    """
    packed = as_packed(own)
    if packed is None:
        return own
    assert isinstance(plan.spec, PackedSpec)
    folder = Store(root, read_only=True).study(plan.spec.study)
    return packed.proven(plan.cells, stored_layouts(map(recipe_text, plan.cells), plan.spec, folder))


def layouts_of(own: Engine | None) -> Mapping[str, str]:
    """Return the proven layout of each recipe; empty for engines of other kinds and for None."""
    packed = as_packed(own)
    return {} if packed is None else packed.layouts


def training_notices(cells: Sequence[Cell], own: Engine | None) -> list[str]:
    """Return sentences on models that train without packs or without XLA, with the reasons.

    Args:
        cells: the cells.
        own: the study's own engine; None without one.

    Returns:
        Each sentence once; empty unless the engine trains packed tasks with proofs.
    """
    if not layouts_of(own):
        return []
    from study.engine.packed.engine import proof_of

    reasons: dict[str, None] = {}
    for cell in cells:
        layout = layouts_of(own).get(recipe_text(cell))
        if layout is None:
            continue
        proof = proof_of(layout)
        if proof.reason:
            reasons[f"trials of {cell.model} train one after another: {proof.reason}"] = None
        if proof.uncompiled:
            reasons[f"updates of {cell.model} aren't compiled by XLA: {proof.uncompiled}"] = None
    return list(reasons)
