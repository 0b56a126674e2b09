"""Lightning: `L.Trainer(callbacks=[ReportTo(trial)])` reports each epoch and writes checkpoints."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.integrations.checkpoints import generators, latest, restore_generators
from study.integrations.needed import needed
from study.integrations.reports import Reports
from study.interface.function.trial import Trial

with needed("lightning", "lightning"):
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

_FOLDER = "checkpoints"


class ReportTo(ModelCheckpoint):
    """A `ModelCheckpoint` in the trial's folder that reports the module's logs; the step is the number of epochs.

    Args:
        trial: the trial.
        names: the study's names by logged names, where they differ.
        options: options of `ModelCheckpoint`, such as `every_n_epochs`.
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(trial.folder / _FOLDER, "{step}", save_on_train_epoch_end=True, **options)
        self._trial, self._reports = trial, Reports(trial, names)
        self._generators: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the callback's state with the states of the global generators; Lightning doesn't save these."""
        tensors = {name: torch.tensor(array) for name, array in generators().items()}
        state: dict[str, Any] = super().state_dict()
        return state | {"generators": tensors}  # Lightning refuses to load numpy arrays

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the callback's state; `on_fit_start` restores the generators.

        Raises:
            KeyError: if the state has no states of the generators.
        """
        super().load_state_dict(state_dict)
        self._generators = {name: tensor.numpy() for name, tensor in state_dict["generators"].items()}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restore a loaded checkpoint's generators before data are shuffled, and stop if the trial should stop."""
        if self._generators is not None:
            restore_generators(self._generators)
        trainer.should_stop = self._trial.should_stop

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the epoch, write a checkpoint if the options ask for it, and stop training if the trial should stop.

        Raises:
            OSError: if the checkpoint or the file of reports can't be written.
            RuntimeError: if the training function yields its steps, or another thread calls this method.
            MisconfigurationException: if validation has run, and the option `monitor` names a metric that isn't logged.
        """
        trainer.should_stop |= self._reports.add(trainer.current_epoch + 1, trainer.callback_metrics)
        super().on_train_epoch_end(trainer, pl_module)


def last_checkpoint(trial: Trial) -> Path | None:
    """Return an interrupted trial's last checkpoint, for `ckpt_path`; None if it has none."""
    return latest(trial.folder / _FOLDER, "*.ckpt", zipfile.is_zipfile)
