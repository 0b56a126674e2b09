"""Picks of a search beside those of a full grid, random search, Optuna's TPE and SMAC3, on fresh seeds.

    python -m benchmarks.search [--rows search-rows.csv] [--out tasks/docs/results/search/methods.csv]

Two questions have known answers (benchmarks/search_methods.py). Each method has the number of trials that the search
takes with its confirmation, the grid at least five times as many. The true success rate of a pick is exact for the
ridge. For the NMU it is that of fresh seeds, the same for all, unseen by the methods. Each repetition has its own seed
and training seeds. SMAC3 is skipped if it isn't installed.

Each measured row is appended to the file of `--rows`, so that an interrupted run continues. Prints all rows, and writes
them with `--out`: a pick, its true success rate, and the rate that the method saw. figure.png beside the file shows
them; `--only-figure` draws it from an earlier file.
"""

from __future__ import annotations

import csv
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.measure import finish, plain_parser, tell
from benchmarks.search_methods import METHODS, QUESTIONS, Pick, Question, Task, grid
from study import statistics
from study.reports.figures.style import INK, PALETTE, STYLE, WIDTH_IN
from study.spec import load_spec

REPETITIONS = 20
FRESH = range(100_000, 100_400)
GRID, SMAC = "full grid", "SMAC3"
COLUMNS = (
    "question", "method", "repetition", "trials", "rate_seen", "seeds_seen", "rate", "rate_lower", "rate_upper", "pick",
)  # fmt: skip

Row = Mapping[str, str]
Key = tuple[str, str, str]


def key_of(row: Row) -> Key:
    """Return a row's key: question, method and repetition."""
    return row["question"], row["method"], row["repetition"]


def rows_of(name: str, question: Question, picks: Mapping[Key, Pick]) -> Iterator[Row]:
    """Measure the true success rates of a question's picks, exact or with intervals; print and yield a row for each."""
    cells = [pick.cell for pick in picks.values()]
    exact = question.rate
    rates = [exact(**question.values(cell)) for cell in cells] if exact else question.rates(cells, FRESH)
    for (_, method, repetition), pick, rate in zip(picks.keys(), picks.values(), rates, strict=True):
        low, high = (rate, rate) if exact else statistics.wilson(round(rate * len(FRESH)), len(FRESH))
        tell(f"{name}, {method} {repetition}: {rate:.3f} of what it saw as {pick.seen:.3f} by {pick.seeds} seeds")
        numbers = {"rate_seen": pick.seen, "rate": rate, "rate_lower": low, "rate_upper": high}
        row = {"question": name, "method": method, "repetition": repetition, "trials": f"{pick.trials}"}
        row |= {"seeds_seen": f"{pick.seeds}"} | {key: f"{value:.4f}" for key, value in numbers.items()}
        row["pick"] = " ".join(f"{key}={value:.4g}" for key, value in question.values(pick.cell).items())
        yield {column: row[column] for column in COLUMNS}


def measure(arguments: Namespace) -> list[Row]:
    """Measure the rows that the file of ``--rows`` lacks, and append them to it; make it if it is missing.

    SMAC3 is skipped if it isn't installed.

    Returns:
        All rows of the chosen questions and repetitions, earlier ones included, in the order of the methods.

    Raises:
        OSError: if the file can't be read or written.
        KeyError: if it lacks a column.
    """
    path = arguments.rows
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    measured = {key_of(row): row for row in read(path)}
    methods = [name for name in arguments.methods if name != SMAC or find_spec("smac") is not None]
    if len(methods) < len(arguments.methods):
        tell(f"{SMAC} isn't installed, and isn't measured")
    wanted: list[Key] = []
    for name in arguments.questions:
        question = QUESTIONS[name]
        search = load_spec(question.file).search
        assert search is not None
        trials = search.trials + search.confirm_seeds
        wanted.append((name, GRID, ""))
        wanted += [(name, method, str(i)) for method in METHODS for i in range(arguments.repetitions)]
        for repetition in ("", *map(str, range(arguments.first, arguments.repetitions))):
            missing = [(name, way, repetition) for way in methods if (way == GRID) == (repetition == "")]
            picks = {
                key: grid(question) if key[1] == GRID else METHODS[key[1]](Task(question, int(repetition), trials))
                for key in missing
                if key not in measured
            }
            for row in rows_of(name, question, picks):
                measured[key_of(row)] = row
                with path.open("a", newline="") as out:
                    csv.DictWriter(out, COLUMNS, lineterminator="\n").writerow(row)
    return [measured[key] for key in wanted if key in measured]


def read(path: Path) -> list[Row]:
    """Read the rows of a CSV file, as texts by column.

    Raises:
        OSError: if it can't be read.
    """
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def main(words: Sequence[str] | None = None) -> None:
    """Measure missing rows, print all, and write them and a figure with `--out`; or draw an earlier file's figure.

    Raises:
        OSError: if a file can't be read or written.
        KeyError: if the earlier file, or that of `--rows`, lacks a column.
        ValueError: if the earlier file has no rows.
    """
    options = plain_parser(__doc__)
    options.add_argument(
        "--rows", type=Path, default=Path("search-rows.csv"), help="file of measured rows, to continue"
    )
    options.add_argument("--questions", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS), metavar="NAME")
    ways = [GRID, *METHODS]
    options.add_argument("--methods", nargs="+", choices=ways, default=ways, metavar="NAME")
    options.add_argument("--repetitions", type=int, default=REPETITIONS, help="repetitions of each method")
    options.add_argument("--first", type=int, default=0, help="first repetition to measure")
    options.add_argument("--only-figure", type=Path, metavar="CSV", help="only draw the figure of an earlier --out")
    arguments = options.parse_args(words)
    if arguments.only_figure is not None:
        plot(read(arguments.only_figure), arguments.only_figure.with_name("figure.png"))
        return
    rows = measure(arguments)
    peers = {name: version(name) for name in ("optuna", "smac") if find_spec(name) is not None}
    finish(rows, Namespace(out=arguments.out), fresh_seeds=len(FRESH), peers=peers)
    if arguments.out is not None:
        plot(rows, arguments.out.with_name("figure.png"))


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the true success rates of the picks, and the rates that methods saw, into a file, by question and method.

    Raises:
        ValueError: if there are no rows, or a rate isn't a number.
        KeyError: if a row lacks a column.
        OSError: if the file can't be written.
    """
    questions = list(dict.fromkeys(row["question"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 0.5 * len(methods) + 0.9), layout="constrained")
        panels = figure.subplots(1, len(questions), sharey=True, squeeze=False)[0]
        for axes, question in zip(panels, questions, strict=True):
            axes.grid(visible=False, axis="y")
            axes.grid(visible=True, axis="x")
            for place, method in enumerate(methods):
                method_rows = [row for row in rows if (row["question"], row["method"]) == (question, method)]
                if not method_rows:
                    continue
                offsets = np.linspace(-0.28, 0.28, len(method_rows)) if len(method_rows) > 1 else np.zeros(1)
                true, seen = (sorted(float(row[name]) for row in method_rows) for name in ("rate", "rate_seen"))
                axes.plot(seen, place + offsets, "o", color=PALETTE[1], markersize=3, fillstyle="none", linewidth=0)
                axes.plot(true, place + offsets, "o", color=PALETTE[0], markersize=3, linewidth=0)
                middle = median(true)
                axes.plot([middle, middle], [place - 0.4, place + 0.4], color=INK, linewidth=1.2)
            axes.set_title(question)
            axes.set_xlabel("success rate of the pick")
        panels[0].set_yticks(range(len(methods)), methods)
        panels[0].invert_yaxis()
        axes = panels[0]
        axes.plot([], [], "o", color=PALETTE[0], markersize=3, label="true")
        axes.plot([], [], "o", color=PALETTE[1], fillstyle="none", markersize=3, label="as the method saw it")
        axes.plot([], [], color=INK, linewidth=1.2, label="median of the true rates")
        figure.legend(loc="outside upper right", ncols=3, frameon=False)
        figure.savefig(path, dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
