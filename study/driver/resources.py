"""Workers of a study: their cores and GPUs, and the packs that they train side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from study import cluster
from study.console import Console
from study.driver.engines import Engines, Needs
from study.driver.progress import preparation_text, waiting
from study.driver.repository import repository_of
from study.engine import Engine
from study.engine.calls import CallEngine
from study.errors import ClusterError
from study.plan.packs import AtOnce, bundle_share, make_bundles, make_packs
from study.plan.plan import Plan
from study.records import Cell, Pack, Trial
from study.store import Store, StudyStore
from study.worker.pack_work import PackWork
from study.worker.prepare import first_step, prepared, preparing

Slots = Mapping[str, int]
"""Number of packs, or bundles of packs, that run side by side, by kind of device."""


@dataclass(frozen=True)
class Formed:
    """Trials grouped for workers.

    Args:
        packs: the packs of the trials.
        bundles: the packs, grouped into those that one worker trains side by side; the costliest first.
        shares: fraction of a GPU that each pack fills, by its id; None unless cores and GPUs take the same bundles.
    """

    packs: Sequence[Pack]
    bundles: Sequence[cluster.Bundle]
    shares: Mapping[str, float] | None


@dataclass(frozen=True)
class Resources:
    """Engines and workers of a study.

    Args:
        engines: the engines that train it.
        slots: number of workers by kind of device.
        at_once: returns the number of trials of a cell that a GPU trains side by side; None without a GPU.
        plan: the study's plan when the workers start.
        process: the process beside this one that trains; None if Ray or this process trains.
    """

    engines: Engines
    slots: Slots
    at_once: AtOnce | None
    plan: Plan
    process: cluster.PackProcess | None = None

    @property
    def count(self) -> int:
        """Number of workers of all kinds."""
        return sum(self.slots.values())

    def form(self, pending: Sequence[Trial], folder: StudyStore, console: Console) -> Formed:
        """Group trials into packs, and packs into bundles; keep packs with a checkpoint whose trials are all pending.

        Packs whose trials can't share a pack any more aren't kept; of two that overlap, only the first is.

        Args:
            pending: trials to train.
            folder: the study's part of the store, with its checkpoints.
            console: where notices of bad files are shown.

        Raises:
            InputError: if no engine trains a cell, or a newer package wrote a checkpoint.
            StoreError: if the checkpoints can't be read, or converted to the current format.
        """
        first_notice = len(folder.notices)
        checkpointed = [trial_ids for _, trial_ids, _ in folder.checkpoints()]
        for notice in folder.notices[first_notice:]:
            console.print(notice, style="yellow")
        if self.plan.spec.pruning is not None:  # pruning compares cells early if each has a trial
            pending = sorted(pending, key=lambda trial: trial.seed)
        # With both kinds of device, packs have a size for cores, and several of them fill a GPU.
        is_mixed = len(self.slots) > 1
        at_once = None if is_mixed else self.at_once
        packs = make_packs(
            pending,
            slots=self.count,
            size=self.engines.options.pack_size,
            checkpointed=checkpointed,
            at_once=at_once,
            family=self.plan.spec.family,
            key_of=self.engines.key_on(self.slots),
        )
        # A study's own engine builds modules from global generators, which threads of a worker would share.
        bundles = make_bundles(packs, slots=self.count, at_once=at_once if self.engines.own is None else None)
        shares = None
        if is_mixed and self.at_once is not None:
            shares = {pack.id: bundle_share(pack.trials, self.at_once) for pack in packs}
        return Formed(packs, bundles, shares)

    def scheduler(self, attempt: str, stop: threading.Event, more: cluster.More | None) -> cluster.Scheduler:
        """Create the scheduler that runs bundles: on the cluster, in this process, or in the one beside it.

        Args:
            attempt: the driver's attempt; workers stop when another driver takes the study over.
            stop: set to end early, with checkpoints.
            more: called for more bundles when all are done; None if there are none.
        """
        if self.process is not None:
            return cluster.BesideScheduler(self.process, stop, more)
        options, needs = self.engines.options, self.engines.needs
        work = _work(self.engines, self.plan, attempt)
        if options.local:
            (kind,) = self.slots
            return cluster.LocalScheduler(replace(work, device=kind), stop, more)
        from study.cluster.scheduler import TuneScheduler  # imported late: Ray takes seconds to import

        groups = [
            cluster.WorkerGroup(
                kind,
                min(count, self.plan.most_at_once),
                replace(work, device=kind),
                gpu_share=needs.gpus if kind == cluster.GPU else 0.0,
                cpus=needs.cpus,
            )
            for kind, count in self.slots.items()
        ]
        return TuneScheduler(groups, stop, options.silent_after_s, more)


def _work(engines: Engines, plan: Plan, attempt: str) -> PackWork:
    """Return the work of a worker on this study, for a CPU."""
    options = engines.options
    return PackWork(
        root=Store(options.root).address,
        study=plan.spec.study,
        attempt=attempt,
        engine=options.engine,
        device=cluster.CPU,
        own=engines.own,
        checkpoint_every_s=options.checkpoint_every_s,
        patience_s=options.patience_s,
        repository=repository_of(plan.spec),
        keep=plan.spec.keep_files,
        is_shared=options.local,
    )


@contextmanager
def first_workers(engines: Engines, plan: Plan, attempt: str, console: Console) -> Iterator[Resources]:
    """Yield the resources for the beginning of a study.

    If `engines.may_begin_beside`, the study begins in a process beside this one, which may be quicker than starting
    Ray. Other studies begin on the workers of `workers`.

    Args:
        engines: the engines that train it.
        plan: the study's plan.
        attempt: the driver's attempt.
        console: where remarks and the start of the workers are shown.

    Raises:
        InputError: if no engine trains a cell.
        ClusterError, Exception: as `workers` does, if the study begins on its workers.
        OSError: if the process beside this one can't be started.
    """
    for sentence in (*plan.spec.family.remarks, *engines.slow_cells(), *engines.hidden_gpu()):
        console.print(sentence, style="yellow")
    if not engines.may_begin_beside:
        with workers(engines, plan, console) as resources:
            yield resources
        return
    assert isinstance(engines.own, CallEngine)
    limits = replace(engines.own.limits, cpus=engines.needs.cpus)
    slots = {cluster.CPU: max(1, engines.cores // engines.needs.cpus)}  # packs suit Ray's workers, too
    environment = limits.environment() | {"PYTHONSAFEPATH": "1"}
    with cluster.PackProcess(_work(engines, plan, attempt), plan.cells[0], environment) as process:
        yield Resources(engines, slots, None, plan, process)


@contextmanager
def workers(engines: Engines, plan: Plan, console: Console) -> Iterator[Resources]:
    """Start or join Ray, and yield the study's resources; with ``local``, without Ray.

    With ``local``, this process prepares the engines. While Ray starts, another process does their long steps, such as
    compiling. Workers of a joined cluster prepare theirs themselves. If an engine other than that of a function or
    program trains on GPUs, a GPU is asked how many trials it trains side by side.

    Args:
        engines: the engines that train it.
        plan: the study's plan.
        console: where the start is shown.

    Raises:
        InputError: if no engine trains a cell.
        ClusterError: if Ray can't be started or reached, a node has other versions, a worker has no room, or none of
            the cluster's GPUs answers.
        OSError: if the preparing process can't be started, or with ``local``, its lock file can't be opened.
        Exception: with ``local``, as `Engine.prepare` raises.
    """
    with _slots(engines, console) as slots:
        # The GPUs are asked now because workers occupy them later.
        asks_gpus = cluster.GPU in slots and not isinstance(engines.own, CallEngine)
        at_once = engines.at_once(is_here=engines.options.local) if asks_gpus else None
        yield Resources(engines, slots, at_once, plan)


@contextmanager
def _slots(engines: Engines, console: Console) -> Iterator[Slots]:
    """Yield the number of workers by kind of device: in this process, on a cluster, or on a Ray started here.

    Raise ClusterError if Ray can't be used, or a worker has no room.
    """
    options, device, used = engines.options, engines.device, engines.used()
    if options.local:
        for engine, cell in used:
            _prepare_here(engine, cell, console)
        yield {device: 1}
        return
    if options.address is not None:  # its workers prepare their engines themselves
        with ExitStack() as stack:
            with waiting(console, "joining the cluster"):
                stack.enter_context(cluster.connection(options.address, None))
                stack.enter_context(cluster.watching_head(partial(console.print, style="yellow")))
                cluster.check_versions()
            yield slots_of_cluster(engines, cluster.capacity())
        return
    with ExitStack() as stack:
        first_steps = {pair: step for pair in used if (step := first_step(*pair)) is not None}
        if first_steps:
            for step in first_steps.values():
                console.print(preparation_text(step))
            stack.enter_context(preparing(list(first_steps)))
        with waiting(console, "starting Ray"):
            stack.enter_context(cluster.connection(None, options.cpus))
        capacity, needs = cluster.capacity(), engines.needs
        cpus = capacity.cpus // needs.cpus
        count = min(cpus, _workers_on(capacity.gpus, needs)) if device == cluster.GPU else cpus
        if count < 1:
            raise ClusterError(_too_small(capacity, device, needs))
        yield {device: count}


def _prepare_here(engine: Engine, cell: Cell, console: Console) -> None:
    """Prepare an engine in this process, showing each long step."""
    with ExitStack() as status:
        for step in prepared(engine, cell):
            status.close()
            console.print(preparation_text(step))
            if step.doing != "ready":
                status.enter_context(waiting(console, f"{step.doing} the {engine.name} engine"))


def slots_of_cluster(engines: Engines, capacity: cluster.Capacity) -> Slots:
    """Return the number of workers by kind, without zeros: on GPUs, and on the cores of machines without one.

    If no GPU is used, cores of all machines count. With device ``cuda``, only GPUs count. With ``cpu``, or if a cell
    can't be trained on GPUs and the device is ``auto``, only cores do. A requested number of workers replaces the sum,
    even if they have no room; GPUs that have room come first.

    Raises:
        ClusterError: if a worker has no room, and no number of workers was asked for.
        InputError: if no engine trains a cell on one of these devices.
    """
    options, needs = engines.options, engines.needs
    on_gpu = 0 if options.device == cluster.CPU else min(capacity.cpus // needs.cpus, _workers_on(capacity.gpus, needs))
    if options.device == "auto" and on_gpu and not engines.are_trainable(cluster.GPU):
        on_gpu = 0
    if options.device == cluster.GPU:
        on_gpu, on_cpu = options.workers or on_gpu, 0
    else:
        on_gpu = min(on_gpu, options.workers or on_gpu)
        on_cpu = (capacity.cpus_without_gpu if on_gpu else capacity.cpus) // needs.cpus
        on_cpu = on_cpu if options.workers is None else max(0, options.workers - on_gpu)
    slots = {kind: count for kind, count in ((cluster.GPU, on_gpu), (cluster.CPU, on_cpu)) if count}
    if not slots:
        too_small = _too_small(capacity, options.device, needs)
        raise ClusterError(f"{too_small}; if it grows on demand, give the number of workers: --workers 16")
    for kind in slots:
        engines.check_trainable(kind)
    return slots


def _too_small(capacity: cluster.Capacity, device: str, needs: Needs) -> str:
    gpu = "a GPU" if needs.gpus <= 1 else f"{needs.gpus:g} GPUs"
    need = f"{needs.cpus} CPU" + (f" and {gpu}" if device == cluster.GPU else "")
    return f"a pack needs {need}, but the cluster has {capacity.cpus} CPU and {capacity.gpus:g} GPU"


def _workers_on(gpus: float, needs: Needs) -> int:
    return int(gpus / needs.gpus + 1e-9)
