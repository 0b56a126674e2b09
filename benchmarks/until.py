"""Sequential numbers of seeds beside a fixed number: agreement of verdicts, and trials saved.

    python -m benchmarks.until --store studies --study demo400 --out tasks/docs/results/until

Takes a finished study with a fixed number of seeds (tasks/docs/results/until/demo400.yaml), and replays it: the plan of
`study run` requests seeds, and receives the stored outcomes of just those. Prints a table for each of two rules, and
writes them into the folder of `--out`: half-width.csv with a row for each cell, and different-from.csv with a row for
each pair of cells.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.measure import finish, tell
from study import statistics
from study.plan.plan import Plan, make_plan
from study.plan.until import expected, extended, verdicts
from study.plan.verdict import CONFIDENCE, Verdict
from study.records import Interval
from study.reports import cell_rows
from study.spec import parse_spec
from study.spec.seeds import SeedsTable
from study.spec.tables import Spec
from study.store import Store
from study.summaries.aggregate import CellSummary, aggregate
from study.trials.table import TrialTable

NARROW, APART = "half-width", "different-from"


def replayed(plan: Plan, results: pa.Table) -> tuple[Plan, pa.Table, int]:
    """Request seeds until all is sure, as a run would, and reveal their outcomes.

    Args:
        plan: plan of a study with `until`.
        results: results of all seeds that it could request.

    Returns:
        The last plan, its results, and the number of requests.

    Raises:
        AssertionError: if the results lack a requested trial, or have one twice.
    """
    known, asked = results.slice(0, 0), 0
    while (after := extended(plan, TrialTable(known, plan.metrics))) != plan:
        plan, asked = after, asked + 1
        known = revealed(plan, results)
    return plan, known, asked


def revealed(plan: Plan, results: pa.Table) -> pa.Table:
    """Return the results of a plan's trials.

    Raises:
        AssertionError: if the results lack a trial, or have one twice.
    """
    wanted = {cell.id: set(plan.seeds(cell)) for cell in plan.cells}
    rows = zip(results["cell_id"].to_pylist(), results["seed"].to_pylist(), strict=True)
    known = results.filter(pa.array([seed in wanted.get(cell, ()) for cell, seed in rows], pa.bool_()))
    lacking = plan.trials_count - known.num_rows
    assert not lacking, f"the study lacks results of {lacking} requested trials: train them first"
    return known


def with_until(spec: Spec, **until: Any) -> Plan:
    """Plan the same study with an adaptive number of seeds, by the rule `until`.

    Raises:
        pydantic.ValidationError: if the rule is invalid.
        InputError: if a cell has no counterpart for ``different_from``, or the study is too large.
    """
    return make_plan(spec.model_copy(update={"seeds": SeedsTable.model_validate({"until": until})}))


def narrow_row(name: str, fixed: CellSummary, verdict: Verdict, solved: int) -> dict[str, str]:
    """Return a cell's row: its rate and interval at all seeds beside those of the seeds used.

    They agree if the intervals overlap, and the interval of the seeds used contains the rate of all seeds.

    Args:
        name: the cell's name.
        fixed: its summary over all seeds.
        verdict: the verdict at the seeds used.
        solved: number of the seeds used that were solved.

    Raises:
        AssertionError: if the cell has no rate, or the verdict no interval.
    """
    assert fixed.success_rate is not None
    low, high = statistics.wilson(fixed.solved, fixed.ended)
    assert verdict.interval is not None
    ours = verdict.interval
    agree = ours[0] <= high and low <= ours[1] and ours[0] <= fixed.success_rate <= ours[1]
    return {
        "cell": name,
        "fixed_seeds": f"{fixed.ended}",
        "fixed_solved": f"{fixed.solved}",
        **_interval("fixed", fixed.success_rate, (low, high)),
        "seeds": f"{verdict.seeds}",
        "solved": f"{solved}",
        **_interval("until", solved / verdict.seeds, ours),
        "is_sure": _word(verdict.is_sure),
        "agrees": _word(agree),
    }


def _interval(name: str, rate: float, interval: Interval) -> dict[str, str]:
    low, high = interval
    return {
        f"{name}_rate": f"{rate:.4f}",
        f"{name}_low": f"{low:.4f}",
        f"{name}_high": f"{high:.4f}",
        f"{name}_half_width": f"{(high - low) / 2:.4f}",
    }


def apart_row(name: str, first: CellSummary, second: CellSummary, verdict: Verdict) -> dict[str, str]:
    """Return a pair's row: Fisher's test of all seeds beside the sign test of those used.

    They agree if both say that the cells differ, in the same direction, or neither does.

    Raises:
        ZeroDivisionError: if a cell has no trial with an outcome.
    """
    p_value = statistics.fisher_exact(first.solved, first.ended, second.solved, second.ended)
    signs = (
        _sign(p_value, first.solved / first.ended - second.solved / second.ended),
        _sign(verdict.p_value or 0.0, verdict.wins - verdict.losses),
    )
    return {
        "pair": name,
        "fixed_seeds": f"{first.ended}",
        "fixed_solved": f"{first.solved}",
        "fixed_solved_other": f"{second.solved}",
        "fixed_p": f"{p_value:.2g}",
        "seeds": f"{verdict.seeds}",
        "it_alone": f"{verdict.wins}",
        "the_other_alone": f"{verdict.losses}",
        "p": f"{verdict.p_value:.2g}",
        "fixed_verdict": signs[0],
        "verdict": signs[1],
        "agrees": _word(signs[0] == signs[1]),
    }


def _sign(p_value: float, difference: float) -> str:
    if p_value >= 1 - CONFIDENCE:
        return "not told apart"
    return "better" if difference > 0 else "worse"


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"


def compared(name: str, results: pa.Table, plan: Plan, fixed: Plan) -> tuple[list[dict[str, str]], int]:
    """Replay a study, and print a summary; return a row for each verdict, and the number of trials used.

    Each row also has the seeds that `study plan` expects after the first batch.

    Raises:
        AssertionError: if the results lack a requested trial, or have one twice; or if a single cell has no rate, or
            its verdict no interval.
        ZeroDivisionError: if a cell of a pair has no trial with an outcome.
        InputError: if the results have another trial twice, or a cell's id doesn't match its columns.
    """
    end, known, asked = replayed(plan, results)
    first = revealed(extended(plan, TrialTable(results.slice(0, 0), plan.metrics)), results)
    awaited = expected(plan, TrialTable(first, plan.metrics))
    summaries = aggregate(TrialTable(results), planned={cell: len(fixed.seeds(cell)) for cell in fixed.cells})
    rows = cell_rows(summaries, fixed.labels)
    row_of = {cell.id: row for row, cell in enumerate(fixed.cells)}
    solved = {s.cell_id: s.solved for s in aggregate(TrialTable(known))}
    found = []
    for verdict in verdicts(end, TrialTable(known, plan.metrics)):
        row = row_of[verdict.cell.id]
        if verdict.versus is None:
            made = narrow_row(rows.name(row), summaries[row], verdict, solved[verdict.cell.id])
        else:
            other = row_of[verdict.versus.id]
            told = f"{rows.name(row)} from {rows.name(other)}"
            made = apart_row(told, summaries[row], summaries[other], verdict)
        found.append(made | {"expected": f"{awaited[verdict.cell.id]}"})
    agreeing = sum(row["agrees"] == "yes" for row in found)
    fewer = 1 - known.num_rows / results.num_rows
    tell(
        f"{name}: {known.num_rows:,} trials of {results.num_rows:,}, {fewer:.1%} fewer, asked {asked} times; "
        f"{agreeing} of {len(found)} verdicts agree"
    )
    return found, known.num_rows


def main(words: Sequence[str] | None = None) -> None:
    """Replay the study by both rules; print a table for each, and write it with `--out`.

    Raises:
        UnknownStudyError: if the store has no such study.
        StoreError: if the store can't be read.
        InputError: if the stored file has mistakes, or ``--different-from`` leaves a cell without a counterpart.
        pydantic.ValidationError: if an option makes an invalid rule.
        AssertionError: if the study lacks a requested trial, or the judged trials have no rate.
        OSError: if a table can't be written.
    """
    known = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    known.add_argument("--store", default="studies", help="store of the study")
    known.add_argument("--study", default="demo400", help="finished study with a fixed number of seeds")
    known.add_argument("--half-width", type=float, default=0.05, help="half-width of the first rule")
    known.add_argument("--different-from", default="NAC-mul", help="baseline model of the second rule")
    known.add_argument("--batch", type=int, default=20, help="seeds added at a time")
    known.add_argument("--out", type=Path, help="folder for CSV files; JSON files beside them say where they come from")
    asked = known.parse_args(words)
    folder = Store(asked.store, read_only=True).open(asked.study)
    fixed = make_plan(parse_spec(folder.read_spec(), source=folder.spec_where))
    results = folder.read_results()
    most = fixed.spec.most_seeds
    common = {"max": most, "batch": asked.batch}
    rules: Mapping[str, Mapping[str, Any]] = {
        NARROW: {"half_width": asked.half_width, **common},
        APART: {"different_from": asked.different_from, **common},
    }
    for name, until in rules.items():
        rows, trials = compared(name, results, with_until(fixed.spec, **until), fixed)
        out = asked.out and asked.out / f"{name}.csv"
        settings = Namespace(study=asked.study, out=out, **until)
        finish(rows, settings, trials=trials, fixed_trials=results.num_rows)


if __name__ == "__main__":
    main()
