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
    """Reports to a trial, each saved with the model.

    Args:
        trial: the trial.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def __call__(self, step: int, model: Any, **metrics: float) -> bool:
        """Report metrics and save the model.

        The call doesn't return if the report ends the trial, as for `Trial.report`.

        Args:
            step: the number of epochs, or of calls of `partial_fit`; greater than at the last call.
            model: an estimator, or any other object that skops can store.
            metrics: numbers by name.

        Returns:
            True if training should stop.

        Raises:
            RuntimeError: if the training function yields its steps, or another thread calls this.
            TypeError: if skops can't store the model.
        """
        self._trial.report(step, metrics)
        self._trial.save({"step": step, "model": dumps(model), "generators": generators()})
        return self._trial.should_stop


def last_checkpoint(trial: Trial, trusted: Collection[str] = ()) -> tuple[Any, int] | None:
    """Return an interrupted trial's last model and its step, and restore the global generators; None without one.

    Nothing is unpickled. skops loads only objects of the types that it trusts itself, such as numpy's, of types of
    scikit-learn, and of those in `trusted`.

    Args:
        trial: the trial.
        trusted: names of further types in the model, such as `mylab.models.Mine`.

    Raises:
        skops.io.exceptions.UntrustedTypesFoundException: if the model has an object of another type.
        ImportError: if the state has torch's generator, and torch isn't installed.
    """
    if trial.resume is None:
        return None
    model = trial.resume["model"]
    sklearn_types = [name for name in get_untrusted_types(data=model) if name.startswith("sklearn.")]
    restore_generators(trial.resume["generators"])
    return loads(model, trusted=[*sklearn_types, *trusted]), trial.resume["step"]
