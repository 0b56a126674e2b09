"""One study's folder: what is done, what is half done, and who may run it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.errors import BusyError, InputError, StoreError
from study.records import Checkpoint, Curve, Outcome, Result, Weights
from study.store.files import (
    UNREADABLE,
    UnbelievableError,
    explained,
    open_parquet,
    parse_checkpoint,
    provenance_of,
    write_checkpoint,
    write_parquet,
    write_whole,
)
from study.store.once import one_a_trial
from study.table import (
    CURVE_SCHEMA,
    RESULT_SCHEMA,
    WEIGHTS_SCHEMA,
    curves_table,
    results_table,
    weights_table,
)

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# A weight seldom equals another, and resembles it in its first byte only. The 12.1 KB of a trained NALU (100 inputs, 10
# hidden units) take 18.0 KB by default, 11.3 without a dictionary, 10.5 with bytes of the same place side by side.
_WEIGHTS_ENCODING = {"use_dictionary": False, "use_byte_stream_split": ["value.list.element"]}


class StudyStore:
    """One study's folder.

    Args:
        path: the folder.
        read_only: leave every file where it is, also the bad ones.

    Attributes:
        notices: sentences about files that were set aside or skipped, for the user.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.notices: list[str] = []

    @property
    def exists(self) -> bool:
        """Say whether the study has been begun."""
        return (self.path / "spec.yaml").is_file()

    def write_spec(self, text: str) -> None:
        """Keep the study's file as it was given."""
        write_whole(self.path / "spec.yaml", lambda file: file.write(text.encode()))

    def read_spec(self) -> str:
        """Give back the study's file."""
        path = self.path / "spec.yaml"
        with explained(path, "read"):
            content = path.read_bytes()
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StoreError(
                f"{path} isn't UTF-8 text; `study run` with the study's file writes it anew"
            ) from error

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
            StoreError: if the disk is full or closed to us; what was stored before is untouched.
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
        # Results go last: they are what makes a pack done, and then its weights and curves must be there.
        path = self._file("weights", pack_id)
        write_parquet(path, weights, provenance, compression="zstd", **_WEIGHTS_ENCODING)
        write_parquet(self._file("curves", pack_id), curves, provenance, compression="zstd")
        write_parquet(self._file("results", pack_id), results, provenance, compression="snappy")

    def pack_ids(self) -> set[str]:
        """Name the packs that have a file of results, believed or not."""
        return {path.stem for path in self._files("results")}

    def has_pack(self, pack_id: str) -> bool:
        """Say whether this very pack is done: its results can be read and none of them failed."""
        table = self._read_parquet(self._file("results", pack_id), RESULT_SCHEMA, ["outcome"])
        return table is not None and Outcome.FAILED not in table["outcome"].to_pylist()

    def read_pack(self, pack_id: str) -> tuple[pa.Table, pa.Table]:
        """Give the rows and the curves of one pack.

        Raises:
            StoreError: if the pack has no results that can be read.
        """
        results = self._read_parquet(self._file("results", pack_id), RESULT_SCHEMA)
        if results is None:
            raise StoreError(f"no readable results of pack {pack_id} in {self.path}: run the study again")
        curves = self._read_parquet(self._file("curves", pack_id), CURVE_SCHEMA)
        return results, CURVE_SCHEMA.empty_table() if curves is None else curves

    def done(self) -> set[str]:
        """Name the trials that have a result other than failed."""
        trials: set[str] = set()
        for path in self._files("results"):
            table = self._read_parquet(path, RESULT_SCHEMA, ["trial_id", "outcome"])
            if table is not None:
                succeeded = pc.not_equal(table["outcome"], str(Outcome.FAILED))
                trials.update(table["trial_id"].filter(succeeded).to_pylist())
        return trials

    def read_results(self) -> pa.Table:
        """Give the study's results, one row a trial, ordered by cell and seed however they were packed.

        A result beats a failure. Of a trial done twice, the one first by file name is kept.

        Raises:
            ConflictError: if one engine and device kind gave a trial two different results.
        """
        read = {path.name: self._read_parquet(path, RESULT_SCHEMA) for path in self._files("results")}
        tables = {name: table for name, table in read.items() if table is not None}
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
        done, tables = self.pack_ids(), [schema.empty_table()]
        for path in self._files(kind):
            if path.stem in done and self._holds(path.stem, wanted):  # else a kill came before the results
                table = self._read_parquet(path, schema, only=wanted)
                if table is not None and len(table):
                    tables.append(table)
        everything = pa.concat_tables(tables)
        ids = np.asarray(everything["trial_id"].to_pylist(), dtype=str)
        return everything.take(np.unique(ids, return_index=True)[1])

    def _holds(self, pack_id: str, wanted: pa.Array | None) -> bool:
        """Say by a pack's results, which are small, whether it has one of the wanted trials."""
        if wanted is None:
            return True
        ids = self._read_parquet(self._file("results", pack_id), RESULT_SCHEMA, ["trial_id"])
        return ids is not None and bool(pc.any(pc.is_in(ids["trial_id"], wanted)).as_py())

    def provenances(self) -> list[dict[str, Any]]:
        """Tell where the results come from: each different answer once."""
        found: dict[str, dict[str, Any]] = {}
        for path in self._files("results"):
            file = self._open_parquet(path, RESULT_SCHEMA)
            if file is not None:
                answer = provenance_of(file)
                found[json.dumps(answer, sort_keys=True)] = answer
        return list(found.values())

    def adopt(self, other_name: str, other: StudyStore, wanted: Collection[str]) -> set[str]:
        """Copy the wanted results of another study, with their curves and weights, into one file here.

        Args:
            other_name: what the provenance calls the other study.
            other: where to look; opened read-only, since it may be running.
            wanted: ids of trials.

        Returns:
            The ids of the trials that were found.
        """
        try:
            found = other.done() & set(wanted)
            results = other.read_results() if found else RESULT_SCHEMA.empty_table()
        except (InputError, StoreError) as error:
            self._notice(f"nothing was adopted from study {other_name!r}: {error}")
            return set()
        if found:
            ids = sorted(found)
            results = results.filter(pc.is_in(results["trial_id"], pa.array(ids)))
            name = hashlib.sha256("\n".join([other_name, *ids]).encode()).hexdigest()[:16]
            provenance = {"adopted_from": other_name, "original": other.provenances()}
            curves, weights = other.read_curves(ids), other.read_weights(ids)
            self._write_tables(f"adopted-{name}", results, curves, weights, provenance)
        return found

    # checkpoints

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a pack in mid-training, in place of its last checkpoint.

        Raises:
            StoreError: if the disk is full or closed to us; the last checkpoint is untouched.
            ValueError: if an array would need pickle.
        """
        write_checkpoint(self._file("checkpoints", checkpoint.pack_id), checkpoint)

    def load_checkpoint(self, pack_id: str) -> Checkpoint | None:
        """Give a pack's last checkpoint, or None if it has none that can be believed."""
        return self._read_checkpoint(self._file("checkpoints", pack_id), with_arrays=True)

    def checkpoints(self) -> list[tuple[str, tuple[str, ...], int]]:
        """List the packs in mid-training: id, trials, iteration; the furthest first."""
        read = (self._read_checkpoint(path, with_arrays=False) for path in self._files("checkpoints"))
        found = [(kept.pack_id, kept.trial_ids, kept.iteration) for kept in read if kept is not None]
        return sorted(found, key=lambda kept: (-kept[2], kept[0]))

    def drop_checkpoint(self, pack_id: str) -> None:
        """Forget a pack's checkpoint, if there is one."""
        path = self._file("checkpoints", pack_id)
        with explained(path, "remove"):
            path.unlink(missing_ok=True)

    def _read_checkpoint(self, path: Path, *, with_arrays: bool) -> Checkpoint | None:
        try:
            with explained(path, "read", let_pass=(FileNotFoundError,)), path.open("rb") as file:
                return self._parsed(path, lambda: parse_checkpoint(path, file, with_arrays))
        except FileNotFoundError:
            return None

    # one driver at a time

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the study; the kernel lets go of it when this process dies, however it dies.

        Raises:
            BusyError: if another process holds it.
        """
        path = self.path / "lock"
        with explained(self.path, "make the folder"):
            self.path.mkdir(parents=True, exist_ok=True)
        with explained(path, "lock"):
            file = path.open("a+")
        with file:
            try:
                with explained(path, "lock", let_pass=(BlockingIOError,)):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"study {self.path.name!r} is being run by {_holder(path)}: wait for it, or stop it"
                ) from None
            file.truncate(0)
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            file.flush()
            yield

    def begin_attempt(self) -> str:
        """Take the study over: workers of earlier attempts stop when they read this id.

        Call it with the lock held. Also removes what a kill left half-written.
        """
        with explained(self.path, "clean"):
            for path in self.path.rglob("*.tmp"):
                path.unlink(missing_ok=True)
        attempt = uuid.uuid4().hex
        write_whole(self.path / "attempt", lambda file: file.write(attempt.encode()))
        return attempt

    def attempt(self) -> str | None:
        """Give the id of the latest attempt, or None if there was none."""
        data = self._bytes(self.path / "attempt")
        return None if data is None else data.decode()

    # reading what may be bad

    def _file(self, kind: str, pack_id: str) -> Path:
        if not _NAME.fullmatch(pack_id):
            raise InputError(f"{pack_id!r} can't name a pack: it must be letters, digits, - and _")
        return self.path / kind / (pack_id + (".npz" if kind == "checkpoints" else ".parquet"))

    def _files(self, kind: str) -> list[Path]:
        with explained(self.path / kind, "read"):
            suffix = ".npz" if kind == "checkpoints" else ".parquet"
            return sorted(
                path for path in (self.path / kind).glob(f"*{suffix}") if _NAME.fullmatch(path.stem)
            )

    def _bytes(self, path: Path) -> bytes | None:
        try:
            with explained(path, "read", let_pass=(FileNotFoundError,)):
                return path.read_bytes()
        except FileNotFoundError:  # moved by another process since it was listed
            return None

    def _read_parquet(
        self, path: Path, schema: pa.Schema, columns: list[str] | None = None, only: pa.Array | None = None
    ) -> pa.Table | None:
        file = self._open_parquet(path, schema)
        if file is None:
            return None

        def read() -> pa.Table:
            table = file.read(columns=columns, use_threads=False).replace_schema_metadata(None)
            return table if only is None else table.filter(pc.is_in(table["trial_id"], only))

        return self._parsed(path, read)

    def _open_parquet(self, path: Path, schema: pa.Schema) -> pq.ParquetFile | None:
        data = self._bytes(path)
        return None if data is None else self._parsed(path, lambda: open_parquet(path, data, schema))

    def _parsed(self, path: Path, parse: Callable[[], T]) -> T | None:
        try:
            return parse()
        except InputError:  # a newer file is good, only not for us
            raise
        except UnbelievableError as error:
            self._set_aside(path, str(error))
        except UNREADABLE as error:
            number = error.errno if isinstance(error, OSError) else None
            if number not in (None, errno.EINVAL):  # it is the disk that failed, not the file
                raise
            self._set_aside(path, f"it can't be read ({type(error).__name__}: {error})")
        return None

    def _set_aside(self, path: Path, why: str) -> None:
        if self.read_only:
            self._notice(f"{path} was skipped: {why}")
            return
        target = self.path / "aside" / f"{path.parent.name}-{path.name}"
        with explained(path, "set aside"):
            target.parent.mkdir(exist_ok=True)
            while target.exists():
                target = target.with_name(f"again-{target.name}")
            try:
                path.replace(target)
            except FileNotFoundError:  # another process was quicker
                return
            target.with_name(target.name + ".why.txt").write_text(f"{path}: {why}\n", encoding="utf-8")
        self._notice(f"{path} was set aside as {target}: {why}")

    def _notice(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has the lock and is just writing its name
        return "another process"
