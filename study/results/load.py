"""Stored or published studies: plan, results, rows, contrasts and headline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study import tracking
from study.arrow import trials_table, unified, with_labels
from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline, stopped_sentence
from study.comparisons.overall import Overall, overall
from study.comparisons.plan import Statement
from study.comparisons.sources import SourceShares, source_shares
from study.comparisons.standardised import Standardisation, standardisation
from study.errors import InputError
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.interface.references import ReferenceCriterion
from study.outcomes import Source
from study.plan import until
from study.plan.claims import ClaimVerdict, claim_verdicts
from study.plan.plan import Plan
from study.plan.verdict import Verdict
from study.records import IMPORTED
from study.reports import (
    PUBLISHED,
    Comparisons,
    Contrasts,
    Findings,
    ResultRows,
    cell_rows,
    claims_sentence,
    metric_notes,
    reference_notes,
    search_headline,
    sources_sentence,
    times_notes,
    with_published,
    with_study,
)
from study.results.adoptions import adoptions_of_study
from study.results.certificate import read_certificate
from study.results.order_note import read_order_note
from study.results.stored_plan import rows_of_plan, stored_plan
from study.store import Store, StudyStore
from study.summaries.aggregate import CellSummary, aggregate
from study.summaries.failures import Failure, with_earlier
from study.summaries.parts import Parts
from study.summaries.references import ReferenceFindings, reference_findings
from study.summaries.search import SearchFindings
from study.trials.seed_design import sizes_of_all
from study.trials.table import TrialTable
from study.visible import visible
from study.words import count_of, join_and


@dataclass(frozen=True)
class CandidateCells:
    """All cells that a search has planned.

    Args:
        plan: the cells of its candidates with their seeds.
        summaries: the summaries of these cells.
        table: the results of their trials.
    """

    plan: Plan
    summaries: Sequence[CellSummary]
    table: pa.Table


@dataclass(frozen=True)
class StudyResults:
    """A study and its results so far.

    Findings are computed on first use. One that fails is recorded in `parts`, and left empty. A `StudyError` is raised,
    such as an `InputError` if a package's vocabulary can't be imported.

    Args:
        plan: the study's plan.
        folder: its part of the store.
        trials: its trials so far.
        summaries: one summary a cell, in the plan's order.
        against: the comparison with published numbers, or with another study.
        notices: sentences about invalid files, and about trials that were trained again, imported or adopted.
        search: the search's candidates and findings; None if the study isn't a search.
        planned_cells: all cells that a search has planned; None if the study isn't a search, or hasn't begun.
        parts: the parts of its report that failed so far.
        earlier_failures: the key of the reason of each trial that had failed before a run, by trial id.
    """

    plan: Plan
    folder: StudyStore
    trials: TrialTable
    summaries: Sequence[CellSummary]
    against: Comparisons
    notices: Sequence[str]
    search: SearchFindings | None = None
    planned_cells: CandidateCells | None = None
    parts: Parts = field(default_factory=Parts, compare=False)
    earlier_failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.plan.spec.study

    @property
    def table(self) -> pa.Table:
        """The results of its trials."""
        return self.trials.results

    @cached_property
    def findings(self) -> Findings:
        """The report's findings, without the slow aggregate over tasks."""
        return Findings(
            name=self.name,
            question=self.plan.spec.question,
            rows=self.rows,
            headline=self.headline,
            contrasts=self.contrasts,
            against=self.against,
            verdicts=self.verdicts,
            claims=self.claims,
            sources=self.sources,
            standardised=self.standardised,
            search=self.search,
            references=self.references,
            failures=self.failures,
            notes=self.notes,
        )

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of its trials."""
        return self.plan.metrics

    @cached_property
    def _plain_rows(self) -> ResultRows:
        """The rows of the report without winners."""
        spec = self.plan.spec
        return cell_rows(
            self.summaries, self.plan.labels, spec.named_metrics, spec.family.question_fields, spec.family.titles
        )

    @cached_property
    def rows(self) -> ResultRows:
        """The rows of the report, one a cell, with labels and winners."""
        places = self._compared_places
        return replace(self._plain_rows, winners=frozenset(places[row] for row in self.contrasts.winners))

    @cached_property
    def references(self) -> ReferenceFindings | None:
        """The findings from references; None unless references set the success criterion."""
        criterion = self.plan.criterion
        if not isinstance(criterion, ReferenceCriterion):
            return None
        cell_ids = [s.cell_id for s in self.summaries]
        return self.parts.attempt(
            "bounds of references", lambda: reference_findings(self.trials, criterion, cell_ids), None
        )

    def bounds(self, cell_id: str) -> Mapping[str, Bound]:
        """Return the bounds, by metric, that a trial of the cell must meet to be solved.

        Fixed bounds hold for every cell. If references set them: empty for a cell without references or with fewer than
        two that count, and if the findings from references failed. Empty, too, without a criterion by metrics.
        """
        criterion = self.plan.criterion
        if not isinstance(criterion, ReferenceCriterion) or self.references is None:
            return criterion if isinstance(criterion, Mapping) else {}
        reference = criterion.reference_of.get(cell_id)
        return {} if reference is None else criterion.of(self.references.references[reference])

    @cached_property
    def _compared_places(self) -> Sequence[int]:
        """The places of the compared rows: without references, and without rows with trials that were stopped early.

        All rows if none is left.
        """
        criterion = self.plan.criterion
        references = criterion.seeds if isinstance(criterion, ReferenceCriterion) else {}
        places = [row for row, s in enumerate(self.summaries) if s.cell_id not in references and not s.stopped]
        return places or range(len(self.summaries))

    @cached_property
    def compared(self) -> ResultRows:
        """The rows that are compared with each other; `winners` is empty.

        References and rows with trials that were stopped early aren't compared, unless no other rows are left.
        """
        places = self._compared_places
        return self._plain_rows if len(places) == len(self.summaries) else self._plain_rows.select(places)

    @property
    def _all_have_stopped(self) -> bool:
        """True if every row has trials that were stopped early, so that no rows can be compared."""
        return all(s.stopped for s in self.compared.summaries)

    @cached_property
    def contrasts(self) -> Contrasts:
        """The comparisons between cells; empty for a search, and if every row has trials that were stopped early."""
        if self.search is not None or self._all_have_stopped:
            return Contrasts()
        spec = self.plan.spec
        sizes, stated = spec.seed_design.sizes, [Statement(table.factor, table.tune) for table in spec.compare]
        return self.parts.attempt(
            "comparisons between rows", lambda: contrasts(self.compared, self.trials, sizes, stated), Contrasts()
        )

    @cached_property
    def overall(self) -> Overall | None:
        """The methods aggregated over tasks; None with fewer than two methods or common tasks, or without a metric.

        None, too, for a search, combined or adaptive seeds, and if every row has trials that were stopped early.
        """
        if self.search is not None or self._all_have_stopped or not self.plan.spec.seed_design.is_plain:
            return None
        return self.parts.attempt("aggregate over tasks", lambda: overall(self.compared, self.trials), None)

    @cached_property
    def standardised(self) -> Standardisation | None:
        """Success rates standardised to equal starts; None if the file names no covariate, or no judged trial has it.

        None, too, if every row has trials that were stopped early.
        """
        if not self.plan.spec.standardise or self._all_have_stopped:
            return None
        return self.parts.attempt("standardised rates", self._standardised, None)

    def _standardised(self) -> Standardisation | None:
        """Standardise rates, with the rows' places in the report instead of those among the compared rows.

        None if no judged trial has the covariate.
        """
        result = standardisation(self.compared, self.trials, self.contrasts, self.plan.spec.standardise)
        if result is None:
            return None
        places = self._compared_places
        return replace(result, rates=tuple(replace(rate, row=places[rate.row]) for rate in result.rates))

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdict on each cell's number of seeds, or each pair's; empty without `until`."""
        return self.parts.attempt("verdicts on seeds", lambda: until.verdicts(self.plan, self.trials), [])

    @cached_property
    def claims(self) -> Sequence[ClaimVerdict]:
        """The verdicts on its claims; empty without claims."""
        if not self.plan.spec.claims:
            return []
        return self.parts.attempt("claims", lambda: claim_verdicts(self.plan, self.trials), [])

    @cached_property
    def sources(self) -> Sequence[SourceShares]:
        """Each source's share of the variance; empty unless the sources' seeds are combined."""
        if not self.plan.spec.seed_design.are_combined:
            return []
        return self.parts.attempt(
            "shares of sources of randomness",
            lambda: source_shares(self.summaries, self.trials, self.rows.single_metrics),
            [],
        )

    @cached_property
    def failures(self) -> Sequence[Failure]:
        """The reasons of failed trials, the most frequent first."""
        table = self.table if self.planned_cells is None else self.planned_cells.table
        return with_earlier(table, self.earlier_failures)

    @cached_property
    def notes(self) -> Sequence[str]:
        """Notes for the reader: the notices, the family's remarks, and notes on rows."""
        row_notes: list[str] = self.parts.attempt("notes", self._row_notes, [])
        return [*self.notices, *self.plan.spec.family.remarks, *row_notes]

    def _row_notes(self) -> list[str]:
        """Return notes on references, times and metrics."""
        notes = reference_notes(self.rows, self.references) if self.references is not None else []
        return [*notes, *times_notes(self.rows), *metric_notes(self.rows)]

    @cached_property
    def headline(self) -> str:
        """The study's finding, in one or more sentences."""
        return self.parts.attempt("finding", self._headline, "The finding couldn't be computed.")

    def _headline(self) -> str:
        """Return the finding: of a search, of trials stopped early, or of claims, sources and compared rows."""
        if self.search is not None:
            return search_headline(self.search, self.summaries)
        if sum(s.stopped for s in self.summaries):
            return stopped_sentence(self.rows, self.compared, self.contrasts)
        sentence = headline(self.compared, self.contrasts)
        if len(self.compared.summaries) < len(self.summaries):
            sentence = f"{sentence[:-1]}; references are not counted."
        return " ".join(filter(None, (claims_sentence(self.claims), sources_sentence(self.sources), sentence)))

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of trials: all, done (not pending), and by state; finished and stopped only if there are any.

        For a search, they include cells that the report doesn't show.
        """
        names = ("solved", "unsolved", "finished", "stopped", "diverged", "failed", "pending")
        summaries = self.summaries if self.planned_cells is None else self.planned_cells.summaries
        by_state = {name: sum(getattr(s, name) for s in summaries) for name in names}
        by_state = {name: n for name, n in by_state.items() if n or name not in ("finished", "stopped")}
        trials = sum(s.seeds for s in summaries)
        return {"trials": trials, "done": trials - by_state["pending"], **by_state}


def load_results(
    name: str, root: str | Path, *, tracking_uri: str | None = None, compare: str = PUBLISHED
) -> StudyResults:
    """Load a study and its results so far.

    Args:
        name: the study's name.
        root: the store's folder, or its URL.
        tracking_uri: read the results from this MLflow server instead of the store.
        compare: ``published``, or a study of the store to compare with.

    Raises:
        UnknownStudyError: if the store has no such study.
        InputError: if the study to compare with has no results, or can't be compared with this one (`with_study`); if
            the record of a search belongs to another one; if the stored file is invalid, results don't match their
            cells, or a newer package wrote them; or if the store's address isn't valid, or a package's vocabulary can't
            be imported.
        StoreError: if the store can't be read, or its files contradict each other.
        TrackingError: if the MLflow server can't be reached or doesn't know the study.
    """
    folder, plan, table = _read(name, root, tracking_uri)
    if not plan.spec.seed_design.is_search:
        return _results_of(folder, plan, table, root, tracking_uri, compare)
    # imported late: Optuna is slow to import, and most studies don't need it
    from study.results import search as results_of_search
    from study.search import read_record, search_findings

    record = read_record(plan.spec, folder)
    if record is None:
        return _results_of(folder, plan, table, root, tracking_uri, compare)
    report_plan = results_of_search.reported_plan(plan, record)
    results = _results_of(folder, report_plan, rows_of_plan(table, report_plan), root, tracking_uri, compare)
    search = search_findings(plan.spec, record, results.summaries, results.parts)
    more = [] if search.is_over else [results_of_search.NOT_CONFIRMED]
    candidates = CandidateCells(
        results_of_search.with_numbers(plan, record), summaries_of(plan, TrialTable(table, plan.metrics)), table
    )
    return replace(results, search=search, planned_cells=candidates, notices=[*results.notices, *more])


def _imported_from(provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sources of imported results, including results adopted from other studies."""
    if "imported_from" in provenance:
        yield str(provenance["imported_from"])
    originals = provenance.get("original")
    for original in originals if isinstance(originals, list) else ():
        if isinstance(original, Mapping):
            yield from _imported_from(original)


def _results_of(
    folder: StudyStore, plan: Plan, table: pa.Table, root: str | Path, tracking_uri: str | None, compare: str
) -> StudyResults:
    """Assemble a plan's results with the comparison; raise InputError if the other study has no results."""
    trials = TrialTable(table, plan.metrics)
    summaries = summaries_of(plan, trials)
    certificate = read_certificate(folder)
    order = read_order_note(folder)
    sentences = [certificate.sentence if certificate else "", order.warning if order else ""]
    notices = [*folder.notices, *filter(None, sentences)]
    if imported := pc.sum(pc.equal(table["engine"], IMPORTED)).as_py():
        sources = dict.fromkeys(source for entry in folder.provenances() for source in _imported_from(entry))
        names = join_and([visible(source) for source in sources] or ["elsewhere"])
        notices.append(
            f"{imported:,} of {count_of(len(table), 'trial')} ran elsewhere and were imported from {names}: "
            f"`study verify {folder.name}` repeats a share of the trials here"
        )
    notices += [entry.sentence for entry in adoptions_of_study(folder, plan.spec)]
    if compare == PUBLISHED:
        parts = Parts()
        published = parts.attempt(
            "published numbers",
            lambda: with_published(summaries, plan.spec.seed_design.reason_not_fixed),
            Comparisons(name=PUBLISHED, source="", comparisons=()),
        )
        return StudyResults(plan, folder, trials, summaries, published, notices, parts=parts)
    other_folder, other_plan, other_table = _read(compare, root, tracking_uri)
    if not other_table.num_rows:
        raise InputError(f"--compare {compare}: that study has no results yet; `study run` makes them")
    others = TrialTable(other_table, other_plan.metrics)
    sizes = sizes_of_all(study_plan.spec.seed_design.sizes for study_plan in (plan, other_plan))
    titles = plan.spec.family.titles
    against = with_study(summaries, summaries_of(other_plan, others), compare, (trials, others), sizes, titles)
    shared = int(pc.sum(pc.is_in(table["trial_id"], value_set=other_table["trial_id"])).as_py() or 0)
    if shared:
        note = f"{shared:,} trials are in both studies, so they don't differ"
        against = replace(against, notes=(*against.notes, note))
    return StudyResults(plan, folder, trials, summaries, against, [*notices, *other_folder.notices])


def summaries_of(plan: Plan, trials: TrialTable) -> list[CellSummary]:
    """Summarise the results of a plan's cells, in the plan's order.

    Raises:
        InputError: as for `study.summaries.aggregate.aggregate`.
        ValueError: likewise.
    """
    planned = {cell: len(plan.seeds(cell)) for cell in plan.cells}
    return aggregate(
        trials,
        planned=planned,
        rates=until.rate_intervals(plan.spec),
        labels=plan.labels,
        question_fields=plan.spec.family.question_fields,
        is_judged=plan.spec.has_success,
    )


def outcomes_of(
    name: str, root: str | Path, *, tracking_uri: str | None = None, axes: Collection[str] = ()
) -> tuple[Source, Sequence[str]]:
    """Read a study's trials, including the pending ones, as a source for `study.outcomes`.

    Args:
        name: the study's name.
        root: the store's folder, or its URL.
        tracking_uri: read the results from this MLflow server instead of the store.
        axes: names of columns; the study's labelled axes among them become columns of labels.

    Returns:
        The trials, and notices for the reader.

    Raises:
        UnknownStudyError: if the store has no such study.
        InputError: if the study has no results yet, its stored file is invalid, the record of a search belongs to
            another one, results don't match their cells, a newer package wrote them, or the store's address isn't
            valid.
        StoreError: if the store can't be read, or its files contradict each other.
        TrackingError: if the MLflow server can't be reached or doesn't know the study.
    """
    folder, plan, done = _read(name, root, tracking_uri)
    if not done.num_rows:
        raise InputError(f"study {name!r} has no results yet; `study run` makes them")
    done_ids = set(done["trial_id"].to_pylist())
    pending = trials_table(trial for trial in plan.trials if trial.id not in done_ids)
    table = with_labels(unified([done, pending]), plan.labels, axes)
    notices = list(folder.notices)
    if caution := plan.spec.seed_design.caution:
        notices.append(f"study {name!r} {caution}")
    rows, sizes = np.arange(1, table.num_rows + 1), plan.spec.seed_design.sizes
    return Source(name, table, rows, has_pending=True, metrics=plan.metrics, sizes=sizes), notices


def _read(name: str, root: str | Path, tracking_uri: str | None) -> tuple[StudyStore, Plan, pa.Table]:
    """Return a study's part of the store, its extended plan, and the results of this plan's trials."""
    folder = Store(root, read_only=True).open(name)
    plan = stored_plan(folder)
    folder = folder.judged_by(plan.criterion)
    if tracking_uri is None:
        table = folder.read_results()
    else:
        table, _ = tracking.load(tracking_uri, name, with_curves=False, notify=folder.notices.append)
    plan = extended_plan(plan, folder, table)
    return folder, plan, rows_of_plan(table, plan)


def extended_plan(plan: Plan, folder: StudyStore, table: pa.Table) -> Plan:
    """Return a study's plan extended by the trials that its results require, for `until` and searches.

    Any other plan is unchanged. The plan of a search without a record has no cells.

    Raises:
        InputError: if the record of a search belongs to another one, or a newer version wrote it.
        StoreError: if the record of a search can't be read.
    """
    if not plan.spec.seed_design.is_search:
        return until.extended(plan, TrialTable(table, plan.metrics))
    # imported late: Optuna is slow to import, and most studies don't need it
    from study.results import search as results_of_search

    return results_of_search.plan_so_far(plan, folder, table)


def require_results(results: StudyResults) -> None:
    """Check that a study has results; failed trials count as results.

    Raises:
        InputError: if no trial is done yet.
    """
    if not results.counts["done"]:
        raise InputError(f"study {results.plan.spec.study!r} has no results yet; `study run` makes them")
