"""Data of a study file: identified by content, and equal on every worker."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from study.errors import InputError
from study.interface.data import DataFile, data_path
from study.source import read_data
from study.source import source_data as module

FOLDER = DataFile(files=("a", "b"), known=("digits",), where="they are at example.org")


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"one")
    (tmp_path / "data" / "b").write_bytes(b"two")
    return tmp_path


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path: Path):
    """The digest of a file is the output of sha256sum, whatever the file's name."""
    (tmp_path / "x.csv").write_bytes(b"a,b\n")
    (tmp_path / "y.csv").write_bytes(b"a,b\n")
    x, y = (read_data(name, DataFile(), tmp_path) for name in ("x.csv", "y.csv"))
    assert x.digest == y.digest == "sha256:" + hashlib.sha256(b"a,b\n").hexdigest()


def test_the_digest_of_a_folder_depends_on_its_content(two_files: Path):
    """A folder's digest covers the contents of its declared files, even compressed ones, and no other file."""
    digest = read_data("data", FOLDER, two_files).digest
    (two_files / "data" / "b").unlink()
    (two_files / "data" / "b.gz").write_bytes(gzip.compress(b"two"))
    (two_files / "data" / "notes").write_bytes(b"")
    assert read_data("data", FOLDER, two_files).digest == digest
    (two_files / "data" / "b.gz").write_bytes(gzip.compress(b"2"))
    assert read_data("data", FOLDER, two_files).digest != digest


def test_a_worker_gets_the_files_that_were_read(two_files: Path, tmp_path: Path):
    """Files are stored where tasks look for them, unless already there; a changed copy is refused."""
    data = read_data("data", FOLDER, two_files)
    data.provide(tmp_path / "cache")
    folder = data_path(data.digest)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"one", "b": b"two"}
    (folder / "a").chmod(0o644)
    (folder / "a").write_bytes(b"ONE")
    module._provided.discard(data.digest)
    with pytest.raises(InputError, match="was changed after it was unpacked"):
        data.provide(tmp_path / "cache")


def test_data_may_lie_in_the_folder_of_the_environment(two_files: Path, tmp_path: Path, monkeypatch):
    """Data are searched in the study file's folder, then in the folder of the environment variable."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(InputError, match=re.escape("$STUDY_DATA may name another folder")):
        read_data("data", FOLDER, elsewhere)
    monkeypatch.setenv("STUDY_DATA", str(two_files))
    assert read_data("data", FOLDER, elsewhere).files == {"a": b"one", "b": b"two"}
    (elsewhere / "data").mkdir()
    with pytest.raises(InputError, match=r"but lacks a; they are at example.org"):
        read_data("data", FOLDER, elsewhere)


def test_files_lie_beside_the_study_file_of_a_job(two_files: Path):
    """A job's files keep their paths relative to the study file."""
    assert read_data("data", FOLDER, two_files).beside == {"data/a": b"one", "data/b": b"two"}
    assert read_data("data/a", DataFile(), two_files).beside == {"data/a": b"one"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "must be a relative path inside the folder of the study file"),
        ("../data", "must be a relative path inside the folder of the study file"),
        ("/data", "so that it is the same on every machine, but got '/data'"),
        ("dota", "must be digits, or a folder with the files a, b, but there is no folder 'dota' in"),
        ("data/a", "but there is no folder 'data/a' in"),
    ],
)
def test_invalid_paths_of_data_are_refused(two_files: Path, path: str, message: str):
    with pytest.raises(InputError, match=re.escape(message)):
        read_data(path, FOLDER, two_files)


def test_a_damaged_or_large_file_is_refused(two_files: Path, monkeypatch):
    """A truncated compressed file and a file above the size limit are refused."""
    (two_files / "data" / "b").write_bytes(gzip.compress(b"two" * 1000)[:-9])
    with pytest.raises(InputError, match="can't be read, and may be partial or damaged"):
        read_data("data", FOLDER, two_files)
    monkeypatch.setattr(module, "DATA_LIMIT_BYTES", 2)
    with pytest.raises(InputError, match="must have at most"):
        read_data("data/a", DataFile(), two_files)
