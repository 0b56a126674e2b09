"""XGBoost: `xgboost.train(callbacks=[ReportTo(trial)])` reports each round and writes checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from study.integrations.checkpoints import latest, restore_generators_of, step_of, write_checkpoint
from study.integrations.needed import needed
from study.integrations.reports import Reports
from study.interface.function.trial import Trial

with needed("xgboost", "xgboost"):
    from xgboost import Booster, callback

_MODEL = "model.ubj"


class ReportTo(callback.TrainingCallback):
    """Callback that reports evaluations such as `validation-logloss`; the step is the number of rounds.

    XGBoost doesn't store the state of its random generator. So the callback reloads each checkpoint after writing it
    and seeds XGBoost by the trial's seed and the round, just as for a resumed trial.

    Args:
        trial: the trial.
        names: the study's names by names of evaluations, where they differ.
        every: rounds between two checkpoints, >= 1. It affects results: the same seed samples other rows and columns if
            `every` changes.
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None, *, every: int = 10) -> None:
        super().__init__()
        self._trial, self._reports, self._every = trial, Reports(trial, names), every

    def before_training(self, model: Booster) -> Booster:
        """Seed XGBoost, restore the global generators from the last checkpoint, if any, and return the model.

        A custom objective may draw from these generators.

        Raises:
            OSError: if the checkpoint can't be read.
            ImportError: if the checkpoint has a state of torch, and torch isn't installed.
        """
        if (checkpoint := last_checkpoint(self._trial)) is not None:
            restore_generators_of(checkpoint.parent)
        self._seed(model)
        return model

    def after_iteration(self, model: Booster, epoch: int, evals_log: Mapping[str, Mapping[str, Any]]) -> bool:
        """Report the round; every `every` rounds, write a checkpoint, reload the model from it and seed XGBoost.

        Returns:
            True if training should stop.

        Raises:
            OSError: if the checkpoint or the file of reports can't be written.
            RuntimeError: if the training function yields its steps, or another thread calls this method.
        """
        rounds = model.num_boosted_rounds()
        values = {f"{data}-{name}": log[-1] for data, logs in evals_log.items() for name, log in logs.items()}
        should_stop = self._reports.add(rounds, values)
        if rounds % self._every == 0:
            write_checkpoint(self._trial.folder, rounds, lambda folder: model.save_model(folder / _MODEL))
            config = model.save_config()
            model.load_model(last_checkpoint(self._trial))
            model.load_config(config)
            self._seed(model)
        return should_stop

    def _seed(self, model: Booster) -> None:
        model.set_param("seed", crc32(f"{self._trial.seed} {model.num_boosted_rounds()}".encode()) % 2**31)


def last_checkpoint(trial: Trial) -> Path | None:
    """Return the file of an interrupted trial's last model, for `xgb_model`; None if it has none."""
    checkpoint = latest(trial.folder, "checkpoint-*")
    return None if checkpoint is None else checkpoint / _MODEL


def rounds_left(trial: Trial, rounds: int) -> int:
    """Return the number of rounds still to train after the last checkpoint, for `num_boost_round`; at least 0.

    Args:
        trial: the trial.
        rounds: the total number of rounds.
    """
    checkpoint = last_checkpoint(trial)
    return rounds if checkpoint is None else max(0, rounds - step_of(checkpoint.parent))
