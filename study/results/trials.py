"""A report's learning curves, gates and weights of single trials.

Curves and weights are large and a figure has few panels, so only some rows and trials are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import stacked_weights, table_weights
from study.errors import InputError
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.plugins.families import family_of
from study.records import Outcome
from study.reports import Gates, LearningCurve, ResultRows, TrialWeights
from study.store import StudyStore
from study.summaries import series
from study.summaries.aggregate import CellSummary
from study.summaries.learning import learning_curve
from study.summaries.metrics import of_curves, single

MOST_ROWS = 12
"""The most rows whose learning curves and gates are shown."""
_ACROSS = 4
"""The most values of an axis side by side."""
MOST_TRIALS = 50
"""The most trials of a row whose learning curves and gates are shown."""
_GATE_ROWS = 1000
"""The number of validation rows in a mean gate; all 10,000 take ten times as long and change a gate by at most 0.01."""


@dataclass(frozen=True)
class Exhibits:
    """The parts of a report that show single trials; each may be empty.

    Args:
        learning: learning curves of some rows.
        gates: gates of some rows with gated units.
        weights: weights of one trial; None if no trial was chosen, or its weights aren't stored.
    """

    learning: Sequence[LearningCurve]
    gates: Sequence[Gates]
    weights: TrialWeights | None


def exhibits(
    folder: StudyStore,
    summaries: Sequence[CellSummary],
    rows: ResultRows,
    table: pa.Table,
    metrics: Mapping[str, Metric],
    trial_id: str | None = None,
    bounds_of: Callable[[str], Mapping[str, Bound]] = lambda cell_id: {},
) -> Exhibits:
    """Choose rows and trials to show, and read their curves and weights from the store.

    Args:
        folder: the study's part of the store.
        summaries: the summaries of at least one cell.
        rows: the rows of these summaries.
        table: the trials' results.
        metrics: the metrics that the trials report.
        trial_id: the id, or its first letters, of the trial whose weights are shown; None for a typical solved trial:
            the trial with the median solved-at in the cell with the highest success rate, or none if none was solved.
        bounds_of: returns a cell's success criterion, by metric; empty if it has none.

    Raises:
        InputError: if no trial's id, or more than one, begins with `trial_id`, its weights aren't stored, a newer
            package wrote a file, or a family can't be imported.
        StoreError: if the store can't be read.
        ValueError: if a stored curve doesn't have one value of a metric for each of its evaluations.
    """
    chosen = choose_rows(rows)
    cells = [s.cell_id for s in summaries]
    trials = {row: first_trials(table, cells[row]) for row in chosen}
    example_id = _example_trial(summaries, table, trial_id)
    ids = {i for first in trials.values() for i in first["trial_id"].to_pylist()}
    curves = folder.read_curves(ids)
    weights = folder.read_weights(ids | ({example_id} if example_id else set()))
    if trial_id is not None and example_id not in weights["trial_id"].to_pylist():
        raise InputError(
            f"--trial {trial_id}: its weights aren't in the store; weights trained by an earlier version are gone"
        )
    return Exhibits(
        learning=[
            curve
            for row, first in trials.items()
            if (curve := _learning(row, rows, first, curves, metrics, bounds_of(cells[row]))) is not None
        ],
        gates=[g for row, first in trials.items() for g in _gates(row, summaries[row], first, weights)],
        weights=_weights(summaries, table, weights, example_id),
    )


def choose_rows(rows: ResultRows, most: int = MOST_ROWS) -> list[int]:
    """Return the rows with a trial that ended, or those of a grid of panels if they are more than `most`.

    Trials that failed or were stopped early don't count.
    """
    ended = rows.ended()
    return ended if len(ended) <= most else series.panel_rows(rows, _ACROSS, most // _ACROSS)


def first_trials(table: pa.Table, cell_id: str) -> pa.Table:
    """Return a cell's first `MOST_TRIALS` trials that didn't fail, by seed."""
    own = table.filter(
        pc.and_(pc.equal(table["cell_id"], cell_id), pc.not_equal(table["outcome"], str(Outcome.FAILED)))
    )
    return own.sort_by("seed").slice(0, MOST_TRIALS)


def rows_of_trials(table: pa.Table, trials: pa.Table) -> pa.Table:
    """Return the rows of a table whose trial ids are in `trials`."""
    return table.filter(pc.is_in(table["trial_id"], trials["trial_id"].combine_chunks()))


def _learning(
    row: int,
    rows: ResultRows,
    trials: pa.Table,
    curves: pa.Table,
    metrics: Mapping[str, Metric],
    criterion: Mapping[str, Bound],
) -> LearningCurve | None:
    """Compute the learning curve of a row; None if no trial has a curve.

    Its threshold is the one of all its trials or, with a criterion, the bound of the first metric that has a curve;
    None without a common one.
    """
    thresholds = set(trials["threshold"].to_pylist())
    curve = learning_curve(
        row,
        rows_of_trials(curves, trials),
        total=rows.summaries[row].ended,
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
        higher=[name for name, metric in metrics.items() if metric.higher_is_better],
    )
    if curve is None or not criterion:
        return curve
    chosen = single(metrics, rows.named_metrics)
    first = of_curves({name: metric for name, metric in chosen.items() if name in curve.quantiles})[:1]
    bounds = [_end(criterion[name], metrics[name]) for name in first if name in criterion]
    return replace(curve, threshold=bounds[0] if bounds else None)


def _end(bound: Bound, metric: Metric) -> float | None:
    """Return the bound that trials must reach: the upper one if lower is better, else the lower; or the only one."""
    upper = bound.at_most if bound.below is None else bound.below
    ends = (bound.at_least, upper) if metric.higher_is_better else (upper, bound.at_least)
    return next(end for end in ends if end is not None)


def _gates(row: int, summary: CellSummary, trials: pa.Table, weights: pa.Table) -> list[Gates]:
    """Compute the mean gates of a row by layer; empty without weights or gated layers."""
    own = table_weights(rows_of_trials(weights, trials))
    if not own:
        return []
    outcomes = dict(zip(trials["trial_id"].to_pylist(), trials["outcome"].to_pylist(), strict=True))
    is_solved = np.array([outcomes[trial.trial_id] == str(Outcome.SOLVED) for trial in own])
    gates = family_of(summary.cell).mean_gates(summary.cell, stacked_weights(own), _GATE_ROWS)
    return [
        Gates(
            row=row,
            layer=layer,
            trials=len(own),
            total=summary.ended,
            validation_rows=_GATE_ROWS,
            values=values.astype(np.float64).ravel(),
            solved=np.repeat(is_solved, values.shape[1]),
        )
        for layer, values in gates.items()
    ]


def trial_id_of(table: pa.Table, text: str) -> str:
    """Return the id of a trial by its first letters.

    Args:
        table: the trials' results.
        text: the id, or its first letters.

    Raises:
        InputError: if no trial's id, or more than one, begins with the text.
    """
    hint = "ids are in the page's lists, in the results, and in MLflow's tag study.trial_id"
    return id_beginning(table["trial_id"].to_pylist(), text, "study", hint)


def id_beginning(ids: Iterable[str], text: str, holder: str, hint: str) -> str:
    """Return the only trial id that begins with a text.

    Args:
        ids: the trials' ids.
        text: the id, or its first letters.
        holder: the word for the trials' container in the message: study or file.
        hint: the message's hint on where to find ids.

    Raises:
        InputError: if no id, or more than one, begins with the text.
    """
    matches = [trial_id for trial_id in ids if trial_id.startswith(text)]
    if len(matches) != 1:
        several = f"{len(matches)} trial ids begin with it; give more letters"
        raise InputError(f"trial {text}: {several if matches else f'no trial of this {holder} has that id; {hint}'}")
    return matches[0]


def _example_trial(summaries: Sequence[CellSummary], table: pa.Table, trial_id: str | None) -> str | None:
    """Return the id of the trial whose weights are shown: `trial_id`, or a typical solved trial of the best cell.

    Typical is the median time to success; None if the best cell has no solved trial. Raises InputError unless exactly
    one id begins with `trial_id`.
    """
    if trial_id is not None:
        return trial_id_of(table, trial_id)
    best = max(summaries, key=lambda s: s.success_rate or 0.0).cell_id
    solved = table.filter(
        pc.and_(pc.equal(table["cell_id"], best), pc.equal(table["outcome"], str(Outcome.SOLVED)))
    ).sort_by([("solved_at_iteration", "ascending"), ("seed", "ascending")])
    return str(solved["trial_id"][len(solved) // 2].as_py()) if len(solved) else None


def _weights(
    summaries: Sequence[CellSummary], table: pa.Table, weights: pa.Table, trial_id: str | None
) -> TrialWeights | None:
    """Return the weights of a trial; None if they aren't stored."""
    stored = table_weights(weights.filter(pc.equal(weights["trial_id"], trial_id))) if trial_id else []
    if not stored:
        return None
    result: Mapping[str, object] = table.filter(pc.equal(table["trial_id"], trial_id)).to_pylist()[0]
    row = [s.cell_id for s in summaries].index(str(result["cell_id"]))
    return TrialWeights(
        row=row,
        seed=int(str(result["seed"])),
        outcome=str(result["outcome"]),
        iteration=stored[0].iteration,
        matrices=family_of(summaries[row].cell).effective_weights(summaries[row].cell, stored[0].arrays),
    )
