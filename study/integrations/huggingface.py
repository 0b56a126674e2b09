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
    """A callback that reports the latest logged numbers, with the number of updates as step.

    It reports at each evaluation, and without evaluations whenever the Trainer logs.

    Args:
        trial: the trial.
        names: a name of the study for each logged name that differs.
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None) -> None:
        self._reports = Reports(trial, names)
        self._latest: dict[str, Any] = {}

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: dict[str, Any], **_: Any
    ) -> None:
        """Note what is logged, and report it if nothing is evaluated."""
        self._latest |= logs
        if args.eval_strategy == "no":
            self._report(state, control)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Report what was logged since the evaluation before, and the evaluation."""
        self._report(state, control)

    def _report(self, state: TrainerState, control: TrainerControl) -> None:
        control.should_training_stop |= self._reports.add(state.global_step, self._latest)


def last_checkpoint(trial: Trial) -> Path | None:
    """Return the checkpoint from which an interrupted trial goes on, for `resume_from_checkpoint`; None to begin."""
    return latest(trial.folder, "checkpoint-*", _is_whole)


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))  # it is written last
    except (OSError, ValueError):
        return False
    return True
