"""Tables shared by studies of own code: success, version and included files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from study.errors import nearest
from study.interface.criterion import Bound
from study.interface.values import number
from study.spec.document import Path
from study.spec.table import Table, optional, table_field
from study.spec.tables import OBJECTIVES_OF_SUCCESS, Spec

RESERVED = (
    "code", "metrics", "iterations", "trial_id", "cell_id", "seed", "task", "model", "label", "outcome", "solved",
    "criterion", "threshold", "best_iteration", "solved_at_iteration", "trained_iterations", "stopped_early",
    "training_s", "engine", "device", "error", "iteration", "step", "state",
)  # fmt: skip
"""Names reserved for columns of results, for neither hyperparameters nor metrics of own code."""

TIMES = ("solved_at", "time_to_success")
"""Search objectives that need the number of iterations of a trial."""

_Number = Annotated[float, BeforeValidator(number)]


class BoundTable(Table):
    """Bounds of a metric for success."""

    at_least: _Number | None = optional()
    below: _Number | None = optional()

    @model_validator(mode="after")
    def _check(self) -> BoundTable:
        Bound(at_least=self.at_least, below=self.below)
        return self


class CodeSpec(Spec):
    """A study of the user's own code.

    Args:
        version: the code's identity in trial ids, in place of its hash.
        include: glob patterns of files that belong to the code.
    """

    version: str | int | None = optional()
    include: tuple[str, ...] = ()

    def written(self, *names: str) -> dict[str, Any]:
        """Return the file's values of the named keys, in this order, without missing ones.

        Short forms become tables, such as ``{"better": "lower"}`` of a metric.
        """
        dumped = self.model_dump(include=set(names), exclude_unset=True)
        return {name: list(dumped[name]) if name == "include" else dumped[name] for name in names if name in dumped}


class OwnCodeSpec(CodeSpec):
    """A study of own code that declares its metrics.

    Args:
        success: the success criterion: bounds by metric.
    """

    success: dict[str, BoundTable] = table_field(dict)

    @property
    def has_success(self) -> bool:
        """True if the study has a success criterion."""
        return bool(self.success)

    @property
    def named_metrics(self) -> frozenset[str]:
        """Metrics that the file names: those of success, `standardise` and `until`, and all search objectives."""
        return super().named_metrics | frozenset(self.success)

    @property
    def criterion(self) -> dict[str, Bound]:
        """The bounds that a solved trial's metrics satisfy; empty without `success`."""
        return {name: Bound(at_least=table.at_least, below=table.below) for name, table in self.success.items()}


def success_mistakes(spec: OwnCodeSpec, metrics: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in `success`, and the rule of `until` and the first search objective that lack it.

    Claims and `standardise`, which may need it too, are checked by `study.spec.checks`.

    Args:
        spec: the study.
        metrics: the names of the metrics, at least one.
    """
    names = ", ".join(metrics)
    for name in spec.success:
        if name not in metrics:
            message = f"must be one of the metrics, {names}, but got {name!r}{nearest(name, metrics)}"
            yield ("success", name), message
    rules = {"half_width": "is about", "different_from": "compares"}  # claims are checked by themselves
    needing_rules = [] if spec.until is None or spec.until.metric is not None or spec.success else list(rules)
    for key in [key for key in needing_rules if getattr(spec.until, key) is not None]:
        first, verb = next(iter(metrics)), rules[key]
        yield (
            ("seeds", "until", key),
            f"{verb} success rates, which need a criterion: add success: {{{first}: {{at_least: ...}}}}, or below; or "
            f"name a metric, metric: {first}",
        )
    needing = [name for name in OBJECTIVES_OF_SUCCESS if spec.search is not None and name in spec.search.objective]
    if needing and not spec.success:
        yield (
            ("search", "objective"),
            f"{needing[0]} needs a success criterion: add success: {{{next(iter(metrics))}: {{at_least: ...}}}}, or "
            "below; or optimise a metric",
        )
