"""The content of a report: the data of its sections, figures and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from study.comparisons.comparison import Comparisons
from study.comparisons.contrasts import Contrasts
from study.comparisons.overall import Overall
from study.comparisons.sources import SourceShares
from study.comparisons.standardised import Standardisation
from study.interface.declarations import Metric
from study.summaries.failures import Failure
from study.summaries.learning import LearningCurve
from study.summaries.references import ReferenceFindings
from study.summaries.rows import ResultRows
from study.summaries.search import SearchFindings
from study.summaries.trial_details import Gates, TrialWeights

if TYPE_CHECKING:
    from study.plan.claims import ClaimVerdict
    from study.plan.verdict import Verdict  # its imports take long, and tables of files don't need them


@dataclass(frozen=True)
class DataRows:
    """Rows for other programs.

    Args:
        schema: the columns.
        rows: each maps columns to values; a missing column has no value.
    """

    schema: pa.Schema
    rows: Sequence[Mapping[str, Any]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows with every column of the schema, in its order; None where a value is missing."""
        return [{name: row.get(name) for name in self.schema.names} for row in self.rows]


class PageLinks(Protocol):
    """The addresses of a dashboard's pages."""

    def trial(self, trial_id: str) -> str:
        """Return the address of the page that shows one trial."""

    def cell(self, cell_id: str) -> str:
        """Return the address of the page that lists a cell's trials."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """The findings of a study.

    Args:
        name: the name of the study, or of the tabulated files.
        question: the question that the study answers.
        rows: the results of the trials, and the keys that identify the rows.
        headline: the finding, in a sentence.
        contrasts: trends and tests between rows.
        overall: methods aggregated over tasks; None for one method, one task, or without a suitable metric.
        against: comparisons of the rows with others; None without others.
        verdicts: whether the seeds of each cell, or pair of cells, are enough, if seeds are added until they are.
        claims: the verdicts of the study's claims.
        sources: the variance shares of the sources of randomness, if their seeds are combined.
        standardised: success rates with equal starts; None if they weren't asked for.
        search: the candidates of a search; None if the study isn't one.
        references: the bounds that references set, if they define success.
        failures: the reasons of failed trials, the most frequent first.
        notes: notes that readers must see.
        columns: the statistics of the LaTeX and Markdown tables, as named in cells.csv; empty for the usual ones.
    """

    name: str
    question: str
    rows: ResultRows
    headline: str = ""
    contrasts: Contrasts = field(default_factory=Contrasts)
    overall: Overall | None = None
    against: Comparisons | None = None
    verdicts: Sequence[Verdict] = ()
    claims: Sequence[ClaimVerdict] = ()
    sources: Sequence[SourceShares] = ()
    standardised: Standardisation | None = None
    search: SearchFindings | None = None
    references: ReferenceFindings | None = None
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()
    columns: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Findings):
    """The content of a report's files.

    Args:
        data: the results of the rows for other programs.
        command: the command that makes the report again.
        protocol: the hyperparameters that all trials share; empty if unknown.
        spec: the text of the study file; empty if there is none.
        provenance: one mapping for each distinct provenance of the results.
        trials: columns `row` (of `rows`), trial_id, seed, outcome, solved_at_iteration, metrics, training_s and error;
            None if the trials are too many to list.
        files: the names of each trial's files, by trial id; the report's folder links them as ``../files/TRIAL/``.
        metrics: the declarations of the trials' metrics, by name.
        links: addresses of trials and cells in a dashboard; None without one.
        learning: learning curves of some rows.
        gates: the gates of gated units.
        weights: the weights of one trial.
    """

    data: DataRows
    command: str
    protocol: Mapping[str, str] | None = None
    spec: str = ""
    provenance: Sequence[Mapping[str, Any]] = ()
    trials: pa.Table | None = None
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    links: PageLinks | None = None
    learning: Sequence[LearningCurve] = ()
    gates: Sequence[Gates] = ()
    weights: TrialWeights | None = None
