"""How long workers would take for cells that share their seeds, and how many trials share a draw then.

    python -m benchmarks.sharing [--out benchmarks/results/sharing.csv]

The preset `hidden-size`, 45 cells, with some seeds and some workers. Its packs are made as for so many workers, each
is trained for a moment on one core, and workers are simulated: whoever is free takes the costliest pack that is left.
*Idle* is the share of the workers' time in which they have nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import finish, in_turns, one_core, parser, tell, training
from study.engine import engine_named
from study.plan.costs import count_draws
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.records import Pack, Trial
from study.spec import load_spec

_FUSED = engine_named("fused")


def costs_us(packs: Sequence[Pack], *, rounds: int, seconds: float) -> Mapping[str, float]:
    """Measure what an iteration of each pack takes, in microseconds of CPU."""
    measures = {pack.id: training(_FUSED, pack, warm_s=seconds, clock=time.process_time) for pack in packs}
    measured = in_turns(measures, rounds=rounds, seconds=seconds)
    return {pack.id: min(measured[pack.id]) * len(pack.trials) for pack in packs}


def simulated_us(packs: Sequence[Pack], costs: Mapping[str, float], workers: int) -> float:
    """Simulate workers that take packs in their order, and return when the last one ends."""
    ends = [0.0] * workers
    for pack in packs:
        ends[ends.index(min(ends))] += costs[pack.id]
    return max(ends)


def row(trials: Sequence[Trial], seeds: int, workers: int, **how: Any) -> dict[str, Any]:
    """Measure one number of seeds and workers."""
    some = [trial for trial in trials if trial.seed < seeds]
    packs = make_packs(some, slots=workers, key_of=_FUSED.pack_key)
    costs = costs_us(packs, **how)
    whole, last = sum(costs.values()), simulated_us(packs, costs, workers)
    return {
        "seeds": seeds,
        "workers": workers,
        "packs": len(packs),
        "trials_a_draw": f"{len(some) / sum(count_draws(pack.trials) for pack in packs):.1f}",
        "us_per_trial_iteration": f"{whole / len(some):.2f}",
        "longest_pack_share": f"{max(costs.values()) / last:.2f}",
        "idle": f"{1 - whole / workers / last:.2f}",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    known = parser(__doc__, rounds=2, seconds=0.1)
    known.add_argument("--seeds", nargs="+", type=int, default=[1, 3, 16], metavar="N")
    known.add_argument("--workers", nargs="+", type=int, default=[1, 2, 16], metavar="N")
    arguments = known.parse_args(words)
    trials = make_plan(load_spec("hidden-size")).trials
    table = []
    with one_core():
        for seeds in arguments.seeds:
            for workers in arguments.workers:
                table.append(row(trials, seeds, workers, rounds=arguments.rounds, seconds=arguments.seconds))
                tell(str(table[-1]))
    finish(table, arguments)


if __name__ == "__main__":
    main()
