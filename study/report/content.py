"""What a report says, before it is a page, a table or a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.report.compare import Against
from study.report.contrasts import Contrasts
from study.report.keyed import Keyed

if TYPE_CHECKING:
    from study.until import Verdict  # what it imports takes long, and tables of files do without

Floats = npt.NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of learning curves: the median, and the ends of a wide and a narrow band."""


@dataclass(frozen=True)
class Rows:
    """Rows for other programs.

    Args:
        schema: the columns.
        rows: by column; what is left out is nothing.
    """

    schema: pa.Schema
    rows: Sequence[Mapping[str, Any]]


class Links(Protocol):
    """Addresses in a dashboard."""

    def trial(self, trial_id: str) -> str:
        """Give the page that shows one trial."""

    def cell(self, cell_id: str) -> str:
        """Give the page that lists a cell's trials."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurve:
    """How a row's trials learned.

    Args:
        row: which row.
        trials: how many trials it is made of: all that have a curve, or the first of them.
        of: how many there are.
        iteration: shape [evaluations].
        quantiles: by measure (``validation_mse``, ``test_mse``, ``sparsity_error``), shape [`QUANTILES`, evaluations];
            infinite where so many trials have diverged.
        threshold: test MSE to undercut; None if the trials' differ.
    """

    row: int
    trials: int
    of: int
    iteration: npt.NDArray[np.int64]
    quantiles: Mapping[str, Floats]
    threshold: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Gates:
    """How far open the gates of a row's trials are when training ends.

    Args:
        row: which row.
        layer: name of the gated layer.
        trials: how many trials they are of: all that have weights, or the first of them.
        of: how many there are.
        validation_rows: how many rows each is the mean over, the first.
        values: mean gates, shape [trials × outputs]; 1 is the addition's path alone.
        solved: of each value, whether its trial was solved.
    """

    row: int
    layer: str
    trials: int
    of: int
    validation_rows: int
    values: Floats
    solved: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialWeights:
    """The weights of one trial when training ended.

    Args:
        row: which row the trial is of.
        seed: which trial.
        outcome: how it ended.
        iteration: updates made.
        matrices: effective weights by name, shape [out, in], in the order of the data's path.
    """

    row: int
    seed: int
    outcome: str
    iteration: int
    matrices: Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a search could choose.

    Args:
        name: the hyperparameter's, perhaps with a model's before it and a dot between.
        choices: to choose from; empty for a number between ends.
        low: its least value.
        high: its greatest value.
        is_log: whether factors count alike.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Sought:
    """An objective of a search.

    Args:
        name: as in the study's file.
        title: what its values are, for people.
        is_sought_high: whether more is better.
    """

    name: str
    title: str
    is_sought_high: bool


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate of a search.

    Args:
        number: in the order of suggestion, from 0.
        round: of candidates that were compared, from 0.
        params: what was chosen, by the names of `Chosen`; what doesn't apply is left out.
        seeds: that it earned.
        values: what it was worth by these, one an objective: the end of an interval at which it looks worst.
        is_front: whether no other is better in all respects.
        row: of the report, if it was confirmed with fresh seeds; None if not.
    """

    number: int
    round: int
    params: Mapping[str, Any]
    seeds: int
    values: tuple[float, ...]
    is_front: bool = False
    row: int | None = None


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What a search did: the report's rows are then of fresh seeds alone.

    Args:
        objectives: what was sought.
        parameters: what could be chosen.
        candidates: what was tried, in order.
        importance: of each parameter, by objective: shares that add up to 1; empty where it can't be told.
        trials: that the candidates took.
        budget: that they could take.
        fresh: seeds that each confirmed candidate got.
        impossible: suggestions that no cell has.
        sampler: what suggested them.
        is_over: whether the candidates of the rows are confirmed; else the search goes on.
        file: the study's file of the first confirmed candidate.
    """

    objectives: tuple[Sought, ...]
    parameters: tuple[Chosen, ...]
    candidates: tuple[Tried, ...]
    importance: Mapping[str, Mapping[str, float]]
    trials: int
    budget: int
    fresh: int
    impossible: int
    sampler: str
    is_over: bool
    file: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What a report says.

    Args:
        name: of the study, or of what was tabulated.
        question: that it answers.
        rows: what the trials came to, and what tells rows apart.
        data: the same for other programs.
        command: that makes the report again.
        headline: the finding, in a sentence.
        contrasts: trends and tests between rows.
        against: the rows beside others; None if there are none to compare with.
        verdicts: where seeds were added until there were enough: of each cell, or pair of cells, whether there are.
        search: what was tried, of a search.
        notes: sentences the reader must know.
        protocol: what all trials share, by hyperparameter; empty if it isn't known.
        spec: the study's file; empty if there is none.
        provenance: of the results: one mapping for each different one.
        trials: columns `row` (of `rows`), trial_id, seed, outcome, solved_at_iteration, sparsity_error, test_mse,
            training_s and error; None if they are too many to list.
        links: of trials and cells in a dashboard; None if there is none.
        learning: learning curves of some rows.
        gates: of gated units.
        weights: of one trial.
    """

    name: str
    question: str
    rows: Keyed
    data: Rows
    command: str
    headline: str = ""
    contrasts: Contrasts = field(default_factory=Contrasts)
    against: Against | None = None
    verdicts: Sequence[Verdict] = ()
    search: Searched | None = None
    notes: Sequence[str] = ()
    protocol: Mapping[str, str] | None = None
    spec: str = ""
    provenance: Sequence[Mapping[str, Any]] = ()
    trials: pa.Table | None = None
    links: Links | None = None
    learning: Sequence[LearningCurve] = ()
    gates: Sequence[Gates] = ()
    weights: TrialWeights | None = None
