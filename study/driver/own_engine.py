"""The engine that a study of one's own code brings."""

from __future__ import annotations

from study.engine.function import FunctionEngine, Limits
from study.errors import InputError
from study.spec import Spec
from study.spec.function_tables import FunctionSpec


def own_engine(spec: Spec) -> FunctionEngine | None:
    """Return the engine of a study of a training function; None for a study of built-in tasks.

    Raises:
        InputError: if the study was read without its code, as from a store.
    """
    if not isinstance(spec, FunctionSpec):
        return None
    code, resources = spec.source_code, spec.resources
    if code is None:
        raise InputError(f"study {spec.study!r} was read without the code of {spec.train}, and can't be trained")
    return FunctionEngine(
        function=spec.train,
        archive=code.archive if code.files else b"",
        digest=code.digest,
        distributions=code.distributions,
        metrics=spec.declared_metrics,
        criterion=spec.criterion,
        is_isolated=spec.isolation is not None,
        limits=Limits(
            cpus=resources.cpus, gpus=resources.gpus, memory_gb=resources.memory_gb, time_limit_s=resources.time_limit_s
        ),
    )
