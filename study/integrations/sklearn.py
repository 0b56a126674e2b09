"""scikit-learn: `ReportTo(trial)` reports each call of `partial_fit` and saves the model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from study.integrations.checkpoints import generators, restore_generators
from study.integrations.needed import needed
from study.interface.function.trial import Trial

with needed("skops", "skops"):
    from skops.io import dumps, get_untrusted_types, loads


class ReportTo:
    """Reports to a trial, with the model to go on from.

    Args:
        trial: the trial.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def __call__(self, step: int, model: Any, **metrics: float) -> bool:
        """Report numbers and save a model.

        Args:
            step: the number of epochs, or of calls of `partial_fit`.
            model: an estimator, or anything else that skops can store.
            metrics: numbers by name.

        Returns:
            Whether training should stop.
        """
        self._trial.report(step, metrics)
        self._trial.save({"step": step, "model": dumps(model), "generators": generators()})
        return self._trial.should_stop


def last_checkpoint(trial: Trial, trusted: Collection[str] = ()) -> tuple[Any, int] | None:
    """Return the model and the step from which an interrupted trial goes on; None to begin.

    Nothing is unpickled. skops makes objects of scikit-learn's types, and of no others that aren't named.

    Args:
        trial: the trial.
        trusted: further types in the model, such as `mylab.models.Mine`.
    """
    if trial.resume is None:
        return None
    model = trial.resume["model"]
    of_sklearn = [name for name in get_untrusted_types(data=model) if name.startswith("sklearn.")]
    restore_generators(trial.resume["generators"])
    return loads(model, trusted=[*of_sklearn, *trusted]), trial.resume["step"]
