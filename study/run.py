r"""The path of a study, from its file to its report: the first file to read.

study.yaml -> spec -> plan (cells, trials, packs) -> [Ray Tune: engine trains packs] -> store -> tracking (MLflow)
                                                                                    \-> aggregate -> report
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from study.console import Console
from study.driver.heartbeat import beat
from study.driver.options import Options
from study.driver.publishing import publishing
from study.errors import BusyError
from study.plan import until
from study.plan.plan import Plan
from study.records import Trial
from study.results.load import Standing, standing
from study.results.study import are_current, report_folder, show, write_and_keep
from study.store import Held, Store, StudyStore
from study.store.retry import waited
from study.tracking import Publisher

if TYPE_CHECKING:
    from study.driver.resources import Engines


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
    folder = Store(options.root).study(plan.spec.study)
    tell = partial(console.print, style="yellow")
    # It isn't ours yet: nothing is set aside.
    looking = Store(options.root, read_only=True).study(plan.spec.study)
    engines = None if _is_trained(plan, looking, grow) else _engines(plan, options)
    with folder.lock(tell) as held:
        attempt = folder.begin_attempt()
        folder = folder.of_attempt(attempt)
        folder.write_spec(plan.spec.text)
        following = partial(_next, folder=folder, options=options, console=console, grow=grow)
        plan, pending = following(plan, set())
        read = partial(waited, partial(_standing, folder, options), tell)
        if not pending:
            return _conclude(plan, read(options.patience_s), folder, options, console)
        # Only here: engines and Ray take seconds, and a study that is done needs neither.
        from study.driver import train

        taken_over = partial(_taken_over, folder, held, tell)
        with (
            train.workers(plan, options, engines or _engines(plan, options), console) as slots,
            report_folder(folder) as into,
            publishing(plan, folder, options.tracking_uri, console) as publisher,
        ):
            if publisher is not None:  # an earlier run may have been killed, or had no MLflow
                publisher.catch_up()
            finished = train.train(
                plan,
                pending,
                folder,
                options,
                slots,
                publisher,
                console,
                held=held,
                attempt=attempt,
                taken_over=taken_over,
                following=following,
            )
            patience_s = options.patience_s if finished else 0.0  # asked to stop, it waits for no store
            if (reason := taken_over(patience_s)) is not None:
                raise BusyError(f"{reason}: this run of it stops")
            found = read(patience_s)
            beat(plan.spec.study, found.counts, console)
            _report(found, into, folder, publisher, options.tracking_uri, console)
    return _ending(found) if finished else Ending.INTERRUPTED


def _is_trained(plan: Plan, folder: StudyStore, grow: Grow) -> bool:
    """Say whether all trials of a study are done already, as far as can be told without writing anything.

    Nothing has started yet: a store that is away is an error at once, and not waited for.
    """
    if plan.spec.search is not None:
        return False
    done = folder.done()
    if len(done) < plan.trials_count:
        return False
    grown = grow(plan, folder, lambda sentence: None)
    return {trial.id for trial in grown.trials} <= done


def _engines(plan: Plan, options: Options) -> Engines:
    from study.driver.resources import engines_of  # only here: a study that is done needs no engine

    return engines_of(plan, options)


def _conclude(plan: Plan, found: Standing, folder: StudyStore, options: Options, console: Console) -> Ending:
    """Report and publish a study that has nothing left to train, if its report or MLflow don't show it yet."""
    beat(plan.spec.study, found.counts, console)
    if are_current(found, options.tracking_uri):
        show(found, console)
        return _ending(found)
    with (
        report_folder(found.folder) as into,
        publishing(plan, found.folder, options.tracking_uri, console) as publisher,
    ):
        if publisher is not None:
            publisher.catch_up()
        _report(found, into, folder, publisher, options.tracking_uri, console)
    return _ending(found)


def _ending(found: Standing) -> Ending:
    return Ending.FAILURES if found.counts["failed"] else Ending.FINISHED


def _next(
    plan: Plan, tried: set[str], *, folder: StudyStore, options: Options, console: Console, grow: Grow
) -> tuple[Plan, list[Trial]]:
    """Find what there is to do next, and the plan that it is of; nothing if all is done, or was tried already."""
    tell = partial(console.print, style="yellow")
    while True:
        grown = waited(partial(grow, plan, folder, console.print), tell, options.patience_s)
        missing = waited(
            partial(find_pending, grown, folder, options.root, console), tell, options.patience_s
        )
        pending = [trial for trial in missing if trial.id not in tried]
        if pending or grown is plan:
            return grown, pending
        plan = grown  # what other studies of the store have done may be enough to ask for more


def _taken_over(folder: StudyStore, held: Held, tell: Callable[[str], None], patience_s: float) -> str | None:
    """Say so if another driver has taken the study over.

    Raises:
        StoreAwayError: if the store stays away, or the study gone from it, until patience is over.
    """
    if held.lost is not None:
        return held.lost
    try:
        waited(folder.check, tell, patience_s)
    except BusyError as error:
        return str(error)
    return None


def _standing(folder: StudyStore, options: Options) -> Standing:
    folder.check()
    return standing(folder.name, options.root)


def _report(
    found: Standing,
    into: Path,
    folder: StudyStore,
    publisher: Publisher | None,
    tracking_uri: str | None,
    console: Console,
) -> None:
    if not found.counts["done"]:
        return  # interrupted before the first pack was through
    if publisher is not None:
        publisher.wait_for_study()
    written = write_and_keep(found, into, folder, tracking_uri=tracking_uri)
    if publisher is not None:
        publisher.counts(found.counts)
        publisher.series(found.series)
        publisher.describe(found.headline, found.counts)
        for file in written.files:
            publisher.artifact(file)
        publisher.shows(written.mark)
    show(found, console)


def find_pending(plan: Plan, folder: StudyStore, root: str | Path, console: Console) -> list[Trial]:
    """Find the trials without a result, after taking over those that other studies of the store have.

    Args:
        plan: what the study asks for.
        folder: its part of the store.
        root: the store's folder, or its URL.
        console: told what was taken over.

    Raises:
        StoreAwayError: if the study is gone from the store: what is done isn't known.
    """
    store, told = Store(root), len(folder.notices)
    done, planned = folder.done(), {trial.id for trial in plan.trials}
    adopted = store.adopt(plan.spec.study, planned - done, folder) if planned - done else 0
    if adopted:
        console.print(f"{adopted} trials are done already in other studies of this store")
        done = folder.done()
    unasked = len(done - planned)
    if unasked:
        console.print(f"{unasked} stored trials are not in this file any more: they are kept, and not shown")
    folder.check()
    for notice in [*store.notices, *folder.notices[told:]]:
        console.print(notice, style="yellow")
    return [trial for trial in plan.trials if trial.id not in done]
