"""What a report shows of single trials: their gates, and the weights of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study.summaries.learning import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Gates:
    """How far open the gates of a row's trials are when training ends.

    Args:
        row: the index of the row.
        layer: the name of the gated layer.
        trials: the number of trials included: all that have weights, or the first of them.
        of: the number of trials that have weights.
        validation_rows: each value is the mean over so many validation rows, the first ones.
        values: mean gates, shape [trials × outputs]; 1 means that only the path of the addition is open.
        solved: whether the trial of each value was solved.
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
        row: the index of the trial's row.
        seed: the trial's seed.
        outcome: its outcome.
        iteration: the number of updates made.
        matrices: effective weights by name, shape [out, in], in the order in which the data passes through them.
    """

    row: int
    seed: int
    outcome: str
    iteration: int
    matrices: Mapping[str, npt.NDArray[np.float32]]
