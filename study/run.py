r"""The path of a study, from its file to its report: the first file to read.

study.yaml -> spec -> plan (cells, trials, packs) -> [Ray Tune: engine trains packs] -> store -> tracking (MLflow)
                                                                                    \-> aggregate -> report
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path

from study import cluster, until
from study.console import Console
from study.errors import BusyError
from study.heartbeat import beat
from study.options import Options
from study.patience import waited
from study.plan import AtOnce, Plan, load_share
from study.plan import loads as make_loads
from study.plan import packs as make_packs
from study.publishing import publishing
from study.records import Event, Pack, PackFailed, Trial
from study.results import Standing, report_folder, show, standing, write_and_keep
from study.slots import Slots, at_once_on, engines_of, gpu_share, slots_for, to_tell
from study.store import Held, Store, StudyStore
from study.tracking import Publisher
from study.watch import stopping, watching
from study.work import PackWork

# A run that is shorter may be over before the last worker has started.
_TIME_TO_START_S = 60.0


class Ending(Enum):
    """How a run of a study ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILURES = "failures"


Grow = Callable[[Plan, StudyStore, Callable[[str], None]], Plan]
"""Gives what a study asks for by what is stored of it, and tells a person; the plan itself if that is all."""


def until_sure(plan: Plan, folder: StudyStore, tell: Callable[[str], None]) -> Plan:
    """Give each cell the seeds that it needs by what is stored; a plan whose seeds are given stays as it is."""
    if plan.spec.until is None:
        return plan
    results = folder.read_results()
    grown = until.grown(plan, results)
    if grown == plan:
        return plan
    if results.num_rows:
        tell(until.progress(grown, results))
    return grown


def run(plan: Plan, options: Options, console: Console, grow: Grow = until_sure) -> Ending:
    """Run what is missing of a study, publish it as it comes, and report.

    Args:
        plan: what the study asks for, or what it begins with.
        options: where and how.
        console: where progress and the table are shown.
        grow: asked at the start, and whenever all that was asked for is done.

    Returns:
        Whether every trial has a result, Ctrl-C or SIGTERM ended it early, or some trials failed; run again, it
        goes on with what is missing.
    """
    engines = engines_of(plan, options)
    folder = Store(options.root).study(plan.spec.study)
    tell = partial(console.print, style="yellow")
    with folder.lock(tell) as held:
        attempt = folder.begin_attempt()
        folder.write_spec(plan.spec.text)
        plan, pending = _next(plan, folder, options, console, grow, set())
        for reason in to_tell(plan, options) if pending else ():
            console.print(reason, style="yellow")
        with (
            slots_for(plan, options, engines, pending, console) as slots,
            report_folder(folder) as into,
            publishing(plan, folder, options.tracking_uri, console) as publisher,
        ):
            if publisher is not None:  # an earlier run may have been killed, or had no MLflow
                publisher.catch_up()
            finished = not pending or _train(
                plan, folder, held, attempt, pending, options, slots, publisher, console, grow
            )
            if (taken := _taken_over(folder, held, attempt, console)) is not None:
                raise BusyError(f"{taken}: this run of it stops")
            found = waited(partial(standing, plan.spec.study, options.root), tell)
            beat(plan.spec.study, found.counts, console)
            _report(found, into, publisher, options.tracking_uri, console)
    if not finished:
        return Ending.INTERRUPTED
    return Ending.FAILURES if found.counts["failed"] else Ending.FINISHED


def _next(
    plan: Plan, folder: StudyStore, options: Options, console: Console, grow: Grow, tried: set[str]
) -> tuple[Plan, list[Trial]]:
    """Find what there is to do next, and the plan that it is of; nothing if all is done, or was tried already."""
    tell = partial(console.print, style="yellow")
    while True:
        grown = waited(partial(grow, plan, folder, console.print), tell)
        missing = waited(partial(find_pending, grown, options.root, console), tell)
        pending = [trial for trial in missing if trial.id not in tried]
        if pending or grown is plan:
            return grown, pending
        plan = grown  # what other studies of the store have done may be enough to ask for more


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
    grow: Grow,
) -> bool:
    work = PackWork(
        root=Store(options.root).address,
        study=plan.spec.study,
        attempt=attempt,
        engine=options.engine,
        device=cluster.CPU,
        checkpoint_every_s=options.checkpoint_every_s,
    )
    # Asked now: later, lanes have the GPUs.
    at_once = at_once_on(plan, options) if cluster.GPU in slots else None
    form = partial(_form, folder, options, slots, at_once, console)
    packs, loads, shares = form(pending)
    tried = {trial.id for trial in pending} if plan.grows else set()
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

        def more() -> Formed:
            nonlocal plan
            watch.wait()
            if stop.is_set() or _taken_over(folder, held, attempt, console):
                return [], [], None
            plan, pending = _next(plan, folder, options, console, grow, tried)
            if not pending:
                return [], [], None
            tried.update(trial.id for trial in pending)
            formed = form(pending)
            watch.go_on(plan, formed[0], pending)
            return formed

        if options.local:
            (kind,) = slots
            more_packs = (lambda: more()[0]) if plan.grows else lambda: ()
            cluster.run_here(packs, replace(work, device=kind), on_event, stop=stop, more=more_packs)
            return not stop.is_set()
        lanes = [
            cluster.Lanes(
                kind, min(n, plan.most_at_once), replace(work, device=kind), gpu_share(options, kind)
            )
            for kind, n in slots.items()
        ]
        began = time.monotonic()
        used = cluster.run_on_tune(
            loads,
            lanes,
            on_event,
            stop=stop,
            shares=shares,
            silent_after_s=options.silent_after_s,
            more=(lambda: more()[1:]) if plan.grows else None,
        )
    took_s, count = time.monotonic() - began, sum(slots.values())
    if len(used) < min(count, len(loads)) and took_s > _TIME_TO_START_S and not stop.is_set():
        console.print(f"only {len(used)} of {count} workers were used", style="yellow")
    return not stop.is_set()


Formed = tuple[Sequence[Pack], Sequence[tuple[Pack, ...]], Mapping[str, float] | None]
"""Packs, the loads that they make, and what each fills of a GPU where that matters."""


def _form(
    folder: StudyStore,
    options: Options,
    slots: Slots,
    at_once: AtOnce | None,
    console: Console,
    pending: Sequence[Trial],
) -> Formed:
    """Put trials into packs, those with a checkpoint as they were, and packs into loads."""
    count = sum(slots.values())
    told = len(folder.notices)
    kept = [trial_ids for _, trial_ids, _ in folder.checkpoints()]
    for notice in folder.notices[told:]:
        console.print(notice, style="yellow")
    # Where both kinds of device take what they can, packs are as cores like them, and fill a GPU together.
    both = len(slots) > 1
    sized_by = None if both else at_once
    packs = make_packs(pending, slots=count, size=options.pack_size, kept=kept, at_once=sized_by)
    loads = make_loads(packs, slots=count, at_once=sized_by)
    shares = {p.id: load_share(p.trials, at_once) for p in packs} if both and at_once else None
    return packs, loads, shares
