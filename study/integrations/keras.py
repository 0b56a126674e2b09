"""Keras 3: `model.fit(callbacks=[ReportTo(trial)])` reports each epoch and writes checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.integrations.checkpoints import latest, restore_generators_of, step_of, write_checkpoint
from study.integrations.needed import needed
from study.integrations.reports import Reports
from study.interface.function.trial import Trial

with needed("keras", "keras"):
    import keras

_WEIGHTS = "model.weights.h5"


class ReportTo(keras.callbacks.Callback):
    """Callback that reports the logs of each epoch; the step is the number of epochs.

    Like `keras.callbacks.BackupAndRestore`, it stores weights and optimizer after each epoch, and `fit` of a built
    model resumes from them. It also stores the epoch and the global generators, all atomically.

    Args:
        trial: the trial.
        names: the study's names by logged names, where they differ.
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._trial, self._reports = trial, Reports(trial, names)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Resume from the last checkpoint, if there is one.

        Raises:
            OSError: if the checkpoint can't be read.
            ValueError: if the checkpoint is of a model with other layers.
            ImportError: if the checkpoint has a state of torch, and torch isn't installed.
        """
        if (checkpoint := last_checkpoint(self._trial)) is not None:
            self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(checkpoint / _WEIGHTS)
            self.model._initial_epoch = step_of(checkpoint)
            restore_generators_of(checkpoint)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Report the epoch, write a checkpoint, and stop training if the trial should stop.

        Raises:
            OSError: if the checkpoint or the file of reports can't be written.
            RuntimeError: if the training function yields its steps, or another thread calls this method.
        """
        self.model.stop_training |= self._reports.add(epoch + 1, logs or {})
        write_checkpoint(self._trial.folder, epoch + 1, lambda folder: self.model.save_weights(folder / _WEIGHTS))


def last_checkpoint(trial: Trial) -> Path | None:
    """Return the folder of an interrupted trial's last checkpoint; None if it has none."""
    return latest(trial.folder, "checkpoint-*")
