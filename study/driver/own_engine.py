"""The engine that a study of one's own code brings, and the proof of how it trains."""

from __future__ import annotations

import json
from pathlib import Path

from study.engine.function import FunctionEngine, Limits
from study.engine.own_code import OwnCode
from study.engine.packed.engine import PackedEngine, as_layout, proof_of
from study.errors import InputError
from study.interface.packed_family import recipe_text
from study.plan.plan import Plan
from study.results.stored_code import proof_key
from study.results.stored_plan import LAYOUTS
from study.spec import Spec
from study.spec.function_tables import FunctionSpec
from study.spec.packed_tables import PackedSpec
from study.store import Store

OwnEngine = FunctionEngine | PackedEngine


def own_engine(spec: Spec) -> OwnEngine | None:
    """Return the engine of a study of one's own code; None for a study of built-in tasks.

    Raises:
        InputError: if the study was read without its code, as from a store.
    """
    if isinstance(spec, FunctionSpec):
        return _function_engine(spec)
    if isinstance(spec, PackedSpec):
        return _packed_engine(spec)
    return None


def _function_engine(spec: FunctionSpec) -> FunctionEngine:
    resources = spec.resources
    return FunctionEngine(
        function=spec.train,
        code=_code(spec, spec.train),
        metrics=spec.declared_metrics,
        criterion=spec.criterion,
        is_isolated=spec.isolation is not None,
        limits=Limits(
            cpus=resources.cpus, gpus=resources.gpus, memory_gb=resources.memory_gb, time_limit_s=resources.time_limit_s
        ),
    )


def _packed_engine(spec: PackedSpec) -> PackedEngine:
    declared = spec.declared
    return PackedEngine(
        task=declared.task,
        fields=tuple(declared.task_fields),
        models={model: tuple(arguments) for model, arguments in declared.arguments.items()},
        code=_code(spec, declared.task),
        metrics=declared.metrics,
        criterion=spec.criterion,
        data=spec.source_data,
        layouts=dict(spec.layouts),
    )


def _code(spec: Spec, name: str) -> OwnCode:
    code = spec.source_code
    if code is None:
        raise InputError(f"study {spec.study!r} was read without the code of {name}, and can't be trained")
    return OwnCode(archive=code.archive if code.files else b"", digest=code.digest, distributions=code.distributions)


def prove_packs(plan: Plan, root: str | Path) -> None:
    """Find out how the trials of each recipe of a study train, unless its folder of the store says so already.

    Args:
        plan: what the study asks for; if it is of a task of one's own, its file gets the layouts.
        root: the store's address.

    Raises:
        InputError: if a recipe can't be trained.
    """
    spec = plan.spec
    if not isinstance(spec, PackedSpec):
        return
    store = Store(root, read_only=True)
    folder = store.study(spec.study)
    content = folder.read_file(LAYOUTS) if folder.exists else None
    known: dict[str, str] = {} if content is None else json.loads(content)
    engine = _packed_engine(spec)
    for cell in plan.cells:
        recipe = recipe_text(cell)
        if recipe not in spec.layouts:
            spec.layouts[recipe] = known.get(proof_key(recipe, spec, folder)) or as_layout(engine.prove(cell))


def trained_one_by_one(plan: Plan) -> list[str]:
    """Return sentences that say which models' trials don't train side by side, and why."""
    if not isinstance(plan.spec, PackedSpec):
        return []
    reasons: dict[str, None] = {}
    for cell in plan.cells:
        layout = plan.spec.layouts.get(recipe_text(cell))
        if layout is not None and (reason := proof_of(layout).reason):
            reasons[f"trials of {cell.model} train one after another: {reason}"] = None
    return list(reasons)
