"""The methods and questions of `benchmarks.search`: each method picks a cell, given a number of trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna

from benchmarks import ridge
from study.engine import engine_for
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.records import Cell, Outcome, Result, Trial
from study.search import Searching, planned_seeds, read_record, winner_cells
from study.search.space import Space
from study.search.suggest import Suggestions, distribution
from study.spec import Spec, load_spec, parse_spec
from tests.study.search.made import MemoryFolder

HERE = Path(__file__).parent
FILES = HERE.parent / "tasks" / "docs" / "results" / "search"
RANDOM_SEEDS, MEAN_SEEDS, SMAC_SEEDS = 20, 5, 40
BATCH = 10
SEEDS_OF_A_REPETITION = 1000
"""Maximum number of a method's seeds in a repetition; each repetition has seeds of its own."""


@dataclass(frozen=True)
class Question:
    """A search with a known answer.

    Args:
        file: the search's study file.
        grid: the study file of a grid over the same ranges.
        solved: trains trials, and returns their success by trial id.
        parameters: the hyperparameters that are searched.
        rate: the exact success rate of their values; None if it can only be estimated.
        ordered: two parameters, the first of which must be less than the second; None without such a pair.
    """

    file: Path
    grid: Path
    solved: Callable[[Sequence[Trial]], dict[str, bool]]
    parameters: tuple[str, ...]
    rate: Callable[..., float] | None = None
    ordered: tuple[str, str] | None = None

    def values(self, cell: Cell) -> dict[str, Any]:
        """Return a cell's values of the searched `parameters`, by name."""
        return {name: cell.value(name) for name in self.parameters}

    def rates(self, cells: Sequence[Cell], seeds: Sequence[int]) -> list[float]:
        """Train the seeds of each cell, at least one, and return the cells' shares of solved trials.

        Equal cells are trained once.
        """
        solved = self.solved([Trial(cell, seed) for cell in dict.fromkeys(cells) for seed in seeds])
        return [fmean(solved[Trial(cell, seed).id] for seed in seeds) for cell in cells]


@dataclass(frozen=True)
class Pick:
    """The cell that a method chose.

    Args:
        cell: the cell.
        trials: the number of trials that the method took.
        seen: the success rate of the cell that the method saw.
        seeds: the number of seeds behind that rate.
    """

    cell: Cell
    trials: int
    seen: float
    seeds: int


@dataclass(frozen=True)
class Task:
    """A question for a method, and its budget.

    Args:
        question: the search.
        repetition: seed of the method, and number of the range of trial seeds.
        trials: the budget.
    """

    question: Question
    repetition: int
    trials: int

    @property
    def first_seed(self) -> int:
        """The first of the repetition's seeds."""
        return self.repetition * SEEDS_OF_A_REPETITION

    def spec(self, sampler: str = "random") -> Spec:
        """Return the search's study file with the repetition's seeds, a sampler, and a name.

        Raises:
            AssertionError: if the file lacks a line to replace, or has it twice.
            OSError: if it can't be read.
            InputError: if it has mistakes.
        """
        text, first = self.question.file.read_text(encoding="utf-8"), self.first_seed
        study = load_spec(self.question.file).study
        for old, new in {
            f"study: {study}": f"study: {study}-{sampler}-{self.repetition}",
            "seeds: 40": f"seeds: {first}-{first + 39}",
            "search: {": f"search: {{sampler: {sampler}, seed: {self.repetition}, ",
        }.items():
            assert text.count(old) == 1, f"{old!r} must be in {self.question.file.name} once"
            text = text.replace(old, new)
        return parse_spec(text, source=self.question.file.name, folder=self.question.file.parent)


def train(trials: Sequence[Trial]) -> dict[str, bool]:
    """Train trials in packs, and return their success by trial id.

    Raises:
        ValueError: if no family has a trial's task.
        InputError: if no engine trains a cell.
    """
    solved: dict[str, bool] = {}
    for pack in make_packs(trials, slots=1):
        running = engine_for("auto", pack.trials[0].cell, "cpu").start(pack, device="cpu")
        while not running.done:
            running.advance(60.0)
        results, _, _ = running.finish()
        solved |= {result.trial.id: result.outcome is Outcome.SOLVED for result in results}
    return solved


def flip(trials: Sequence[Trial]) -> dict[str, bool]:
    """Flip the coins of the ridge, and return the trials' success by trial id."""
    return {
        trial.id: ridge.train(trial.seed, **{name: trial.cell.value(name) for name in ridge.BEST})["reached"] == 1
        for trial in trials
    }


SCHEDULE = ("sparsity_strength", "sparsity_start", "sparsity_end", "init_variance")
QUESTIONS: Mapping[str, Question] = {
    "NMU": Question(
        FILES / "search.yaml", FILES / "grid.yaml", train, SCHEDULE, ordered=("sparsity_start", "sparsity_end")
    ),
    "ridge": Question(HERE / "ridge.yaml", HERE / "ridge-grid.yaml", flip, tuple(ridge.BEST), ridge.success_rate),
}


class Memory(MemoryFolder):
    """The folder of a search, in memory."""

    def add(self, trials: Sequence[Trial], solved: Mapping[str, bool]) -> None:
        """Keep the outcomes of trials."""
        for trial in trials:
            self.results[trial.id] = Result(
                trial=trial, outcome=Outcome.SOLVED if solved[trial.id] else Outcome.UNSOLVED
            )


def grid(question: Question) -> Pick:
    """Train the grid, and pick the cell with the greatest success rate; of ties, the first.

    Raises:
        InputError: if the grid's file can't be read, or has mistakes.
    """
    plan = make_plan(load_spec(question.grid))
    rates = question.rates(plan.cells, plan.spec.first_seeds)
    best = max(range(len(rates)), key=rates.__getitem__)
    return Pick(plan.cells[best], plan.trials_count, rates[best], len(plan.spec.first_seeds))


def search(task: Task, sampler: str) -> Pick:
    """Search as `study run` does, without a store, and return the confirmed cell with its rate on fresh seeds.

    Args:
        task: the question. The file of its search sets the budget, not the task.
        sampler: the search's sampler, ``TPE`` or ``random``.

    Raises:
        AssertionError: as for `Task.spec`.
        OSError: if the search's file can't be read.
        InputError: if it has mistakes, there is no such sampler, or no suggestion can be trained.
    """
    spec, folder, searching = task.spec(sampler), Memory(), Searching(None)
    plan = make_plan(spec)
    while True:
        plan = searching(plan, folder, lambda progress: None)
        missing = [trial for trial in plan.trials if trial.id not in folder.results]
        if not missing:
            break
        folder.add(missing, task.question.solved(missing))
    record = read_record(spec, folder)
    assert record is not None
    (cell,), seeds = winner_cells(spec, record), planned_seeds(spec).fresh
    seen = fmean(folder.results[Trial(cell, seed).id].outcome is Outcome.SOLVED for seed in seeds)
    return Pick(cell, len(folder.results), seen, len(seeds))


def at_random(task: Task) -> Pick:
    """Draw cells at random, train each with the same seeds, and pick the greatest rate; of ties, the first.

    Raises:
        ValueError: if the budget is less than `RANDOM_SEEDS`.
        AssertionError, OSError, InputError: as for `Task.spec`.
    """
    spec = task.spec()
    assert spec.search is not None
    space, suggestions = Space(spec), Suggestions(Space(spec), spec.search)
    cells = list(possible(space, suggestions.ask, task.trials // RANDOM_SEEDS))
    rates = task.question.rates(cells, range(task.first_seed, task.first_seed + RANDOM_SEEDS))
    best = max(range(len(cells)), key=rates.__getitem__)
    return Pick(cells[best], len(cells) * RANDOM_SEEDS, rates[best], RANDOM_SEEDS)


def possible(space: Space, ask: Callable[[], dict[str, Any]], count: int) -> Iterator[Cell]:
    """Ask for candidates, and yield the first `count` that the space allows; endless if it allows fewer."""
    while count:
        try:
            yield space.cell(ask())
        except ValueError:
            continue
        count -= 1


def optuna_tpe(task: Task, seeds: int, batch: int) -> Pick:
    """Maximise the success rate by Optuna's TPE, and pick Optuna's best candidate.

    Batches are asked for until the budget is used up; the last one may exceed it.

    Args:
        task: the question and the budget.
        seeds: the number of seeds for the mean that is a candidate's value, the same for all; 1 for a new seed for each
            candidate.
        batch: candidates that are asked for at once.

    Raises:
        ValueError: if the budget isn't positive.
        AssertionError, OSError, InputError: as for `Task.spec`.
    """
    space = Space(task.spec())
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=task.repetition))
    distributions = {name: distribution(parameter) for name, parameter in space.parameters.items()}
    cells: dict[int, Cell] = {}
    while len(cells) * seeds < task.trials:
        asked: dict[int, list[Trial]] = {}
        while len(asked) < batch:
            suggested = study.ask(distributions)
            try:
                cell = space.cell(suggested.params)
            except ValueError:
                study.tell(suggested, state=optuna.trial.TrialState.FAIL)
                continue
            first = task.first_seed + (len(cells) + len(asked) if seeds == 1 else 0)
            asked[suggested.number] = [Trial(cell, first + k) for k in range(seeds)]
        solved = task.question.solved([trial for trials in asked.values() for trial in trials])
        for number, trials in asked.items():
            cells[number] = trials[0].cell
            study.tell(number, fmean(solved[trial.id] for trial in trials))
    return Pick(cells[study.best_trial.number], len(cells) * seeds, study.best_value, seeds)


def smac(task: Task) -> Pick:
    """Race candidates over seeds by SMAC3, and pick its incumbent.

    Raises:
        ImportError: if SMAC3 isn't installed.
        AssertionError, OSError, InputError: as for `Task.spec`.
    """
    from benchmarks.smac_peer import race  # imported late: SMAC3 is optional

    return race(task, SMAC_SEEDS)


METHODS: Mapping[str, Callable[[Task], Pick]] = {
    "search, TPE": lambda task: search(task, "TPE"),
    "search, random": lambda task: search(task, "random"),
    "random search, 20 seeds each": at_random,
    "Optuna's TPE on single seeds": lambda task: optuna_tpe(task, 1, BATCH),
    "Optuna's TPE on means of 5 seeds": lambda task: optuna_tpe(task, MEAN_SEEDS, 1),
    "SMAC3": smac,
}
