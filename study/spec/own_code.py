"""What the shapes of study files that name code of one's own share: success, version, included files."""

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
"""Names that neither hyperparameters nor metrics of one's own may have: columns of results are called so."""

TIMES = ("solved_at", "time_to_success")
"""The objectives of a search that need to know how long a trial goes on."""

_Number = Annotated[float, BeforeValidator(number)]


class BoundTable(Table):
    """What a metric must reach for success."""

    at_least: _Number | None = optional()
    below: _Number | None = optional()

    @model_validator(mode="after")
    def _check(self) -> BoundTable:
        Bound(at_least=self.at_least, below=self.below)
        return self


class CodeSpec(Spec):
    """A study that names code of its user's.

    Args:
        version: stands for the code in the ids of trials, in place of its hash.
        include: patterns of files that belong to the code.
    """

    version: str | int | None = optional()
    include: tuple[str, ...] = ()

    def written(self, *names: str) -> dict[str, Any]:
        """Return the values of some keys that the file has, in this order, as a file has them."""
        dumped = self.model_dump(include=set(names), exclude_unset=True)
        return {name: list(dumped[name]) if name == "include" else dumped[name] for name in names if name in dumped}


class OwnCodeSpec(CodeSpec):
    """A study of code of one's own that declares its metrics.

    Args:
        success: the metrics that say whether a trial is solved.
    """

    success: dict[str, BoundTable] = table_field(dict)

    @property
    def has_success(self) -> bool:
        """Whether something says what success is."""
        return bool(self.success)

    @property
    def named_metrics(self) -> frozenset[str]:
        """What the file names of what trials report: metrics of success, objectives, and by what seeds are enough."""
        return super().named_metrics | frozenset(self.success)

    @property
    def criterion(self) -> dict[str, Bound]:
        """What the metrics of a solved trial meet."""
        return {name: Bound(at_least=one.at_least, below=one.below) for name, one in self.success.items()}


def success_mistakes(spec: OwnCodeSpec, metrics: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield each mistake in `success`, and each place that needs `success` where it is missing."""
    names = ", ".join(metrics)
    for name in spec.success:
        if name not in metrics:
            message = f"must be one of the metrics, {names}, but got {name!r}{nearest(name, metrics)}"
            yield ("success", name), message
    rules = {"half_width": "is of", "different_from": "compares"}  # each claim says what it needs itself
    needing_rules = [] if spec.until is None or spec.until.metric is not None or spec.success else list(rules)
    for key in [key for key in needing_rules if getattr(spec.until, key) is not None]:
        first, what = next(iter(metrics)), rules[key]
        yield (
            ("seeds", "until", key),
            f"{what} the rate of success, so success must say what that is: success: {{{first}: {{at_least: ...}}}}, "
            f"or below; or name a metric, metric: {first}",
        )
    needing = [name for name in OBJECTIVES_OF_SUCCESS if spec.search is not None and name in spec.search.objective]
    if needing and not spec.success:
        yield (
            ("search", "objective"),
            f"{needing[0]} needs to know what success is: success: {{{next(iter(metrics))}: {{at_least: ...}}}}, or "
            "below; or seek a metric",
        )
