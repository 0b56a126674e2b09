"""The store of one study: its results, its checkpoints, and the lock of the process that runs it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import EMPTY_CURVES, EMPTY_RESULTS, WEIGHTS_SCHEMA, curves_table, results_table, unified, weights_table
from study.environment import labelled
from study.errors import BusyError, InputError, StoreError, StudyGoneError
from study.interface.references import Criterion, ReferenceCriterion
from study.records import Cell, Checkpoint, Curve, Keep, Outcome, Result, Weights
from study.store import judgements
from study.store.deduplicate import one_a_trial
from study.store.files import npz, parquet, provenance_of
from study.store.folder import Folder, StudyLock
from study.store.judge import judged
from study.store.judgements import Key, judgements_file, read_judgements
from study.store.solved import solved_cells
from study.store.trial_files import FILES, TrialFiles, is_file_name
from study.store.validated import ValidatedFiles, key_of, pack_of

_SPEC, _REPORT, _PAGE, _LOCK = "spec.yaml", "report", "report/report.html", "lock"
_HEARTBEAT = "heartbeat"
_NOT_CONTENT = (_LOCK, "attempt", _HEARTBEAT)  # they change while a study runs, but its results don't depend on them
# Weights seldom repeat, and resemble each other in their first byte only. The 12.1 KB of a trained NALU (100 inputs, 10
# hidden units) take 18.0 KB by default, 11.3 KB without a dictionary, and 10.5 KB with byte stream split.
_WEIGHTS_ENCODING = {"use_dictionary": False, "use_byte_stream_split": ["value.list.element"]}


class StudyStore:
    """The store of one study.

    If the store fails, every method raises a `StoreError`: a `StoreAwayError` if the failure may be temporary. If the
    bucket of an object store doesn't exist, it raises an `InputError`. A method that reads the files of packs raises an
    `InputError` if a newer package wrote one of them. It moves invalid files to quarantine, and goes on without them.

    Args:
        folder: the study's folder.
        read_only: leave every file in place, even invalid ones.
        attempt: the attempt of the driver or worker that writes (see `of_attempt`); None without one.
        criterion: the criterion that judges trials on reading (see `judged_by`); None to keep their stored outcomes.
    """

    def __init__(
        self, folder: Folder, read_only: bool = False, attempt: str | None = None, criterion: Criterion | None = None
    ) -> None:
        self._folder = folder
        self._read_only = read_only
        self._attempt = attempt
        self._criterion = criterion
        self._files = ValidatedFiles(folder, read_only)

    @property
    def where(self) -> str:
        """The folder's address, to print."""
        return self._folder.where

    @property
    def name(self) -> str:
        """The study's name."""
        return self._folder.name

    @property
    def path(self) -> Path | None:
        """The folder's path in this machine's file system; None for an object store."""
        return self._folder.path

    @property
    def notices(self) -> list[str]:
        """Sentences for the user about files that were set aside or skipped."""
        return self._files.notices

    @property
    def exists(self) -> bool:
        """True if the study has been started.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.exists(_SPEC)

    def write_spec(self, text: str) -> None:
        """Write the study's file as the user wrote it.

        Raises:
            StoreError: if the file can't be written.
            StudyError: if `check` fails.
        """
        self.check()
        self._put(_SPEC, text.encode())

    def read_spec(self) -> str:
        """Read the study's file.

        Raises:
            StoreError: if it is missing, can't be read, or isn't UTF-8 text.
        """
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
        """The address of the study's file, to print."""
        return self._folder.where_is(_SPEC)

    # other files of the study

    def write_file(self, name: str, data: bytes) -> None:
        """Write another file of the study, replacing an earlier one of that name.

        Raises:
            StoreError: if the file can't be written.
            StudyError: if `check` fails.
        """
        self.check()
        self._put(name, data)

    def read_file(self, name: str) -> bytes | None:
        """Read a file that `write_file` wrote; None if there is none.

        Raises:
            NotAFileError: if a folder, a pipe or the like has the name.
            StoreError: if the store can't be read.
        """
        return self._folder.read(name)

    def read_files(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of several files that `write_file` wrote, by name.

        A name is left out if nothing, or a folder, a pipe or the like has it.

        Raises:
            StoreError: if the store can't be read.
        """
        read = self._folder.read_all(names)
        return {name: content for name, content in read if isinstance(content, bytes)}

    def times_in(self, name: str) -> dict[str, float]:
        """Return the time of the last write of each file in a folder of the study, by name, as `times` does.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.times(name)

    def file_address(self, name: str) -> str:
        """Return the address of a file of the study, to print."""
        return self._folder.where_is(name)

    # files of trials

    def trial_files(self, scratch: Path, keep: Keep) -> TrialFiles:
        """Return the folders of trials for a worker; `scratch` is a local folder of its machine."""
        return TrialFiles(self._folder, scratch, keep)

    def trials_with_files(self) -> list[str]:
        """Return the ids of the trials that have files, sorted.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.folders(FILES)

    def file_sizes(self, trial_id: str) -> dict[str, int]:
        """Return the size in bytes of each file of a trial, by path below the trial's folder, without links and pipes.

        Raises:
            StoreError: if the store can't be read.
        """
        prefix = f"{FILES}/{trial_id}/"
        sizes = sorted(self._folder.sizes(prefix[:-1]).items())
        return {key.removeprefix(prefix): size for key, size in sizes if size or self._folder.is_plain(key)}

    def trial_file(self, trial_id: str, name: str) -> str:
        """Return the key of a trial's file, for `read_file` and `file_address`.

        Raises:
            InputError: if `is_file_name` refuses the name or the id.
        """
        if not is_file_name(name) or not is_file_name(trial_id):
            raise InputError(f"{name!r} can't name a file of a trial: it must be a path below the trial's folder")
        return f"{FILES}/{trial_id}/{name}"

    # the report, in an object store

    @property
    def page(self) -> str | None:
        """The address of the report's page; None if there is none.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.where_is(_PAGE) if self._folder.exists(_PAGE) else None

    def keep_report(self, files: Sequence[Path]) -> None:
        """Copy a report's files into the store, replacing the last report.

        Raises:
            OSError: if one of the given files can't be read.
            StoreError: if the report can't be written.
            StudyError: if `check` fails.
        """
        self.check()
        for file in files:
            self._put(f"{_REPORT}/{file.name}", file.read_bytes())
        for stale in set(self._folder.names(_REPORT, "")) - {file.name for file in files}:
            self._folder.remove(f"{_REPORT}/{stale}")

    # all files of the study

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file of the study, by key.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.sizes()

    @property
    def has_remains(self) -> bool:
        """True if the study's file doesn't exist, but its lock or an empty folder does, as after interrupted deletion.

        Raises:
            StoreError: if the store can't be read.
        """
        if self.exists or not self._folder.is_there:
            return False
        return self._folder.exists(_LOCK) or not self._folder.sizes()

    def delete(self) -> None:
        """Remove all files of the study. Call it with the lock held.

        The study's file is removed first, so that a kill leaves no partial study. Results are removed before the curves
        and weights that belong to them, so that remaining packs are complete. If interrupted, call it again.

        Raises:
            StoreError: if a new attempt can't be written, or a file or folder can't be removed.
        """
        self.begin_attempt()  # stops workers of a killed driver from writing
        for _, keys in groupby(sorted(self._folder.sizes(), key=_turn), key=_turn):
            self._folder.remove_all(list(keys))
        self._folder.remove_folders()

    # for observers

    def times(self) -> dict[str, float]:
        """Return the time of the last write of the files right in the study's folder and of result files, by key.

        Times are in seconds since 1970. Lock, attempt and heartbeat are left out. No file is read. Files are
        replaced, never changed in place, so equal times mean equal content.

        Raises:
            StoreError: if the store can't be read.
        """
        files = {name: time for name, time in self._folder.times().items() if name not in _NOT_CONTENT}
        return files | {f"results/{name}": time for name, time in self._folder.times("results").items()}

    def write_heartbeat(self, text: str) -> None:
        """Write the study's progress for observers; call `remove_heartbeat` when the study stops.

        Raises:
            StoreError: if the file can't be written.
            StudyError: if `check` fails.
        """
        self.write_file(_HEARTBEAT, text.encode())

    def read_heartbeat(self) -> str:
        """Return the last text of `write_heartbeat`; empty if the study isn't running or hasn't written one.

        Raises:
            StoreError: if the store can't be read.
        """
        return (self._folder.read(_HEARTBEAT) or b"").decode(errors="replace")

    def remove_heartbeat(self) -> None:
        """Remove the heartbeat, if there is one.

        Raises:
            StudyError: if `check` fails; the heartbeat may be another run's.
            StoreError: if it can't be removed.
        """
        self.check()
        self._folder.remove(_HEARTBEAT)

    def holder(self) -> str | None:
        """Describe the process that runs the study; None if none does.

        In an object store, a killed process is returned until the study is run again.

        Raises:
            StoreError: if the store can't be read.
        """
        return self._folder.holder()

    # packs

    def write_pack(
        self,
        pack_id: str,
        results: Sequence[Result],
        curves: Sequence[Curve],
        weights: Sequence[Weights],
        provenance: Mapping[str, Any],
    ) -> None:
        """Store a pack's results atomically, replacing earlier ones of that pack.

        Args:
            pack_id: name of the files.
            results: one result per trial.
            curves: learning curves of the trials that have one; those of failed trials aren't stored.
            weights: trained weights, likewise.
            provenance: origin of the results; must be JSON.

        Raises:
            StoreError: if the disk is full or not writable; the stored results are untouched, but not always their
                curves and weights.
            StudyError: if `check` fails.
            InputError: if the pack's id isn't a valid file name, a trial's family can't be imported or isn't a
                `Family`, or two packages offer one of the same task.
            TypeError: if the provenance isn't JSON.
        """
        failed = {result.trial.id for result in results if result.outcome is Outcome.FAILED}
        self._write_tables(
            pack_id,
            results_table(results),
            curves_table(curve for curve in curves if curve.trial_id not in failed),
            weights_table(entry for entry in weights if entry.trial_id not in failed),
            provenance,
        )

    def _write_tables(
        self, pack_id: str, results: pa.Table, curves: pa.Table, weights: pa.Table, provenance: Mapping[str, Any]
    ) -> None:
        """Store a pack's tables, the results last; raise StudyError if `check` fails."""
        self.check()
        # Results are written last: they mark the pack as done, so its weights and curves must exist already.
        encodings: dict[str, tuple[pa.Table, dict[str, Any]]] = {
            "weights": (weights, {"compression": "zstd", **_WEIGHTS_ENCODING}),
            "curves": (curves, {"compression": "zstd"}),
            "results": (results, {"compression": "snappy"}),
        }
        for kind, (table, encoding) in encodings.items():
            key = key_of(kind, pack_id)
            # Many trials of own code have no weights or curves, and writing a file takes milliseconds.
            if len(table) or kind == "results" or self._folder.exists(key):
                self._put(key, parquet(table, provenance, **encoding))

    def pack_ids(self) -> set[str]:
        """Return the ids of the packs that have a result file, valid or not.

        Raises:
            StoreError: if the store can't be read.
        """
        return {pack_of(key) for key in self._files.keys("results")}

    def has_pack(self, pack_id: str, *, with_stopped: bool = True) -> bool:
        """Return True if this pack is done: its results can be read and no trial failed.

        Args:
            pack_id: the pack.
            with_stopped: count trials that were stopped early as done.

        Raises:
            InputError: if a newer package wrote the results, or the pack's id isn't a valid file name.
            StoreError: if a file can't be read.
        """
        table = self._files.table(key_of("results", pack_id), ["outcome"])
        unfinished = {str(Outcome.FAILED), *([] if with_stopped else [str(Outcome.STOPPED)])}
        return table is not None and unfinished.isdisjoint(table["outcome"].to_pylist())

    def read_pack(self, pack_id: str, *, with_curves: bool = True) -> tuple[pa.Table, pa.Table]:
        """Return the results, judged by the store's criterion if it has one, and the learning curves of one pack.

        If references set the criterion, solved and unsolved trials are returned as finished (see `judged_by`).

        Args:
            pack_id: the pack.
            with_curves: read the curves, which are large; if False, the second table is empty.

        Raises:
            StoreError: if the pack has no readable results, or the store can't be read.
            InputError: if a newer package wrote one of its files or, with a criterion, another file of the study; or if
                the pack's id isn't a valid file name.
        """
        results = self._files.table(key_of("results", pack_id))
        if results is None:
            raise StoreError(f"no readable results of pack {pack_id} in {self.where}: run the study again")
        results = self._judged(results, are_all=False)
        return results, self.pack_curves(pack_id) if with_curves else EMPTY_CURVES

    def pack_curves(self, pack_id: str) -> pa.Table:
        """Return the learning curves of one pack; an empty table if none are readable.

        Raises:
            InputError: if a newer package wrote them, or the pack's id isn't a valid file name.
            StoreError: if the file can't be read.
        """
        curves = self._files.table(key_of("curves", pack_id))
        return EMPTY_CURVES if curves is None else curves

    def done(self, *, with_stopped: bool = True) -> set[str]:
        """Return the ids of the trials with a result other than failed, by default including those stopped early.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        rows = self._outcomes()
        if not with_stopped:
            rows = rows.filter(pc.not_equal(rows["outcome"], str(Outcome.STOPPED)))
        return set(rows["trial_id"].to_pylist())

    def done_rows(self) -> pa.Table:
        """Return id, outcome, ``cell_id`` and ``seed`` of the trials with a result other than failed, one row each.

        The outcomes are the stored ones, whatever the store's criterion. The rows have no particular order.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        return self._outcomes("cell_id", "seed")

    def failed_rows(self) -> pa.Table:
        """Return trial_id, cell_id, seed, outcome and error of failed trials without another result, one row each.

        The rows are ordered by trial id. If a trial failed in several packs, the first row by file name is returned.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        rows = self._stored_rows("trial_id", "cell_id", "seed", "outcome", "error")
        has_failed = pc.equal(rows["outcome"], str(Outcome.FAILED))
        done = rows.filter(pc.invert(has_failed))["trial_id"].combine_chunks()
        rows = rows.filter(pc.and_(has_failed, pc.invert(pc.is_in(rows["trial_id"], value_set=done))))
        ids = np.asarray(rows["trial_id"].to_pylist(), dtype=str)
        return rows.take(np.unique(ids, return_index=True)[1])

    def outcomes(self) -> pa.Table:
        """Return columns ``trial_id`` and ``outcome`` of the trials with an outcome other than failed, one row each.

        If the store has a criterion, it judges the trials; if references set it, solved and unsolved ones are returned
        as finished (see `judged_by`). The rows have no particular order.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
            ConflictError: with a criterion, if one engine and kind of device gave a trial two different results.
        """
        if self._criterion is None:
            return self._outcomes()
        rows = self._judged(self._results(), are_all=False).select(["trial_id", "outcome"])
        return rows.filter(pc.not_equal(rows["outcome"], str(Outcome.FAILED)))

    def _outcomes(self, *more: str) -> pa.Table:
        """Return id, outcome and more columns of the trials with a result other than failed, one row each."""
        rows = self._stored_rows("trial_id", "outcome", *more)
        rows = rows.filter(pc.not_equal(rows["outcome"], str(Outcome.FAILED)))
        if pc.count_distinct(rows["trial_id"]).as_py() == len(rows):
            return rows
        # If a trial was done twice, on two devices, its outcomes may differ; they are used for counting only. A trial
        # that was stopped early and later trained to its end has ended.
        rows = rows.take(pc.sort_indices(pc.cast(pc.equal(rows["outcome"], str(Outcome.STOPPED)), pa.int8())))
        ids = rows["trial_id"].combine_chunks().dictionary_encode().indices.to_numpy()
        return rows.take(np.unique(ids, return_index=True)[1])

    def _stored_rows(self, *columns: str) -> pa.Table:
        """Return columns of all result files; a trial may have several rows."""
        empty = EMPTY_RESULTS.select(columns)
        read = self._files.tables(self._files.keys("results"), empty.column_names)
        return pa.concat_tables([empty, *(table for _, table in read if table is not None)])

    def trials_by_code(self) -> dict[str, int]:
        """Return the number of trials with a result other than failed, by their code's identity.

        The identity is the hyperparameter ``code`` of their cells. The result is empty if no cell has it.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
            ConflictError: if one engine and kind of device gave a trial two different results.
        """
        rows = self._results()
        if "code" not in rows.column_names:
            return {}
        codes = rows.filter(pc.not_equal(rows["outcome"], str(Outcome.FAILED)))["code"].drop_null()
        return {entry["values"]: entry["counts"] for entry in pc.value_counts(codes).to_pylist()}

    def solved_cells(
        self, task: str, models: Collection[str], criterion: str | None
    ) -> Iterator[tuple[Cell, Sequence[int]]]:
        """Yield each cell that has solved trials, with the iterations at which they were solved.

        A trial with two results counts twice. A solved trial without an iteration is left out.

        Args:
            task: name of the task.
            models: names of the models.
            criterion: the criterion of the trials to count, in words; None for trials judged by their cells.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        return solved_cells(self._files, task, models, criterion)

    def read_results(self) -> pa.Table:
        """Return the study's results, one row per trial, ordered by cell and seed.

        If the store has a criterion, it judges the trials. A result takes precedence over an early stop, and an early
        stop over a failure. If a trial was done twice, the first result by file name is returned.

        Raises:
            ConflictError: if one engine and kind of device gave a trial two different results.
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        return self._judged(self._results(), are_all=True)

    def _results(self) -> pa.Table:
        """Return the stored results, one row per trial, ordered by cell and seed."""
        read = self._files.tables(self._files.keys("results"))
        tables = {key.partition("/")[2]: table for key, table in read if table is not None}
        if not tables:
            return EMPTY_RESULTS
        rows = one_a_trial(list(tables.values()), list(tables))
        return rows.sort_by([("cell_id", "ascending"), ("seed", "ascending")])

    def _judged(self, results: pa.Table, *, are_all: bool) -> pa.Table:
        """Judge results by the store's criterion, if any; `are_all`: they are all of the study's results.

        If references set the criterion, other results are judged by none.
        """
        if self._criterion is None:
            return results
        is_known = are_all or not isinstance(self._criterion, ReferenceCriterion)
        return judged(results, self._criterion if is_known else {}, self.read_curves, self._read_judgements)

    def _read_judgements(self) -> Mapping[Key, int | None]:
        """Return the cached iterations of solving."""
        return read_judgements(self._folder.read(judgements.FILE))

    def write_judgements(self, results: pa.Table) -> None:
        """Cache the iterations at which trials were solved under the current criterion; readers then need no curves.

        Args:
            results: rows that `read_results` returned.

        Raises:
            StoreError: if the file can't be written.
            StudyError: if `check` fails.
        """
        self.check()
        self._put(judgements.FILE, judgements_file(results))

    def read_curves(self, trial_ids: Collection[str] | None = None) -> pa.Table:
        """Return the learning curves, one row per trial, ordered by trial id, without trials that have none.

        Args:
            trial_ids: trials to read; None for all. Curves are large, so request only those you need.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        return self._read_rows("curves", EMPTY_CURVES, trial_ids)

    def read_weights(self, trial_ids: Collection[str] | None = None) -> pa.Table:
        """Return trained weights, one row per trial, ordered by trial id, without trials that have none.

        Args:
            trial_ids: trials to read; None for all. Weights are large, so request only those you need.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        return self._read_rows("weights", WEIGHTS_SCHEMA.empty_table(), trial_ids)

    def _read_rows(self, kind: str, empty: pa.Table, trial_ids: Collection[str] | None) -> pa.Table:
        """Return rows of curves or weights, one per trial, ordered by trial id."""
        ids = None if trial_ids is None else pa.array(sorted(trial_ids), pa.string())
        tables = [empty]
        # Skip files of packs without results: their writer was killed before it wrote the results.
        packs = self._packs_with(ids)
        keys = [key for key in self._files.keys(kind) if pack_of(key) in packs]
        for _, table in self._files.tables(keys, only=ids):
            if table is not None and len(table):
                tables.append(table)
        rows = unified(tables)
        row_ids = np.asarray(rows["trial_id"].to_pylist(), dtype=str)
        return rows.take(np.unique(row_ids, return_index=True)[1])

    def _packs_with(self, trial_ids: pa.Array | None) -> set[str]:
        """Return the packs that have any of the trials, according to their small result files."""
        if trial_ids is None:
            return self.pack_ids()
        tables = self._files.tables(self._files.keys("results"), ["trial_id"])
        return {
            pack_of(key)
            for key, table in tables
            if table is not None and pc.any(pc.is_in(table["trial_id"], trial_ids)).as_py()
        }

    def provenances(self) -> list[dict[str, Any]]:
        """Return the distinct provenances of the results, in the order of the files' names.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if a file can't be read.
        """
        by_text: dict[str, dict[str, Any]] = {}
        for _, file in self._files.opened(self._files.keys("results")):
            if file is not None:
                provenance = labelled(provenance_of(file))
                by_text[json.dumps(provenance, sort_keys=True)] = provenance
        return list(by_text.values())

    def adopt(self, other_name: str, other: StudyStore, trial_ids: Collection[str]) -> set[str]:
        """Copy results of another study, with their curves, weights and files, pack by pack.

        Args:
            other_name: the other study's name, for the provenance.
            other: the other study's store, opened read-only, since that study may be running.
            trial_ids: ids of the trials to copy.

        Returns:
            The ids of those trials that the other study has trained to their end; empty, with a notice, if it can't be
            read.

        Raises:
            StoreError: if this study's files can't be read or written, or the other's curves or weights can't be read.
            InputError: if a newer package wrote the other's curves or weights, or a file of its trials has a name that
                isn't valid on every system.
            StudyError: if `check` fails.
        """
        try:
            shared = other.done(with_stopped=False) & set(trial_ids)
            rows = other.read_results() if shared else EMPTY_RESULTS
        except (InputError, StoreError) as error:
            self._files.notice(f"nothing was adopted from study {other_name!r}: {error}")
            return set()
        left = set(shared)
        provenance = {"adopted_from": other_name, "original": other.provenances() if shared else []}
        for pack_id in sorted(other.pack_ids()) if shared else ():
            in_pack = left & other.trials_of(pack_id, with_stopped=False)
            if in_pack:
                ids = pa.array(sorted(in_pack))
                name = hashlib.sha256("\n".join([other_name, *sorted(in_pack)]).encode()).hexdigest()[:16]
                results = rows.filter(pc.is_in(rows["trial_id"], ids))
                self.copy_files(other, in_pack)
                self._write_tables(f"adopted-{name}", results, *other.details_of(pack_id, ids), provenance)
                left -= in_pack
        return shared

    def files_of(self, pack_id: str) -> dict[str, bytes]:
        """Return the valid files of a pack by key, the results last; none if the results aren't valid.

        Raises:
            InputError: if a newer package wrote one of the files, or the pack's id isn't a valid file name.
            StoreError: if a file can't be read.
        """
        keys = [key_of(kind, pack_id) for kind in ("weights", "curves", "results")]
        files = {key: data for key in keys if (data := self._files.whole(key)) is not None}
        return files if keys[-1] in files else {}

    def trials_of(self, pack_id: str, *, with_stopped: bool = True) -> set[str]:
        """Return the ids of a pack's trials with a result other than failed; none if the pack can't be read.

        Args:
            pack_id: the pack.
            with_stopped: include trials that were stopped early.

        Raises:
            InputError: if a newer package wrote the results, or the pack's id isn't a valid file name.
            StoreError: if the file can't be read.
        """
        table = self._files.table(key_of("results", pack_id), ["trial_id", "outcome"])
        if table is None:
            return set()
        without = pa.array([str(Outcome.FAILED), *([] if with_stopped else [str(Outcome.STOPPED)])])
        return set(table.filter(pc.invert(pc.is_in(table["outcome"], value_set=without)))["trial_id"].to_pylist())

    def copy_files(self, other: StudyStore, trial_ids: Collection[str]) -> None:
        """Copy the files of another study's trials, except of trials that have files here.

        Raises:
            StoreError: if a file can't be read or written.
            InputError: if a file has a name that isn't valid on every system.
            StudyError: if `check` fails.
        """
        for trial_id in sorted({*other.trials_with_files()} & set(trial_ids) - {*self.trials_with_files()}):
            self.check()
            for name in other.file_sizes(trial_id):
                if (data := other.read_file(other.trial_file(trial_id, name))) is not None:
                    self._put(self.trial_file(trial_id, name), data)

    def details_of(self, pack_id: str, trial_ids: pa.Array) -> tuple[pa.Table, pa.Table]:
        """Return the curves and the weights of the given trials of a pack; unreadable ones are left out.

        Raises:
            InputError: if a newer package wrote one of the files, or the pack's id isn't a valid file name.
            StoreError: if a file can't be read.
        """
        details = []
        for kind, empty in (("curves", EMPTY_CURVES), ("weights", WEIGHTS_SCHEMA.empty_table())):
            ((_, table),) = self._files.tables([key_of(kind, pack_id)], only=trial_ids)
            details.append(empty if table is None else table)
        return details[0], details[1]

    # checkpoints

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a pack's checkpoint, replacing its last one.

        Raises:
            StoreError: if the disk is full or not writable; the last checkpoint is untouched.
            StudyError: if `check` fails.
            InputError: if the pack's id isn't a valid file name.
            ValueError: if an array would need pickle.
        """
        self.check()
        self._put(key_of("checkpoints", checkpoint.pack_id), npz(checkpoint))

    def load_checkpoint(self, pack_id: str) -> Checkpoint | None:
        """Return a pack's last checkpoint; None if it has no valid one, or training can't resume from its version.

        Raises:
            InputError: if a newer package wrote it, or the pack's id isn't a valid file name.
            StoreError: if it can't be read, or converted to the current format.
        """
        checkpoints = self._files.checkpoints([key_of("checkpoints", pack_id)], with_arrays=True)
        return checkpoints[0] if checkpoints else None

    def checkpoints(self) -> list[tuple[str, tuple[str, ...], int]]:
        """Return pack id, trial ids and iteration of each valid checkpoint, by descending iteration, then by pack id.

        Raises:
            InputError: if a newer package wrote one of them.
            StoreError: if one can't be read, or converted to the current format.
        """
        headers = self._files.checkpoints(self._files.keys("checkpoints"), with_arrays=False)
        packs = [(header.pack_id, header.trial_ids, header.iteration) for header in headers]
        return sorted(packs, key=lambda pack: (-pack[2], pack[0]))

    def drop_checkpoint(self, pack_id: str) -> None:
        """Remove a pack's checkpoint, if there is one.

        Raises:
            InputError: if the pack's id isn't a valid file name.
            StoreError: if it can't be removed.
        """
        self._folder.remove(key_of("checkpoints", pack_id))

    # one driver at a time

    @contextmanager
    def lock(self, notify: Callable[[str], None] = lambda sentence: None) -> Iterator[StudyLock]:
        """Hold the study's lock; once this process dies, another one can take it.

        Args:
            notify: called with a sentence if the last holder was killed, or must be watched first.

        Yields:
            The lock; its attribute `lost` tells if another process has taken the study over.

        Raises:
            BusyError: if another process holds it.
            StoreError: if the lock can't be used.
        """
        with self._folder.lock(notify) as held:
            yield held

    def begin_attempt(self) -> str:
        """Begin a new attempt, and return its id; workers of earlier attempts stop when they read it.

        Call it with the lock held. It also removes half-written files of killed processes.

        Raises:
            StoreError: if the attempt can't be written, or half-written files can't be removed.
        """
        attempt = uuid.uuid4().hex
        self._folder.write("attempt", attempt.encode())
        self._folder.clean()  # last: a worker whose file is removed must find the new attempt
        return attempt

    def attempt(self) -> str | None:
        """Return the id of the latest attempt, or None if there was none.

        Raises:
            StoreError: if the store can't be read.
        """
        data = self._folder.read("attempt")
        return None if data is None else data.decode(errors="replace")

    def of_attempt(self, attempt: str) -> StudyStore:
        """Return the study's store for the driver and the workers of an attempt.

        It calls `check` before each write, and doesn't recreate the study's folder if that is gone.

        Args:
            attempt: the id that `begin_attempt` returned.
        """
        return StudyStore(self._folder.as_it_is(), attempt=attempt, criterion=self._criterion)

    def judged_by(self, criterion: Criterion | None) -> StudyStore:
        """Return the study's store with a criterion for the outcomes of the trials that are read.

        If references set the criterion, only `read_results` applies it, because it needs all results. `read_pack` and
        `outcomes` then return trials as finished.

        Args:
            criterion: the criterion of a solved trial; None if the trials' cells set it.
        """
        return StudyStore(self._folder, self._read_only, self._attempt, criterion)

    def check(self) -> None:
        """Check that the study is in the store and still belongs to this attempt; no-op without an attempt.

        Raises:
            StudyGoneError: if the study is missing, perhaps until its file system is mounted again.
            BusyError: if another driver has taken it over.
            StoreError: if the store can't be read.
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
        """Write a file; if that fails because another driver has taken over, raise the error of `check`."""
        try:
            self._folder.write(key, data)
        except StoreError:
            self.check()  # a write fails if another driver has started and removed half-written files
            raise


def _turn(key: str) -> int:
    """Return a file's turn in the deletion; the lock is last, to mark an incomplete deletion until then."""
    if key.startswith("results/"):
        return 1
    return {_SPEC: 0, "attempt": 3, _LOCK: 4}.get(key, 2)
