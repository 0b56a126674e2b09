"""Where a study runs, and what there is to run it on: engines, devices, and how many packs train side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import torch

from study import cluster
from study.console import Console
from study.driver.options import Options
from study.driver.progress import said, waiting
from study.engine import Engine, check_device, engine_for, passed_over, trials_at_once
from study.errors import ClusterError, InputError
from study.plan.packs import AtOnce, shape_key
from study.plan.plan import Plan
from study.records import Cell
from study.worker.prepare import first_step, prepared, preparing

# There when the driver is loaded.
_GPU_DRIVER = Path("/dev/nvidiactl")


def device_of(options: Options) -> str:
    """Resolve ``auto``: the GPU if torch sees one here, else the CPU."""
    if options.device != "auto":
        return options.device
    return "cuda" if torch.cuda.is_available() else "cpu"


Engines = Sequence[tuple[Engine, Cell]]
"""Engines, each with one of the cells that it trains."""


def engines_of(plan: Plan, options: Options) -> Engines:
    """Find the engines that take the cells, each with one of its cells, before anything is started or written.

    Raises:
        InputError: if there is none for a cell, or the device isn't there.
    """
    device = device_of(options)
    if options.address is None:
        check_device(device)
    found: dict[str, tuple[Engine, Cell]] = {}
    for cell in plan.cells:
        engine = engine_for(options.engine, cell, device)
        found.setdefault(engine.name, (engine, cell))
    return list(found.values())


def to_tell(plan: Plan, options: Options) -> list[str]:
    """Say what could be faster than it will be, and why."""
    reasons = passed_over_by(plan, options)
    if options.device == "auto" and device_of(options) == "cpu" and _GPU_DRIVER.exists():
        reasons.append(
            "there is an NVIDIA GPU here that torch can't use, so the CPU trains: "
            "docs/operations.md says what to install"
        )
    return reasons


def passed_over_by(plan: Plan, options: Options) -> list[str]:
    """Say which models a slower engine trains than there is for the device, and why."""
    device = device_of(options)
    reasons: dict[str, None] = {}
    if options.engine == "auto":
        for cell in plan.cells:
            engine = engine_for("auto", cell, device)
            for other, reason in passed_over(engine, cell, device).items():
                reasons[f"{cell.model} is trained by the {engine.name} engine, not by {other}: {reason}"] = (
                    None
                )
    return list(reasons)


Slots = Mapping[str, int]
"""How many packs, or loads of them, run side by side on each kind of device."""


@contextmanager
def slots_for(plan: Plan, options: Options, engines: Engines, console: Console) -> Iterator[Slots]:
    """Start or join the cluster, and give what it has room for; meanwhile the engines are prepared."""
    device = device_of(options)
    if options.local:
        for engine, cell in engines:
            _prepare_here(engine, cell, console)
        yield {device: 1}
        return
    if options.address is not None:  # its workers prepare their engines themselves
        with ExitStack() as stack:
            with waiting(console, "joining the cluster"):
                stack.enter_context(cluster.connection(options.address, None))
                stack.enter_context(cluster.watching_head(partial(console.print, style="yellow")))
                cluster.check_versions()
            yield slots_of_cluster(plan, options, cluster.capacity())
        return
    with ExitStack() as stack:
        first_steps = {one: step for one in engines if (step := first_step(*one)) is not None}
        if first_steps:
            for step in first_steps.values():
                console.print(said(step))
            stack.enter_context(preparing(list(first_steps)))
        with waiting(console, "starting Ray"):
            stack.enter_context(cluster.connection(None, options.cpus))
        has = cluster.capacity()
        count = min(has.cpus, _lanes_on(has.gpus, options)) if device == cluster.GPU else has.cpus
        if count < 1:
            raise ClusterError(_too_small(has, device))
        yield {device: count}


def _prepare_here(engine: Engine, cell: Cell, console: Console) -> None:
    """Prepare an engine in this process, and say so if it takes long."""
    with ExitStack() as shown:
        for step in prepared(engine, cell):
            shown.close()
            console.print(said(step))
            if step.doing != "ready":
                shown.enter_context(waiting(console, f"{step.doing} the {engine.name} engine"))


def slots_of_cluster(plan: Plan, options: Options, has: cluster.Capacity) -> Slots:
    """Give the lanes of each kind: GPUs where there are, and the cores of machines that have none.

    Raises:
        ClusterError: if there is no room for one, and none was asked for.
        InputError: if no engine trains a cell on what there is.
    """
    on_gpu = 0 if options.device == cluster.CPU else min(has.cpus, _lanes_on(has.gpus, options))
    if options.device == "auto" and on_gpu and not _trainable_on(cluster.GPU, plan, options):
        on_gpu = 0
    if options.device == cluster.GPU:
        on_gpu, on_cpu = options.workers or on_gpu, 0
    else:
        on_gpu = min(on_gpu, options.workers or on_gpu)
        on_cpu = has.cpus_without_gpu if on_gpu else has.cpus
        on_cpu = on_cpu if options.workers is None else max(0, options.workers - on_gpu)
    found = {kind: count for kind, count in ((cluster.GPU, on_gpu), (cluster.CPU, on_cpu)) if count}
    if not found:
        raise ClusterError(
            f"{_too_small(has, options.device)}; if it grows on demand, say how far: --workers 16"
        )
    for kind in found:
        for cell in plan.cells:
            engine_for(options.engine, cell, kind)
    return found


def _trainable_on(kind: str, plan: Plan, options: Options) -> bool:
    try:
        for cell in plan.cells:
            engine_for(options.engine, cell, kind)
    except InputError:
        return False
    return True


def _too_small(has: cluster.Capacity, device: str) -> str:
    wanted = "1 CPU and a GPU" if device == cluster.GPU else "1 CPU"
    return f"a pack needs {wanted}, but the cluster has {has.cpus} CPU and {has.gpus:g} GPU"


def _lanes_on(gpus: float, options: Options) -> int:
    return int(gpus * options.packs_per_gpu + 1e-9)


def gpu_share(options: Options, kind: str) -> float:
    return 1 / options.packs_per_gpu if kind == cluster.GPU else 0.0


def at_once_on(plan: Plan, options: Options) -> AtOnce:
    """Ask a device how many trials of each shape it trains side by side."""
    cells = {shape_key(cell): cell for cell in plan.cells}
    asked = partial(trials_at_once, options.engine, tuple(cells.values()))
    answers = asked() if options.local else cluster.ask(asked, gpu_share(options, cluster.GPU))
    counts = dict(zip(cells, answers, strict=True))
    least = min((count for count in answers if count is not None), default=None)

    def at_once(cell: Cell) -> int | None:
        count = counts.get(
            shape_key(cell), least
        )  # a search comes to shapes that weren't there to be asked for
        return None if count is None else max(1, count // options.packs_per_gpu)

    return at_once
