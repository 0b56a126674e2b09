"""iNALU's own experiment: how many trials of its units learn one operation of two numbers.

    python -m benchmarks.inalu [--arms ARM ...] [--operations OPERATION ...] [--seeds N] [--iterations N]
        [--out docs/results/inalu/cells.csv]

Schlör, Ring & Hotho, 2020, experiment 1: 2 inputs, 1 output, seven distributions. A trial has learned if its final
mean squared error on 64,000 rows of another distribution is below 1e-5. What is random is a function of a trial's
distribution and seed and of the iteration, so the same command gives the same table. Ctrl-C ends it, with a table of
what is complete, and without a file.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.inalu_data import DISTRIBUTIONS, OPERATIONS, Key, Rows, all_keys, numbers_of, rows_of, side_by_side
from benchmarks.inalu_trials import Trained, mse_of_rows, train
from benchmarks.inalu_units import ARMS, exact_unit
from benchmarks.measure import finish, plain_parser, tell
from study.engine.device import one_thread
from study.statistics import fisher_exact, wilson

Row = dict[str, Any]

LARGEST_MSE = 1e-5
ITERATIONS = 100_000
SEEDS = 10
PUBLISHED_SEEDS = 10
ALL = "all"
PUBLISHED = {
    ("separate", "add"): (10, 10, 10, 10, 10, 10, 10),
    ("separate", "sub"): (10, 10, 10, 10, 10, 10, 10),
    ("separate", "mul"): (10, 10, 0, 10, 10, 0, 10),
    ("separate", "div"): (3, 5, 3, 3, 3, 0, 7),
    ("shared", "add"): (10, 10, 10, 10, 10, 0, 10),
    ("shared", "sub"): (9, 9, 8, 9, 8, 0, 10),
    ("shared", "mul"): (2, 10, 0, 2, 10, 0, 10),
    ("shared", "div"): (4, 6, 1, 4, 4, 0, 5),
    ("NALU", "add"): (0, 10, 0, 10, 0, 0, 10),
    ("NALU", "sub"): (0, 0, 0, 0, 0, 0, 0),
    ("NALU", "mul"): (0, 8, 0, 8, 0, 7, 10),
    ("NALU", "div"): (0, 0, 0, 0, 0, 0, 0),
}
"""How many of the authors' ten seeds are below the cut, in the order of `DISTRIBUTIONS`, from their repository."""
_TELL_EVERY = 10_000


def cell(arm: str, operation: str, name: str, trained: Trained, exact: np.ndarray) -> Row:
    """Lay out what the trials of one distribution, or of all, came to, beside the published trials.

    Args:
        arm: an entry of `ARMS`.
        operation: add, sub, mul or div.
        name: an entry of `DISTRIBUTIONS`, or all.
        trained: those trials.
        exact: the mean squared errors of exact weights on the same rows.
    """
    solved, count = int((trained.mse < LARGEST_MSE).sum()), len(trained.mse)
    counts = dict(zip(DISTRIBUTIONS, PUBLISHED[arm, operation], strict=True))
    published = sum(counts.values()) if name == ALL else counts[name]
    published_of = PUBLISHED_SEEDS * (len(counts) if name == ALL else 1)
    low, high = wilson(solved, count)
    return {
        "arm": arm,
        "operation": operation,
        "distribution": name,
        "trials": count,
        "solved": solved,
        "rate": f"{solved / count:.4f}",
        "low": f"{low:.4f}",
        "high": f"{high:.4f}",
        "published_trials": published_of,
        "published_solved": published,
        "p": f"{fisher_exact(solved, count, published, published_of):.4g}",
        "median_mse": f"{np.median(trained.mse):.4g}",
        "largest_exact_mse": f"{exact.max():.4g}",
        "diverged": int(np.isnan(trained.mse).sum()),
        "mean_restarts": f"{trained.restarts.mean():.2f}",
    }


def cells(arm: str, operation: str, trained: Trained, exact: np.ndarray) -> list[Row]:
    """Lay out all trials of an arm and operation, then those of each distribution."""
    by_distribution = [of.reshape(len(DISTRIBUTIONS), -1) for of in (*trained, exact)]
    rows = [cell(arm, operation, ALL, trained, exact)]
    for name, mse, restarts, its_exact in zip(DISTRIBUTIONS, *by_distribution, strict=True):
        rows.append(cell(arm, operation, name, Trained(mse, restarts), its_exact))
    return rows


def progress_of(arm: str, iterations: int) -> Callable[[int], None]:
    """Make a function that tells now and then how far training is, and how long it took."""
    began = time.perf_counter()

    def progress(iteration: int) -> None:
        if iteration % _TELL_EVERY == 0:
            tell(f"{arm}: iteration {iteration:,} of {iterations:,}, {time.perf_counter() - began:.0f} s")

    return progress


def draw(keys: Sequence[Key], operations: Sequence[str], *, is_test: bool) -> Rows:
    """Draw the rows of trials, of one operation after the other: all operations have the same numbers."""
    with one_thread():
        numbers = numbers_of(keys, is_test=is_test)
        return side_by_side([rows_of(numbers, operation) for operation in operations])


def results(arguments: Namespace) -> Iterator[list[Row]]:
    """Train one arm after the other, all trials of one side by side."""
    keys, operations = all_keys(arguments.seeds), arguments.operations
    tell(f"drawing the rows of {len(keys)} trials of each operation")
    rows, test = (draw(keys, operations, is_test=is_test) for is_test in (False, True))
    exact = mse_of_rows(exact_unit([operation for operation in operations for _ in keys]), test)
    for arm in arguments.arms:
        progress = progress_of(arm, arguments.iterations)
        trained = train(arm, keys * len(operations), rows, test, arguments.iterations, progress)
        for place, operation in enumerate(operations):
            its = slice(place * len(keys), (place + 1) * len(keys))
            lines = cells(arm, operation, Trained(trained.mse[its], trained.restarts[its]), exact[its])
            total = lines[0]
            tell(f"{arm}, {operation}: {total['solved']} of {total['trials']}, published {total['published_solved']}")
            yield lines


def main(words: Sequence[str] | None = None) -> None:
    """Train, print and write the table."""
    known = plain_parser(__doc__)
    known.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    known.add_argument(
        "--operations", nargs="+", choices=list(OPERATIONS), default=list(OPERATIONS), metavar="OPERATION"
    )
    known.add_argument("--seeds", type=int, default=SEEDS, help="of each distribution")
    known.add_argument("--iterations", type=int, default=ITERATIONS, help="batches of 64 rows; 1,000 are an epoch")
    arguments = known.parse_args(words)
    rows: list[Row] = []
    try:
        for lines in results(arguments):
            rows += lines
    except KeyboardInterrupt:
        tell("Interrupted: this is what is complete, and no file was written.")
        if rows:
            finish(rows, Namespace(out=None))
        sys.exit(130)
    finish(rows, arguments)


if __name__ == "__main__":
    main()
