"""A family of tasks with its own engine, as in a plug-in package: throws of biased coins."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from study import Engine, Hyperparameter, Metric
from study.engine import Training
from study.interface.family import Family
from study.plugins.scripts import TrialScript
from study.plugins.vocabulary import Vocabulary
from study.records import Checkpoint, Curve, Outcome, Progress, Result, Weights


class Coins(Family):
    """A family whose trials throw a coin, and are solved if at least half of the throws show heads."""

    hyperparameters: ClassVar = {
        "bias": Hyperparameter(type=float, default=0.5, meaning="of heads", otherwise="0.5"),
        "iterations": Hyperparameter(type=int, default=9, meaning="throws - 1", otherwise="9", table="protocol"),
    }
    metrics: ClassVar = {"heads": Metric(higher_is_better=True, low=0.0, high=1.0)}
    tasks = ("coins",)
    models = ("euro", "krona")
    engines = ("thrower",)
    kinds: ClassVar = {"bias": "number", "iterations": "whole"}

    def canonical(self, task, model, values):
        return {name: values.get(name, hyperparameter.default) for name, hyperparameter in self.hyperparameters.items()}

    def shape(self, cell):
        return (cell.values["iterations"],)

    def cost_us(self, cells, draws):
        return 10.0 * len(cells)

    def most_in_pack(self, cell, trials, slots):
        return 8


COINS = Coins()
NAMES = Vocabulary(titles={"bias": "β"}, model_symbols={"krona": "Krona"})


class Throwing(Training):
    def __init__(self, pack, device, heads=None, thrown=0):
        self.pack, self.device, self.thrown = pack, device, thrown
        self.throws = pack.trials[0].cell.iterations + 1
        self.heads = np.zeros(len(pack.trials), np.int64) if heads is None else heads

    @property
    def done(self):
        return self.thrown == self.throws

    def advance(self, for_s):
        for place, trial in enumerate(self.pack.trials):
            uniform = np.random.default_rng((trial.seed, self.thrown)).random()
            self.heads[place] += uniform < trial.cell.value("bias")
        self.thrown += 1
        return Progress(self.pack.id, self.thrown, self.throws, len(self.pack.trials), 0, 0, 0)

    def checkpoint(self):
        ids = tuple(trial.id for trial in self.pack.trials)
        return Checkpoint(self.pack.id, ids, self.thrown, {"heads": self.heads.copy()}, 0.0, "thrower")

    def finish(self):
        shares = self.heads / self.throws
        results = [
            Result(
                trial=trial,
                outcome=Outcome.SOLVED if share >= 0.5 else Outcome.UNSOLVED,
                threshold=0.5,
                best_iteration=self.throws - 1,
                metrics={"heads": float(share)},
                solved_at_iteration=self.throws - 1 if share >= 0.5 else None,
                iterations=self.throws - 1,
                engine="thrower",
                device=self.device,
            )
            for trial, share in zip(self.pack.trials, shares, strict=True)
        ]
        curves = [
            Curve(trial.id, np.array([self.throws - 1]), {"heads": np.array([share])})
            for trial, share in zip(self.pack.trials, shares, strict=True)
        ]
        weights = [
            Weights(trial.id, self.throws - 1, {"coin": np.ones((1, 2), np.float32)}) for trial in self.pack.trials
        ]
        return results, curves, weights


class Thrower(Engine):
    name = "thrower"
    devices = ("cpu",)

    def refuses(self, cell):
        return None if cell.task == "coins" else "it throws coins only"

    def memory_mb(self, pack):
        return 1.0

    def start(self, pack, *, device, checkpoint=None):
        if checkpoint is None:
            return Throwing(pack, device)
        return Throwing(pack, device, checkpoint.arrays["heads"].copy(), checkpoint.iteration)


def coin_script(study, result, curve):
    return TrialScript(result.trial.id, f"print({result.metrics['heads']!r})\n")
