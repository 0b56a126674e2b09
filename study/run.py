r"""Run of a study, from its file to its report: the first file to read.

study.yaml -> spec -> plan (cells, trials, packs) -> [Ray Tune: engine trains packs] -> store -> tracking (MLflow)
                                                                                    \-> summaries, comparisons -> report
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from study.console import Console
from study.driver.heartbeat import beat, in_job
from study.driver.monitor import Monitor, stopping
from study.driver.notify import notifying
from study.driver.options import Options
from study.driver.publishing import Publication, publication
from study.errors import BusyError, StoreAwayError
from study.plan import until
from study.plan.plan import Plan
from study.records import Event, Pack, PackFailed, Trial
from study.results.claim_looks import keep_looks
from study.results.code_changes import change_sentences
from study.results.load import StudyResults, load_results
from study.results.stored_plan import keep_code, with_looks
from study.results.study import are_current, finding_of, print_failed_parts, print_failures, print_results
from study.results.submitted_files import keep_submitted
from study.store import Store, StudyLock, StudyStore
from study.store.retry import Patience
from study.summaries.failures import reason_keys
from study.trials.table import TrialTable
from study.words import count_of

if TYPE_CHECKING:
    from study import cluster
    from study.driver.engines import Engines
    from study.driver.resources import Resources

# A shorter run may be over before the last worker has started.
_TIME_TO_START_S = 60.0


class Ending(Enum):
    """Ending of a study's run."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILURES = "failures"
    REPORT_FAILED = "report-failed"


Extend = Callable[[Plan, StudyStore, Callable[[str], None]], Plan]
"""Function that returns the plan, extended if the stored results require it, and notifies the user."""


def until_sure(plan: Plan, folder: StudyStore, notify: Callable[[str], None]) -> Plan:
    """Extend each cell by the seeds that its stored results require, and notify the user if there are results.

    A plan with fixed seeds, or whose results require no more, is returned unchanged.

    Raises:
        InputError: if a newer package wrote one of the study's files.
        StoreError: if the results can't be read.
    """
    if not plan.may_extend:
        return plan
    table = TrialTable(folder.read_results(), plan.metrics)
    extended = until.extended(plan, table)
    if extended == plan:
        return plan
    if table.results.num_rows:
        notify(until.progress(extended, table))
    return extended


def run(plan: Plan, options: Options, console: Console, extend: Extend = until_sure) -> Ending:
    """Train the missing trials of a study, publish their results as they come, and write the report.

    After an interruption, the next run continues with the missing trials.

    Args:
        plan: the study's plan, or the initial plan if it is extended.
        options: store, engine, device and other options of the run.
        console: the console for progress and the table.
        extend: called at the start, and whenever all trials of the plan are done.

    Returns:
        The ending: all trials have a result; trials failed (also if this ended the run early); a part of the report
        failed; or Ctrl-C or SIGTERM interrupted the run.

    Raises:
        InputError: if the study can't be trained here (`Run.refuse`), or the user's settings have mistakes (nothing was
            started then); if a newer package wrote one of the study's files; or if the record of a search belongs to
            another one, or no suggestion of it can be trained.
        BusyError: if another process runs the study, or takes it over.
        StoreError: if the store can't be read or written, or stays away longer than the option `patience_s`.
        ClusterError: if Ray is needed, but can't be started or has no room.
        StudyError: if the report can't be written.
        OSError: if the cache of code can't be written, a process that trains or prepares can't be started, or a written
            file of the report can't be read again.
    """
    study = Run(plan, options, console, extend)
    study.refuse()
    with notifying(plan.spec.study, console) as news, study.locked():
        pending = study.extend()
        if not pending:
            return study.conclude()
        news.has_begun = True
        with study.checking_order() as conclude, study.prepare():
            conclude()
            finished = study.train(pending)
            results = study.publish(finished)
        ending = _ending(results) if finished else Ending.INTERRUPTED
        study.explain_early_stop(results)
        page = study.folder.page or ""
        news.ending, news.report = ending.value, page if "://" in page or not page else str(Path(page).absolute())
        news.finding = finding_of(results)
    return ending


class Run:
    """One run of a study, in its driver process.

    Args:
        plan: the study's plan, or the initial plan if it is extended.
        options: store, engine, device and other options of the run.
        console: the console for progress and the table.
        extend: called at the start, and whenever all trials of the plan are done.

    Attributes:
        plan: the study's plan so far.
        folder: the study's part of the store.
        resources: the workers, once they exist.
        publication: the report and the MLflow runs, while they are made.
    """

    folder: StudyStore
    resources: Resources
    publication: Publication
    _attempt: str
    _lock: StudyLock
    _stop: threading.Event
    _monitor: Monitor
    _workers: ExitStack

    def __init__(self, plan: Plan, options: Options, console: Console, extend: Extend) -> None:
        self.plan, self.options, self.console, self._extend = plan, options, console, extend
        self._notify = partial(console.print, style="yellow")
        self._patience = Patience(self._notify, options.patience_s)
        self._engines: Engines | None = None
        self._attempted: set[str] = set()
        self._earlier_failures: dict[str, str] = {}

    def refuse(self) -> None:
        """Reject a study that no engine here can train, before anything is started or written.

        Engines take seconds to import, so a finished study skips the check.

        Raises:
            InputError: if the study was read without its code, a cell has no engine, a recipe can't be trained, the
                device doesn't exist or the study file names another, the options need Ray and it can't be used, or a
                newer package wrote one of the study's files.
            StoreError: if the store can't be read.
            OSError: if the copy of the code or the data of packed tasks can't be written.
        """
        if not self._is_trained():
            self._resolve()

    def _resolve(self) -> Engines:
        from study.driver.engines import resolve

        self._engines = resolve(self.plan, self.options, self.console)
        return self._engines

    def _is_trained(self) -> bool:
        """Return True if all trials are known to be done, without writing or waiting for a store that is away."""
        if self.plan.spec.seed_design.is_search:
            return False
        spec = self.plan.spec
        folder = Store(self.options.root, read_only=True).study(spec.study).judged_by(self.plan.criterion)
        done = folder.done(with_stopped=spec.pruning is not None)
        if len(done) < self.plan.trials_count:
            return False
        plan = self._extend(with_looks(self.plan, folder), folder, lambda sentence: None)
        return {trial.id for trial in plan.trials} <= done

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study's lock, begin an attempt, and store the study's file and code; warn if the code has changed.

        In a job, its submitted files are stored, too. The warning is printed only if stored results are discarded.

        Raises:
            BusyError: if another process holds the lock, or takes the study over.
            StoreError: if the store can't be read or written.
            InputError: if a newer package wrote one of the study's files.
        """
        folder = Store(self.options.root).study(self.plan.spec.study).judged_by(self.plan.criterion)
        with folder.lock(self._notify) as self._lock:
            self._attempt = folder.begin_attempt()
            self.folder = folder.of_attempt(self._attempt)
            self.folder.remove_heartbeat()  # of a process that was killed
            self._warn_of_changed_code()
            self.plan = with_looks(self.plan, self.folder)
            keep_looks(self.plan, self.folder)
            self.folder.write_spec(self.plan.spec.text)
            keep_code(self.plan.spec, self.folder, {} if self._engines is None else self._engines.layouts)
            if in_job():
                keep_submitted(self.plan.spec, self.folder)
            self._earlier_failures = reason_keys(self._patience(self.folder.failed_rows))
            for notice in self.folder.notices:  # of damaged files
                self._notify(notice)
            yield

    def _warn_of_changed_code(self) -> None:
        """Warn of a change of own code that discards stored results, if a planned trial lacks a result of this code."""
        spec = self.plan.spec
        if spec.source_code is not None and not {trial.id for trial in self.plan.trials} <= self.folder.done(
            with_stopped=spec.pruning is not None
        ):
            for sentence in change_sentences(spec, self.folder):
                self._notify(sentence)

    def extend(self) -> list[Trial]:
        """Extend the plan by the stored results, and return its trials without a result or an attempt in this run.

        Results of equal trials are adopted from other studies of the store first.

        Raises:
            StoreError: if the store can't be read or written, or stays away too long.
            BusyError: if another driver has taken the study over.
            InputError: if a newer package wrote one of the study's files; or if the record of a search belongs to
                another one, or no suggestion of it can be trained.
        """
        while True:
            before = self.plan
            self.plan = self._patience(partial(self._extend, before, self.folder, self.console.print))
            missing = self._patience(partial(find_missing, self.plan, self.folder, self.options, self.console))
            pending = [trial for trial in missing if trial.id not in self._attempted]
            # Trials adopted from other studies of the store may be enough to extend the plan again.
            if pending or self.plan is before:
                self._attempted.update(trial.id for trial in pending if self.plan.may_extend)
                return pending

    def conclude(self) -> Ending:
        """Print a finished study's results, and return the ending; report and publish unless both are current.

        In a notebook, only failures are printed.

        Raises:
            StoreError: if the store can't be read or written, or stays away too long.
            BusyError: if another driver has taken the study over.
            InputError: if a newer package wrote one of the study's files.
            StudyError: if the report can't be written.
            OSError: if a written file of the report can't be read again.
        """
        results = self._results(self.options.patience_s)
        if are_current(results, self.options.tracking_uri):
            _print_results(results, self.console)
            return _ending(results)
        self._keep_judgements(results, self.options.patience_s)
        with self._publication():
            self._publish(results)
        return _ending(results)

    @contextmanager
    def checking_order(self) -> Iterator[Callable[[], None]]:
        """Prepare the check that a training function's results don't depend on the order of trials.

        Yields:
            A function to call before training, which concludes the check (`study.driver.order_check`); a no-op if
            there is nothing to check.

        Raises:
            InputError: if the code can't be unpacked.
            StoreError: if the verdict can't be written, or the store stays away too long.
            BusyError: if another driver has taken the study over.
            OSError: if the cache of code can't be written.
        """
        from study.driver.order_check import checking_order

        with checking_order(self.plan, self.folder, self.console, self._patience) as conclude:
            yield conclude

    @contextmanager
    def prepare(self) -> Iterator[None]:
        """Start workers and a publisher, and end them afterwards.

        The cluster outlives the publisher, because Ray ends the process if another thread uses it after its shutdown.

        Raises:
            InputError: if no engine trains a cell, or a newer package wrote one of the study's files.
            ClusterError: if Ray is needed, but can't be started or has no room.
            StoreError: if the store can't be read, or stays away too long.
            OSError: if a process that trains or prepares can't be started.
        """
        from study.driver.resources import first_workers  # imported late: engines and Ray take seconds to import

        # Without engines, all trials had been done by another run, and their results have gone since.
        engines = self._engines or self._resolve()
        with ExitStack() as self._workers:
            first = first_workers(engines, self.plan, self._attempt, self.console)
            self.resources = self._workers.enter_context(first)
            with self._publication():
                yield

    @contextmanager
    def _publication(self) -> Iterator[None]:
        uri = self.options.tracking_uri
        with publication(self.plan, self.folder, uri, self.console, self._patience) as self.publication:
            yield

    def train(self, pending: Sequence[Trial]) -> bool:
        """Train the pending trials and those that follow from them; store and publish results as they come.

        Returns:
            True if training came to its end, or failed trials ended it early; False if it was stopped.

        Raises:
            InputError: if no engine trains a cell, or as for `extend`.
            ClusterError: if Ray is needed, but can't be started or has no room.
            StoreError: if the store can't be read or written, or stays away too long.
            BusyError: if another driver takes the study over while the plan is extended.
        """
        formed = self.resources.form(pending, self.folder, self.console)
        self._stop, options = threading.Event(), self.options
        self._monitor = Monitor(
            self.folder,
            self.publication.publisher,
            self.console,
            self._stop,
            options.patience_s,
            keep_going=options.keep_going,
        )
        self._monitor.begin(self.plan, formed.packs, pending)
        left = self._train_here(formed.bundles, formed.shares)
        if left and not self._stop.is_set():
            from study.driver.resources import workers

            ray = workers(self.resources.engines, self.plan, self.console)
            self.resources = self._workers.enter_context(ray)
            self._train_here(left, None)
        return not self._stop.is_set() or self._monitor.gave_up is not None

    def _train_here(
        self, bundles: Sequence[cluster.Bundle], shares: Mapping[str, float] | None
    ) -> Sequence[cluster.Bundle]:
        """Train bundles on the current resources, and return those left for Ray; notify if few workers were used.

        `shares` is each pack's share of a GPU, by its id; None unless cores and GPUs take the same bundles.
        """
        # Our signal handlers are set after Ray has started, since Ray sets its own when it starts.
        with stopping(self.console, self._stop):
            more = self._more if self.plan.may_extend else None
            scheduler = self.resources.scheduler(self._attempt, self._stop, more)
            began = time.monotonic()
            with self._monitor.showing():
                used = scheduler.run(bundles, shares, self._on_event)
            took_s = time.monotonic() - began
        finished = not self._stop.is_set() or self._monitor.gave_up is not None
        if used and len(used) < min(self.resources.count, len(bundles)) and took_s > _TIME_TO_START_S and finished:
            self._notify(f"only {len(used)} of {self.resources.count} workers were used")
        return scheduler.left

    def explain_early_stop(self, results: StudyResults) -> None:
        """Print the reason if failed trials ended the run early, and trials are left."""
        if (reason := self._monitor.gave_up) is not None and results.counts["pending"]:
            advice = "Results so far are stored; --keep-going (in Python keep_going=True) trains the others anyway"
            self.console.print(f"stopped early: {reason}. {advice}", style="red")

    def _on_event(self, event: Event) -> None:
        # Packs also fail if another driver has taken the study over; this driver must not store such failures.
        if self._lock.lost or (isinstance(event, PackFailed) and not self._is_ours()):
            self._stop.set()
        else:
            self._monitor(event)

    def _more(self) -> tuple[Sequence[tuple[Pack, ...]], Mapping[str, float] | None]:
        """Extend the plan once all its results are stored, and return the next bundles, and the shares of their packs.

        No bundles if no trial is pending, or if this run stops.
        """
        self._monitor.wait()
        if self._stop.is_set() or self._taken_over(self.options.patience_s):
            return [], None
        pending = self.extend()
        if not pending:
            return [], None
        formed = self.resources.form(pending, self.folder, self.console)
        self._monitor.begin(self.plan, formed.packs, pending)
        return formed.bundles, formed.shares

    def publish(self, finished: bool) -> StudyResults:
        """Report, publish and print the study's results, if any trial is done, and return them.

        In a notebook, only failures are printed.

        Args:
            finished: True if training came to its end; if it was stopped, a store that is away isn't waited for.

        Raises:
            BusyError: if another driver has taken the study over.
            StoreError: if the store can't be read or written, or stays away too long.
            InputError: if a newer package wrote one of the study's files.
            StudyError: if the report can't be written.
            OSError: if a written file of the report can't be read again.
        """
        patience_s = self.options.patience_s if finished else 0.0
        if (reason := self._taken_over(patience_s)) is not None:
            raise BusyError(f"{reason}: this run of it stops")
        results = self._results(patience_s)
        self._keep_judgements(results, patience_s)
        if self.plan.judges_at_the_end:  # MLflow has them as finished so far
            self.publication.judge_again(patience_s)
        self._publish(results)
        return results

    def _keep_judgements(self, results: StudyResults, patience_s: float) -> None:
        """If references set the criterion, cache when trials were solved, so that readers needn't load all curves."""
        if self.plan.judges_at_the_end:
            self._patience(partial(self.folder.write_judgements, results.table), patience_s)

    def _publish(self, results: StudyResults) -> None:
        if results.counts["done"]:  # 0 if the run was interrupted before the first pack was done
            self.publication.publish(results, self.options.tracking_uri)
            _print_results(results, self.console)

    def _results(self, patience_s: float) -> StudyResults:
        """Load the results, and report them to followers of the run."""
        results = self._patience(partial(_checked_results, self.folder, self.options), patience_s)
        results = replace(results, earlier_failures=self._earlier_failures)
        beat(self.plan.spec.study, results.counts, self.console, failures=results.failures)
        return results

    def _taken_over(self, patience_s: float) -> str | None:
        """Return a sentence if another driver has taken the study over, otherwise None.

        Raises:
            StoreAwayError: if the store or the study stays away until the patience ends.
        """
        if self._lock.lost is not None:
            return self._lock.lost
        try:
            self._patience(self.folder.check, patience_s)
        except BusyError as error:
            return str(error)
        return None

    def _is_ours(self) -> bool:
        """Return True unless another driver is known to have the study; the monitor waits for a store that is away."""
        try:
            self.folder.check()
        except BusyError:
            return False
        except StoreAwayError:
            return True
        return True


def find_missing(plan: Plan, folder: StudyStore, options: Options, console: Console) -> list[Trial]:
    """Return the trials that lack a result or failed, after adopting results from other studies of the store.

    A trial that was stopped early has a result only if the study prunes trials.

    Args:
        plan: the study's plan.
        folder: the study's part of the store.
        options: the run's options, with the store's address.
        console: the console for the numbers of adopted and of unplanned trials, and for notices on files.

    Raises:
        StoreError: if the store can't be read or written, or the study is gone from it.
        InputError: if a newer package wrote one of the study's files, or another study's curves, weights or files of
            trials can't be adopted.
        BusyError: if another driver has taken the study over.
    """
    store, first_notice = Store(options.root), len(folder.notices)
    done, planned = folder.done(with_stopped=plan.spec.pruning is not None), {trial.id for trial in plan.trials}
    adopted = store.adopt(plan.spec.study, planned - done, folder) if planned - done else 0
    if adopted:
        verb = "is" if adopted == 1 else "are"
        console.print(f"{count_of(adopted, 'trial')} {verb} done already in other studies of this store")
        done = folder.done(with_stopped=plan.spec.pruning is not None)
    unasked = len(done - planned)
    if unasked:
        console.print(f"stored trials that aren't in this file any more: {unasked:,}; they are kept, and not shown")
    folder.check()
    for notice in [*store.notices, *folder.notices[first_notice:]]:
        console.print(notice, style="yellow")
    return [trial for trial in plan.trials if trial.id not in done]


def _checked_results(folder: StudyStore, options: Options) -> StudyResults:
    folder.check()
    return load_results(folder.name, options.root)


def _print_results(results: StudyResults, console: Console) -> None:
    """Print the results; in a notebook only the failures, since it shows the study that `Study.run` returns."""
    if console.is_jupyter:
        print_failures(results, console)
        print_failed_parts(results, console)
    else:
        print_results(results, console)


def _ending(results: StudyResults) -> Ending:
    if results.counts["failed"]:
        return Ending.FAILURES
    return Ending.REPORT_FAILED if results.parts.failures else Ending.FINISHED
