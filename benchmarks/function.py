"""Cost of a trial beyond the training function that it calls: trials with an empty function.

    python -m benchmarks.function [--trials N] [--run N] [--isolated N] [--rounds N] [--out FILE.csv]

Prints a row for each way to run the function, and writes it with `--out`: the median milliseconds and those of the
fastest round, of a direct call, a trial in the worker's process, a step of a generator, a trial in a process of its
own, and each further trial of `study run` on Ray. Empty processes are measured for comparison.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import at_least, finish, in_turns, parser, tell
from benchmarks.nothing import load, once, steps
from study.engine.calls import CallTrial
from study.engine.function import FunctionTraining, IsolatedTraining
from study.interface.declarations import Metric

_MODULE = """
from study import seeded

@seeded
def once(seed, *, width: int = 32):
    return {"accuracy": 1.0}
"""
# The fixed cost of a run, such as the start of Ray, is in both of two runs and cancels.
_FEWER = 100

METRICS = {"loss": Metric(), "accuracy": Metric(higher_is_better=True)}
BY_HAND, HERE, STEP = "the call itself", "a trial in the worker's process", "a step of a generator there"
RUN = "a trial of `study run`, on Ray, from the file to the report"
EMPTY, ARRAYS, ISOLATED = "an empty process", "import numpy, in a process", "a trial in a process of its own"


def trial(seed: int, values: dict[str, int]) -> CallTrial:
    """Return a trial of a function that does nothing, with this seed and these arguments."""
    return CallTrial(seed=seed, values=values, metrics=METRICS)


def end(training: FunctionTraining | IsolatedTraining) -> None:
    """Run a trial to its end as a worker does, in slices of a second.

    Raises:
        AssertionError: if the trial failed, with its error.
    """
    while not training.done:
        training.advance(1.0)
    record = training.finish()
    assert record.error is None, record.error


def ms_each(act: Callable[[int], object], times: int, seconds: float) -> float:
    """Return the mean milliseconds of `act` on the numbers 0 to `times` - 1, at least one; `seconds` is ignored."""
    began = time.perf_counter()
    for number in range(times):
        act(number)
    return (time.perf_counter() - began) / times * 1e3


def ms_a_step(count: int, seconds: float) -> float:
    """Return the mean milliseconds of a step of a generator with `count` steps, at least one; `seconds` is ignored."""
    began = time.perf_counter()
    end(FunctionTraining(steps, trial(0, {"count": count})))
    return (time.perf_counter() - began) / count * 1e3


def process(code: str, number: int) -> None:
    """Run Python code as a process; `number` is ignored.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def study_s(trials: int) -> float:
    """Return the seconds of `study run`, from the file to the report, with empty trials.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nothing.py").write_text(_MODULE)
        study = {"study": "nothing", "train": "nothing:once", "metrics": {"accuracy": "higher"}, "seeds": trials}
        (folder / "nothing.yaml").write_text(json.dumps(study))
        words = [sys.executable, "-m", "study", "run", "nothing.yaml", "--store", "studies", "--tracking-uri", "off"]
        began = time.perf_counter()
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - began


def ms_of_a_run(trials: int, few: int, seconds: float) -> float:
    """Return the milliseconds that each trial beyond `few` adds to `study run`; `seconds` is ignored.

    Raises:
        subprocess.CalledProcessError: if a run fails.
        ZeroDivisionError: if both numbers of trials are equal.
    """
    return (study_s(trials) - study_s(few)) / (trials - few) * 1e3


def main(words: Sequence[str] | None = None) -> None:
    """Time each way to run an empty function; print the table, and write it with `--out`.

    Raises:
        AssertionError: if a trial fails.
        subprocess.CalledProcessError: if a process or `study run` fails.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=5, seconds=0)
    options.add_argument("--trials", type=at_least(1), default=5000, help="trials in this process; steps of a loop")
    options.add_argument("--run", type=at_least(2), default=20_000, help="trials of `study run`, at least 2")
    options.add_argument("--isolated", type=at_least(1), default=20, help="trials in processes of their own")
    arguments = options.parse_args(words)
    values = {"width": 32}
    acts: dict[str, tuple[Callable[[int], object], int]] = {
        BY_HAND: (lambda seed: once(seed, **values), arguments.trials),
        HERE: (lambda seed: end(FunctionTraining(once, trial(seed, values))), arguments.trials),
        EMPTY: (partial(process, "pass"), arguments.isolated),
        ARRAYS: (partial(process, "import numpy"), arguments.isolated),
        ISOLATED: (lambda seed: end(IsolatedTraining(partial(load, "once"), trial(seed, values))), arguments.isolated),
    }
    measures: dict[str, Callable[[float], float]] = {
        name: partial(ms_each, act, times) for name, (act, times) in acts.items()
    }
    measures[STEP] = partial(ms_a_step, arguments.trials)
    measures[RUN] = partial(ms_of_a_run, arguments.run, max(1, arguments.run // _FEWER))
    counts = {STEP: arguments.trials, RUN: arguments.run} | {name: times for name, (_, times) in acts.items()}
    rows = []
    for name, rounds in in_turns(measures, rounds=arguments.rounds, seconds=0).items():
        ms, times = statistics.median(rounds), counts[name]
        tell(f"{name}: {ms:.4f} ms")
        rows.append({"what": name, "times": str(times), "ms": f"{ms:.4f}", "least_ms": f"{min(rounds):.4f}"})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
