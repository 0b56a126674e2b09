"""Roles of the columns of runs, by user, source, name or values, in this order of precedence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.outcomes.run_names import direction, is_label, is_progress, is_secondary
from study.outcomes.runs import HYPERPARAMETER, METRIC, OTHER
from study.outcomes.separated import MISSING

CONSTANT, LABEL, SECONDARY = "constant", "label", "secondary"
_MISSING = sorted({*MISSING} - {"nan"})
STATED = ("outcome", "solved")
"""Columns with the runs' own outcomes."""


@dataclass(frozen=True)
class RunChoices:
    """User-supplied choices for runs, all optional.

    Args:
        seed: the column of seeds.
        without_seeds: number the runs, because they drew their seeds at random.
        by: columns that distinguish groups.
        metrics: columns that are averaged, each optionally followed by ``:higher`` or ``:lower``.
        repeats: the run that counts of several runs of one trial: the ``first`` or the ``last``.
        state_words: meanings of words for states, each as ``WORD=finished``, ``failed``, ``stopped`` or ``running``.
    """

    seed: str | None = None
    without_seeds: bool = False
    by: Sequence[str] = ()
    metrics: Sequence[str] = ()
    repeats: str = "first"
    state_words: Sequence[str] = ()

    @property
    def metric_names(self) -> list[str]:
        """The columns that are averaged, without directions."""
        return [re.sub(r":(higher|lower)$", "", option) for option in self.metrics]


def role_of(name: str, column: pa.ChunkedArray, role: str | None, choices: RunChoices) -> str:
    """Return the role of a column.

    Args:
        name: the column's name.
        column: its values, with their inferred type.
        role: its role by the source; None if the source has no roles.
        choices: the user's choices.

    Returns:
        `HYPERPARAMETER`, `METRIC`, `CONSTANT`, `LABEL` or `SECONDARY`; empty for `STATED` outcomes, columns without
        values, nested columns, metrics by the source that aren't numbers, and those by the source, or by name if the
        source has no roles, whose name ends in a word of progress, such as ``val_loss_epoch``.

    Raises:
        InputError: if the user names a metric whose values aren't numbers.
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
    is_named = direction(name) is not None  # such as val_loss_epoch, an average over an epoch
    if role == OTHER:
        return METRIC if is_number and is_named else LABEL
    if role == METRIC or (role is None and is_number and is_named):
        return METRIC if is_number and (is_named or not is_progress(name)) else ""
    return _by_values(name, column, role, is_number=is_number)


def _by_values(name: str, column: pa.ChunkedArray, role: str | None, *, is_number: bool) -> str:
    """Return the role of a column without a metric's name.

    The first rule that applies counts. A single value is constant. If the source gives no role: progress is a label,
    floats that rarely repeat are a metric, and other numbers that rarely repeat are a label. Columns with a label's
    name, and texts that rarely repeat, are a label. All others are hyperparameters.
    """
    distinct = len(pc.unique(column))
    if distinct == 1:
        return CONSTANT
    varies_much = distinct * 2 > len(column)
    if role is None and is_number and (varies_much or is_progress(name)):
        return METRIC if pa.types.is_floating(column.type) and not is_progress(name) else LABEL
    return LABEL if is_label(name) or (varies_much and not is_number) else HYPERPARAMETER


def floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a metric's numbers, with null for missing values; NaN stays NaN.

    Raises:
        pyarrow.ArrowInvalid: if a text that isn't missing isn't a decimal number, or a decimal.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return column.cast(pa.float64(), safe=False)  # integers beyond 2**53 are rounded
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    is_missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(_MISSING))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text).cast(pa.float64())
