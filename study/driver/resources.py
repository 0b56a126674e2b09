"""The workers of a study: on how many cores and GPUs, and how many packs train side by side."""

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
        engines: the engines that train it, and how.
        slots: workers of each kind.
        at_once: trials of each shape that a GPU trains side by side; None where no GPU trains.
        plan: what the study asks for when the workers start.
        process: the process beside this one that trains; None where Ray or this process does.
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
        if self.plan.spec.pruning is not None:  # settings are compared early if each has been trained with a seed
            pending = sorted(pending, key=lambda trial: trial.seed)
        # Where both kinds of device take bundles, packs have a size that suits cores, and several fill a GPU together.
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
        # Modules of a study's own engine are built from global generators, which threads of a worker would share.
        bundles = make_bundles(packs, slots=self.count, at_once=at_once if self.engines.own is None else None)
        shares = None
        if is_mixed and self.at_once is not None:
            shares = {pack.id: bundle_share(pack.trials, self.at_once) for pack in packs}
        return Formed(packs, bundles, shares)

    def scheduler(self, attempt: str, stop: threading.Event, more: cluster.More | None) -> cluster.Scheduler:
        """Create the scheduler that runs bundles on the cluster, in this process, or in the one beside it.

        Args:
            attempt: the driver's attempt; workers stop when another driver has taken the study over.
            stop: set to end early, with checkpoints.
            more: called for more bundles when all are done; None if no more can follow.
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
    """Yield what a study begins on: a process beside this one for own code that may be done soon, else its workers.

    Args:
        engines: the engines that train it.
        plan: what the study asks for.
        attempt: the driver's attempt.
        console: where remarks and the start of the workers are shown.
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
    """Start or join Ray, prepare the engines meanwhile, and yield what the study runs on.

    Raises:
        InputError: if no engine trains a cell.
        ClusterError: if there is no room for a worker.
    """
    with _slots(engines, console) as slots:
        # The GPUs are asked now because workers occupy them later.
        asks_gpus = cluster.GPU in slots and not isinstance(engines.own, CallEngine)
        at_once = engines.at_once(is_here=engines.options.local) if asks_gpus else None
        yield Resources(engines, slots, at_once, plan)


@contextmanager
def _slots(engines: Engines, console: Console) -> Iterator[Slots]:
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
        first_steps = {one: step for one in used if (step := first_step(*one)) is not None}
        if first_steps:
            for step in first_steps.values():
                console.print(preparation_text(step))
            stack.enter_context(preparing(list(first_steps)))
        with waiting(console, "starting Ray"):
            stack.enter_context(cluster.connection(None, options.cpus))
        has, needs = cluster.capacity(), engines.needs
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


def slots_of_cluster(engines: Engines, has: cluster.Capacity) -> Slots:
    """Return the number of workers of each kind: on the GPUs, if any, and on the cores of machines without one.

    Raises:
        ClusterError: if there is no room for a worker, and no number of workers was asked for.
        InputError: if no engine trains a cell on one of these devices.
    """
    options, needs = engines.options, engines.needs
    on_gpu = 0 if options.device == cluster.CPU else min(has.cpus // needs.cpus, _workers_on(has.gpus, needs))
    if options.device == "auto" and on_gpu and not engines.are_trainable(cluster.GPU):
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
        engines.check_trainable(kind)
    return slots


def _too_small(has: cluster.Capacity, device: str, needs: Needs) -> str:
    gpu = "a GPU" if needs.gpus <= 1 else f"{needs.gpus:g} GPUs"
    what = f"{needs.cpus} CPU" + (f" and {gpu}" if device == cluster.GPU else "")
    return f"a pack needs {what}, but the cluster has {has.cpus} CPU and {has.gpus:g} GPU"


def _workers_on(gpus: float, needs: Needs) -> int:
    return int(gpus / needs.gpus + 1e-9)
