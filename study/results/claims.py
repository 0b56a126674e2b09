"""Verdicts on the claims of a study's current file, from stored results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.console import Console
from study.errors import InputError
from study.plan.claims import ClaimVerdict, claim_verdicts
from study.plan.plan import Plan
from study.reports import Findings, ResultRows, brief_sections, cell_rows, claims_rows, claims_sentence, print_section
from study.results.load import extended_plan, summaries_of
from study.results.stored_plan import rows_of_plan, with_looks
from study.store import Store
from study.trials.table import TrialTable


@dataclass(frozen=True)
class CheckedClaims:
    """The verdicts on a study's claims.

    Args:
        study: the study's name.
        rows: its cells' results.
        verdicts: one verdict a claim.
    """

    study: str
    rows: ResultRows
    verdicts: Sequence[ClaimVerdict]

    @property
    def are_refuted(self) -> bool:
        """True if any claim is refuted."""
        return any(verdict.state == "refuted" for verdict in self.verdicts)

    @property
    def hold(self) -> bool:
        """True if all claims are shown."""
        return all(verdict.state == "shown" for verdict in self.verdicts)

    @property
    def word(self) -> str:
        """The verdict on all claims together: ``shown``, ``refuted`` or ``undecided``."""
        return "refuted" if self.are_refuted else "shown" if self.hold else "undecided"

    @property
    def sentence(self) -> str:
        """The numbers of shown, refuted and undecided claims, as a sentence."""
        return claims_sentence(self.verdicts)

    def print(self, console: Console) -> None:
        """Print each claim with its verdict and evidence, then `sentence`.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        findings = Findings(name=self.study, question="", rows=self.rows, claims=self.verdicts)
        for section in brief_sections(findings):
            print_section(console, section)
        console.print(self.sentence)

    @property
    def data(self) -> dict[str, Any]:
        """The verdicts as JSON data, with the columns of claims.csv."""
        return {"study": self.study, "verdict": self.word, "claims": claims_rows(self.verdicts)}


def check_claims(plan: Plan, root: str | Path) -> CheckedClaims:
    """Judge the claims of a study's file by the stored results, without training or writing anything.

    Args:
        plan: the plan of the study's file.
        root: the store's folder, or its URL.

    Raises:
        InputError: if the store's address isn't valid, the file has no claims, stored results don't match their cells
            or a newer package wrote them, or if a package's vocabulary can't be imported.
        UnknownStudyError: if the store has no such study.
        StoreError: if the stored results or looks can't be read, or results contradict each other.
    """
    if not plan.spec.claims:
        raise InputError(
            f"study {plan.spec.study!r} has no claims to check; add them to its file, such as "
            "claims: [{NMU: success_rate, exceeds: 0.9, at: every cell}]"
        )
    folder = Store(root, read_only=True).open(plan.spec.study).judged_by(plan.criterion)
    stored = folder.read_results()
    extended = extended_plan(with_looks(plan, folder), folder, stored)
    table = TrialTable(rows_of_plan(stored, extended), extended.metrics)
    titles = plan.spec.family.titles
    rows = cell_rows(summaries_of(extended, table), extended.labels, plan.spec.named_metrics, titles=titles)
    return CheckedClaims(plan.spec.study, rows, claim_verdicts(extended, table))
