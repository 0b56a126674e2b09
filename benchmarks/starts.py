"""Negative factors of NMUs: their number after 1,000 updates decides if an NMU learns to multiply.

    python -m benchmarks.starts [--seeds N] [--out benchmarks/results/starts.csv]

A hidden unit's factor is W (z - 1) + 1, where z is the sum of its weighted inputs. It is computed at the inputs' mean,
3/2. The forecast is that an even number of negative factors stays, and that an odd one changes by the factor nearest to
0. Prints a table, and writes it with `--out`. Its first rows have the full trials of
tasks/docs/results/hidden-size/trials.csv: their negative factors before training, after 1,000 updates and at the end,
the forecast, and the trials solved. The other rows have, by hidden size, the same counts of many other seeds that are
trained for 1,000 updates only, the number with two under ``init_signs: two_negative``, and the published rate. A figure
beside the file shows both, and `starts-by-seed.csv` has the numbers of each of these seeds. The numbers depend on the
seeds alone.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.measure import finish, plain_parser, tell
from study.engine import engine_for
from study.records import Cell, Pack, Trial
from study.reports.figures.style import DPI, INK, MARKERS, PALETTE, STYLE, WIDTH_IN
from study.spec.cells import canonical_cell
from study.statistics import wilson
from tasks.arithmetic.engine.shared.initial_weights import PREFIX, initial_state
from tasks.arithmetic.published.rows import printed

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]

TRIALS = Path(__file__).parents[1] / "tasks" / "docs" / "results" / "hidden-size" / "trials.csv"
SIZES = tuple(range(2, 11))
FIRST_SEED = 10_000
UPDATES = 1000
MEAN_INPUT = 1.5
COUNTS = (0, 2, 4, 6)
"""Numbers of negative factors after some updates; the last one includes more."""
_PACK = 250


def cell_of(hidden_size: int, init: str = "shared", **values: Any) -> Cell:
    """Return a cell of the hidden-size study's NMU, with this size, initialisation and further hyperparameters.

    Values aren't checked, and unknown hyperparameters are ignored.

    Raises:
        ValueError: if the task can't be made from the values, such as from a small ``input_size``.
    """
    return canonical_cell("arithmetic", "NMU", {"operation": "mul", "hidden_size": hidden_size, "init": init, **values})


def factors_of(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the hidden units' factors at the inputs' mean, [trials, hidden].

    Args:
        first: weights of the first layer, [trials, hidden, inputs].
        second: weights of the second, [trials, 1, hidden].
    """
    return np.asarray(second[:, 0] * (MEAN_INPUT * first.sum(axis=2) - 1) + 1)


def negative(factors: npt.NDArray[Any]) -> Ints:
    """Count the negative factors of each trial, from factors [trials, hidden]."""
    return np.asarray((factors < 0).sum(axis=1))


def foreseen(factors: npt.NDArray[Any]) -> Ints:
    """Predict from the factors before training the number of negative ones after the first updates, int64 [trials].

    A negative product is corrected by a change of one factor's sign. The gradient by a factor is the product of the
    others, so it is greatest for the factor nearest to 0.

    Example:
        >>> foreseen(np.array([[-0.1, 0.7, 0.5], [-0.6, 0.2, 0.5], [-0.6, -0.2, 0.1]])).tolist()
        [0, 2, 2]
    """
    count = negative(factors)
    nearest = np.take_along_axis(factors, abs(factors).argmin(axis=1)[:, None], axis=1)[:, 0]
    return np.where(count % 2 == 0, count, count + np.where(nearest < 0, -1, 1))


def factors_at_start(cell: Cell, seeds: Sequence[int]) -> npt.NDArray[Any]:
    """Return the factors of each seed, at least one, before training, [seeds, hidden].

    Raises:
        ValueError: if a unit's weights can't have the cell's `init_variance`.

    Example:
        >>> factors = factors_at_start(cell_of(8), [100, 101])
        >>> negative(factors).tolist(), foreseen(factors).tolist()
        ([1, 1], [2, 2])
    """
    state = initial_state([Trial(cell, seed) for seed in seeds])
    return factors_of(state[f"{PREFIX}weight/first.weight"], state[f"{PREFIX}weight/second.weight"])


def after_updates(cell: Cell, seeds: Sequence[int]) -> Ints:
    """Train each seed, at least one, for `UPDATES` updates, and return its number of negative factors then.

    Raises:
        InputError: if the fused engine can't train the cell.
        ValueError: if a unit's weights can't have the cell's `init_variance`.
    """
    short = cell.replace(iterations=UPDATES, evaluate_every=UPDATES, evaluation_rows=100)
    found = []
    for begin in range(0, len(seeds), _PACK):
        trials = tuple(Trial(short, seed) for seed in seeds[begin : begin + _PACK])
        training = engine_for("fused", short, "cpu").start(Pack(trials), device="cpu")
        while not training.done:
            training.advance(10.0)
        arrays = [weights.arrays for weights in training.finish()[2]]
        layers = (np.stack([weights[f"layer_{n}.weight"] for weights in arrays]) for n in (1, 2))
        found.append(negative(factors_of(*layers)))
    return np.concatenate(found)


def read_trials() -> list[dict[str, str]]:
    """Read the rows of the hidden-size study's trials.csv, `TRIALS`, as texts by column.

    Raises:
        OSError: if it can't be read.
    """
    with TRIALS.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def trial_rows(trials: Sequence[Mapping[str, str]]) -> Iterator[Row]:
    """Train the trials for the first updates, and yield a row for each number of negative factors.

    The rows are first by the number before training, then by the foreseen number, then by that at the end.
    `trials` are rows of `read_trials`.

    Raises:
        KeyError: if a trial lacks a column.
    """
    starts, expected, laters = np.zeros((3, len(trials)), np.int64)
    of_cell: dict[tuple[str, str], list[int]] = {}
    for place, trial in enumerate(trials):
        of_cell.setdefault((trial["hidden_size"], trial["init"]), []).append(place)
    for (size, init), places in of_cell.items():
        tell(f"{UPDATES} updates of {len(places)} trials, {size} hidden units")
        seeds = [int(trials[place]["seed"]) for place in places]
        factors = factors_at_start(cell_of(int(size), init), seeds)
        starts[places], expected[places] = negative(factors), foreseen(factors)
        laters[places] = after_updates(cell_of(int(size), init), seeds)
    ends = np.array([int(trial["negative_end"]) for trial in trials])
    solved = np.array([trial["outcome"] == "solved" for trial in trials])
    for start in np.unique(starts):
        here = starts == start
        row: Row = {"of": "negative at the start", "value": int(start), "trials": int(here.sum())}
        row |= _counted(laters[here]) | {"as_foreseen": int((expected[here] == laters[here]).sum())}
        row |= {"solved": int(solved[here].sum())}
        yield row | {"as_at_the_end": int((laters[here] == ends[here]).sum())}
    for name, numbers in {"negative as foreseen": expected, "negative at the end": ends}.items():
        for number in np.unique(numbers):
            here = numbers == number
            row = {"of": name, "value": int(number), "trials": int(here.sum())}
            yield row | {"as_foreseen": int((expected[here] == laters[here]).sum()), "solved": int(solved[here].sum())}


def _counted(found: Ints) -> dict[str, int]:
    names = [f"then_{count}" for count in COUNTS]
    return {name: int((_level(found) == count).sum()) for name, count in zip(names, COUNTS, strict=True)}


def _even(found: Ints) -> Ints:
    """Round odd counts up: they are in transition."""
    return np.asarray(found + found % 2)


def _level(found: Ints) -> Ints:
    """Round odd counts up, and cap them at the last of `COUNTS`."""
    return np.minimum(_even(found), COUNTS[-1])


@dataclass(frozen=True)
class Starts:
    """Seeds trained for the first updates only.

    Args:
        found: number of negative factors of each seed after them.
        expected: number foreseen before training.
    """

    found: Ints
    expected: Ints


def starts_by_size(seeds: int) -> Iterator[tuple[int, Starts]]:
    """Train `seeds` seeds, at least one, of each hidden size for the first updates; yield the size with its starts."""
    seed_range = range(FIRST_SEED, FIRST_SEED + seeds)
    for size in SIZES:
        tell(f"{UPDATES} updates of {seeds} seeds, {size} hidden units")
        cell = cell_of(size)
        yield size, Starts(after_updates(cell, seed_range), foreseen(factors_at_start(cell, seed_range)))


def write_starts(starts: Mapping[int, Starts], path: Path) -> None:
    """Write a CSV row for each start: hidden units, seed, negative factors rounded up to even, and the forecast.

    Raises:
        OSError: if the file can't be written.
    """
    rows = [
        f"{size},{seed},{count},{expected}\n"
        for size, of_size in starts.items()
        for seed, (count, expected) in enumerate(
            zip(_even(of_size.found).tolist(), of_size.expected.tolist(), strict=True), FIRST_SEED
        )
    ]
    path.write_text("".join(["hidden_size,seed,negative_factors,foreseen\n", *rows]), encoding="utf-8")


def size_rows(trials: Sequence[Mapping[str, str]], starts: Mapping[int, Starts]) -> Iterator[Row]:
    """Yield a row for each hidden size: negative factors after the first updates, and solved trials.

    The same seeds are trained again for the first updates, with ``init_signs: two_negative``. Solved `trials` are
    left out for a size that none of them has.

    Raises:
        KeyError: if no rate has been published for a hidden size.
    """
    published = {r.hidden_size: r for r in printed() if r.table == "hidden_size_ablation" and r.sparsity and r.clipped}
    for size, of_size in starts.items():
        seeds = of_size.found.size
        here = [trial["outcome"] == "solved" for trial in trials if int(trial["hidden_size"]) == size]
        tell(f"the same with init_signs: two_negative, {size} hidden units")
        signed = after_updates(cell_of(size, init_signs="two_negative"), range(FIRST_SEED, FIRST_SEED + seeds))
        row: Row = {"of": "hidden units", "value": size, "trials": seeds} | _counted(of_size.found)
        row |= {"as_foreseen": int((of_size.found == of_size.expected).sum())}
        row |= {"foreseen_at_most_2": int((of_size.expected <= 2).sum())}
        row |= {"two_negative_then_2": _counted(signed)["then_2"]}
        row |= {"solved_here": sum(here), "trials_here": len(here)} if here else {}
        yield row | {"published_solved": published[size].solved, "published_seeds": published[size].seeds}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw into a file the course of negative factors, and by hidden size the resulting shares and success rates.

    Raises:
        ValueError: if `rows` have none of `trial_rows`, or more solved trials than trials.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
        _starts(left, [row for row in rows if row["of"] == "negative at the start"])
        _sizes(right, [row for row in rows if row["of"] == "hidden units"])
        figure.savefig(path, dpi=DPI, metadata={"Software": None})


def _starts(axes: Axes, rows: Sequence[Row]) -> None:
    below = np.zeros(len(rows))
    for number, count in enumerate(COUNTS):
        heights = np.array([row[f"then_{count}"] for row in rows])
        more = " or more" if count == COUNTS[-1] else ""
        values = [row["value"] for row in rows]
        axes.bar(values, heights, bottom=below, color=PALETTE[number], label=f"{count}{more}")
        below += heights
    axes.set_xlabel("negative factors before training")
    axes.set_ylabel("trials")
    axes.set_ylim(0, 1.3 * below.max())
    axes.legend(title="negative after 1,000 updates", fontsize=7, title_fontsize=7, loc="upper center", ncols=4)


def _sizes(axes: Axes, rows: Sequence[Row]) -> None:
    sizes = np.array([row["value"] for row in rows])
    two = np.array([row["then_2"] / row["trials"] for row in rows])
    at_most = two + np.array([row["then_0"] / row["trials"] for row in rows])
    expected = [row["foreseen_at_most_2"] / row["trials"] for row in rows]
    axes.fill_between(sizes, two, at_most, color=INK, alpha=0.12, linewidth=0)
    axes.plot(sizes, at_most, color=INK, label="none or two negative factors")
    axes.plot(sizes, expected, color=INK, linestyle="--", label="the same, foreseen before training")
    axes.plot(sizes, two, color=INK, linestyle=":", label="two negative factors")
    kinds = {
        "published, 50 seeds": [(row["published_solved"], row["published_seeds"]) for row in rows],
        "here, 50 seeds": [(row.get("solved_here", 0), row.get("trials_here", 0)) for row in rows],
    }
    for number, (name, counts) in enumerate(kinds.items()):
        there = [place for place, (_, n) in enumerate(counts) if n]
        rates = np.array([counts[place][0] / counts[place][1] for place in there])
        reach = np.abs(np.array([wilson(*counts[place]) for place in there]).T - rates)
        style: dict[str, Any] = {"color": PALETTE[1 - number], "marker": MARKERS[number], "label": name}
        moved = sizes[there] + (0.12 if number else -0.12)
        axes.errorbar(moved, rates, yerr=reach, linestyle="none", markersize=4, linewidth=1, **style)
    axes.set_xlabel("hidden units")
    axes.set_ylabel("success rate, share of seeds")
    axes.set_ylim(0, 1.03)
    axes.set_xticks(sizes)
    axes.legend(loc="lower left", fontsize=7)


def main(words: Sequence[str] | None = None) -> None:
    """Train seeds, and count negative factors; print the table, and write it, a figure and each seed's with `--out`.

    Raises:
        OSError: if trials.csv can't be read, or a file can't be written.
        ValueError: if `--seeds` is less than 1.
    """
    known = plain_parser(__doc__)
    known.add_argument("--seeds", type=int, default=1000, help="seeds of each size to train for 1,000 updates")
    arguments = known.parse_args(words)
    trials = read_trials()
    starts = dict(starts_by_size(arguments.seeds))
    rows = [*trial_rows(trials), *size_rows(trials, starts)]
    names = dict.fromkeys(name for row in rows for name in row)
    finish([{name: row.get(name, "") for name in names} for row in rows], arguments)
    if arguments.out is not None:
        plot(rows, arguments.out.with_suffix(".png"))
        write_starts(starts, arguments.out.with_name(f"{arguments.out.stem}-by-seed.csv"))


if __name__ == "__main__":
    main()
