"""Seeds until sure: which cells have enough seeds, and how many the others get next.

The next seeds depend on the results of those planned so far, and on nothing else: whoever evaluates them comes to the
same plan, however the work was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from study import statistics
from study.plan.claims import DecidedClaims
from study.plan.differ import DifferentRates, DifferentValues
from study.plan.narrow import NarrowMeans, NarrowRates, sampling
from study.plan.plan import Plan
from study.plan.verdict import CONFIDENCE, Rule, Verdict
from study.spec.tables import Spec
from study.statistics.checks import Floats
from study.summaries.summary import WILSON, RateIntervals
from study.trials.table import TrialTable


def _rule(plan: Plan, table: TrialTable) -> Rule | None:
    """Return the rule of a study, with its results so far; None if its file says how many seeds there are."""
    until = plan.spec.until
    if until is None:
        return None
    if until.rule == "claims":
        return DecidedClaims(plan, until, table)
    if until.rule == "half_width":
        return (NarrowRates if until.metric is None else NarrowMeans)(plan, until, table)
    return (DifferentRates if until.metric is None else DifferentValues)(plan, until, table)


def extended(plan: Plan, table: TrialTable) -> Plan:
    """Return the plan in which each cell has the seeds that it needs, judged by the results so far.

    Args:
        plan: the plan of a study; if its file says how many seeds there are, it stays as it is.
        table: trials by cells; those of other cells are ignored.

    Returns:
        The same cells. None gets seeds beyond the first batch with a pending result, or beyond those that are enough.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import parse_spec
        >>> from study.arrow import results_table
        >>> text = "{study: a, task: {name: simple}, models: [NMU], seeds: {until: {half_width: 0.1, max: 100}}}"
        >>> planned = make_plan(parse_spec(text, source="a.yaml"))
        >>> extended(planned, TrialTable(results_table([]))).trials_count
        20
    """
    rule = _rule(plan, table)
    if rule is None:
        return plan
    return replace(plan, own_seeds={cell_id: range(count) for cell_id, count in rule.counts().items()})


def verdicts(plan: Plan, table: TrialTable) -> Sequence[Verdict]:
    """Judge for each cell, or each pair of cells, whether the seeds that have a result are enough.

    Args:
        plan: of a study with `until`, as `extended` returns it.
        table: as for `extended`.
    """
    rule = _rule(plan, table)
    return [] if rule is None else rule.verdicts(plan)


def expected(plan: Plan, table: TrialTable) -> dict[str, int]:
    """Estimate how many seeds each cell will have needed, by its id.

    The estimate for a cell is based on its rate so far, with half a success and half a failure added; without results,
    all rates are equally likely. That for a metric's mean is based on the deviation so far; without any, it is the most
    that a cell can get. For two cells that are compared, it is based on how often only one of them solved a
    seed, or is better at it: paths are drawn at random with these rates. For claims, paths are drawn of the numbers
    that they are about.

    Args:
        plan: of a study with `until`.
        table: as for `extended`.
    """
    rule = _rule(plan, table)
    assert rule is not None
    current = extended(plan, table)
    return rule.expected({cell.id: len(current.seeds(cell)) for cell in plan.cells})


def progress(plan: Plan, table: TrialTable) -> str:
    """Describe in a sentence how far a study with `until` is; the arguments are those of `verdicts`."""
    rule = _rule(plan, table)
    assert rule is not None
    sure, of = rule.sure(plan)
    pending = sum(int(table.cell(cell.id).of_seeds(plan.seeds(cell)).is_pending.sum()) for cell in plan.cells)
    return f"{sure} of {of} {rule.phrase}" + (f"; next {pending:,} trials" if pending > 0 else "")


def rate_intervals(spec: Spec) -> RateIntervals:
    """Return the intervals of a study's success rates; where seeds are added, they allow for repeated evaluation."""
    until = spec.until
    if until is None:
        return WILSON
    if until.rule == "half_width" and until.metric is None:
        return RateIntervals("Clopper-Pearson (calibrated)", sampling(until).intervals)
    return RateIntervals("anytime-valid", _anytimes)


def _anytimes(solved: npt.ArrayLike, finished: npt.ArrayLike) -> Floats:
    counts = zip(np.asarray(solved).tolist(), np.asarray(finished).tolist(), strict=True)
    return np.array([statistics.anytime(k, n, CONFIDENCE) for k, n in counts]).reshape(-1, 2)
