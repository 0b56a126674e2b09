"""Steps saved and winners lost by stopping trials early, beside Optuna's pruners and Ray Tune's ASHA.

    python -m benchmarks.pruning [--pool N] [--trials N] [--repetitions N] [--out benchmarks/results/pruning.csv]

Three functions are trained to their end for a pool of random settings, each with its own seed. A repetition draws
trials from the pool in random order. It replays them on simulated workers, asynchronously, a step of each in turn. Each
rule sees values as they come, as in a study. All have the same rungs: halving at steps 1, 3 and 9 with a factor of 3,
the median rule at each step from the third on. Prints a row for each function and rule, and writes it with `--out`: the
mean share of steps saved, the number of repetitions that stop the best trial, and the mean share of trials better than
the best complete one.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import optuna
import torch
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingRegressor
from torch import nn

from benchmarks.measure import at_least, finish, one_core, plain_parser, tell
from study.interface.pruning import Comparison, Pruning

STEPS = 27
WORKERS = 4

Curve = Sequence[float]
"""A trial's value at each step; less is better."""


# --- the functions


def digits(rng: np.random.Generator) -> Curve:
    """Train a network with random settings on digits, and return the error rate on held-out digits after each epoch."""
    x, y = load_digits(return_X_y=True)
    inputs, labels = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
    torch.manual_seed(int(rng.integers(2**31)))
    order = torch.randperm(len(labels))
    train, test = order[:1200], order[1200:]
    width, rate, batch = int(rng.choice([8, 32, 128])), 10 ** rng.uniform(-4, 0.5), int(rng.choice([32, 128]))
    network = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=rng.uniform(0, 0.95))

    def epoch() -> float:
        for rows in train[torch.randperm(len(train))].split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        return float((network(inputs[test]).argmax(1) != labels[test]).float().mean())

    return [epoch() for _ in range(STEPS)]


def spirals(rng: np.random.Generator) -> Curve:
    """Train a network with random settings on two spirals, and return the validation loss after every 40 updates."""
    torch.manual_seed(int(rng.integers(2**31)))
    width, rate = int(rng.choice([4, 16, 64])), 10 ** rng.uniform(-4, -0.5)
    activation = [nn.Tanh, nn.ReLU][rng.integers(2)]
    network = nn.Sequential(
        nn.Linear(2, width), activation(), nn.Linear(width, width), activation(), nn.Linear(width, 1)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)

    def loss(rows: int) -> torch.Tensor:
        label, radius = torch.randint(2, (rows,)), torch.rand(rows)
        angle = torch.pi * (2 * radius + label)
        points = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
        return nn.functional.binary_cross_entropy_with_logits(network(points)[:, 0], label.float())

    def part() -> float:
        for _ in range(40):
            optimizer.zero_grad()
            loss(64).backward()
            optimizer.step()
        with torch.no_grad():
            return float(loss(500))

    return [part() for _ in range(STEPS)]


def boosting(rng: np.random.Generator) -> Curve:
    """Fit boosted trees with random settings to diabetes data, and return the root mean squared error on held-out rows.

    The curve has an error after each 5 trees.
    """
    x, y = load_diabetes(return_X_y=True)
    seed = int(rng.integers(2**31))
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:300], order[300:]
    model = GradientBoostingRegressor(
        n_estimators=5 * STEPS,
        learning_rate=10 ** rng.uniform(-2.5, 0),
        max_depth=int(rng.integers(1, 6)),
        subsample=rng.uniform(0.3, 1),
        random_state=seed,
    ).fit(x[train], y[train])
    errors = [float(np.sqrt(np.mean((found - y[test]) ** 2))) for found in model.staged_predict(x[test])]
    return errors[4::5]


FUNCTIONS: Mapping[str, Callable[[np.random.Generator], Curve]] = {
    "digits": digits,
    "spirals": spirals,
    "boosting": boosting,
}


# --- the rules


class Rule(Protocol):
    """A rule that decides if a trial stops at a step, from 1, given its value there."""

    def stops(self, trial: int, step: int, value: float) -> bool: ...


class InMemory:
    """Values at rungs, in memory."""

    def __init__(self) -> None:
        self._at: dict[int, dict[str, dict[str, float]]] = {}

    def add(self, rung: int, cell_id: str, trial_id: str, value: float) -> None:
        """Record the value of a trial of a cell at a rung."""
        self._at.setdefault(rung, {}).setdefault(cell_id, {})[trial_id] = value

    def values(self, rung: int) -> dict[str, dict[str, float]]:
        """Return the values at a rung, by cell and trial; empty before the first."""
        return dict(self._at.get(rung, {}))


class Ours:
    """A rule of `prune:`."""

    def __init__(self, rule: Pruning) -> None:
        self._rule, self._rungs = rule, InMemory()
        self._comparisons: dict[int, Comparison] = {}

    def stops(self, trial: int, step: int, value: float) -> bool:
        """Record a value, and return True if the rule of `prune:` stops the trial; False at the last step."""
        if trial not in self._comparisons:
            trial_id = cell_id = str(trial)  # each setting has one trial
            self._comparisons[trial] = Comparison(trial_id, cell_id, self._rule, self._rungs, STEPS)
        return self._comparisons[trial](step, {"loss": value})


class OfOptuna:
    """A pruner of Optuna."""

    def __init__(self, pruner: optuna.pruners.BasePruner) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.RandomSampler(seed=0)
        self._study = optuna.create_study(direction="minimize", pruner=pruner, sampler=sampler)
        self._trials: dict[int, optuna.Trial] = {}

    def stops(self, trial: int, step: int, value: float) -> bool:
        """Report a value, and return True if Optuna prunes the trial; False at the last step."""
        asked = self._trials.setdefault(trial, None) or self._study.ask()  # type: ignore[arg-type]
        self._trials[trial] = asked
        asked.report(value, step)
        stops = step < STEPS and asked.should_prune()
        if stops:
            self._study.tell(asked, state=optuna.trial.TrialState.PRUNED)
        elif step == STEPS:
            self._study.tell(asked, value)
        return stops


class OfRay:
    """Ray Tune's ASHA."""

    def __init__(self) -> None:
        self._scheduler = AsyncHyperBandScheduler(
            metric="loss", mode="min", max_t=STEPS, grace_period=1, reduction_factor=3
        )
        self._trials: dict[int, Any] = {}

    def stops(self, trial: int, step: int, value: float) -> bool:
        """Report a value, and return True if the scheduler stops the trial; False at the last step."""
        if trial not in self._trials:
            self._trials[trial] = SimpleNamespace(trial_id=str(trial))
            self._scheduler.on_trial_add(None, self._trials[trial])  # type: ignore[arg-type]
        result = {"training_iteration": step, "loss": value}
        decision = self._scheduler.on_trial_result(None, self._trials[trial], result)  # type: ignore[arg-type]
        return step < STEPS and decision == TrialScheduler.STOP


class Never:
    """A rule that stops nothing."""

    def stops(self, trial: int, step: int, value: float) -> bool:
        """Return False."""
        return False


def _ours(method: Any, **settings: Any) -> Callable[[], Rule]:
    rule = Pruning(method=method, metric="loss", is_higher_better=False, **settings)
    return lambda: Ours(rule)


RULES: Mapping[str, Callable[[], Rule]] = {
    "none": Never,
    "prune: halving": _ours("halving", first=1, factor=3),
    "Optuna, SuccessiveHalvingPruner": lambda: OfOptuna(
        optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    ),
    "Ray Tune, ASHA": OfRay,
    "prune: median": _ours("median", first=3, every=1),
    "Optuna, MedianPruner": lambda: OfOptuna(optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=3)),
}


# --- the replay


@dataclass(frozen=True)
class Replay:
    """Result of a replay.

    Args:
        saved: the share of all steps that were saved.
        stopped_winner: True if the trial with the best value of all steps was stopped.
        share_better: the share of trials whose best value of all steps, had they not been stopped, is better than that
            of the best complete trial, or than the worst trial's if none is complete.
    """

    saved: float
    stopped_winner: bool
    share_better: float


def replay(curves: Sequence[Curve], rule: Rule) -> Replay:
    """Replay trials of `STEPS` steps on simulated workers, a step of each in turn, until it ends or the rule stops it.

    A free worker takes the next trial, in their order.

    Raises:
        ValueError: if there are no curves.
    """
    ends = [min(curve) for curve in curves]
    waiting, running, made, complete = iter(range(len(curves))), dict[int, int](), 0, list[int]()

    def fill() -> None:
        while len(running) < WORKERS and (trial := next(waiting, None)) is not None:
            running[trial] = 0

    fill()
    while running:
        for trial in list(running):
            running[trial] += 1
            made += 1
            step = running[trial]
            if rule.stops(trial, step, curves[trial][step - 1]):
                del running[trial]
            elif step == STEPS:
                complete.append(trial)
                del running[trial]
        fill()
    found = min((ends[trial] for trial in complete), default=max(ends))
    return Replay(
        saved=1 - made / (STEPS * len(curves)),
        stopped_winner=ends.index(min(ends)) not in complete,
        share_better=sum(end < found for end in ends) / len(ends),
    )


def _rows(arguments: Namespace) -> Iterator[dict[str, Any]]:
    for name, function in FUNCTIONS.items():
        rng = np.random.default_rng(arguments.seed)
        pool = [function(rng) for _ in range(arguments.pool)]
        pool = [curve for curve in pool if np.isfinite(curve).all()]
        tell(f"{name}: {len(pool)} trials")
        drawn = [rng.permutation(len(pool))[: arguments.trials] for _ in range(arguments.repetitions)]
        for title, make in RULES.items():
            replays = [replay([pool[i] for i in rows], make()) for rows in drawn]
            saved = [result.saved for result in replays]
            yield {
                "function": name,
                "rule": title,
                "repetitions": len(replays),
                "saved": f"{statistics.mean(saved):.4f}",
                "saved_sd": f"{statistics.stdev(saved):.4f}",
                "winner_stopped": sum(result.stopped_winner for result in replays),
                "share_better": f"{statistics.mean(result.share_better for result in replays):.4f}",
                "share_better_most": f"{max(result.share_better for result in replays):.4f}",
            }


def main(words: Sequence[str] | None = None) -> None:
    """Train the functions, and replay each rule; print the table, and write it with `--out`.

    Raises:
        statistics.StatisticsError: if there are fewer than two repetitions.
        ValueError: if a repetition has no trials.
        OSError: if the table can't be written.
    """
    options = plain_parser(__doc__)
    options.add_argument("--pool", type=at_least(1), default=240, help="random settings to train")
    options.add_argument("--trials", type=at_least(1), default=60, help="trials of a repetition")
    options.add_argument("--repetitions", type=at_least(2), default=20, help="repetitions, at least 2")
    options.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    arguments = options.parse_args(words)
    with one_core():
        finish(list(_rows(arguments)), arguments)


if __name__ == "__main__":
    main()
