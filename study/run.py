r"""The path of a study, from its file to its report: the first file to read.

study.yaml -> spec -> plan (cells, trials, packs) -> [Ray Tune: engine trains packs] -> store -> tracking (MLflow)
                                                                                    \-> aggregate -> report
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from study import cluster
from study.engine import Engine, check_device, engine_for, passed_over, trials_at_once
from study.errors import BusyError, ClusterError, InputError
from study.heartbeat import beat
from study.patience import waited
from study.plan import AtOnce, Plan, load_share, shape_key
from study.plan import loads as make_loads
from study.plan import packs as make_packs
from study.prepare import prepare, preparing
from study.progress import waiting
from study.publishing import publishing
from study.records import Cell, Event, PackFailed, Trial
from study.results import Standing, report_folder, show, standing, write_and_keep
from study.store import Held, Store, StudyStore
from study.tracking import Publisher
from study.watch import stopping, watching
from study.work import PackWork

# There when the driver is loaded.
_GPU_DRIVER = Path("/dev/nvidiactl")
# A run that is shorter may be over before the last worker has started.
_TIME_TO_START_S = 60.0


@dataclass(frozen=True)
class Options:
    """Where and how a study runs; nothing here changes a result.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: of MLflow; None not to publish.
        engine: name in `ENGINES`, or ``auto``.
        device: ``cpu``, ``cuda`` or ``auto``.
        local: run packs one after another in this process.
        address: of a running Ray cluster; None to start one here.
        workers: to ask that cluster for; None for as many as it has room for now.
        cpus: cores of this machine to use; None for all.
        packs_per_gpu: packs that share one GPU.
        pack_size: trials in a pack; None to choose.
        checkpoint_every_s: seconds of training between checkpoints.
        silent_after_s: seconds without a word after which a worker is given up.
    """

    root: str | Path
    tracking_uri: str | None
    engine: str = "auto"
    device: str = "auto"
    local: bool = False
    address: str | None = None
    workers: int | None = None
    cpus: int | None = None
    packs_per_gpu: int = 1
    pack_size: int | None = None
    checkpoint_every_s: float = 60.0
    silent_after_s: float = 300.0


class Ending(Enum):
    """How a run of a study ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILURES = "failures"


def run(plan: Plan, options: Options, console: Console) -> Ending:
    """Run what is missing of a study, publish it as it comes, and report.

    Args:
        plan: what the study asks for.
        options: where and how.
        console: where progress and the table are shown.

    Returns:
        Whether every trial has a result, Ctrl-C or SIGTERM ended it early, or some trials failed; run again, it
        goes on with what is missing.
    """
    engines = _engines(plan, options)
    folder = Store(options.root).study(plan.spec.study)
    tell = partial(console.print, style="yellow")
    with folder.lock(tell) as held:
        attempt = folder.begin_attempt()
        folder.write_spec(plan.spec.text)
        pending = find_pending(plan, options.root, console)
        for reason in _to_tell(plan, options) if pending else ():
            console.print(reason, style="yellow")
        with (
            _slots(plan, options, engines, pending, console) as slots,
            report_folder(folder) as into,
            publishing(plan, folder, options.tracking_uri, console) as publisher,
        ):
            if publisher is not None:  # an earlier run may have been killed, or had no MLflow
                publisher.catch_up()
            finished = not pending or _train(
                plan, folder, held, attempt, pending, options, slots, publisher, console
            )
            if (taken := _taken_over(folder, held, attempt, console)) is not None:
                raise BusyError(f"{taken}: this run of it stops")
            found = waited(partial(standing, plan.spec.study, options.root), tell)
            beat(plan.spec.study, found.counts, console)
            _report(found, into, publisher, options.tracking_uri, console)
    if not finished:
        return Ending.INTERRUPTED
    return Ending.FAILURES if found.counts["failed"] else Ending.FINISHED


def _engines(plan: Plan, options: Options) -> list[tuple[Engine, Cell]]:
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


def _to_tell(plan: Plan, options: Options) -> list[str]:
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
def _slots(
    plan: Plan,
    options: Options,
    engines: Sequence[tuple[Engine, Cell]],
    pending: Sequence[Trial],
    console: Console,
) -> Iterator[Slots]:
    """Start or join the cluster, if there is anything to train on it; give what it has room for.

    Meanwhile the engines are prepared. The cluster outlives the publisher: Ray ends the process if another thread
    touches what is left of it.
    """
    device = device_of(options)
    if not pending:
        yield {device: 1}
        return
    names = " and the ".join(engine.name for engine, _ in engines)
    console.print(f"preparing the {names} engine: the first time on a machine, up to half a minute")
    if options.local:
        with waiting(console, f"preparing the {names} engine"):
            for engine, cell in engines:
                prepare(engine, cell)
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
    with preparing(engines), ExitStack() as stack:
        with waiting(console, "starting Ray"):
            stack.enter_context(cluster.connection(None, options.cpus))
        has = cluster.capacity()
        count = min(has.cpus, _lanes_on(has.gpus, options)) if device == cluster.GPU else has.cpus
        if count < 1:
            raise ClusterError(_too_small(has, device))
        yield {device: count}


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


def _gpu_share(options: Options, kind: str) -> float:
    return 1 / options.packs_per_gpu if kind == cluster.GPU else 0.0


def _taken_over(folder: StudyStore, held: Held, attempt: str, console: Console) -> str | None:
    """Say so if another driver has taken the study over."""
    if held.lost is not None:
        return held.lost
    latest = waited(folder.attempt, partial(console.print, style="yellow"))
    return None if latest in (attempt, None) else f"study {folder.name!r} was taken over by another run"


def _report(
    found: Standing, into: Path, publisher: Publisher | None, tracking_uri: str | None, console: Console
) -> None:
    if not found.counts["done"]:
        return  # interrupted before the first pack was through
    if publisher is not None:
        publisher.wait_for_study()
    files = write_and_keep(found, into, tracking_uri=tracking_uri)
    if publisher is not None:
        publisher.counts(found.counts)
        publisher.series(found.series)
        publisher.describe(found.headline, found.counts)
        for file in files:
            publisher.artifact(file)
    show(found, console)


def find_pending(plan: Plan, root: str | Path, console: Console) -> list[Trial]:
    """Find the trials without a result, after taking over those that other studies of the store have.

    Args:
        plan: what the study asks for.
        root: the store's folder, or its URL.
        console: told what was taken over.
    """
    store = Store(root)
    folder = store.study(plan.spec.study)
    done, planned = folder.done(), {trial.id for trial in plan.trials}
    adopted = store.adopt(plan.spec.study, planned - done) if planned - done else 0
    if adopted:
        console.print(f"{adopted} trials are done already in other studies of this store")
        done = folder.done()
    unasked = len(done - planned)
    if unasked:
        console.print(f"{unasked} stored trials are not in this file any more: they are kept, and not shown")
    for notice in store.notices + folder.notices:
        console.print(notice, style="yellow")
    return [trial for trial in plan.trials if trial.id not in done]


def device_of(options: Options) -> str:
    """Resolve ``auto``: the GPU if torch sees one here, else the CPU."""
    if options.device != "auto":
        return options.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def at_once_on(plan: Plan, options: Options) -> AtOnce:
    """Ask a device how many trials of each shape it trains side by side."""
    cells = {shape_key(cell): cell for cell in plan.cells}
    asked = partial(trials_at_once, options.engine, tuple(cells.values()))
    answers = asked() if options.local else cluster.ask(asked, _gpu_share(options, cluster.GPU))
    counts = dict(zip(cells, answers, strict=True))

    def at_once(cell: Cell) -> int | None:
        count = counts[shape_key(cell)]
        return None if count is None else max(1, count // options.packs_per_gpu)

    return at_once


def _train(
    plan: Plan,
    folder: StudyStore,
    held: Held,
    attempt: str,
    pending: Sequence[Trial],
    options: Options,
    slots: Slots,
    publisher: Publisher | None,
    console: Console,
) -> bool:
    work = PackWork(
        root=Store(options.root).address,
        study=plan.spec.study,
        attempt=attempt,
        engine=options.engine,
        device=cluster.CPU,
        checkpoint_every_s=options.checkpoint_every_s,
    )
    count = sum(slots.values())
    told = len(folder.notices)
    kept = [trial_ids for _, trial_ids, _ in folder.checkpoints()]
    for notice in folder.notices[told:]:
        console.print(notice, style="yellow")
    at_once = at_once_on(plan, options) if cluster.GPU in slots else None
    # Where both kinds of device take what they can, packs are as cores like them, and fill a GPU together.
    both = len(slots) > 1
    sized_by = None if both else at_once
    packs = make_packs(pending, slots=count, size=options.pack_size, kept=kept, at_once=sized_by)
    # Signals are taken over after Ray has started, since Ray takes them over when it starts.
    with (
        stopping(console) as stop,
        watching(plan, folder, packs, pending, publisher, console, stop) as watch,
    ):

        def on_event(event: Event) -> None:
            # Packs also fail because another driver has taken the study over: their failures are not ours to store.
            if held.lost or (isinstance(event, PackFailed) and _taken_over(folder, held, attempt, console)):
                stop.set()
            else:
                watch(event)

        if options.local:
            (kind,) = slots
            cluster.run_here(packs, replace(work, device=kind), on_event, stop=stop)
            return not stop.is_set()
        loads = make_loads(packs, slots=count, at_once=sized_by)
        lanes = [
            cluster.Lanes(kind, n, replace(work, device=kind), _gpu_share(options, kind))
            for kind, n in slots.items()
        ]
        shares = {p.id: load_share(p.trials, at_once) for p in packs} if both and at_once else None
        began = time.monotonic()
        used = cluster.run_on_tune(
            loads, lanes, on_event, stop=stop, shares=shares, silent_after_s=options.silent_after_s
        )
    took_s = time.monotonic() - began
    if len(used) < min(count, len(loads)) and took_s > _TIME_TO_START_S and not stop.is_set():
        console.print(f"only {len(used)} of {count} workers were used", style="yellow")
    return not stop.is_set()
