"""Hugging Face: `Trainer(callbacks=[ReportTo(trial)])` reports each evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.integrations.checkpoints import latest
from study.integrations.needed import needed
from study.integrations.reports import Reports
from study.interface.function.trial import Trial

with needed("transformers", "'transformers[torch]'"):
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class ReportTo(TrainerCallback):
    """Callback that reports the latest logged numbers; the step is the number of updates.

    It reports at each evaluation, or at each log if the Trainer doesn't evaluate.

    Args:
        trial: the trial.
        names: the study's names by logged names, where they differ.
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None) -> None:
        self._reports = Reports(trial, names)
        self._latest: dict[str, Any] = {}

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: dict[str, Any], **_: Any
    ) -> None:
        """Keep the logged numbers; if the Trainer doesn't evaluate, do as `on_evaluate` does.

        Raises:
            RuntimeError: if the training function yields its steps, or another thread calls this method.
            OSError: if the file of reports can't be written.
        """
        self._latest |= logs
        if args.eval_strategy == "no":
            self._report(state, control)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Report the latest value of each number logged so far, and stop training if the trial should stop.

        Raises:
            RuntimeError: if the training function yields its steps, or another thread calls this method.
            OSError: if the file of reports can't be written.
        """
        self._report(state, control)

    def _report(self, state: TrainerState, control: TrainerControl) -> None:
        control.should_training_stop |= self._reports.add(state.global_step, self._latest)


def last_checkpoint(trial: Trial) -> Path | None:
    """Return an interrupted trial's last checkpoint, for `resume_from_checkpoint`; None if it has none."""
    return latest(trial.folder, "checkpoint-*", _is_complete)


def _is_complete(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))  # written last
    except (OSError, ValueError):
        return False
    return True
