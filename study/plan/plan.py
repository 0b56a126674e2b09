"""Plans: the cells, seeds and trials of a study."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from study.errors import InputError, nearest
from study.interface.declarations import Metric
from study.interface.references import Criterion, ReferenceCriterion
from study.plan.pairs import pairs
from study.records import Cell, Trial
from study.spec.cells import cell_of_point, labelled_cells
from study.spec.grid import check_limits, model_level, points
from study.spec.tables import Spec
from study.summaries.cell_names import cell_names
from study.summaries.questions import varying
from study.words import count_of


@dataclass(frozen=True)
class ClaimLook:
    """Look at a claim with the last seeds that a study's file asked for.

    Args:
        claim: the claim's id.
        seeds: the seeds of each cell.
        exact: the share of the error spent on the exact test.
        bets: the share of the error spent on bets.
    """

    claim: str
    seeds: Sequence[int]
    exact: float
    bets: float


# Most cells per model planned at the ends of a search's ranges: enough to cover every kind of cell.
_MOST_ENDS = 512


@dataclass(frozen=True)
class Plan:
    """Cells, seeds and trials of a study.

    Args:
        spec: the study as written.
        cells: distinct cells, in the file's order.
        labels: the labels of points on zip axes, by cell id and axis; they aren't part of ids.
        own_seeds: the seeds of cells whose seeds differ from `spec.first_seeds`, by cell id.
        earlier_looks: the looks at claims before the file asked for more or fewer seeds.
    """

    spec: Spec
    cells: tuple[Cell, ...]
    labels: Mapping[str, Mapping[str, str]]
    own_seeds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    earlier_looks: tuple[ClaimLook, ...] = ()

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the trials, by name."""
        return self.spec.family.metrics_of(self.cells)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every cell with each of its seeds."""
        return tuple(Trial(cell, seed) for cell in self.cells for seed in self.seeds(cell))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A short name of each cell, by its id: its varying values, with the labels of zip axes.

        Raises:
            InputError: if a vocabulary can't be imported, or two packages offer one of the same name.
        """
        return cell_names(self.cells, self.labels)

    @property
    def trials_count(self) -> int:
        """The number of trials, computed without making them."""
        return sum(len(self.seeds(cell)) for cell in self.cells)

    @cached_property
    def criterion(self) -> Criterion | None:
        """The success criterion for stored trials; None if their cells contain it, and empty if the study has none."""
        by_references = self.spec.reference_criterion(self.cells, self.seeds)
        return self.spec.criterion if by_references is None else by_references

    @property
    def judges_at_the_end(self) -> bool:
        """True if success depends on other trials, so that trials are ``finished`` until these have ended."""
        return isinstance(self.criterion, ReferenceCriterion)

    @property
    def may_extend(self) -> bool:
        """True if the study may add trials after these."""
        return self.spec.seed_design.may_extend

    @property
    def size(self) -> str:
        """The numbers of trials, the greatest if adaptive, and cells in words; of a search, its trials and sampler."""
        cells = count_of(len(self.cells), "cell")
        if (search := self.spec.search) is not None:
            return f"{count_of(search.trials, 'trial')} to search with, by {search.sampler}"
        if self.spec.seed_design.is_adaptive:
            return f"up to {count_of(len(self.cells) * self.spec.most_seeds, 'trial')} in {cells}"
        return f"{count_of(self.trials_count, 'trial')} in {cells}"

    @property
    def most_at_once(self) -> int:
        """The greatest number of trials that the study runs at once."""
        if (search := self.spec.search) is not None:
            confirmed = search.confirm_seeds * search.confirm_candidates
            return max(search.candidates * self.spec.most_seeds, confirmed)
        return len(self.cells) * len(self.spec.first_seeds) if self.may_extend else self.trials_count

    def seeds(self, cell: Cell) -> Sequence[int]:
        """Return the planned seeds of a cell; those of `spec.first_seeds` for a cell that isn't in the plan."""
        return self.own_seeds.get(cell.id, self.spec.first_seeds) if self.own_seeds else self.spec.first_seeds


def make_plan(spec: Spec) -> Plan:
    """Plan a study; the plan of a search has only cells at the ends of its ranges, and no seeds.

    Args:
        spec: the study as written.

    Raises:
        InputError: if the study is too large (`study.spec.check_limits`), if a cell of `different_from` has no
            counterpart, or if `compare` has a name that isn't swept, or an incomplete `at`; with `compare`, also if a
            package's vocabulary can't be imported.
        ValueError: if the task doesn't exist with the values of a point.

    Example:
        >>> from study.spec import parse_spec
        >>> text = "{study: a, task: {name: simple}, models: [NMU], grid: {hidden_size: [2, 3]}, seeds: 5}"
        >>> planned = make_plan(parse_spec(text, source="a.yaml"))
        >>> len(planned.cells), planned.trials_count
        (2, 10)
    """
    check_limits(spec)
    if spec.search is not None:
        return _plan_search(spec)
    labels = labelled_cells(spec)
    named = {cell.id: axes for cell, axes in labels.items() if axes}
    if spec.until is not None and spec.until.different_from is not None:
        pairs(tuple(labels), spec.until.different_from)  # raises if a cell has no counterpart
    _check_compared(spec, tuple(labels), named)
    return Plan(spec, tuple(labels), named)


def _check_compared(spec: Spec, planned: Sequence[Cell], labels: Mapping[str, Mapping[str, str]]) -> None:
    """Check that cells differ in each name under `compare`, and that `at` is complete; raise InputError otherwise."""
    if not spec.compare:
        return
    keys = varying(planned, labels)
    for table in spec.compare:
        for name in table.names:
            if name not in keys:
                hint = nearest(name, keys) or f"; they differ in {', '.join(keys) or 'nothing'}"
                raise InputError(f"compare: the study's cells don't differ in {name!r}{hint}")
        if table.at and set(table.at) != set(keys) - {*table.factor, *table.tune}:
            others = [key for key in keys if key not in (*table.factor, *table.tune)]
            raise InputError(
                "compare: `at` must name each swept hyperparameter that isn't in factor or tune "
                f"({', '.join(others) or 'none'}), but got {', '.join(table.at)}; correct `at`, or leave it out"
            )


def _plan_search(spec: Spec) -> Plan:
    """Plan a search before its first suggestion: cells at the ends of its ranges, up to 512 a model, without seeds."""
    ends: dict[Cell, None] = {}
    for index, model in enumerate(spec.model_tables):
        for point in itertools.islice(points(model_level(spec, index)), _MOST_ENDS):
            ends[cell_of_point(spec, model.name, point)] = None
    return Plan(spec, tuple(ends), {}, {cell.id: () for cell in ends})


def study_cells(spec: Spec) -> list[Cell]:
    """Return the distinct cells of `make_plan`, in the file's order.

    Raises:
        InputError: as for `make_plan`.
        ValueError: if the task doesn't exist with the values of a point.
    """
    return list(make_plan(spec).cells)
