"""Gates and weights of single trials, for reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study.summaries.learning import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Gates:
    """The mean gates of a row's trials at the end of training.

    Args:
        row: the index of the row.
        layer: the name of the gated layer.
        trials: the number of trials included: all that have weights, or the first of them.
        total: the number of trials that have weights.
        validation_rows: the number of validation rows, from the first, that each value is averaged over.
        values: mean gates, shape [trials × outputs]; 1 means that only the addition path is open.
        solved: True for the values of solved trials, shape [trials × outputs].
    """

    row: int
    layer: str
    trials: int
    total: int
    validation_rows: int
    values: Floats
    solved: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialWeights:
    """The weights of a trial at the end of training.

    Args:
        row: the index of the trial's row.
        seed: the trial's seed.
        outcome: its outcome.
        iteration: the number of updates made.
        matrices: effective weights by name, shape [out, in], in the order of the layers.
    """

    row: int
    seed: int
    outcome: str
    iteration: int
    matrices: Mapping[str, npt.NDArray[np.float32]]
