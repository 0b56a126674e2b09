"""The formats of the store's files, by schema version, and the way from each to the next.

A file is read in the format of the version that it names, and upgraded to the current one step by step, in memory: what
an earlier package stored is never rewritten, moved or trained again because of its version.

To change a column, or what a checkpoint holds: leave the earlier formats as they are, give the last of them its
upgrades, add a new format, and commit a store of it next to ``tests/study/stores/version-1``. A new column that earlier
files can't fill must also be listed among those that may differ between two results of a trial
(`study.store.deduplicate`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from study.arrow import names_complaint
from study.errors import StoreError
from study.store import format_1

_REMEMBERED = 8
Upgrade = Callable[[pa.Table], pa.Table]
Members = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
"""What a checkpoint holds: its header and the engine's arrays by name."""


@dataclass(frozen=True)
class Format:
    """What files of one schema version hold.

    Args:
        schemas: by kind of file (``results``, ``curves``, ``weights``), the columns that every such Parquet file has.
        more: by kind, whether a column may be among them; without a function, none may.
        upgrades: by kind, a function from a table of this version to one of the next; other kinds stay as they are.
        unchanged: columns that no upgrade changes, so that they can be read without the others.
        upgrade_checkpoint: function from the members of a checkpoint of this version to those of the next; None if
            training can't continue from it: its pack then starts from the beginning, with a notice.
    """

    schemas: Mapping[str, pa.Schema]
    more: Mapping[str, Callable[[pa.Field], bool]] = field(default_factory=dict)
    upgrades: Mapping[str, Upgrade] = field(default_factory=dict)
    unchanged: Collection[str] = ()
    upgrade_checkpoint: Callable[[Members], Members] | None = None

    def complaint(self, kind: str, schema: pa.Schema) -> str | None:
        """Return in what a file's columns aren't those of this format; None if they are."""
        if any(schema.equals(right, check_metadata=True) for right in self._right[kind]):
            return None
        needed, may_be = self.schemas[kind], self.more.get(kind)
        others = [field for field in schema if field.name not in needed.names]
        wrong = {field.name for field in others if may_be is None or not may_be(field)}
        wrong |= set(needed.names) - set(schema.names)
        if wrong:
            return f"differing in {', '.join(sorted(wrong))}"
        is_same = pa.schema([field for field in schema if field.name in needed.names]).equals(needed)
        if not is_same or len(set(schema.names)) < len(schema.names):
            return "differing in order or type"
        if (complaint := names_complaint(schema)) is not None:
            return complaint
        self._right[kind].append(schema)
        return None

    @cached_property
    def _right(self) -> dict[str, deque[pa.Schema]]:
        """The last schemas, by kind, that were found right: those of a study's files are few, or all the same."""
        return {kind: deque(maxlen=_REMEMBERED) for kind in self.schemas}


class NoUpgradeError(Exception):
    """A checkpoint is intact, but training can't continue from its version; the message says so."""


_TEXT, _INTEGER, _NUMBER = pa.string(), pa.int64(), pa.float64()

_RESULTS_2 = pa.schema(
    [
        *[("trial_id", _TEXT), ("cell_id", _TEXT), ("seed", _INTEGER), ("task", _TEXT), ("model", _TEXT)],
        *[("outcome", _TEXT), ("threshold", _NUMBER), ("criterion", _TEXT), ("best_iteration", _INTEGER)],
        *[("solved_at_iteration", _INTEGER), ("trained_iterations", _INTEGER), ("stopped_early", pa.bool_())],
        *[("training_s", _NUMBER), ("engine", _TEXT), ("device", _TEXT), ("error", _TEXT)],
    ]
)
_CURVES_2 = pa.schema([("trial_id", _TEXT), ("iteration", pa.list_(pa.int64()))])
_KINDS_2 = {
    **{"whole": _INTEGER, "number": _NUMBER, "text": _TEXT, "flag": pa.bool_()},
    **{"range": _TEXT, "json": _TEXT, "none": pa.null()},
}


def _may_be_in_results(field: pa.Field) -> bool:
    """Return whether a column holds a hyperparameter, a metric or a note, and has the type of its kind."""
    role, kind = _described(field)
    if role == "note":
        return bool(field.type == pa.list_(_TEXT))
    of_role = role == "hyperparameter" or (role == "metric" and kind == "number")
    return of_role and bool(field.type == _KINDS_2.get(kind))


def _may_be_in_curves(field: pa.Field) -> bool:
    """Return whether a column holds a metric."""
    return _described(field)[0] == "metric" and field.type in (pa.list_(pa.float32()), pa.list_(_NUMBER))


def _described(field: pa.Field) -> tuple[str, str]:
    metadata = field.metadata or {}
    return metadata.get(b"study.role", b"").decode(), metadata.get(b"study.kind", b"").decode()


FORMATS: Mapping[int, Format] = {
    1: Format(
        schemas={"results": format_1.RESULTS, "curves": format_1.CURVES, "weights": format_1.WEIGHTS},
        upgrades={"results": format_1.upgraded_results, "curves": format_1.upgraded_curves},
        unchanged=("trial_id", "cell_id", "seed", "task", "model", "outcome"),
        upgrade_checkpoint=lambda members: members,
    ),
    2: Format(
        schemas={"results": _RESULTS_2, "curves": _CURVES_2, "weights": format_1.WEIGHTS},
        more={"results": _may_be_in_results, "curves": _may_be_in_curves},
    ),
}
"""All formats so far, by schema version, without gaps; the last is the one that is written."""

SCHEMA_VERSION = max(FORMATS)
"""Written into every file."""


def is_unchanged(columns: Collection[str] | None, version: int) -> bool:
    """Return whether columns of a version are those of the current one; None stands for all columns."""
    later = [FORMATS[step].unchanged for step in range(version, SCHEMA_VERSION)]
    return all(columns is not None and set(columns) <= set(unchanged) for unchanged in later)


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
        complaint = FORMATS[SCHEMA_VERSION].complaint(kind, table.schema)
        if complaint is not None:
            raise ValueError(f"the columns became {', '.join(table.column_names)}, {complaint}")
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
