"""A study's packs for MLflow, with each trial once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_curves, table_results, unified
from study.errors import StoreError
from study.records import Curve, Result
from study.results.trial_files import local_files
from study.store import StudyStore
from study.store.validated import FAILED


class StoredPacks:
    """A study's packs as they are published. A trial of several packs is in the first of them only.

    Args:
        folder: the study's part of the store.
        rows: the results to publish, one a trial; None for all trials with a result.
        without_curves: metrics whose learning curves aren't published, to save time.
        has_files: True if trials may have files.
    """

    def __init__(
        self,
        folder: StudyStore,
        rows: pa.Table | None = None,
        *,
        without_curves: Collection[str] = (),
        has_files: bool = False,
    ) -> None:
        self._folder, self._rows, self._without_curves = folder, rows, without_curves
        self._has_files = has_files
        self._repeats: dict[str, set[str]] = {}
        self._judged: pa.Table | None = None

    def judge(self, rows: pa.Table) -> None:
        """Replace results by judged ones in later calls of `results`; without effect if the constructor got rows.

        Args:
            rows: judged results; trials without one keep their pack's result.
        """
        self._judged = rows

    def names(self) -> Sequence[str]:
        """Return the names of readable packs, and find the trials that several of them have.

        Failed packs come last, and only if `rows` was given.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if the store can't be read.
        """
        names = sorted(self._folder.pack_ids(), key=lambda name: (name.endswith(FAILED), name))
        if self._rows is None:
            names = [name for name in names if not name.endswith(FAILED)]
        ids = {name: column for name in names if (column := self._trial_ids(name)) is not None}
        self._repeats = _find_repeats(ids)
        return list(ids)

    def results(self, name: str) -> list[Result]:
        """Return a pack's results, without trials that an earlier pack has. Call `names` first.

        If the constructor got rows, they are the pack's trials among these rows, with the rows' results. Otherwise,
        results that `judge` got replace those of the pack.

        Args:
            name: one of `names`.

        Raises:
            StoreError: if the pack has no readable results.
            InputError: if a newer package wrote one of the files.
        """
        table, _ = self._folder.read_pack(name, with_curves=False)
        if self._rows is not None:
            table = self._rows.filter(pc.is_in(self._rows["trial_id"], table["trial_id"].combine_chunks()))
        elif self._judged is not None:
            is_judged = pc.is_in(table["trial_id"], value_set=self._judged["trial_id"].combine_chunks())
            judged = self._judged.filter(
                pc.is_in(self._judged["trial_id"], value_set=table["trial_id"].combine_chunks())
            )
            table = unified([judged, table.filter(pc.invert(is_judged))])
        if name in self._repeats:
            repeats = pa.array(sorted(self._repeats[name]))
            table = table.filter(pc.invert(pc.is_in(table["trial_id"], repeats)))
        return table_results(table)

    def curves(self, name: str) -> list[Curve]:
        """Return a pack's learning curves, without the metrics of `without_curves`; empty if none are readable.

        They include the curves of trials that an earlier pack has.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if the store can't be read.
        """
        curves = table_curves(self._folder.pack_curves(name))
        left_out = self._without_curves
        return [
            replace(curve, metrics={name: values for name, values in curve.metrics.items() if name not in left_out})
            for curve in curves
        ]

    def files(self, trial_id: str, into: Path) -> dict[str, Path]:
        """Return the paths of a trial's files by name; empty without `has_files`.

        Args:
            trial_id: the trial.
            into: the folder to which the files of an object store are copied first.

        Raises:
            InputError: if a file has a name that isn't valid on every system.
            OSError: if a file can't be written to `into`.
            StoreError: if the store can't be read.
        """
        if not self._has_files:
            return {}
        return local_files(self._folder, trial_id, into if self._folder.path is None else None)

    def _trial_ids(self, name: str) -> pa.ChunkedArray | None:
        """Return the ids of a pack's trials; None if it can't be read."""
        try:
            return self._folder.read_pack(name, with_curves=False)[0]["trial_id"]
        except StoreError:  # a truncated file, which the store has reported
            return None


def _find_repeats(ids: Mapping[str, pa.ChunkedArray]) -> dict[str, set[str]]:
    """Return the ids of trials that an earlier pack has too, by pack."""
    if not ids:
        return {}
    counted = pc.value_counts(pa.chunked_array([chunk for column in ids.values() for chunk in column.chunks]))
    several = set(counted.field("values").filter(pc.greater(counted.field("counts"), 1)).to_pylist())
    earlier: set[str] = set()
    repeats: dict[str, set[str]] = {}
    for name, column in ids.items() if several else ():
        here = several & set(column.to_pylist())
        if here & earlier:
            repeats[name] = here & earlier
        earlier |= here
    return repeats
