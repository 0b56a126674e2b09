"""What a report shows of single trials: their gates, and the weights of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study.analysis.learning import Floats


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
