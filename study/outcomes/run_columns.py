"""What each column of runs is for, as the user, the source, its name or its values say, in this order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.outcomes.run_names import direction, is_label, is_progress, is_secondary
from study.outcomes.runs import HYPERPARAMETER, METRIC, OTHER

CONSTANT, LABEL, SECONDARY = "constant", "label", "secondary"
STATED = ("outcome", "solved")
"""Columns in which runs say themselves what they came to."""


@dataclass(frozen=True)
class RunChoices:
    """What a user says of runs; nothing of it is needed.

    Args:
        seed: the column of seeds.
        without_seeds: number the runs, which drew their seeds at random.
        by: columns that make a group.
        metrics: columns that are averaged, each perhaps with ``:higher`` or ``:lower`` behind it.
        repeats: which of several runs of one trial counts: the ``first`` or the ``last``.
        state_words: what words for states mean, each as ``WORD=finished``, ``failed``, ``stopped`` or ``running``.
    """

    seed: str | None = None
    without_seeds: bool = False
    by: Sequence[str] = ()
    metrics: Sequence[str] = ()
    repeats: str = "first"
    state_words: Sequence[str] = ()

    @property
    def metric_names(self) -> list[str]:
        """The columns that are averaged, without what stands behind them."""
        return [re.sub(r":(higher|lower)$", "", option) for option in self.metrics]


def role_of(name: str, column: pa.ChunkedArray, role: str | None, choices: RunChoices) -> str:
    """Return what a column is for.

    Args:
        name: its name.
        column: its values, by their type.
        role: its role, if the source says it.
        choices: what the user says.

    Returns:
        `HYPERPARAMETER` or `METRIC`; of other columns `CONSTANT`, `LABEL`, `SECONDARY`, or nothing.

    Raises:
        InputError: if the user takes a column for a metric that has no numbers.
    """
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if name in choices.metric_names:
        if not is_number:
            raise InputError(f"--metric {name}: its values must be numbers")
        return METRIC
    if name in choices.by:
        return HYPERPARAMETER
    if name in STATED or column.null_count == len(column) or pa.types.is_nested(column.type):
        return ""
    if role is None and is_secondary(name):
        return SECONDARY if is_number else LABEL
    if role == OTHER:
        return METRIC if is_number and direction(name) is not None else LABEL
    if role == METRIC or (role is None and is_number and direction(name) is not None):
        return METRIC if is_number and not is_progress(name) else ""
    return _by_values(name, column, role, is_number=is_number)


def _by_values(name: str, column: pa.ChunkedArray, role: str | None, *, is_number: bool) -> str:
    """Return what a column is for that isn't called as a metric: numbers that seldom repeat were measured."""
    different = len(pc.unique(column))
    if different == 1:
        return CONSTANT
    varies_much = different * 2 > len(column)
    if role is None and is_number and (varies_much or is_progress(name)):
        return METRIC if pa.types.is_floating(column.type) and not is_progress(name) else LABEL
    return LABEL if is_label(name) or (varies_much and not is_number) else HYPERPARAMETER


def floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a metric's numbers: NaN stays NaN, and a metric that wasn't recorded is null."""
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return column.cast(pa.float64())
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    is_missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(["", "na", "n/a", "none", "null"]))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text).cast(pa.float64())
