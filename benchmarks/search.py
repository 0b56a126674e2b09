"""What a search finds beside a full grid, random search, and Optuna's TPE on single seeds.

    python -m benchmarks.search --store studies --out docs/results/search/methods.csv

The files are those of docs/results/search. Each method has as many trials as the search takes with its confirmation,
the grid five times as many. Whatever a method picks is trained again with fresh seeds, the same for all, which none of
them has seen: that is its true success rate. A store that has the trials already makes it quick.
"""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
import optuna
from matplotlib.figure import Figure

from benchmarks.measure import finish, plain_parser, tell
from study import statistics
from study.console import Console
from study.driver.options import Options
from study.engine import engine_for
from study.plan.packs import make_packs
from study.plan.plan import Plan, make_plan
from study.records import Cell, Outcome, Trial
from study.reports.figures.style import INK, PALETTE, STYLE, WIDTH_IN
from study.results.load import load_results
from study.run import Ending, run
from study.search import Searching
from study.search.space import Space
from study.search.suggest import Suggestions, distribution
from study.spec import Spec, load_spec, parse_spec

FILES = Path(__file__).parent.parent / "docs" / "results" / "search"
SEARCH_SEEDS = range(5)
FRESH = range(100_000, 100_400)
RANDOM_SEEDS = 20
BATCH = 10

Pick = tuple[Cell, int, float]
"""What a method chose, the trials it took, and the success rate that it saw of it."""


def trained(trials: Sequence[Trial]) -> dict[str, bool]:
    """Train trials here, and say which are solved."""
    solved: dict[str, bool] = {}
    for pack in make_packs(trials, slots=1):
        running = engine_for("auto", pack.trials[0].cell, "cpu").start(pack, device="cpu")
        while not running.done:
            running.advance(60.0)
        results, _, _ = running.finish()
        solved |= {result.trial.id: result.outcome is Outcome.SOLVED for result in results}
    return solved


def rate(cell: Cell, seeds: Sequence[int]) -> float:
    """Train a cell with some seeds, and give its success rate."""
    return sum(trained([Trial(cell, seed) for seed in seeds]).values()) / len(seeds)


def quietly_run(plan: Plan, store: Path, **more: Any) -> None:
    """Run a study in this process, or what is missing of it."""
    options = Options(root=store, tracking_uri=None, local=True)
    assert run(plan, options, Console(file=io.StringIO()), **more) is Ending.FINISHED


def grid(store: Path) -> Pick:
    """Choose the cell with the greatest success rate of the grid; of equals, the first."""
    plan = make_plan(load_spec(FILES / "grid.yaml"))
    quietly_run(plan, store)
    best = max(load_results(plan.spec.study, store).summaries, key=lambda s: s.success_rate or 0.0)
    return best.cell, plan.trials_count, best.success_rate or 0.0


def search(sampler: str, seed: int, store: Path) -> Pick:
    """Search, and choose what is confirmed."""
    spec = search_spec(f"reliable-{sampler}-{seed}", sampler, seed)
    quietly_run(make_plan(spec), store, extend=Searching(None))
    results = load_results(spec.study, store)
    assert results.search is not None
    winner = results.summaries[0]
    return winner.cell, results.search.trials + winner.seeds, winner.success_rate or 0.0


def search_spec(study: str, sampler: str, seed: int) -> Spec:
    """Give the search another name, sampler and seed."""
    text = (FILES / "search.yaml").read_text(encoding="utf-8")
    text = text.replace("study: reliable", f"study: {study}")
    text = text.replace("search: {", f"search: {{sampler: {sampler}, seed: {seed}, ")
    return parse_spec(text, source="search.yaml")


def at_random(seed: int, trials: int) -> Pick:
    """Draw cells at random, each with the same seeds, and choose that of the greatest rate; of equals, the first."""
    spec = search_spec("random", "random", seed)
    assert spec.search is not None
    space, suggestions = Space(spec), Suggestions(Space(spec), spec.search)
    cells = list(possible(space, suggestions.ask, trials // RANDOM_SEEDS))
    rates = [rate(cell, range(RANDOM_SEEDS)) for cell in cells]
    best = max(range(len(cells)), key=rates.__getitem__)
    return cells[best], len(cells) * RANDOM_SEEDS, rates[best]


def possible(space: Space, ask: Callable[[], dict[str, Any]], count: int) -> Iterator[Cell]:
    """Ask until there are so many cells."""
    while count:
        try:
            yield space.cell(ask())
        except ValueError:
            continue
        count -= 1


def single_seeds(seed: int, trials: int) -> Pick:
    """Let Optuna's TPE take every seed for a trial of its own, and choose what Optuna calls the best."""
    space = Space(load_spec(FILES / "search.yaml"))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    distributions = {name: distribution(parameter) for name, parameter in space.parameters.items()}
    cells: dict[int, Cell] = {}
    while len(cells) < trials:
        asked: dict[int, Trial] = {}
        while len(asked) < BATCH:
            trial = study.ask(distributions)
            try:
                asked[trial.number] = Trial(space.cell(trial.params), len(cells) + len(asked))
            except ValueError:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        solved = trained(list(asked.values()))
        for number, one in asked.items():
            cells[number] = one.cell
            study.tell(number, float(solved[one.id]))
    return cells[study.best_trial.number], len(cells), study.best_value


METHODS: dict[str, Callable[[int, int, Path], Pick]] = {
    "search, TPE": lambda seed, trials, store: search("TPE", seed, store),
    "search, random": lambda seed, trials, store: search("random", seed, store),
    "random search, 20 seeds each": lambda seed, trials, store: at_random(seed, trials),
    "Optuna's TPE on single seeds": lambda seed, trials, store: single_seeds(seed, trials),
}
"""Pick a cell, by the seed of the search, for so many trials."""


def row(method: str, seed: str, pick: Pick) -> dict[str, str]:
    """Measure the true success rate of what a method picked."""
    cell, trials, seen = pick
    true = rate(cell, FRESH)
    low, high = statistics.wilson(round(true * len(FRESH)), len(FRESH))
    tell(f"{method}, {seed}: {true:.3f} of what it saw as {seen:.3f}")
    names = ("sparsity_strength", "sparsity_start", "sparsity_end", "init_variance")
    chosen = tuple(cell.value(name) for name in names)
    names = ("sparsity_strength", "sparsity_start", "sparsity_end", "init_variance")
    return {
        "method": method,
        "search_seed": seed,
        "trials": f"{trials}",
        "rate_seen": f"{seen:.4f}",
        "rate": f"{true:.4f}",
        "rate_lower": f"{low:.4f}",
        "rate_upper": f"{high:.4f}",
    } | {name: f"{value:.4g}" for name, value in zip(names, chosen, strict=True)}


def measure(arguments: Namespace) -> None:
    """Run every method with every seed, and write a row each."""
    spec = load_spec(FILES / "search.yaml")
    assert spec.search is not None
    trials = spec.search.trials + spec.search.confirm_seeds
    rows = [row("full grid", "", grid(arguments.store))]
    for method, pick in METHODS.items():
        rows += [row(method, str(seed), pick(seed, trials, arguments.store)) for seed in SEARCH_SEEDS]
    finish(rows, Namespace(out=arguments.out), fresh_seeds=len(FRESH))
    if arguments.out is not None:
        plot(rows, arguments.out.with_name("figure.png"))


def plot(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    """Draw the true success rate of what each method picked, and beside it what the method saw."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 0.55 * len(methods) + 0.75), layout="constrained")
        axes = figure.subplots()
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        for place, method in enumerate(methods):
            some = [row for row in rows if row["method"] == method]
            for i, row in enumerate(some):
                y = place + (i - (len(some) - 1) / 2) * 0.13
                true, low, high, seen = (float(row[name]) for name in ("rate", "rate_lower", "rate_upper", "rate_seen"))
                axes.plot([low, high], [y, y], color=PALETTE[0], linewidth=1)
                axes.plot(true, y, "o", color=PALETTE[0], markersize=4)
                axes.plot(seen, y, "o", color=PALETTE[1], markersize=4, fillstyle="none")
            middle = median(float(row["rate"]) for row in some)
            axes.plot([middle, middle], [place - 0.36, place + 0.36], color=INK, linewidth=1.2)
        trials = {row["method"]: int(row["trials"]) for row in rows}
        axes.set_yticks(range(len(methods)), [f"{name}\n{trials[name]:,} trials" for name in methods])
        axes.invert_yaxis()
        axes.set_xlabel("success rate of the cell that was picked, with 400 fresh seeds (95%)")
        axes.plot([], [], "o-", color=PALETTE[0], markersize=4, linewidth=1, label="by fresh seeds")
        axes.plot([], [], "o", color=PALETTE[1], fillstyle="none", markersize=4, label="as the method saw it")
        axes.plot([], [], color=INK, linewidth=1.2, label="median of five search seeds")
        figure.legend(loc="outside upper right", ncols=3, frameon=False)
        figure.savefig(path, dpi=200, metadata={"Software": None})


def main() -> None:
    """Parse the arguments and run."""
    options = plain_parser(__doc__)
    options.add_argument("--store", type=Path, default=Path("studies"))
    options.add_argument("--only-figure", type=Path, metavar="CSV", help="draw what was measured before")
    arguments = options.parse_args()
    if arguments.only_figure is None:
        measure(arguments)
        return
    with arguments.only_figure.open(newline="") as lines:
        plot(list(csv.DictReader(lines)), arguments.only_figure.with_name("figure.png"))


if __name__ == "__main__":
    main()
