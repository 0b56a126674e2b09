"""The formats of the store's files, by schema version, and the way from each to the next.

A file is read in the format of the version that it names, and upgraded to the current one step by step, in memory: what
an earlier package stored is never rewritten, moved or trained again because of its version.

To change a column, or what a checkpoint holds: leave the earlier formats as they are, give the last of them its
upgrades, add a new format, and commit a store of it next to ``tests/study/stores/version-1``. A new column that earlier
files can't fill must also be listed among those that may differ between two results of a trial
(`study.store.deduplicate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from study.errors import StoreError

Upgrade = Callable[[pa.Table], pa.Table]
Members = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
"""What a checkpoint holds: its header and the engine's arrays by name."""


@dataclass(frozen=True)
class Format:
    """What files of one schema version hold.

    Args:
        schemas: schemas of the Parquet files by kind: ``results``, ``curves``, ``weights``.
        upgrades: by kind, a function from a table of this version to one of the next; other kinds stay as they are.
        upgrade_checkpoint: function from the members of a checkpoint of this version to those of the next; None if
            training can't continue from it: its pack then starts from the beginning, with a notice.
    """

    schemas: Mapping[str, pa.Schema]
    upgrades: Mapping[str, Upgrade] = field(default_factory=dict)
    upgrade_checkpoint: Callable[[Members], Members] | None = None


class NoUpgradeError(Exception):
    """A checkpoint is intact, but training can't continue from its version; the message says so."""


_TEXT, _INTEGER, _NUMBER = pa.string(), pa.int64(), pa.float64()

_RESULTS_1 = pa.schema(
    [
        *[("trial_id", _TEXT), ("cell_id", _TEXT), ("seed", _INTEGER)],
        *[("task", _TEXT), ("operation", _TEXT), ("input_size", _INTEGER)],
        *[("subset_ratio", _NUMBER), ("overlap_ratio", _NUMBER), ("subsets", _INTEGER)],
        *[("interpolation_range", _TEXT), ("extrapolation_range", _TEXT)],
        *[("model", _TEXT), ("hidden_size", _INTEGER), ("init_variance", _NUMBER)],
        *[("bounds", _TEXT), ("out_of_bounds_strength", _NUMBER), ("out_of_bounds_shape", _TEXT)],
        *[("sparsity_strength", _NUMBER), ("sparsity_start", _INTEGER), ("sparsity_end", _INTEGER)],
        *[("sparsity_shape", _TEXT), ("sparsity_scaling", _TEXT)],
        *[("optimizer", _TEXT), ("learning_rate", _NUMBER), ("momentum", _NUMBER), ("batch_size", _INTEGER)],
        *[("iterations", _INTEGER), ("evaluate_every", _INTEGER), ("best_step_window", _INTEGER)],
        *[("evaluation_rows", _INTEGER), ("stop", _TEXT)],
        *[("success_epsilon", _NUMBER), ("success_threshold", _NUMBER)],
        *[("outcome", _TEXT), ("threshold", _NUMBER), ("best_iteration", _INTEGER)],
        *[("validation_mse", _NUMBER), ("test_mse", _NUMBER), ("sparsity_error", _NUMBER)],
        *[("solved_at_iteration", _INTEGER), ("trained_iterations", _INTEGER), ("stopped_early", pa.bool_())],
        *[("training_s", _NUMBER), ("engine", _TEXT), ("device", _TEXT), ("error", _TEXT)],
    ]
)
_CURVES_1 = pa.schema(
    [
        ("trial_id", _TEXT),
        ("iteration", pa.list_(pa.int64())),
        ("validation_mse", pa.list_(pa.float32())),
        ("test_mse", pa.list_(pa.float32())),
        ("sparsity_error", pa.list_(pa.float32())),
    ]
)
_WEIGHTS_1 = pa.schema(
    [
        ("trial_id", _TEXT),
        ("iteration", _INTEGER),
        ("name", pa.list_(_TEXT)),
        ("shape", pa.list_(pa.list_(pa.int32()))),
        ("value", pa.list_(pa.float32())),
    ]
)

FORMATS: Mapping[int, Format] = {1: Format({"results": _RESULTS_1, "curves": _CURVES_1, "weights": _WEIGHTS_1})}
"""All formats so far, by schema version, without gaps; the last is the one that is written."""

SCHEMA_VERSION = max(FORMATS)
"""Written into every file."""


def upgraded(kind: str, table: pa.Table, version: int, where: object) -> pa.Table:
    """Convert the table of a file to the current format.

    Args:
        kind: ``results``, ``curves`` or ``weights``.
        table: the table, with the columns of that version.
        version: the file's schema version.
        where: the file's address, for errors.

    Raises:
        StoreError: if that fails, which is this package's fault; the file stays where it is.

    Example:
        >>> empty = FORMATS[SCHEMA_VERSION].schemas["curves"].empty_table()
        >>> upgraded("curves", empty, SCHEMA_VERSION, "curves/00aa.parquet") == empty
        True
    """
    try:
        for step in range(version, SCHEMA_VERSION):
            upgrade = FORMATS[step].upgrades.get(kind)
            table = table if upgrade is None else upgrade(table)
        if not table.schema.equals(FORMATS[SCHEMA_VERSION].schemas[kind]):
            raise ValueError(f"the columns became {', '.join(table.column_names)}")
    except MemoryError:
        raise
    except Exception as error:
        raise _not_upgraded(where, version, error) from error
    return table


def upgraded_checkpoint(members: Members, version: int, where: object) -> Members:
    """Convert the members of a checkpoint to the current format; the arguments are those of `upgraded`.

    Raises:
        NoUpgradeError: if training can't continue from that version.
        StoreError: if that fails, which is this package's fault; the file stays where it is.
    """
    for step in range(version, SCHEMA_VERSION):
        upgrade = FORMATS[step].upgrade_checkpoint
        if upgrade is None:
            raise NoUpgradeError(
                f"{where} was kept by an earlier package (schema version {version}), and this one can't go on from it: "
                "its pack is trained from the beginning"
            )
        try:
            members = upgrade(members)
        except MemoryError:
            raise
        except Exception as error:
            raise _not_upgraded(where, version, error) from error
    return members


def _not_upgraded(where: object, version: int, error: Exception) -> StoreError:
    return StoreError(
        f"{where} has schema version {version}, and this package failed to read it as version {SCHEMA_VERSION} "
        f"({type(error).__name__}: {error}). "
        "The file is untouched. Report this, and go on with the package that wrote it"
    )
