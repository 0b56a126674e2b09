"""Publication of a study in its report and in MLflow, during a run and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from study.console import Console
from study.driver.progress import waiting
from study.plan.plan import Plan
from study.results.dashboard import cell_runs, charts, planned_cells
from study.results.load import StudyResults
from study.results.stored_packs import StoredPacks
from study.results.study import failures_note, report_folder, write_and_keep
from study.store import StudyStore
from study.store.retry import Patience
from study.summaries.metrics import in_series_only
from study.tracking import Publisher

_CLOSE_S = 60.0
"""Seconds that the end of a run may wait for MLflow."""
_WRITE_S = 0.1
"""Additional seconds for each trial that is judged only at the end; writing one takes about half of that."""


class Publication:
    """The report and the MLflow runs of a running study.

    Args:
        folder: the study's part of the store.
        packs: reads the study's packs for MLflow.
        report_into: the folder of the report.
        publisher: sends results to MLflow; None to publish nothing there.
        patience: waits for a store that is away.
    """

    def __init__(
        self, folder: StudyStore, packs: StoredPacks, report_into: Path, publisher: Publisher | None, patience: Patience
    ) -> None:
        self._folder, self._packs, self._report_into, self._patience = folder, packs, report_into, patience
        self.publisher = publisher

    def judge_again(self, patience_s: float) -> None:
        """Publish the present outcomes of trials that are judged only at the end; no-op without MLflow.

        Args:
            patience_s: seconds that the store may be away.

        Raises:
            StoreAwayError: if the store is away for longer.
            StoreError: if the results can't be read.
            InputError: if a newer package wrote one of the results.
        """
        if self.publisher is not None:
            self._packs.judge(self._patience(self._folder.read_results, patience_s))
            self.publisher.catch_up()

    def publish(self, results: StudyResults, tracking_uri: str | None) -> None:
        """Write and store the report, and queue MLflow's views of the whole study.

        With MLflow, it first waits up to a minute for the first try to open the study there. Failures of single parts
        are kept in `results.parts`.

        Args:
            results: the study and its results.
            tracking_uri: MLflow's address, for links in the report; None for no links.

        Raises:
            StudyError: if the report can't be written.
            StoreError: if the report can't be stored.
            BusyError: if another driver has taken the study over.
            InputError: if a newer package wrote one of the results.
            OSError: if a written file can't be read again.
            ValueError: if the results have no row.
        """
        publisher = self.publisher
        if publisher is not None:
            publisher.wait_for_study()
        report = write_and_keep(results, self._report_into, self._folder, tracking_uri=tracking_uri)
        if publisher is None:
            return
        publisher.queue_counts(results.counts)
        attempt = results.parts.attempt
        publisher.queue_cells(attempt("cells in MLflow", lambda: cell_runs(results), []))
        publisher.queue_charts(lambda: attempt("charts in MLflow", lambda: charts(results), []))
        note = attempt("reasons of failed trials in MLflow", lambda: failures_note(results), "")
        publisher.queue_finding(results.headline, results.counts, note)
        for file in report.files:
            publisher.queue_artifact(file)
        if not results.parts.failures:
            publisher.shows(report.mark)


@contextmanager
def publication(
    plan: Plan, folder: StudyStore, uri: str | None, console: Console, patience: Patience
) -> Iterator[Publication]:
    """Publish a study during the block, with results of earlier runs; then wait for MLflow, and report missing parts.

    The wait takes at most a minute, or longer if many trials are judged only at the end. Nothing is reported after a
    block that raised an error.

    Args:
        plan: the study's plan.
        folder: its part of the store.
        uri: the MLflow server; None to publish nothing there.
        console: where missed results are reported.
        patience: waits for a store that is away.

    Yields:
        The publication, to which the run gives its results.

    Raises:
        StoreAwayError: if the store is away for longer than `patience` allows.
        StoreError: if results that references judge can't be read.
        InputError: if a newer package wrote one of them.
    """
    without = in_series_only(plan.metrics, plan.spec.named_metrics)
    packs = StoredPacks(folder, without_curves=without, has_files=plan.spec.has_files)
    if plan.judges_at_the_end and uri is not None:
        packs.judge(patience(folder.read_results))  # as the last run published them
    with report_folder(folder) as report_into, _publisher(plan, packs, uri, console) as publisher:
        if publisher is not None:  # an earlier run may have been killed, or may have had no MLflow
            publisher.catch_up()
        yield Publication(folder, packs, report_into, publisher, patience)


@contextmanager
def _publisher(plan: Plan, packs: StoredPacks, uri: str | None, console: Console) -> Iterator[Publisher | None]:
    """Yield the publisher to MLflow, None without a server; then wait for it, and report the missed trials."""
    if uri is None:
        yield None
        return
    spec = plan.spec

    def notify(sentence: str) -> None:
        console.print(sentence, style="yellow")

    with Publisher(
        uri,
        spec.study,
        packs,
        question=spec.question,
        spec=spec.text,
        cells=partial(planned_cells, plan),
        notify=notify,
    ) as publisher:
        yield publisher
        with waiting(console, "publishing the remaining results to MLflow"):
            missed = publisher.close(_CLOSE_S + (_WRITE_S * plan.trials_count if plan.judges_at_the_end else 0.0))
    if publisher.trouble is not None:
        notify(publisher.trouble)
    if publisher.trouble is not None or missed:
        missing = f"{missed:,} of the stored trials aren't published yet" if missed else "MLflow may lack the report"
        notify(f"{missing}: run `study sync {spec.study}`")
