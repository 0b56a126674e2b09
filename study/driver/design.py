"""Power of a planned study: the differences that its seeds can detect, in sentences and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from study import words
from study.comparisons.design import POWER, Design, PlannedPair, design
from study.console import ConsoleTable
from study.driver.outline import results_anywhere
from study.plan.plan import Plan
from study.summaries.aggregate import aggregate
from study.summaries.rows import cell_rows
from study.trials.table import TrialTable

_MOST_PAIRS = 10
"""Maximum number of pairs in a table."""

_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class DesignNote:
    """The differences that a study's seeds can detect; rich can print it."""

    design: Design

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the design as JSON data."""
        return asdict(self.design)

    def __rich__(self) -> RenderableType:
        pairs = self.design.pairs
        return Group(*([_table(pairs, self.design)] if pairs else []), *map(Text, _sentences(self.design)))


def design_note(plan: Plan, root: str | Path, wanted: float | None) -> DesignNote | None:
    """Compute the differences that a study's seeds can detect.

    Args:
        plan: the study's plan.
        root: the store's folder or URL; rates come from all of its studies.
        wanted: a difference of success rates to detect, in (0, 1]; the note then has the number of seeds that it takes;
            or None.

    Returns:
        The note; None if success isn't judged, nothing is compared, trials share seeds, or the number of seeds isn't
        fixed in advance.

    Raises:
        StudyError: if the store, the study's own results in it, or the published results of an installed package can't
            be read; or if one engine and kind of device gave a trial two different results.
        ValueError: if `wanted` is above 1.
    """
    spec = plan.spec
    if not spec.seed_design.is_plain or not spec.has_success:
        return None
    table = TrialTable(results_anywhere(plan, root), plan.metrics)
    summaries = aggregate(table, planned=dict.fromkeys(plan.cells, 0))[: len(plan.cells)]
    rows = cell_rows(summaries, plan.labels, spec.named_metrics, spec.family.question_fields, spec.family.titles)
    seeds = len(spec.first_seeds)
    computed = design(rows, table, seeds, most_pairs=_MOST_PAIRS, wanted=wanted)
    return None if computed is None else DesignNote(computed)


def _table(pairs: Sequence[PlannedPair], power: Design) -> ConsoleTable:
    """List the pairs of methods that the seeds may not tell apart."""
    title = f"Pairs that {words.count_of(power.seeds, 'seed')} may not tell apart, by the rates so far"
    table = ConsoleTable(title=title, title_justify="left", elsewhere="`study plan --json`")
    if any(pair.question for pair in pairs):
        table.add_column("at")
    table.add_column("first")
    table.add_column("second")
    for column, rank in {"rates": 1, "φ": 3, "found": 0, f"seeds for {POWER:.0%}": 2}.items():
        table.add_column(column, justify="right", rank=rank)
    for pair in pairs:
        rates = ", ".join(map(words.rate, pair.rates))
        needed = f"{pair.seeds:,}" if pair.seeds else words.NONE
        numbers = rates, f"{pair.correlation:.2f}", _percent(pair.power), needed
        table.add_row(*([pair.question] if any(p.question for p in pairs) else []), pair.first, pair.second, *numbers)
    return table


def _percent(share: float) -> str:
    return "< 1%" if share < _LEAST_SHARE else words.percent(share)


def _sentences(power: Design) -> list[str]:
    """Describe the pairs that are told apart, the least difference, and the seeds that a wanted difference takes."""
    over = "" if power.comparisons == 1 else f", after Holm's correction over {power.comparisons:,} comparisons"
    seeds, share = words.count_of(power.seeds, "seed"), f"{POWER:.0%} of studies"
    sentences = (
        [f"{power.detectable:,} of {power.known:,} pairs whose rates are known are told apart in {share}"]
        if power.known
        else []
    )
    if power.least_difference is None:
        sentences.append(f"{seeds} can't tell any two methods apart in {share}{over}")
    else:
        least = f"{power.least_difference:.2f}"
        sentences.append(f"{seeds} tell rates around one half apart in {share} if they differ by {least}{over}")
    if power.wanted is not None:
        takes = (
            "more than a million seeds" if power.wanted_seeds is None else words.count_of(power.wanted_seeds, "seed")
        )
        sentences.append(f"a difference of {power.wanted:g} takes {takes} of each cell")
    return sentences
