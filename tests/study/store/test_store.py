"""The store is authoritative: files are complete or absent, and foreign files are rejected; in folders and on S3."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.arrow import metric_columns, results_table, table_curves, table_results, table_weights
from study.errors import (
    BusyError,
    ConflictError,
    InputError,
    StoreAwayError,
    StoreError,
    StudyGoneError,
    UnknownStudyError,
)
from study.records import Checkpoint, Curve, Outcome, Result, Trial, Weights
from study.store import SCHEMA_VERSION, Store, StudyStore, files, formats, is_url
from study.store.folder import Folder
from study.store.validated import key_of
from tests.study.builders import exact_result, published_cell

Read = Callable[..., pa.Table]
PACK, OTHER_PACK = "00aa", "00bb"
SOURCE = {"service_git_commit": "abc", "packages": {"torch": "2.13.0"}}
CELL = published_cell(extrapolation_range=((-6.0, -2.0), (2.0, 6.0)), iterations=2000)


def solved(seed: int, **changes: object) -> Result:
    return exact_result(Trial(CELL, seed), **{"test_mse": seed / 3} | changes)


def failed(seed: int) -> Result:
    return Result(trial=Trial(CELL, seed), outcome=Outcome.FAILED, engine="torch", device="cpu", error="killed")


def curve(seed: int) -> Curve:
    values = np.array([np.nan, np.inf, seed], np.float32)
    metrics = dict(zip(metric_columns(), (values, values * 2, values * 3), strict=True))
    return Curve(Trial(CELL, seed).id, np.arange(3) * 1000, metrics)


def weights(seed: int) -> Weights:
    arrays = {
        "layer_1.weight": np.array([[np.nan, -0.0, seed], [np.inf, 1e-45, -1]], np.float32),
        "layer_2.weight": np.array([[seed, -np.nan]], np.float32),
        "layer_2.bias": np.array([0.1], np.float32),
    }
    return Weights(Trial(CELL, seed).id, 2001, arrays)


def checkpoint(pack_id: str = PACK, iteration: int = 500) -> Checkpoint:
    arrays = {"file": np.eye(2, dtype=np.float32), "adam/m": np.array([np.nan, -0.0])}
    return Checkpoint(pack_id, ("t1", "t2"), iteration, arrays, 1.5, "torch")


@pytest.fixture(params=["folder", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store of either kind."""
    if request.param == "folder":
        return str(tmp_path / "root")
    return f"{request.getfixturevalue('s3').bucket()}/some/prefix"


@pytest.fixture
def study(root: str) -> StudyStore:
    """Return a study in a store of either kind: a folder, or S3."""
    study = Store(root).study("demo")
    study.write_spec("name: demo\n")
    return study


@pytest.fixture
def local(tmp_path: Path) -> StudyStore:
    """Return a study in a local store."""
    study = Store(tmp_path / "root").study("demo")
    study.write_spec("name: demo\n")
    return study


def place(study: StudyStore) -> Folder:
    """Return the folder, or the prefix on S3, with a study's files."""
    return study._folder


def put(study: StudyStore, key: str, data: bytes) -> None:
    """Store content under any name, as another program would."""
    place(study).write(key, data)


def taken(study: StudyStore, key: str) -> bytes:
    """Return the content under a name."""
    data = place(study).read(key)
    assert data is not None, key
    return data


def fill(study: StudyStore, pack_id: str, results: list[Result]) -> None:
    seeds = [result.trial.seed for result in results]
    study.write_pack(pack_id, results, [curve(seed) for seed in seeds], [weights(seed) for seed in seeds], SOURCE)


def in_process(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Run code in a separate process, with this file's names."""
    prelude = (
        "import importlib.util, sys; from pathlib import Path\n"
        f"spec = importlib.util.spec_from_file_location('helpers', {__file__!r})\n"
        "helpers = importlib.util.module_from_spec(spec); sys.modules['helpers'] = helpers\n"
        "spec.loader.exec_module(helpers); from helpers import *\n"
    )
    command = [sys.executable, "-c", prelude + code, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options)  # type: ignore[call-overload, no-any-return]


def test_results_curves_and_weights_come_back_bit_for_bit(study: StudyStore) -> None:
    """Exactly the written data are read."""
    results = [solved(1), solved(2, outcome=Outcome.UNSOLVED, solved_at_iteration=None), solved(2**63 - 1)]
    fill(study, PACK, results)
    table, curves = study.read_pack(PACK)
    assert table_results(table) == results
    assert table_curves(curves)[0].metrics["test_mse"].tobytes() == curve(1).metrics["test_mse"].tobytes()
    (weights_read,) = table_weights(study.read_weights({Trial(CELL, 2).id}))
    assert (weights_read.trial_id, weights_read.iteration) == (Trial(CELL, 2).id, 2001)
    assert list(weights_read.arrays) == list(weights(2).arrays)
    for name, array in weights(2).arrays.items():
        assert (weights_read.arrays[name].shape, weights_read.arrays[name].dtype) == (array.shape, array.dtype)
        assert weights_read.arrays[name].tobytes() == array.tobytes()
    assert sorted(table_results(study.read_results()), key=lambda r: r.trial.seed) == results
    assert study.done() == {result.trial.id for result in results}
    assert study.pack_ids() == {PACK}
    assert study.has_pack(PACK)
    assert not study.has_pack(OTHER_PACK)
    assert study.provenances() == [SOURCE]
    assert study.read_spec() == "name: demo\n"
    assert study.path is None or not list(study.path.rglob("*.tmp"))


def test_an_empty_store_has_nothing_and_makes_nothing(root: str) -> None:
    """Reading an empty store gives empty tables and creates no file."""
    store = Store(root)
    study = store.study("demo")
    assert (store.studies(), study.exists, study.done(), study.checkpoints()) == ([], False, set(), [])
    assert len(study.read_results()) == len(study.read_curves()) == len(study.read_weights()) == 0
    assert study.provenances() == []
    assert study.attempt() is None
    assert study.load_checkpoint(PACK) is None
    study.drop_checkpoint(PACK)
    with pytest.raises(StoreError, match=r"spec\.yaml"):
        study.read_spec()
    with pytest.raises(StoreError, match="run the study again"):
        study.read_pack(PACK)
    assert is_url(root) or not Path(root).exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "/etc"])
def test_no_name_leaves_the_root(root: str, name: str) -> None:
    """A study is a folder directly below the root."""
    with pytest.raises(InputError, match="one folder"):
        Store(root).study(name)


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    """A link that leads out of the root is refused."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "demo").symlink_to(tmp_path)
    with pytest.raises(InputError, match="one folder"):
        Store(tmp_path / "root").study("demo")


def test_an_unknown_study_names_the_nearest(study: StudyStore, root: str) -> None:
    """An unknown study is an error that suggests the nearest name."""
    store = Store(root)
    assert store.studies() == ["demo"]
    assert store.open("demo").exists
    with pytest.raises(UnknownStudyError, match="choose from demo"):
        store.open("dmeo")


def test_the_order_of_rows_doesnt_depend_on_packs(study: StudyStore, root: str) -> None:
    """Trials divided into other packs give the same table."""
    other = Store(root).study("other")
    fill(study, PACK, [solved(seed) for seed in (3, 1)])
    fill(study, OTHER_PACK, [solved(2)])
    fill(other, PACK, [solved(seed) for seed in (1, 2, 3)])
    assert study.read_results().equals(other.read_results())
    for read in (StudyStore.read_curves, StudyStore.read_weights):
        assert repr(read(study).to_pylist()) == repr(read(other).to_pylist())  # has NaN


@pytest.mark.parametrize("read", [StudyStore.read_curves, StudyStore.read_weights])
def test_curves_and_weights_of_the_wanted_trials_only(study: StudyStore, read: Read) -> None:
    """Only the requested curves and weights are returned, since both are large."""
    fill(study, PACK, [solved(1), solved(2)])
    fill(study, OTHER_PACK, [solved(3)])
    wanted = {Trial(CELL, 2).id}
    assert read(study, wanted)["trial_id"].to_pylist() == list(wanted)
    assert len(read(study, ())) == 0
    assert len(read(study)) == 3


@pytest.mark.parametrize("read_only", [False, True])
def test_stores_of_earlier_versions_have_no_weights(study: StudyStore, root: str, read_only: bool) -> None:
    """A store without weights is read without warnings; newly trained trials have weights."""
    fill(study, PACK, [solved(1)])
    place(study).remove(f"weights/{PACK}.parquet")
    looking = Store(root, read_only=read_only).study("demo")
    assert len(looking.read_weights()) == len(looking.read_weights({Trial(CELL, 1).id})) == 0
    assert len(looking.read_results()) == len(looking.read_curves()) == 1
    assert looking.has_pack(PACK)
    assert Store(root).adopt("later", [Trial(CELL, 1).id]) == 1
    assert len(Store(root).study("later").read_weights()) == 0
    assert looking.notices == []
    fill(study, OTHER_PACK, [solved(2)])
    assert looking.read_weights()["trial_id"].to_pylist() == [Trial(CELL, 2).id]


@pytest.mark.parametrize("packs", [(PACK, OTHER_PACK), (OTHER_PACK, PACK)])
def test_a_result_beats_a_failure(study: StudyStore, packs: tuple[str, str]) -> None:
    """A trial that failed and was then solved is solved, whatever the files."""
    fill(study, packs[0], [failed(1), failed(2)])
    assert not study.has_pack(packs[0])
    assert study.done() == set()
    fill(study, packs[1], [solved(1)])
    assert study.done() == {Trial(CELL, 1).id}
    outcomes = {row["seed"]: row["outcome"] for row in study.read_results().to_pylist()}
    assert outcomes == {1: "solved", 2: "failed"}
    for read in (study.read_curves, study.read_weights):
        assert read()["trial_id"].to_pylist() == [Trial(CELL, 1).id]


def test_a_retried_pack_replaces_its_failure(study: StudyStore) -> None:
    """A pack stored again replaces the earlier one."""
    fill(study, PACK, [failed(1)])
    fill(study, PACK, [solved(1)])
    assert table_results(study.read_results()) == [solved(1)]


def test_a_trial_done_twice_is_one_row(study: StudyStore) -> None:
    """Equal results collapse to the first file's, and other engines' aren't compared."""
    fill(study, OTHER_PACK, [solved(1, training_s=9.0), solved(2, engine="fused", test_mse=7.0)])
    fill(study, PACK, [solved(1), solved(2), solved(3)])
    assert {result.trial.seed: result for result in table_results(study.read_results())} == {
        seed: solved(seed) for seed in (1, 2, 3)
    }
    assert len(study.read_curves()) == len(study.read_weights()) == 3


def test_two_different_results_of_one_trial_are_refused(study: StudyStore) -> None:
    """On one engine and device kind a trial has one result; two results are named instead of choosing."""
    fill(study, PACK, [solved(1, device="cuda:0")])
    fill(study, OTHER_PACK, [solved(1, device="cuda:1", test_mse=0.5)])
    with pytest.raises(StoreError, match=rf"{Trial(CELL, 1).id}.*test_mse.*{PACK}.*{OTHER_PACK}"):
        study.read_results()


def everywhere(size: int) -> list[int]:
    return sorted({0, 1, 3, 4, 8, size // 4, size // 2, size - 9, size - 8, size - 4, size - 1})


@pytest.mark.parametrize("kind", ["results", "curves", "weights", "checkpoints"])
def test_a_torn_file_is_set_aside_wherever_it_is_torn(study: StudyStore, kind: str) -> None:
    """A partial file is never accepted, and each is named with the reason."""
    fill(study, PACK, [solved(1)])
    study.save_checkpoint(checkpoint())
    key = key_of(kind, PACK)
    content = taken(study, key)
    for count, size in enumerate(everywhere(len(content)), start=1):
        put(study, key, content[:size])
        read_all(study)
        assert not place(study).exists(key)
        assert len(study.notices) == count
        assert place(study).where_is(key) in study.notices[-1]
    reasons = place(study).names("quarantine", ".why.txt")
    assert len(reasons) == len(everywhere(len(content)))
    assert all(place(study).where_is(key) in taken(study, f"quarantine/{name}").decode() for name in reasons)
    put(study, key, content)
    read_all(study)
    assert place(study).exists(key)


def read_all(study: StudyStore) -> None:
    study.done()
    study.read_results()
    study.read_curves()
    study.read_weights()
    study.checkpoints()
    study.load_checkpoint(PACK)


def test_a_flipped_bit_is_noticed(study: StudyStore) -> None:
    """Corrupted numbers are rejected."""
    study.save_checkpoint(checkpoint())
    fill(study, PACK, [solved(1)])
    for kind, read in (
        ("weights", lambda: table_weights(study.read_weights())),
        ("results", study.read_results),
        ("checkpoints", lambda: study.load_checkpoint(PACK)),
    ):
        rotten = bytearray(taken(study, key_of(kind, PACK)))
        if kind == "weights":
            value = pq.read_metadata(io.BytesIO(rotten)).row_group(0).column(4)
            at = value.data_page_offset + value.total_compressed_size - 1
        else:
            at = 200 if kind == "checkpoints" else rotten.index(b"NMU")
        rotten[at] ^= 1
        put(study, key_of(kind, PACK), bytes(rotten))
        assert not read()
        assert not place(study).exists(key_of(kind, PACK))


def test_no_byte_of_a_checkpoint_stops_its_pack(local: StudyStore) -> None:
    """With any flipped byte in a large checkpoint's headers, it is complete or rejected, without another error."""
    large = replace(checkpoint(), arrays={"weight": np.ones((2, 3000), np.float32)})
    local.save_checkpoint(large)
    path = local.path / key_of("checkpoints", PACK)
    content = path.read_bytes()
    first, last = (content.index(b"PK"), content.index(b"\x80\x3f") + 8)  # from the first byte into the array's numbers
    places = [*range(first, last), *range(len(content) - 700, len(content))]
    believed = 0
    for at in places:
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        looking = Store(local.path.parent, read_only=True).study("demo")
        read = looking.load_checkpoint(PACK)
        assert (read is None) == bool(looking.notices)
        if read is not None:  # the byte has no effect: a date, or the archive's creator
            assert replace(read, arrays={}) == replace(large, arrays={})
            assert read.arrays["weight"].tobytes() == large.arrays["weight"].tobytes()
            believed += 1
    assert believed < len(places) / 4


def fifo(path: Path) -> None:
    os.mkfifo(path)


def empty_folder(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory() as short:
        server.bind(f"{short}/s")
        Path(short, "s").rename(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_a_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


ODD = [fifo, empty_folder, unix_socket, device, link_to_a_fifo, link_to_nowhere, link_to_itself]


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("kind", ["results", "curves", "weights", "checkpoints"])
def test_special_files_are_rejected(local: StudyStore, kind: str, make: Callable[[Path], None]) -> None:
    """A pipe or device isn't read: it is named, kept by readers, and set aside by a run."""
    fill(local, PACK, [solved(1)])
    local.save_checkpoint(checkpoint())
    path = local.path / key_of(kind, PACK)
    path.unlink()
    make(path)
    looking = Store(local.path.parent, read_only=True).study("demo")
    for study in (looking, local):
        read_all(study)
        assert study.has_pack(PACK) == (kind != "results")
        assert [str(path) in notice for notice in study.notices] == [True]
        assert os.path.lexists(path) == (study is looking)
    fill(local, PACK, [solved(1)])
    local.save_checkpoint(checkpoint())
    read_all(local)
    assert path.is_file()


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("name", ["spec.yaml", "attempt", "search.json"])
def test_a_special_file_under_a_name_of_the_store_is_reported(
    local: StudyStore, name: str, make: Callable[[Path], None]
) -> None:
    """A pipe under any name of the store blocks nothing; the message names the file to move away."""
    path = local.path / name
    path.unlink(missing_ok=True)
    make(path)
    read = {"spec.yaml": local.read_spec, "attempt": local.attempt}.get(name, lambda: local.read_file(name))
    with pytest.raises(StoreError, match=rf"can't read .*{name}: it is a.*move it away"):
        read()
    assert Store(local.path.parent).studies() == ([] if name == "spec.yaml" else ["demo"])


def foreign_parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"trial_id": ["x"], "outcome": ["solved"]}), file)
    return file.getvalue()


def other_columns() -> bytes:
    return files.parquet(results_table([solved(1)]).drop_columns(["threshold"]), SOURCE, "snappy")


def text() -> bytes:
    return b"PAR1 not really PAR1"


@pytest.mark.parametrize("content", [foreign_parquet, other_columns, text])
def test_a_foreign_file_is_rejected(study: StudyStore, content: Callable[[], bytes]) -> None:
    """A file without a pack's results is set aside, and the others are read."""
    fill(study, OTHER_PACK, [solved(2)])
    put(study, key_of("results", PACK), content())
    assert study.done() == {Trial(CELL, 2).id}
    assert len(study.notices) == 1
    assert study.pack_ids() == {OTHER_PACK}


def pickled(file: BinaryIO) -> None:
    np.savez(file, checkpoint=np.array([{"pack_id": PACK}], dtype=object))


def bare_pickle(file: BinaryIO) -> None:
    pickle.dump({"checkpoint": 1}, file)


def bare_array(file: BinaryIO) -> None:
    np.save(file, np.zeros(3))


def no_header(file: BinaryIO) -> None:
    np.savez(file, weights=np.zeros(3))


@pytest.mark.parametrize("write", [pickled, bare_pickle, bare_array, no_header])
def test_a_foreign_checkpoint_is_rejected(study: StudyStore, write: Callable[[BinaryIO], None]) -> None:
    """A foreign file in place of a checkpoint is rejected, and a pickle is never opened."""
    study.save_checkpoint(checkpoint())
    file = io.BytesIO()
    write(file)
    put(study, key_of("checkpoints", PACK), file.getvalue())
    assert study.load_checkpoint(PACK) is None
    assert len(study.notices) == 1
    assert study.checkpoints() == []


def test_another_packs_checkpoint_is_rejected(study: StudyStore) -> None:
    """A checkpoint under a wrong name is named as such."""
    study.save_checkpoint(checkpoint())
    put(study, key_of("checkpoints", OTHER_PACK), taken(study, key_of("checkpoints", PACK)))
    assert study.load_checkpoint(OTHER_PACK) is None
    assert f"of another pack, {PACK}" in study.notices[0]


def test_a_newer_file_asks_for_an_upgrade(study: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a newer version is neither read nor moved."""
    with monkeypatch.context() as patch:
        patch.setattr(formats, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        fill(study, PACK, [solved(1)])
        study.save_checkpoint(checkpoint())
    reads = (study.done, study.read_results, study.read_curves, study.read_weights, study.checkpoints)
    for read in (*reads, study.provenances):
        with pytest.raises(InputError, match=rf"{PACK}.*version {SCHEMA_VERSION + 1}.*upgrade"):
            read()
    assert place(study).names("quarantine", "") == []


def test_read_only_moves_nothing(study: StudyStore, root: str) -> None:
    """A read-only store names bad files and leaves them in place."""
    fill(study, PACK, [solved(1)])
    key = key_of("results", PACK)
    put(study, key, b"torn")
    looking = Store(root, read_only=True).study("demo")
    assert looking.done() == set()
    assert looking.done() == set()
    assert len(looking.notices) == 1
    assert taken(study, key) == b"torn"
    assert place(study).names("quarantine", "") == []


def test_a_checkpoint_comes_back_bit_for_bit(study: StudyStore) -> None:
    """Arrays with awkward names and NaN are kept; the most advanced pack comes first."""
    study.save_checkpoint(checkpoint(iteration=1))
    study.save_checkpoint(checkpoint())
    study.save_checkpoint(checkpoint(OTHER_PACK, 900))
    read = study.load_checkpoint(PACK)
    assert read is not None
    assert replace(read, arrays={}) == replace(checkpoint(), arrays={})
    for name, array in checkpoint().arrays.items():
        assert read.arrays[name].dtype == array.dtype
        assert read.arrays[name].tobytes() == array.tobytes()
    assert study.checkpoints() == [(OTHER_PACK, ("t1", "t2"), 900), (PACK, ("t1", "t2"), 500)]
    study.drop_checkpoint(OTHER_PACK)
    assert [pack_id for pack_id, _, _ in study.checkpoints()] == [PACK]


def test_a_checkpoint_that_needs_pickle_is_refused(study: StudyStore) -> None:
    """A checkpoint that needs pickle raises ValueError."""
    bad = replace(checkpoint(), arrays={"notes": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="needs pickle"):
        study.save_checkpoint(bad)


def test_a_full_disk_leaves_the_old_file(local: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write gives instructions, and loses nothing."""
    fill(local, PACK, [solved(1)])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreAwayError, match=rf"{PACK}.*free some space"):
            fill(local, PACK, [solved(1), solved(2)])
    assert local.done() == {Trial(CELL, 1).id}
    assert not list(local.path.rglob("*.tmp"))


def test_a_folder_that_is_a_file_is_explained(tmp_path: Path) -> None:
    """A clear message explains an unwritable store."""
    (tmp_path / "root").write_text("")
    with pytest.raises(StoreError, match="can't write"):
        Store(tmp_path / "root").study("demo").write_spec("")


WRITE_AND_STOP = """
seen = []
fsync = os.fsync
def stop(number):
    seen.append(number)
    if len(seen) == int(sys.argv[2]):
        print("here", flush=True)
        sys.stdin.read()
    fsync(number)
os.fsync = stop
fill(Store(sys.argv[1]).study("demo"), PACK, [solved(1), solved(2)])
"""


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5, 6])
def test_a_writer_killed_anywhere_leaves_all_or_nothing(local: StudyStore, stop_at: int) -> None:
    """After SIGKILL before, between and after the three files, a pack is done only if all are complete."""
    with in_process(WRITE_AND_STOP, str(local.path.parent), str(stop_at)) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "here\n"
        writer.send_signal(signal.SIGKILL)
    done = local.done()
    assert done == ({Trial(CELL, 1).id, Trial(CELL, 2).id} if stop_at == 6 else set())
    assert len(local.read_curves()) == len(local.read_weights()) == len(local.read_results()) == len(done)
    assert bool(list(local.path.rglob("*.tmp"))) == (stop_at in (1, 3, 5))
    local.begin_attempt()
    assert not list(local.path.rglob("*.tmp"))
    assert local.notices == []
    fill(local, PACK, [solved(1), solved(2)])
    assert len(local.read_results()) == len(local.read_curves()) == len(local.read_weights()) == 2


WRITE_AGAIN_AND_AGAIN = """
sys.stdin.readline()
for _ in range(20):
    fill(Store(sys.argv[1]).study("demo"), PACK, [solved(1), solved(2)])
"""


def test_two_writers_of_one_pack_leave_one_whole_pack(study: StudyStore, root: str) -> None:
    """A worker presumed dead that still writes does no harm, and readers never see half a file."""
    writers = [in_process(WRITE_AGAIN_AND_AGAIN, root) for _ in range(2)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        assert len(study.read_results()) in (0, 2)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert study.notices == []
    assert study.read_results().num_rows == study.read_curves().num_rows == len(study.read_weights()) == 2
    assert study.path is None or not list(study.path.rglob("*.tmp"))


HOLD = """
with Store(sys.argv[1]).study("demo").lock():
    print("here", flush=True)
    sys.stdin.read()
"""


def test_one_driver_at_a_time_and_the_kernel_frees_the_dead(local: StudyStore) -> None:
    """A second driver is told the holder; after kill -9 the study is free at once."""
    with in_process(HOLD, str(local.path.parent)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "here\n"
        with pytest.raises(BusyError, match=rf"'demo'.*process {holder.pid} on "), local.lock():
            pass
        holder.send_signal(signal.SIGKILL)
    with local.lock():
        assert json.loads((local.path / "lock").read_text())["pid"] == os.getpid()
    with local.lock():
        pass


def test_a_reader_sees_the_lock_holder_without_blocking(local: StudyStore) -> None:
    """The holder is named while it holds the lock, not after its end or death; reading writes nothing."""
    assert local.holder() is None
    with in_process(HOLD, str(local.path.parent)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "here\n"
        content = (local.path / "lock").read_bytes()
        assert local.holder() == f"process {holder.pid} on {socket.gethostname()}"
        holder.send_signal(signal.SIGKILL)
    assert (local.path / "lock").read_bytes() == content
    assert local.holder() is None
    with local.lock():
        assert local.holder() == f"process {os.getpid()} on {socket.gethostname()}"
    assert local.holder() is None
    (local.path / "lock").write_text("somebody else's")
    assert local.holder() is None


def test_the_holder_of_a_lock_in_an_object_store_is_named(study: StudyStore) -> None:
    """In folders and in object stores, a lock names its holder until it is released."""
    assert study.holder() is None
    with study.lock():
        assert study.holder() == f"process {os.getpid()} on {socket.gethostname()}"
    assert study.holder() is None


def test_times_reveal_changes(study: StudyStore) -> None:
    """New and rewritten files have another time or name; a running driver's other activity changes neither."""
    before = study.times()
    assert set(before) == {"spec.yaml"}
    with study.lock():
        study.begin_attempt()
        study.save_checkpoint(checkpoint())
        assert study.times() == before
        fill(study, PACK, [solved(0)])
    assert set(study.times()) == {"spec.yaml", f"results/{PACK}.parquet"}
    assert study.times().items() >= before.items()
    assert Store("no-such-folder").study("demo").times() == {}


def symbolic(victim: Path, lock: Path) -> None:
    lock.symlink_to(victim)


def hard(victim: Path, lock: Path) -> None:
    lock.hardlink_to(victim)


def renamed(victim: Path, lock: Path) -> None:
    shutil.copy(victim, lock)


@pytest.mark.parametrize("link", [symbolic, hard, renamed])
def test_a_lock_writes_to_no_other_file(local: StudyStore, tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    """A link or a foreign file under the lock's name is reported, and its content stays."""
    victim, lock = tmp_path / "victim.txt", local.path / "lock"
    victim.write_text("precious")
    link(victim, lock)
    with pytest.raises(StoreError, match=r"lock.*move it away"), local.lock():
        pass
    assert victim.read_text() == lock.read_text() == "precious"


@pytest.mark.parametrize("make", ODD)
def test_a_lock_that_isnt_a_file_is_reported(local: StudyStore, make: Callable[[Path], None]) -> None:
    """A special file in place of the lock is reported at once; nothing is created or written through it."""
    make(local.path / "lock")
    before = sorted(local.path.iterdir())
    with pytest.raises(StoreError, match=r"lock: it is a.*move it away"), local.lock():
        pass
    assert sorted(local.path.iterdir()) == before


WRITES: dict[str, Callable[[StudyStore], None]] = {
    "spec": lambda study: study.write_spec("name: demo\n"),
    "record": lambda study: study.write_file("search.json", b"{}"),
    "results": lambda study: fill(study, PACK, [solved(1)]),
    "checkpoint": lambda study: study.save_checkpoint(checkpoint()),
    "report": lambda study: study.keep_report([]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_attempt_doesnt_recreate_a_removed_study(study: StudyStore, write: Callable[[StudyStore], None]) -> None:
    """A study removed from the store isn't created again by its driver's and workers' pending writes."""
    ours = study.of_attempt(study.begin_attempt())
    write(ours)
    for key in ("attempt", "spec.yaml", "search.json"):
        place(study).remove(key)
    if study.path is not None:
        shutil.rmtree(study.path)
    before = [*place(study).names("results", ""), *place(study).names("checkpoints", "")]
    with pytest.raises(StudyGoneError, match="'demo' is not in the store at"):
        write(ours)
    assert [*place(study).names("results", ""), *place(study).names("checkpoints", "")] == before
    assert not study.exists
    assert study.path is None or not study.path.exists()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_attempt_writes_nothing_into_anothers(study: StudyStore, write: Callable[[StudyStore], None]) -> None:
    """A study taken over by another driver isn't written to."""
    ours = study.of_attempt(study.begin_attempt())
    study.begin_attempt()
    with pytest.raises(BusyError, match="'demo' was taken over by another run"):
        write(ours)


@pytest.mark.parametrize("key", ["search.json", "results/00aa.parquet"])
def test_a_write_does_not_recreate_a_removed_folder(local: StudyStore, key: str) -> None:
    """A folder that is removed between check and write isn't created again."""
    folder = local._folder.as_it_is()
    folder.write(key, b"there")
    shutil.rmtree(local.path)
    with pytest.raises(StoreAwayError, match="isn't there just now"):
        folder.write(key, b"gone")
    assert not local.path.exists()


def test_each_attempt_has_its_own_id(study: StudyStore) -> None:
    """A worker of an earlier driver finds another id than its own."""
    first = study.begin_attempt()
    assert study.attempt() == first
    second = study.begin_attempt()
    assert study.attempt() == second != first


def test_results_of_other_studies_are_adopted(study: StudyStore, root: str) -> None:
    """Trials done in another study of the store are copied once with curves, weights and provenance."""
    store = Store(root)
    other = store.study("other")
    other.write_spec("name: other\n")
    fill(other, PACK, [solved(1), solved(2)])
    fill(other, OTHER_PACK, [failed(3)])
    fill(study, PACK, [solved(4)])
    if not is_url(root):  # a study that is a link out of the store is skipped
        outside = Path(root).with_name("outside")
        outside.mkdir()
        (outside / "spec.yaml").touch()
        (Path(root) / "elsewhere").symlink_to(outside)
    wanted = {Trial(CELL, seed).id for seed in (2, 3, 4, 5)}
    assert store.adopt("demo", wanted) == 1
    assert store.adopt("demo", wanted) == 0
    assert {row["seed"] for row in study.read_results().to_pylist()} == {2, 4}
    for read in (study.read_curves, study.read_weights):
        assert read()["trial_id"].to_pylist() == sorted(Trial(CELL, seed).id for seed in (2, 4))
    (adopted,) = table_weights(study.read_weights({Trial(CELL, 2).id}))
    assert adopted.arrays["layer_1.weight"].tobytes() == weights(2).arrays["layer_1.weight"].tobytes()
    assert {"adopted_from": "other", "original": [SOURCE]} in study.provenances()
    assert len(other.read_results()) == 3


def test_packs_are_adopted_one_by_one(study: StudyStore, root: str) -> None:
    """Packs of another study stay separate packs, each trial once, with the curves of its own pack."""
    store = Store(root)
    other = store.study("other")
    other.write_spec("name: other\n")
    fill(other, PACK, [solved(1), solved(2)])
    fill(other, OTHER_PACK, [solved(2), solved(3)])
    assert store.adopt("demo", {Trial(CELL, seed).id for seed in (1, 2, 3)}) == 3
    assert len(study.pack_ids()) == 2
    assert sorted(row["seed"] for row in study.read_results().to_pylist()) == [1, 2, 3]
    assert sum(len(study.read_pack(pack)[0]) for pack in study.pack_ids()) == 3
    assert len(study.read_curves()) == len(study.read_weights()) == 3


def test_a_valid_file_stays_if_memory_runs_out(study: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid file isn't set aside because memory runs out."""
    fill(study, PACK, [solved(1)])

    def no_room(*arguments: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 2 failed")

    monkeypatch.setattr("study.store.believable.open_parquet", no_room)
    with pytest.raises(MemoryError):
        study.read_results()
    monkeypatch.undo()
    assert study.has_pack(PACK)
    assert study.notices == []


def test_a_bad_neighbour_is_left_alone(root: str) -> None:
    """Adoption neither moves nor fails on another study's bad files."""
    store = Store(root)
    for name in ("other", "torn"):
        store.study(name).write_spec("")
    fill(store.study("other"), PACK, [solved(1)])
    fill(store.study("other"), OTHER_PACK, [solved(1, test_mse=3.0)])
    torn = store.study("torn")
    fill(torn, PACK, [solved(1)])
    put(torn, key_of("results", PACK), b"")
    assert store.adopt("demo", [Trial(CELL, 1).id]) == 0
    assert [("test_mse" in notice, "skipped" in notice) for notice in store.notices] == [(False, True), (True, False)]
    assert place(torn).exists(key_of("results", PACK))


def test_a_trial_judged_by_two_criteria_has_one_result(local: StudyStore) -> None:
    """The criterion isn't part of a trial's id: only the outcome may differ by criterion."""
    by_one = solved(1, criterion="test_mse < 1")
    by_two = solved(1, criterion="test_mse < 0", outcome=Outcome.UNSOLVED, threshold=0.0, solved_at_iteration=None)
    local.write_pack(PACK, [by_one], [], [], SOURCE)
    local.write_pack(OTHER_PACK, [by_two], [], [], SOURCE)
    assert table_results(local.read_results()) == [by_one]
    local.write_pack(OTHER_PACK, [replace(by_two, metrics={"test_mse": 0.5})], [], [], SOURCE)
    with pytest.raises(ConflictError, match="test_mse"):
        local.read_results()


# deletion


def test_a_deleted_study_leaves_nothing(study: StudyStore, root: str) -> None:
    """A deleted study's files are gone, other studies are unchanged, and the name can be used again."""
    fill(study, PACK, [solved(1), solved(2)])
    study.save_checkpoint(checkpoint())
    put(study, "quarantine/deep/er", b"?")
    neighbour = Store(root).study("demo-2")
    neighbour.write_spec("name: demo-2\n")
    with study.lock():
        study.delete()
    assert study.sizes() == {}
    assert not place(study).is_there
    assert not study.has_remains
    assert Store(root).studies() == ["demo-2"]
    assert list(neighbour.sizes()) == ["spec.yaml"]
    with study.lock():
        study.begin_attempt()
        study.write_spec("name: demo\n")
        fill(study, PACK, [solved(1)])
    assert study.done() == {Trial(CELL, 1).id}


DELETE_AND_STOP = """
from study.store.local import LocalFolder
seen = []
remove = LocalFolder.remove
def stop(folder, key):
    seen.append(key)
    if len(seen) == int(sys.argv[2]):
        print("here", flush=True)
        sys.stdin.read()
    remove(folder, key)
LocalFolder.remove = stop
study = Store(sys.argv[1]).study("demo")
with study.lock():
    study.delete()
"""


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 6, 8, 9])
def test_a_deletion_killed_anywhere_leaves_no_half_study(local: StudyStore, stop_at: int) -> None:
    """After the first removal it isn't a study, remaining packs are complete, and a second deletion finishes."""
    fill(local, PACK, [solved(1)])
    fill(local, OTHER_PACK, [solved(2)])
    with in_process(DELETE_AND_STOP, str(local.path.parent), str(stop_at)) as deleter:
        assert deleter.stdout is not None
        assert deleter.stdout.readline() == "here\n"
        deleter.send_signal(signal.SIGKILL)
    assert local.exists == (stop_at == 1)
    assert local.has_remains == (stop_at > 1)
    assert len(local.done()) == max(0, 2 - max(0, stop_at - 2))
    assert len(local.read_curves()) == len(local.read_weights()) == len(local.done())
    with local.lock():
        local.delete()
    assert not local.path.exists()


def test_a_deletion_follows_no_link(local: StudyStore, tmp_path: Path) -> None:
    """A link in a study's folder is removed, and its target stays."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data.csv").write_text("1")
    (local.path / "link").symlink_to(tmp_path / "mine")
    (local.path / "file").symlink_to(tmp_path / "mine" / "data.csv")
    with local.lock():
        local.delete()
    assert not local.path.exists()
    assert (tmp_path / "mine" / "data.csv").read_text() == "1"


def test_the_lock_of_a_deleted_study_holds_nothing(local: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that opened a lock before its deletion doesn't get it: another could hold a new one."""
    lock = fcntl.flock

    def late(file: BinaryIO, operation: int) -> None:
        monkeypatch.undo()
        with local.lock():
            local.delete()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(BusyError, match="was deleted just now"), local.lock():
        pass
