"""What a study runs on: engines, devices, workers, and how many packs train side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import torch

from study import cluster
from study.console import Console
from study.driver.options import Options
from study.driver.own_engine import trained_one_by_one
from study.driver.progress import preparation_text, waiting
from study.driver.repository import repository_of
from study.engine import Engine, check_device, engine_for, pack_key, passed_over, trials_at_once
from study.engine.function import FunctionEngine
from study.engine.packed.engine import PackedEngine
from study.errors import ClusterError, InputError
from study.interface.family import Family
from study.plan.packs import AtOnce, KeyOf, bundle_share, make_bundles, make_packs, shape_key
from study.plan.plan import Plan
from study.records import Cell, Pack, Trial
from study.store import Store, StudyStore
from study.worker.pack_work import PackWork
from study.worker.prepare import first_step, prepared, preparing

# This file exists while NVIDIA's driver is loaded.
_GPU_DRIVER = Path("/dev/nvidiactl")


def device_of(options: Options) -> str:
    """Resolve ``auto``: the GPU if torch sees one here, else the CPU."""
    if options.device != "auto":
        return options.device
    return "cuda" if torch.cuda.is_available() else "cpu"


Engines = Sequence[tuple[Engine, Cell]]
"""Engines, each with one of the cells that it trains."""


def engines_of(plan: Plan, options: Options, own: Engine | None) -> Engines:
    """Return the engines that train the cells, each with one of its cells, before anything is started or written.

    Raises:
        InputError: if a cell has no engine, or the device isn't there.
    """
    device = device_of(options)
    if options.address is None:
        check_device(device)
    engines: dict[str, tuple[Engine, Cell]] = {}
    for cell in plan.cells:
        engine = engine_for(options.engine, cell, device, own)
        engines.setdefault(engine.name, (engine, cell))
    return list(engines.values())


def could_be_faster(plan: Plan, options: Options, own: Engine | None) -> list[str]:
    """Return sentences that say what could train faster than it will, and why it doesn't."""
    reasons = [*passed_over_by(plan, options, own), *trained_one_by_one(plan, own)]
    if options.device == "auto" and device_of(options) == "cpu" and _GPU_DRIVER.exists():
        reasons.append(
            "there is an NVIDIA GPU here that torch can't use, so the CPU trains: "
            "docs/one-machine.md says what to install"
        )
    return reasons


def passed_over_by(plan: Plan, options: Options, own: Engine | None) -> list[str]:
    """Return sentences that say which models don't get the device's fastest engine, and why."""
    device = device_of(options)
    reasons: dict[str, None] = {}
    if options.engine == "auto" and own is None:
        for cell in plan.cells:
            engine = engine_for("auto", cell, device)
            for other, reason in passed_over(engine, cell, device).items():
                reasons[f"{cell.model} is trained by the {engine.name} engine, not by {other}: {reason}"] = None
    return list(reasons)


@dataclass(frozen=True)
class Needs:
    """What a worker needs of the machines.

    Args:
        cpus: cores.
        gpus: GPUs, or the share of one, of a worker on GPUs.
    """

    cpus: int
    gpus: float


def needs_of(own: Engine | None, options: Options) -> Needs:
    """Return what a worker needs: what a study of a training function says of a trial, otherwise a core."""
    if not isinstance(own, FunctionEngine):
        return Needs(cpus=1, gpus=1 / options.packs_per_gpu)
    return Needs(own.limits.cpus or 1, own.limits.gpus or 0.0)


def fitted(options: Options, own: Engine | None) -> Options:
    """Return options with the device that a study's own engine trains on.

    A training function's is what its study file asks for. Tasks and models in packs train on a GPU if that is asked
    for, not by themselves: that they are faster there hasn't been measured.

    Raises:
        InputError: if the options ask for another one than the study file.
    """
    if isinstance(own, PackedEngine):
        return replace(options, device=cluster.CPU) if options.device == "auto" else options
    if not isinstance(own, FunctionEngine):
        return options
    device = cluster.GPU if own.limits.gpus else cluster.CPU
    if options.device not in ("auto", device):
        must = "resources: {gpus: 1}, or a share" if device == cluster.CPU else "no gpus under resources"
        raise InputError(f"--device {options.device} needs a study file with {must}: it says what a trial may use")
    return replace(options, device=device)


Slots = Mapping[str, int]
"""How many packs, or bundles of them, run side by side on each kind of device."""


@dataclass(frozen=True)
class Formed:
    """Trials, put together as workers take them.

    Args:
        packs: the packs of the trials.
        bundles: the same packs, grouped by which of them one worker trains side by side; the costliest first.
        shares: where cores and GPUs take the same bundles, the part of a GPU that each pack fills, by its id.
    """

    packs: Sequence[Pack]
    bundles: Sequence[cluster.Bundle]
    shares: Mapping[str, float] | None


@dataclass(frozen=True)
class Resources:
    """What a study runs on.

    Args:
        options: where and how.
        slots: workers of each kind.
        at_once: trials of each shape that a GPU trains side by side; None where no GPU trains.
        needs: what each worker needs.
        own: the engine that the study brings; None where engines of packages train it.
        family: what the study declares.
    """

    options: Options
    slots: Slots
    at_once: AtOnce | None
    needs: Needs
    own: Engine | None
    family: Family

    @property
    def count(self) -> int:
        """Number of workers of all kinds."""
        return sum(self.slots.values())

    def form(self, pending: Sequence[Trial], folder: StudyStore, console: Console) -> Formed:
        """Put trials into packs, keeping the packs that have a checkpoint, and packs into bundles.

        Args:
            pending: trials to train.
            folder: the study's part of the store, with its checkpoints.
            console: where notices of bad files are shown.
        """
        first_notice = len(folder.notices)
        checkpointed = [trial_ids for _, trial_ids, _ in folder.checkpoints()]
        for notice in folder.notices[first_notice:]:
            console.print(notice, style="yellow")
        # Where both kinds of device take bundles, packs have a size that suits cores, and several fill a GPU together.
        is_mixed = len(self.slots) > 1
        at_once = None if is_mixed else self.at_once
        packs = make_packs(
            pending,
            slots=self.count,
            size=self.options.pack_size,
            checkpointed=checkpointed,
            at_once=at_once,
            family=self.family,
            key_of=key_on(self.slots, self.options, self.own),
        )
        # Modules of a study's own engine are built from global generators, which threads of a worker would share.
        bundles = make_bundles(packs, slots=self.count, at_once=at_once if self.own is None else None)
        shares = None
        if is_mixed and self.at_once is not None:
            shares = {pack.id: bundle_share(pack.trials, self.at_once) for pack in packs}
        return Formed(packs, bundles, shares)

    def scheduler(
        self, plan: Plan, attempt: str, stop: threading.Event, more: cluster.More | None
    ) -> cluster.Scheduler:
        """Create the scheduler that runs bundles on the cluster or in this process.

        Args:
            plan: the study's plan.
            attempt: the driver's attempt; workers stop when another driver has taken the study over.
            stop: set to end early, with checkpoints.
            more: called for more bundles when all are done; None if no more can follow.
        """
        options = self.options
        work = PackWork(
            root=Store(options.root).address,
            study=plan.spec.study,
            attempt=attempt,
            engine=options.engine,
            device=cluster.CPU,
            own=self.own,
            checkpoint_every_s=options.checkpoint_every_s,
            patience_s=options.patience_s,
            repository=repository_of(plan.spec),
        )
        if options.local:
            (kind,) = self.slots
            return cluster.LocalScheduler(replace(work, device=kind), stop, more)
        from study.cluster.scheduler import TuneScheduler  # imported late: Ray takes seconds to import

        groups = [
            cluster.WorkerGroup(
                kind,
                min(count, plan.most_at_once),
                replace(work, device=kind),
                gpu_share=self.needs.gpus if kind == cluster.GPU else 0.0,
                cpus=self.needs.cpus,
            )
            for kind, count in self.slots.items()
        ]
        return TuneScheduler(groups, stop, options.silent_after_s, more)


@contextmanager
def workers(plan: Plan, options: Options, own: Engine | None, console: Console) -> Iterator[Resources]:
    """Start or join Ray, prepare the engines meanwhile, and yield what the study runs on.

    Raises:
        InputError: if no engine trains a cell.
        ClusterError: if there is no room for a worker.
    """
    for sentence in (*plan.spec.family.remarks, *could_be_faster(plan, options, own)):
        console.print(sentence, style="yellow")
    with _slots(plan, options, own, console) as slots:
        # The GPUs are asked now because workers occupy them later.
        asks_gpus = cluster.GPU in slots and not isinstance(own, FunctionEngine)
        at_once = at_once_on(plan, options, own) if asks_gpus else None
        yield Resources(options, slots, at_once, needs_of(own, options), own, plan.spec.family)


@contextmanager
def _slots(plan: Plan, options: Options, own: Engine | None, console: Console) -> Iterator[Slots]:
    device, engines = device_of(options), engines_of(plan, options, own)
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
            yield slots_of_cluster(plan, options, own, cluster.capacity())
        return
    with ExitStack() as stack:
        first_steps = {one: step for one in engines if (step := first_step(*one)) is not None}
        if first_steps:
            for step in first_steps.values():
                console.print(preparation_text(step))
            stack.enter_context(preparing(list(first_steps)))
        with waiting(console, "starting Ray"):
            stack.enter_context(cluster.connection(None, options.cpus))
        has, needs = cluster.capacity(), needs_of(own, options)
        cpus = has.cpus // needs.cpus
        count = min(cpus, _workers_on(has.gpus, needs)) if device == cluster.GPU else cpus
        if count < 1:
            raise ClusterError(_too_small(has, device, needs))
        yield {device: count}


def _prepare_here(engine: Engine, cell: Cell, console: Console) -> None:
    """Prepare an engine in this process, and show each step that takes long."""
    with ExitStack() as status:
        for step in prepared(engine, cell):
            status.close()
            console.print(preparation_text(step))
            if step.doing != "ready":
                status.enter_context(waiting(console, f"{step.doing} the {engine.name} engine"))


def slots_of_cluster(plan: Plan, options: Options, own: Engine | None, has: cluster.Capacity) -> Slots:
    """Return the number of workers of each kind: on the GPUs, if any, and on the cores of machines without one.

    Raises:
        ClusterError: if there is no room for a worker, and no number of workers was asked for.
        InputError: if no engine trains a cell on one of these devices.
    """
    needs = needs_of(own, options)
    on_gpu = 0 if options.device == cluster.CPU else min(has.cpus // needs.cpus, _workers_on(has.gpus, needs))
    if options.device == "auto" and on_gpu and not _trainable_on(cluster.GPU, plan, options, own):
        on_gpu = 0
    if options.device == cluster.GPU:
        on_gpu, on_cpu = options.workers or on_gpu, 0
    else:
        on_gpu = min(on_gpu, options.workers or on_gpu)
        on_cpu = (has.cpus_without_gpu if on_gpu else has.cpus) // needs.cpus
        on_cpu = on_cpu if options.workers is None else max(0, options.workers - on_gpu)
    slots = {kind: count for kind, count in ((cluster.GPU, on_gpu), (cluster.CPU, on_cpu)) if count}
    if not slots:
        too_small = _too_small(has, options.device, needs)
        raise ClusterError(f"{too_small}; if it grows on demand, say how far: --workers 16")
    for kind in slots:
        for cell in plan.cells:
            engine_for(options.engine, cell, kind, own)
    return slots


def _trainable_on(kind: str, plan: Plan, options: Options, own: Engine | None) -> bool:
    try:
        for cell in plan.cells:
            engine_for(options.engine, cell, kind, own)
    except InputError:
        return False
    return True


def _too_small(has: cluster.Capacity, device: str, needs: Needs) -> str:
    gpu = "a GPU" if needs.gpus <= 1 else f"{needs.gpus:g} GPUs"
    what = f"{needs.cpus} CPU" + (f" and {gpu}" if device == cluster.GPU else "")
    return f"a pack needs {what}, but the cluster has {has.cpus} CPU and {has.gpus:g} GPU"


def _workers_on(gpus: float, needs: Needs) -> int:
    return int(gpus / needs.gpus + 1e-9)


def key_on(devices: Iterable[str], options: Options, own: Engine | None) -> KeyOf:
    """Return what tells which trials a pack may hold, for the engines that would train them on some devices."""
    kinds = tuple(devices)
    return cache(lambda cell: pack_key(options.engine, cell, kinds, own))


def at_once_on(plan: Plan, options: Options, own: Engine | None) -> AtOnce:
    """Ask a device how many trials of each shape it trains side by side."""
    cells = {shape_key(cell): cell for cell in plan.cells}
    query = partial(trials_at_once, options.engine, tuple(cells.values()), own)
    answers = query() if options.local else cluster.ask(query, 1 / options.packs_per_gpu)
    counts = dict(zip(cells, answers, strict=True))
    least = min((count for count in answers if count is not None), default=None)

    def at_once(cell: Cell) -> int | None:
        # A search reaches shapes that weren't in the plan when the device was asked.
        count = counts.get(shape_key(cell), least)
        return None if count is None else max(1, count // options.packs_per_gpu)

    return at_once
