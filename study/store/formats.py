"""The formats of the store's files, by schema version, and the upgrades from each to the next.

A file is read in the format of its own version, and upgraded to the current one step by step, in memory. Files of an
earlier package are never rewritten, moved or trained again because of their version.

To change a column or the content of checkpoints: leave earlier formats unchanged, give the last of them its upgrades,
add a new format, and commit a store of it next to ``tests/study/stores/version-1``. If earlier files can't fill a new
column, list it among the columns that may differ between two results of a trial (`study.store.deduplicate`).
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
"""Content of a checkpoint: its header, and the engine's arrays by name."""


@dataclass(frozen=True)
class Format:
    """The format of the files of one schema version.

    Args:
        schemas: required columns by kind of Parquet file (``results``, ``curves``, ``weights``).
        more: by kind, a predicate of the permitted additional columns; without one, none are permitted.
        upgrades: by kind, a function from a table of this version to one of the next; other kinds stay unchanged.
        unchanged: columns that no upgrade changes, so that they can be read without the others.
        upgrade_checkpoint: function from the members of a checkpoint of this version to those of the next; None if
            training can't resume from it, so that its pack starts again, with a notice.
    """

    schemas: Mapping[str, pa.Schema]
    more: Mapping[str, Callable[[pa.Field], bool]] = field(default_factory=dict)
    upgrades: Mapping[str, Upgrade] = field(default_factory=dict)
    unchanged: Collection[str] = ()
    upgrade_checkpoint: Callable[[Members], Members] | None = None

    def complaint(self, kind: str, schema: pa.Schema) -> str | None:
        """Describe the differences of a file's columns from this format; None if there are none."""
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
        """The last valid schemas, by kind: a study's files have few different ones."""
        return {kind: deque(maxlen=_REMEMBERED) for kind in self.schemas}


class NoUpgradeError(Exception):
    """An intact checkpoint from whose version training can't resume; the message says so."""


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
    """Return True for a column with a hyperparameter, a metric or a note, if it has the type of its kind."""
    role, kind = _described(field)
    if role == "note":
        return bool(field.type == pa.list_(_TEXT))
    of_role = role == "hyperparameter" or (role == "metric" and kind == "number")
    return of_role and bool(field.type == _KINDS_2.get(kind))


def _may_be_in_curves(field: pa.Field) -> bool:
    """Return True for a column with a metric of a permitted type."""
    return _described(field)[0] == "metric" and field.type in (pa.list_(pa.float32()), pa.list_(_NUMBER))


def _described(field: pa.Field) -> tuple[str, str]:
    """Return a field's role and kind; empty if it has none."""
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
"""All formats by schema version, without gaps; files are written in the last one."""

SCHEMA_VERSION = max(FORMATS)
"""The schema version of the files that are written."""


def is_unchanged(columns: Collection[str] | None, version: int) -> bool:
    """Return True if no upgrade from a version changes the columns; None stands for all columns."""
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
        StoreError: if the conversion fails, which is a bug in this package; the file is left in place.
        MemoryError: if memory is short.

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
    """Convert the members of a checkpoint to the current format; arguments as for `upgraded`.

    Raises:
        NoUpgradeError: if training can't resume from that version.
        StoreError: if the conversion fails, which is a bug in this package; the file is left in place.
        MemoryError: if memory is short.
    """
    for step in range(version, SCHEMA_VERSION):
        upgrade = FORMATS[step].upgrade_checkpoint
        if upgrade is None:
            raise NoUpgradeError(
                f"{where} was written by an earlier package (schema version {version}), and this one can't resume "
                "from it: its pack is trained from the beginning"
            )
        try:
            members = upgrade(members)
        except MemoryError:
            raise
        except Exception as error:
            raise _not_upgraded(where, version, error) from error
    return members


def _not_upgraded(where: object, version: int, error: Exception) -> StoreError:
    """Make the error about a failed conversion."""
    return StoreError(
        f"{where} has schema version {version}, and this package failed to read it as version {SCHEMA_VERSION} "
        f"({type(error).__name__}: {error}). "
        "The file is untouched. Report this, and use the package that wrote it"
    )
