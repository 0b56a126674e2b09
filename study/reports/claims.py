"""Claims: the verdicts in sentences, the table of evidence, and claims.csv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from study import words
from study.records import Cell
from study.reports.csv_text import ends
from study.reports.text_table import TextTable, count_column, places, text_column
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows

if TYPE_CHECKING:
    from study.plan.claims import ClaimedCell, ClaimVerdict  # their imports take long, and tables of files need none
    from study.spec.claims import Claim

_WORDS = {
    "shown": "shown",
    "refuted": "refuted",
    "undecided": "undecided, and out of seeds",
    "open": "not decided yet: trials are missing",
}
_MOST_EXACT = 1e4


def claims_sentence(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return a sentence with the number of claims by verdict, or one claim's verdict and text; empty without any."""
    count = len(verdicts)
    if not count:
        return ""
    numbers = {state: sum(v.state == state for v in verdicts) for state in _WORDS}
    if numbers["shown"] == count:
        return f"The claim is shown: {verdicts[0].claim.text}." if count == 1 else f"All {count} claims are shown."
    if count == 1:
        return f"The claim is {_WORDS[verdicts[0].state]}: {verdicts[0].claim.text}."
    parts = [f"{n} {'is' if n == 1 else 'are'} {state}" for state, n in numbers.items() if n]
    return f"Of {count} claims {words.join_and(parts)}."


def verdict_line(verdict: ClaimVerdict) -> str:
    """Write a verdict with its claim, trials and training time, and failed seeds and earlier judgements, if any."""
    cost = f"{words.count_of(verdict.trials, 'trial')}, {words.duration(verdict.training_s)} of training"
    failed = f"; {words.count_of(verdict.failed, 'seed')} failed, with unknown numbers" if verdict.failed else ""
    return f"{_WORDS[verdict.state]}: {verdict.claim.text} ({cost}{failed}{judged_before(verdict)})"


def judged_before(verdict: ClaimVerdict) -> str:
    """Return a clause on earlier judgements that raised a claim's error rate; empty without any.

    It begins with a semicolon, and has the numbers of seeds at these judgements and the error rate.
    """
    if not verdict.looked_before:
        return ""
    seeds = words.join_and([f"{count:,}" for count in verdict.looked_before])
    return f"; judged before at {seeds} seeds, so wrong in at most {_percent(verdict.error)} of studies"


def _percent(error: float) -> str:
    """Write a probability as a percentage, to at most three digits: 5%, 1.67%."""
    return f"{100 * error:.3g}%"


def claims_guarantee(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return a sentence with the largest error rate of one or more verdicts, and with the sum if there are several.

    It also says when claims may be judged, by the test of the first verdict.
    """
    errors = [v.error for v in verdicts]
    error = _percent(max(errors))
    shared = "" if len(errors) == 1 else f", and any of the {len(errors)} claims in at most {_percent(sum(errors))}"
    test = verdicts[0].test
    condition = f"judged when all {test.looks[0]:,} seeds have ended" if test.looks_once else "however often one looks"
    return f"A claim is called shown or refuted wrongly in at most {error} of studies{shared}, {condition}."


def claims_note(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return sentences that explain the evidence, intervals and tests that occur in the claims."""
    note = ""
    if any(v.looked_before for v in verdicts):
        note += (
            "Claims were judged before the study file asked for other seeds. The percentages include this: at each "
            "such look, the exact test has half the error of the look before. "
        )
    note += (
        "Evidence is the payoff of bets for or against the claim, as a multiple of their stake; the bets are fair "
        "if the quantity equals its bound. Intervals are at 95% at any time, each by itself."
    )
    if any(cell.p_values for v in verdicts for cell in v.cells):
        note += " Where seeds ran out, an exact test decides with the remaining error."
    note += " Each direction has its own one-sided test; the report's other tests are two-sided."
    if any(v.failed for v in verdicts):
        note += (
            " A failed trial has an unknown number, which counts against showing the claim and against refuting it. "
            "Run the study again to train failed trials again."
        )
    if any(v.claim.is_of_share for v in verdicts):
        note += (
            " For a metric without limits, or with values that differ by factors, the estimate is the share of seeds, "
            "or of solved trials, on the claimed side of the bound; the claim is that this share is above one half."
        )
    return note


def claims_table(rows: ResultRows, verdicts: Sequence[ClaimVerdict]) -> TextTable:
    """Lay out one row for each cell, or pair of cells, of each claim, with a mark unless the claim is shown for it.

    A cell that isn't in `rows` has an empty name.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    row_of = {s.cell_id: row for row, s in enumerate(rows.summaries) if isinstance(s, CellSummary)}

    def name(cell: Cell | None) -> tuple[str, str]:
        text = "" if cell is None or cell.id not in row_of else rows.name(row_of[cell.id]) or cell.model
        return text, text

    claims = [(number, v.claim) for number, v in enumerate(verdicts, 1) for _ in v.cells]
    cells = [cell for v in verdicts for cell in v.cells]
    versus = [name(cell.versus) for cell in cells]
    estimates = [(_estimate(claim, c), c.estimate) for (_, claim), c in zip(claims, cells, strict=True)]
    at_end, failed = "p for / against, at the end", [(f"{cell.failed:,}", cell.failed) for cell in cells]
    looks = [(" / ".join(map(words.p_value, c.p_values or ())), c.p_values and c.p_values[0]) for c in cells]
    columns = (
        count_column("claim", [number for number, _ in claims], "claim"),
        text_column("cell", [name(cell.cell) for cell in cells], is_number=False),
        *([text_column("compared with", versus, is_number=False)] if any(text for text, _ in versus) else []),
        text_column("seeds", [(f"{cell.seeds:,}", cell.seeds) for cell in cells], name="seeds"),
        *([text_column("failed", failed, name="failed")] if any(cell.failed for cell in cells) else []),
        text_column("estimate", estimates, name="estimate"),
        text_column("evidence for", [(_times(c.evidence), c.evidence) for c in cells], name="evidence_for"),
        text_column("against", [(_times(c.against), c.against) for c in cells], name="evidence_against"),
        *([text_column(at_end, looks, name="p_value")] if any(text for text, _ in looks) else []),
        text_column("shown?", [("yes" if c.holds else "no", c.holds) for c in cells], is_number=False),
    )
    return TextTable(columns, places(not cell.holds for cell in cells))


def _estimate(claim: Claim, cell: ClaimedCell) -> str:
    is_signed = bool(claim.others) and not claim.is_of_share
    if claim.quantity in ("solved_at", "time_to_success"):
        return words.iterations(cell.estimate, cell.interval, is_signed=is_signed)
    is_rate = claim.quantity == "success_rate" or claim.is_of_share
    writes = (words.change, words.rate) if is_rate else (words.signed, words.measure)
    return writes[0 if is_signed else 1](cell.estimate, cell.interval)


def _times(evidence: float) -> str:
    """Write evidence to at most three digits below 100, as a whole number from 100, and like 1e+04 from 10,000."""
    if evidence >= _MOST_EXACT:
        return f"{evidence:.0e}"
    return f"{evidence:,.0f}" if evidence >= 100 else f"{evidence:.3g}"


def claims_rows(verdicts: Sequence[ClaimVerdict]) -> list[dict[str, Any]]:
    """Return one mapping for each cell, or pair of cells, of each claim, with the columns of claims.csv."""
    return [
        {"claim": number, "text": v.claim.text, "verdict": v.state}
        | {name: getattr(v, name) for name in ("trials", "training_s", "error")}
        | {"cell_id": cell.cell.id, "other_cell_id": None if cell.versus is None else cell.versus.id}
        | {name: getattr(cell, name) for name in ("seeds", "failed", "estimate")}
        | ends("estimate_", cell.interval)
        # The estimate of a pair is a difference, so its bound is signed.
        | {"bound": 0.5 if v.claim.is_of_share else sign * v.claim.bound}
        | {"evidence_for": cell.evidence, "evidence_against": cell.against}
        | dict(zip(("p_value_for", "p_value_against"), cell.p_values or (None, None), strict=True))
        | {"holds": cell.holds}
        for number, v in enumerate(verdicts, 1)
        for sign in [-1 if v.claim.is_below and v.claim.others else 1]
        for cell in v.cells
    ]
