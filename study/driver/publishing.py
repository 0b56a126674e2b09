"""From the store to the reader: the report and MLflow, while a study runs and at its end."""

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
"""How long the end of a run may wait for MLflow."""
_WRITE_S = 0.1
"""The seconds that it waits longer for each trial that is judged only then; it takes about half of that to write."""


class Publication:
    """The report and the MLflow runs of a study that is being run.

    Args:
        folder: the study's part of the store.
        packs: the study's packs, as MLflow gets them.
        report_into: the folder to write the report into.
        publisher: sends results to MLflow; None if nothing is published there.
        patience: waits for a store that is away.
    """

    def __init__(
        self, folder: StudyStore, packs: StoredPacks, report_into: Path, publisher: Publisher | None, patience: Patience
    ) -> None:
        self._folder, self._packs, self._report_into, self._patience = folder, packs, report_into, patience
        self.publisher = publisher

    def judge_again(self, patience_s: float) -> None:
        """Publish the trials that are judged only at the end, as they are judged now."""
        if self.publisher is not None:
            self._packs.judge(self._patience(self._folder.read_results, patience_s))
            self.publisher.catch_up()

    def publish(self, results: StudyResults, tracking_uri: str | None) -> None:
        """Write and store the report, and leave all that MLflow shows of the study as a whole to the publisher.

        Parts that fail are kept in `results.parts`.
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
    """Begin to publish a study, with what earlier runs left, and tell at the end what MLflow missed.

    Args:
        plan: what the study asks for.
        folder: its part of the store.
        uri: the MLflow server; None to publish nothing there.
        console: where to tell it.
        patience: waits for a store that is away.
    """
    without = in_series_only(plan.metrics, plan.spec.named_metrics)
    packs = StoredPacks(folder, without_curves=without, has_files=plan.spec.has_files)
    if plan.judges_at_the_end and uri is not None:
        packs.judge(patience(folder.read_results))  # as they were published last
    with report_folder(folder) as report_into, _publisher(plan, packs, uri, console) as publisher:
        if publisher is not None:  # an earlier run may have been killed, or may have had no MLflow
            publisher.catch_up()
        yield Publication(folder, packs, report_into, publisher, patience)


@contextmanager
def _publisher(plan: Plan, packs: StoredPacks, uri: str | None, console: Console) -> Iterator[Publisher | None]:
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
        with waiting(console, "publishing what is left to MLflow"):
            missed = publisher.close(_CLOSE_S + (_WRITE_S * plan.trials_count if plan.judges_at_the_end else 0.0))
    if publisher.trouble is not None:
        notify(publisher.trouble)
    if publisher.trouble is not None or missed:
        notify(f"{missed} trials are not published yet: `study sync {spec.study}` does that")
