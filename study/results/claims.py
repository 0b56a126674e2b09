"""A study's claims as its file has them now, judged by what is stored."""

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
    """The verdicts of a study's claims.

    Args:
        study: its name.
        rows: its cells' results.
        verdicts: one a claim.
    """

    study: str
    rows: ResultRows
    verdicts: Sequence[ClaimVerdict]

    @property
    def are_refuted(self) -> bool:
        """Whether any is."""
        return any(verdict.state == "refuted" for verdict in self.verdicts)

    @property
    def hold(self) -> bool:
        """Whether all are."""
        return all(verdict.state == "shown" for verdict in self.verdicts)

    @property
    def word(self) -> str:
        """``shown``, ``refuted`` or ``undecided``: the verdict on all of them together."""
        return "refuted" if self.are_refuted else "shown" if self.hold else "undecided"

    @property
    def sentence(self) -> str:
        """How many are shown, refuted and undecided."""
        return claims_sentence(self.verdicts)

    def print(self, console: Console) -> None:
        """Print each claim with its verdict, and the evidence."""
        findings = Findings(name=self.study, question="", rows=self.rows, claims=self.verdicts)
        for section in brief_sections(findings):
            print_section(console, section)
        console.print(self.sentence)

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON data: the columns of claims.csv."""
        return {"study": self.study, "verdict": self.word, "claims": claims_rows(self.verdicts)}


def check_claims(plan: Plan, root: str | Path) -> CheckedClaims:
    """Judge the claims of a study's file by the stored results; nothing is trained or written.

    Args:
        plan: what the file asks for.
        root: the store's folder, or its URL.

    Raises:
        InputError: if it has no claims.
        UnknownStudyError: if the store has no such study.
    """
    if not plan.spec.claims:
        raise InputError(
            f"study {plan.spec.study!r} has no claims to check; say them in its file, such as "
            "claims: [{NMU: success_rate, exceeds: 0.9, at: every cell}]"
        )
    folder = Store(root, read_only=True).open(plan.spec.study).judged_by(plan.criterion)
    stored = folder.read_results()
    extended = extended_plan(with_looks(plan, folder), folder, stored)
    table = TrialTable(rows_of_plan(stored, extended), extended.metrics)
    titles = plan.spec.family.titles
    rows = cell_rows(summaries_of(extended, table), extended.labels, plan.spec.named_metrics, titles=titles)
    return CheckedClaims(plan.spec.study, rows, claim_verdicts(extended, table))
