"""Training what is missing of a study: trials to packs, packs to workers, until no more is asked for.

`run` imports this once there is something to train: engines and Ray take seconds to import.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from study import cluster
from study.console import Console
from study.driver.monitor import stopping, watching
from study.driver.options import Options
from study.driver.resources import Engines, Slots, at_once_on, gpu_share, slots_for, to_tell
from study.errors import BusyError, StoreAwayError
from study.plan.packs import AtOnce, load_share
from study.plan.packs import loads as make_loads
from study.plan.packs import packs as make_packs
from study.plan.plan import Plan
from study.records import Event, Pack, PackFailed, Trial
from study.store import Held, Store, StudyStore
from study.tracking import Publisher
from study.worker.pack_work import PackWork

# A run that is shorter may be over before the last worker has started.
_TIME_TO_START_S = 60.0

Formed = tuple[Sequence[Pack], Sequence[tuple[Pack, ...]], Mapping[str, float] | None]
"""Packs, the loads that they make, and what each fills of a GPU where that matters."""

Following = Callable[[Plan, set[str]], tuple[Plan, list[Trial]]]
"""Gives the plan that follows from what is stored, and its trials to train but for those that were tried."""


@contextmanager
def workers(plan: Plan, options: Options, engines: Engines, console: Console) -> Iterator[Slots]:
    """Have what trains a study: Ray started or joined, and meanwhile the engines prepared.

    The cluster outlives the publisher: Ray ends the process if another thread touches what is left of it.
    """
    for reason in to_tell(plan, options):
        console.print(reason, style="yellow")
    with slots_for(plan, options, engines, console) as slots:
        yield slots


def train(
    plan: Plan,
    pending: Sequence[Trial],
    folder: StudyStore,
    options: Options,
    slots: Slots,
    publisher: Publisher | None,
    console: Console,
    *,
    held: Held,
    attempt: str,
    taken_over: Callable[[float], str | None],
    following: Following,
) -> bool:
    """Train trials, store them and hand them to the publisher as they come.

    Args:
        plan: what the study asks for so far.
        pending: its trials without a result.
        folder: the study's part of the store.
        options: where and how.
        slots: what `workers` gave.
        publisher: of results; None where nothing is published.
        console: where progress is shown.
        held: the study's lock.
        attempt: this driver's.
        taken_over: says so if another driver has taken the study over, with so many seconds' patience.
        following: asked for more, if the study may grow, once all this is stored.

    Returns:
        Whether it came to its end, and wasn't stopped.
    """
    work = PackWork(
        root=Store(options.root).address,
        study=plan.spec.study,
        attempt=attempt,
        engine=options.engine,
        device=cluster.CPU,
        checkpoint_every_s=options.checkpoint_every_s,
        patience_s=options.patience_s,
    )
    # Asked now: later, lanes have the GPUs.
    at_once = at_once_on(plan, options) if cluster.GPU in slots else None
    form = partial(_form, folder, options, slots, at_once, console)
    packs, loads, shares = form(pending)
    tried = {trial.id for trial in pending} if plan.grows else set()
    # Signals are taken over after Ray has started, since Ray takes them over when it starts.
    with (
        stopping(console) as stop,
        watching(plan, folder, packs, pending, publisher, console, stop, options.patience_s) as watch,
    ):

        def on_event(event: Event) -> None:
            # Packs also fail because another driver has taken the study over: their failures are not ours to store.
            if held.lost or (isinstance(event, PackFailed) and not _is_ours(folder)):
                stop.set()
            else:
                watch(event)

        def more() -> Formed:
            nonlocal plan
            watch.wait()
            if stop.is_set() or taken_over(options.patience_s):
                return [], [], None
            plan, pending = following(plan, tried)
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


def _is_ours(folder: StudyStore) -> bool:
    """Say whether no other driver has the study, as far as can be seen: for a store that is away, the watch waits."""
    try:
        folder.check()
    except BusyError:
        return False
    except StoreAwayError:
        return True
    return True


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
