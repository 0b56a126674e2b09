"""Adaptive numbers of seeds: cells with enough seeds, and the next batch of the others.

The next seeds depend only on the results of the seeds planned so far. So every process computes the same plan, also
after interruptions.
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
    """Return the rule of a study with its results so far; None if the number of seeds is fixed."""
    until = plan.spec.until
    if until is None:
        return None
    if until.rule == "claims":
        return DecidedClaims(plan, until, table)
    if until.rule == "half_width":
        return (NarrowRates if until.metric is None else NarrowMeans)(plan, until, table)
    return (DifferentRates if until.metric is None else DifferentValues)(plan, until, table)


def extended(plan: Plan, table: TrialTable) -> Plan:
    """Return the plan with the seeds that each cell needs by the results so far.

    Args:
        plan: the plan of a study; unchanged if the number of seeds is fixed.
        table: trials by cells; those of other cells are ignored.

    Returns:
        A plan with the same cells. No cell gets seeds beyond its first batch with a pending result, or beyond those
        that are enough.

    Raises:
        InputError: as `progress` raises.

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
    """Return a verdict on each cell, or pair of cells; empty if the number of seeds is fixed, or claims decide it.

    Args:
        plan: the plan of a study with `until`, from `extended`.
        table: as for `extended`.

    Raises:
        InputError: as `progress` raises.
    """
    rule = _rule(plan, table)
    return [] if rule is None else rule.verdicts(plan)


def expected(plan: Plan, table: TrialTable) -> dict[str, int]:
    """Estimate the final number of seeds of each cell, by its id; a decided cell keeps its number.

    - half-width of a success rate: from the rate so far, with half a success and half a failure added; without results,
      from a uniform distribution of rates
    - half-width of a metric's mean: from the deviation so far; the maximum number of seeds if fewer than two values are
      known, all are equal, or a trial ended without a value
    - different cells: from random paths with the rates of wins, losses and ties so far
    - claims: from random paths of the claims' samples

    Args:
        plan: the plan of a study with `until`.
        table: as for `extended`.

    Raises:
        InputError: as `progress` raises.
    """
    rule = _rule(plan, table)
    assert rule is not None
    current = extended(plan, table)
    return rule.expected({cell.id: len(current.seeds(cell)) for cell in plan.cells})


def progress(plan: Plan, table: TrialTable) -> str:
    """Describe the progress of a study with `until`: the decided cells, pairs or claims, and the next trials, if any.

    Args:
        plan: as for `verdicts`.
        table: as for `extended`.

    Raises:
        InputError: if a cell has no counterpart of the model in `different_from`, or, with claims, a package's
            vocabulary can't be imported.
    """
    rule = _rule(plan, table)
    assert rule is not None
    sure, total = rule.sure(plan)
    pending = sum(int(table.cell(cell.id).of_seeds(plan.seeds(cell)).is_pending.sum()) for cell in plan.cells)
    return f"{sure} of {total} {rule.phrase}" + (f"; next {pending:,} trials" if pending > 0 else "")


def rate_intervals(spec: Spec) -> RateIntervals:
    """Return the method for intervals of success rates.

    - a fixed number of seeds: Wilson's
    - seeds until the rate's interval is narrow: Clopper and Pearson's, calibrated for a look after each batch
    - seeds by another rule: anytime-valid
    """
    until = spec.until
    if until is None:
        return WILSON
    if until.rule == "half_width" and until.metric is None:
        return RateIntervals("Clopper-Pearson (calibrated)", sampling(until).intervals)
    return RateIntervals("anytime-valid", _anytime_intervals)


def _anytime_intervals(solved: npt.ArrayLike, finished: npt.ArrayLike) -> Floats:
    counts = zip(np.asarray(solved).tolist(), np.asarray(finished).tolist(), strict=True)
    return np.array([statistics.anytime(k, n, CONFIDENCE) for k, n in counts]).reshape(-1, 2)
