"""One study's folder: what is done, what is half done, and who may run it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import (
    CURVE_SCHEMA,
    RESULT_SCHEMA,
    WEIGHTS_SCHEMA,
    curves_table,
    results_table,
    weights_table,
)
from study.errors import BusyError, InputError, StoreError, StudyGoneError
from study.records import Checkpoint, Curve, Outcome, Result, Weights
from study.store.deduplicate import one_a_trial
from study.store.files import npz, parquet, provenance_of
from study.store.folder import Folder, StudyLock
from study.store.validated import ValidatedFiles, key_of, pack_of

_SPEC, _REPORT, _PAGE = "spec.yaml", "report", "report/report.html"
# A weight seldom equals another, and resembles it in its first byte only. The 12.1 KB of a trained NALU (100 inputs, 10
# hidden units) take 18.0 KB by default, 11.3 without a dictionary, 10.5 with bytes of the same place side by side.
_WEIGHTS_ENCODING = {"use_dictionary": False, "use_byte_stream_split": ["value.list.element"]}


class StudyStore:
    """One study's folder.

    Args:
        folder: where it lies.
        read_only: leave every file where it is, also the bad ones.
        attempt: whose driver or worker writes: see `of_attempt`; None for anybody.
    """

    def __init__(self, folder: Folder, read_only: bool = False, attempt: str | None = None) -> None:
        self._folder = folder
        self._attempt = attempt
        self._files = ValidatedFiles(folder, read_only)

    @property
    def where(self) -> str:
        """Give the folder's address, to print."""
        return self._folder.where

    @property
    def name(self) -> str:
        """Give the study's name."""
        return self._folder.name

    @property
    def path(self) -> Path | None:
        """Give the folder's path in this machine's file system; None of an object store."""
        return self._folder.path

    @property
    def notices(self) -> list[str]:
        """Sentences for the user about files that were set aside or skipped."""
        return self._files.notices

    @property
    def exists(self) -> bool:
        """Say whether the study has been begun."""
        return self._folder.exists(_SPEC)

    def write_spec(self, text: str) -> None:
        """Keep the study's file as it was given."""
        self.check()
        self._put(_SPEC, text.encode())

    def read_spec(self) -> str:
        """Give back the study's file."""
        content = self._folder.read(_SPEC)
        if content is None:
            raise StoreError(f"can't read {self.spec_where}: it isn't there; `study run` writes it")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StoreError(
                f"{self.spec_where} isn't UTF-8 text; `study run` with the study's file writes it anew"
            ) from error

    @property
    def spec_where(self) -> str:
        """Give the address of the study's file, to print."""
        return self._folder.where_is(_SPEC)

    # what else belongs to the study

    def keep(self, name: str, data: bytes) -> None:
        """Put a file beside the results, in place of the last one of that name."""
        self.check()
        self._put(name, data)

    def kept(self, name: str) -> bytes | None:
        """Give a file that was kept; None if there is none."""
        return self._folder.read(name)

    def kept_where(self, name: str) -> str:
        """Give a kept file's address, to print."""
        return self._folder.where_is(name)

    # the report, where there is no folder to write it into

    @property
    def page(self) -> str | None:
        """Give the address of the report's page; None if there is none."""
        return self._folder.where_is(_PAGE) if self._folder.exists(_PAGE) else None

    def keep_report(self, files: Sequence[Path]) -> None:
        """Put a report's files, which lie elsewhere, in place of the last report."""
        self.check()
        for file in files:
            self._put(f"{_REPORT}/{file.name}", file.read_bytes())
        for stale in set(self._folder.names(_REPORT, "")) - {file.name for file in files}:
            self._folder.remove(f"{_REPORT}/{stale}")

    # packs

    def write_pack(
        self,
        pack_id: str,
        results: Sequence[Result],
        curves: Sequence[Curve],
        weights: Sequence[Weights],
        provenance: Mapping[str, Any],
    ) -> None:
        """Store a pack's results: whole, or not at all. A pack stored before is replaced.

        Args:
            pack_id: name of the files.
            results: one a trial.
            curves: those of the trials that have one; a failed trial's is not kept.
            weights: the same.
            provenance: where they come from; must be JSON.

        Raises:
            StoreError: if the disk is full or closed to us, or `check` fails; what was stored before is untouched.
        """
        failed = {result.trial.id for result in results if result.outcome is Outcome.FAILED}
        self._write_tables(
            pack_id,
            results_table(results),
            curves_table(curve for curve in curves if curve.trial_id not in failed),
            weights_table(one for one in weights if one.trial_id not in failed),
            provenance,
        )

    def _write_tables(
        self,
        pack_id: str,
        results: pa.Table,
        curves: pa.Table,
        weights: pa.Table,
        provenance: Mapping[str, Any],
    ) -> None:
        self.check()
        # Results go last: they are what makes a pack done, and then its weights and curves must be there.
        files = {
            "weights": parquet(weights, provenance, compression="zstd", **_WEIGHTS_ENCODING),
            "curves": parquet(curves, provenance, compression="zstd"),
            "results": parquet(results, provenance, compression="snappy"),
        }
        for kind, data in files.items():
            self._put(key_of(kind, pack_id), data)

    def pack_ids(self) -> set[str]:
        """Name the packs that have a file of results, believed or not."""
        return {pack_of(key) for key in self._files.keys("results")}

    def has_pack(self, pack_id: str) -> bool:
        """Say whether this very pack is done: its results can be read and none of them failed."""
        table = self._files.table(key_of("results", pack_id), ["outcome"])
        return table is not None and Outcome.FAILED not in table["outcome"].to_pylist()

    def read_pack(self, pack_id: str, *, with_curves: bool = True) -> tuple[pa.Table, pa.Table]:
        """Give the rows and the curves of one pack.

        Args:
            pack_id: which.
            with_curves: whole curves are large; without them the second table is empty.

        Raises:
            StoreError: if the pack has no results that can be read.
        """
        results = self._files.table(key_of("results", pack_id))
        if results is None:
            raise StoreError(f"no readable results of pack {pack_id} in {self.where}: run the study again")
        curves = self._files.table(key_of("curves", pack_id)) if with_curves else None
        return results, CURVE_SCHEMA.empty_table() if curves is None else curves

    def done(self) -> set[str]:
        """Name the trials that have a result other than failed."""
        return set(self.outcomes()["trial_id"].to_pylist())

    def outcomes(self) -> pa.Table:
        """Give the outcome of each trial that has one other than failed, as columns ``trial_id`` and ``outcome``."""
        schema = pa.schema([RESULT_SCHEMA.field(name) for name in ("trial_id", "outcome")])
        read = self._files.tables(self._files.keys("results"), schema.names)
        rows = pa.concat_tables([schema.empty_table(), *(table for _, table in read if table is not None)])
        rows = rows.filter(pc.not_equal(rows["outcome"], str(Outcome.FAILED)))
        if pc.count_distinct(rows["trial_id"]).as_py() == len(rows):
            return rows
        # Of a trial done twice, on two devices, the outcomes may differ: this is for counting only.
        ids = rows["trial_id"].combine_chunks().dictionary_encode().indices.to_numpy()
        return rows.take(np.unique(ids, return_index=True)[1])

    def read_results(self) -> pa.Table:
        """Give the study's results, one row a trial, ordered by cell and seed however they were packed.

        A result beats a failure. Of a trial done twice, the one first by file name is kept.

        Raises:
            ConflictError: if one engine and device kind gave a trial two different results.
        """
        read = self._files.tables(self._files.keys("results"))
        tables = {key.partition("/")[2]: table for key, table in read if table is not None}
        if not tables:
            return RESULT_SCHEMA.empty_table()
        rows = one_a_trial(list(tables.values()), list(tables))
        return rows.sort_by([("cell_id", "ascending"), ("seed", "ascending")])

    def read_curves(self, trial_ids: Collection[str] | None = None) -> pa.Table:
        """Give the learning curves, one row a trial, ordered by trial id.

        Args:
            trial_ids: whose; None for all. Whole curves are large: ask for what you need.
        """
        return self._read_rows("curves", CURVE_SCHEMA, trial_ids)

    def read_weights(self, trial_ids: Collection[str] | None = None) -> pa.Table:
        """Give trained weights, one row a trial, ordered by trial id; what an earlier version trained has none.

        Args:
            trial_ids: whose; None for all. Weights are large: ask for what you need.
        """
        return self._read_rows("weights", WEIGHTS_SCHEMA, trial_ids)

    def _read_rows(self, kind: str, schema: pa.Schema, trial_ids: Collection[str] | None) -> pa.Table:
        wanted = None if trial_ids is None else pa.array(sorted(trial_ids), pa.string())
        tables = [schema.empty_table()]
        holding = self._holding(wanted)  # a file of another pack: a kill came before its results
        keys = [key for key in self._files.keys(kind) if pack_of(key) in holding]
        for _, table in self._files.tables(keys, only=wanted):
            if table is not None and len(table):
                tables.append(table)
        everything = pa.concat_tables(tables)
        ids = np.asarray(everything["trial_id"].to_pylist(), dtype=str)
        return everything.take(np.unique(ids, return_index=True)[1])

    def _holding(self, wanted: pa.Array | None) -> set[str]:
        """Find by the packs' results, which are small, those that have one of the wanted trials."""
        if wanted is None:
            return self.pack_ids()
        tables = self._files.tables(self._files.keys("results"), ["trial_id"])
        return {
            pack_of(key)
            for key, table in tables
            if table is not None and pc.any(pc.is_in(table["trial_id"], wanted)).as_py()
        }

    def provenances(self) -> list[dict[str, Any]]:
        """Tell where the results come from: each different answer once."""
        found: dict[str, dict[str, Any]] = {}
        for _, file in self._files.opened(self._files.keys("results")):
            if file is not None:
                answer = provenance_of(file)
                found[json.dumps(answer, sort_keys=True)] = answer
        return list(found.values())

    def adopt(self, other_name: str, other: StudyStore, wanted: Collection[str]) -> set[str]:
        """Copy the wanted results of another study, with their curves and weights, pack by pack.

        Args:
            other_name: what the provenance calls the other study.
            other: where to look; opened read-only, since it may be running.
            wanted: ids of trials.

        Returns:
            The ids of the trials that were found.
        """
        try:
            found = other.done() & set(wanted)
            rows = other.read_results() if found else RESULT_SCHEMA.empty_table()
        except (InputError, StoreError) as error:
            self._files.notice(f"nothing was adopted from study {other_name!r}: {error}")
            return set()
        left = set(found)
        provenance = {"adopted_from": other_name, "original": other.provenances() if found else []}
        for pack_id in sorted(other.pack_ids()) if found else ():
            taken = left & other.trials_of(pack_id)
            if taken:
                ids = pa.array(sorted(taken))
                name = hashlib.sha256("\n".join([other_name, *sorted(taken)]).encode()).hexdigest()[:16]
                results = rows.filter(pc.is_in(rows["trial_id"], ids))
                self._write_tables(f"adopted-{name}", results, *other.details_of(pack_id, ids), provenance)
                left -= taken
        return found

    def trials_of(self, pack_id: str) -> set[str]:
        """Name the trials that have a result other than failed in a pack; none if it can't be read."""
        table = self._files.table(key_of("results", pack_id), ["trial_id", "outcome"])
        if table is None:
            return set()
        return set(table.filter(pc.not_equal(table["outcome"], str(Outcome.FAILED)))["trial_id"].to_pylist())

    def details_of(self, pack_id: str, trial_ids: pa.Array) -> tuple[pa.Table, pa.Table]:
        """Give the curves and the weights of some trials of a pack; what can't be read has none."""
        found = []
        for kind, schema in (("curves", CURVE_SCHEMA), ("weights", WEIGHTS_SCHEMA)):
            ((_, table),) = self._files.tables([key_of(kind, pack_id)], only=trial_ids)
            found.append(schema.empty_table() if table is None else table)
        return found[0], found[1]

    # checkpoints

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a pack in mid-training, in place of its last checkpoint.

        Raises:
            StoreError: if the disk is full or closed to us; the last checkpoint is untouched.
            ValueError: if an array would need pickle.
        """
        self.check()
        self._put(key_of("checkpoints", checkpoint.pack_id), npz(checkpoint))

    def load_checkpoint(self, pack_id: str) -> Checkpoint | None:
        """Give a pack's last checkpoint, or None if it has none that can be believed."""
        found = self._files.checkpoints([key_of("checkpoints", pack_id)], with_arrays=True)
        return found[0] if found else None

    def checkpoints(self) -> list[tuple[str, tuple[str, ...], int]]:
        """List the packs in mid-training: id, trials, iteration; the furthest first."""
        read = self._files.checkpoints(self._files.keys("checkpoints"), with_arrays=False)
        found = [(kept.pack_id, kept.trial_ids, kept.iteration) for kept in read]
        return sorted(found, key=lambda kept: (-kept[2], kept[0]))

    def drop_checkpoint(self, pack_id: str) -> None:
        """Forget a pack's checkpoint, if there is one."""
        self._folder.remove(key_of("checkpoints", pack_id))

    # one driver at a time

    @contextmanager
    def lock(self, notify: Callable[[str], None] = lambda sentence: None) -> Iterator[StudyLock]:
        """Hold the study: on a file system until this process dies, however it dies, in an object store while it lives.

        Args:
            notify: called if it takes long.

        Yields:
            What says whether another process has taken the study over meanwhile.

        Raises:
            BusyError: if another process holds it.
        """
        with self._folder.lock(notify) as held:
            yield held

    def begin_attempt(self) -> str:
        """Take the study over: workers of earlier attempts stop when they read this id.

        Call it with the lock held. Also removes what a kill left half-written.
        """
        attempt = uuid.uuid4().hex
        self._folder.write("attempt", attempt.encode())
        self._folder.clean()  # only now: whoever misses what it was writing must read why
        return attempt

    def attempt(self) -> str | None:
        """Give the id of the latest attempt, or None if there was none."""
        data = self._folder.read("attempt")
        return None if data is None else data.decode()

    def of_attempt(self, attempt: str) -> StudyStore:
        """Give the study as the driver and the workers of an attempt have it.

        Whatever they write, they `check` before; and no write makes the study's folder anew where it was.

        Args:
            attempt: what `begin_attempt` gave.
        """
        return StudyStore(self._folder.as_it_is(), attempt=attempt)

    def check(self) -> None:
        """Check that the study is in the store, and still this attempt's; of no attempt, check nothing.

        Raises:
            StudyGoneError: if it isn't there: an empty place may be where its file system will be mounted again.
            BusyError: if another driver has taken it over.
        """
        if self._attempt is None:
            return
        latest = self.attempt()
        if latest is None:
            raise StudyGoneError(
                f"study {self.name!r} is not in the store at {self.where} just now: it was removed or renamed, or its "
                "file system isn't mounted"
            )
        if latest != self._attempt:
            raise BusyError(f"study {self.name!r} was taken over by another run")

    def _put(self, key: str, data: bytes) -> None:
        try:
            self._folder.write(key, data)
        except StoreError:
            self.check()  # another driver that begins removes what is half written
            raise
