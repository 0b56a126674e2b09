"""Splits of a table's rows into training, validation and test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.tabular.table import Floats

PARTS = ("train", "validation", "test")
_PERCENT = {"train": 70, "validation": 15, "test": 15}

Places = dict[str, npt.NDArray[np.int64]]
"""Row indices of each part."""


def random_split(rows: int, seed: int) -> Places:
    """Split rows at random: 15 % for the test and 15 % for validation, rounded down, the others for training.

    Args:
        rows: number of rows; with fewer than 7, validation and test are empty.
        seed: seed of their order.

    Example:
        >>> {part: len(places) for part, places in random_split(100, seed=0).items()}
        {'train': 70, 'validation': 15, 'test': 15}
    """
    order = _order(rows, seed)
    tested, validated = (rows * _PERCENT[part] // 100 for part in ("test", "validation"))
    return {
        "train": order[tested + validated :],
        "validation": order[tested : tested + validated],
        "test": order[:tested],
    }


def extrapolating_split(column: Floats, above: float, seed: int) -> Places:
    """Take the rows above a quantile of a column for the test, and split the others 70 : 15 at random.

        test = {i : column_i > q},   q = quantile(column, above), linear between the nearest two numbers

    Args:
        column: values of the column, float64 [rows]; finite. Parts may be empty with few rows, and the test also
            with ties at the quantile.
        above: level of the quantile, 0 < above < 1.
        seed: seed of the order of the rows.

    Example:
        >>> sorted(extrapolating_split(np.arange(10.0), 0.7, seed=0)["test"].tolist())
        [7, 8, 9]
    """
    order = _order(len(column), seed)
    is_tested = column[order] > (np.quantile(column, above) if len(column) else 0.0)
    others = order[~is_tested]
    validated = len(others) * _PERCENT["validation"] // (_PERCENT["train"] + _PERCENT["validation"])
    return {"train": others[validated:], "validation": others[:validated], "test": order[is_tested]}


def labelled_split(labels: npt.NDArray[np.str_]) -> Places:
    """Split rows by their labels, train, validation or test; rows with other labels are in no part.

    Example:
        >>> labelled_split(np.array(["test", "train", "test"]))["test"].tolist()
        [0, 2]
    """
    return {part: np.flatnonzero(labels == part) for part in PARTS}


def _order(rows: int, seed: int) -> npt.NDArray[np.int64]:
    order: npt.NDArray[np.int64] = Stream([seed], 0, Purpose.SETUP).permutation(rows).numpy()
    return order
