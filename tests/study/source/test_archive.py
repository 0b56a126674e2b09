"""Copies of code: complete or absent, checked before anything runs, unpacked once on each machine."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.errors import InputError
from study.source import unpacked
from study.source.archive import SIZE_LIMIT_BYTES, digest_of, pack_archive, read_archive

FILES = {"mylab/__init__.py": b"", "mylab/spirals.py": b"A = 1\r\n", "spirals.py": b"\xff", "data/a.csv": b"1,2"}
ARCHIVE, DIGEST = pack_archive(FILES), digest_of(FILES)

# Unpacks an archive; given a number n, the process kills itself at the n-th file opened for writing.
_CHILD = """
import os, signal, sys
from pathlib import Path
from study.source.archive import unpacked
archive, digest, cache, writes = Path(sys.argv[1]).read_bytes(), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
def count(event, arguments):
    global writes
    if event == "open" and digest in str(arguments[0]) and "w" in str(arguments[1]):
        writes -= 1
        if writes == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
if writes < 0:
    print("ready", flush=True)
    sys.stdin.readline()
print(unpacked(archive, digest, cache))
"""
NAMES = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3).map("/".join)


def zip_of(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return the bytes of a ZIP file with arbitrary members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def child(tmp_path: Path, writes: int) -> subprocess.Popen[str]:
    """Start a process that unpacks the archive: it is killed at the given write; a negative number waits for input."""
    (tmp_path / "archive").write_bytes(ARCHIVE)
    words = [sys.executable, "-c", _CHILD, str(tmp_path / "archive"), DIGEST, str(tmp_path / "cache"), str(writes)]
    pipe = subprocess.PIPE
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def content(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files of a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_is_what_was_packed(tmp_path):
    """The folder of a copy holds the packed files, byte by byte, and is reused."""
    folder = unpacked(ARCHIVE, DIGEST, tmp_path / "cache")
    assert content(folder) == FILES
    inode = folder.stat().st_ino
    assert unpacked(ARCHIVE, DIGEST, tmp_path / "cache") == folder
    assert folder.stat().st_ino == inode
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [DIGEST]


def test_an_archive_is_the_same_bytes_everywhere():
    """An archive's bytes depend neither on the order of files nor on machine or time."""
    assert pack_archive(dict(reversed(FILES.items()))) == ARCHIVE
    with zipfile.ZipFile(io.BytesIO(ARCHIVE)) as opened:
        headers = {(info.date_time, info.create_system, info.compress_type) for info in opened.infolist()}
    assert headers == {((1980, 1, 1, 0, 0, 0), 3, zipfile.ZIP_STORED)}


@given(st.data())
def test_a_changed_archive_is_never_unpacked(tmp_path_factory, data):
    """With any byte changed, an archive gives the packed files or is refused."""
    position = data.draw(st.integers(0, len(ARCHIVE) - 1))
    changed = bytearray(ARCHIVE)
    changed[position] ^= data.draw(st.integers(1, 255))
    try:
        files = read_archive(bytes(changed), DIGEST)
    except InputError:
        return
    assert files == FILES


def deflated_and_damaged() -> bytes:
    """Return a compressed archive whose data aren't a deflated stream."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("a.py", "x = 1\n" * 100)
    data = bytearray(buffer.getvalue())
    data[34] = 0xFF  # after the header of 30 bytes and the name
    return bytes(data)


@pytest.mark.parametrize("archive", [b"", b"no archive", ARCHIVE[:-30], ARCHIVE[:100], deflated_and_damaged()])
def test_invalid_archives_are_refused(tmp_path, archive):
    """A torn or foreign file is an error, and leaves no files."""
    with pytest.raises(InputError, match="can't be read, and isn't run"):
        unpacked(archive, DIGEST, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_another_archive_is_refused(tmp_path):
    """An archive whose files have another digest never runs, even if it is intact."""
    with pytest.raises(InputError, match=r"was changed.*It isn't run; put the archive back"):
        unpacked(pack_archive(FILES | {"spirals.py": b"B"}), DIGEST, tmp_path / "cache")


@pytest.mark.parametrize(
    "name", ["../a.py", "/a.py", "a/../../b.py", "a/./b.py", "a\\b.py", "C:a.py", "a//b.py", "a/", "."]
)
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    """A name that isn't a plain relative path is refused, even with a correct digest."""
    with pytest.raises(InputError, match="leads out of its folder"):
        unpacked(zip_of([(name, b"A")]), digest_of({name: b"A"}), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@given(st.dictionaries(NAMES, st.binary(max_size=9), max_size=4))
def test_accepted_names_stay_in_their_folder(files):
    """Every accepted name of a file lies in the folder."""
    try:
        names = read_archive(pack_archive(files), digest_of(files))
    except (InputError, UnicodeEncodeError):
        return
    assert all(os.path.normpath(f"/folder/{name}") == f"/folder/{name}" for name in names)


def test_a_bomb_is_refused_unread(tmp_path):
    """An archive whose declared size is too large isn't inflated."""
    bomb = zip_of([("a.py", bytes(SIZE_LIMIT_BYTES + 1))], zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="it has more than 16 MiB"):
        unpacked(bomb, DIGEST, tmp_path)


def test_a_changed_copy_is_never_run(tmp_path):
    """A copy with an edited or added module is refused, naming the folder to remove; cache files are ignored."""
    folder = unpacked(ARCHIVE, DIGEST, tmp_path)
    (folder / "mylab/__pycache__").mkdir()
    (folder / "mylab/__pycache__/spirals.cpython-311.pyc").touch()
    (folder / "mylab/notes.txt").touch()
    assert unpacked(ARCHIVE, DIGEST, tmp_path) == folder
    (folder / "mylab/more.py").touch()
    with pytest.raises(
        InputError, match=r"mylab/more\.py was changed after it was unpacked.*: remove .* to unpack it again"
    ):
        unpacked(ARCHIVE, DIGEST, tmp_path)
    (folder / "mylab/more.py").unlink()
    (folder / "spirals.py").chmod(0o644)
    (folder / "spirals.py").write_bytes(b"B")
    with pytest.raises(InputError, match=r"spirals\.py was changed after it was unpacked"):
        unpacked(ARCHIVE, DIGEST, tmp_path)
    (folder / "spirals.py").unlink()
    with pytest.raises(InputError, match=r"spirals\.py was changed after it was unpacked"):
        unpacked(ARCHIVE, DIGEST, tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_nobody_else_can_write_to_the_cache(tmp_path, mode):
    """Code doesn't run from a folder that others may write to; a new cache is private to the user."""
    unpacked(ARCHIVE, DIGEST, tmp_path / "made")
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    (tmp_path / "made").chmod(mode)
    with pytest.raises(InputError, match="must be writable for you alone"):
        unpacked(ARCHIVE, DIGEST, tmp_path / "made")


def test_a_killed_process_leaves_no_half_of_a_copy(tmp_path):
    """A process killed at its third file leaves no folder of the copy, and the next process unpacks it completely."""
    with child(tmp_path, writes=3) as killed:
        _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, errors
    assert not (tmp_path / "cache" / DIGEST).exists()
    assert sum(path.is_file() for path in (tmp_path / "cache").rglob("*")) == 2
    assert content(unpacked(ARCHIVE, DIGEST, tmp_path / "cache")) == FILES


def test_many_processes_unpack_at_once(tmp_path):
    """Concurrent processes all get the same complete folder, and leave nothing else."""
    children = [child(tmp_path, writes=-1) for _ in range(4)]
    assert [process.stdout.readline() for process in children] == ["ready\n"] * 4
    for process in children:
        process.stdin.write("\n")
        process.stdin.flush()
    folders = {process.communicate()[0].strip() for process in children}
    assert folders == {str(tmp_path / "cache" / DIGEST)}
    assert content(tmp_path / "cache" / DIGEST) == FILES
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [DIGEST]
