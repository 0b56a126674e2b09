"""A folder of a file system that this machine sees: its own, or one that machines share."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from study.addresses import shown_path
from study.errors import BusyError, InputError, StoreAwayError, StoreError
from study.store.folder import Folder, NotAFileError, StudyLock, holder_of, this_process

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your quota is used up: free some space",
    errno.EACCES: "allow this user to read and write there, or choose another store",
    errno.EPERM: "allow this user to read and write there, or choose another store",
    errno.EROFS: "that file system is read-only: choose another store",
}
# Errors that may pass by themselves: space is freed, a file system is mounted again, its server comes back.
_PASSING = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN, errno.EBUSY),
    *(errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.ECONNREFUSED, errno.ECONNRESET, errno.EREMOTEIO),
}
_OURS = b'{"pid": '  # how a lock that is held begins
_TEMPORARY = re.compile(r".+\.[0-9a-f]{32}\.tmp")
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def explained(path: Path, doing: str, let_pass: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Turn the system's errors into errors that say what to do."""
    try:
        yield
    except let_pass:
        raise
    except OSError as error:
        number = error.errno or 0
        advice = _ADVICE.get(number, "check the store's folder and its file system")
        kind = StoreAwayError if number in _PASSING else StoreError
        raise kind(
            f"can't {doing} {path}: {error.strerror or error}; what was stored before is untouched; {advice}"
        ) from error


class LocalFolder(Folder):
    """A folder of a file system; made by the first write to it.

    Args:
        path: its path, which is made absolute: the working directory may change.
        is_made: whether a write makes it.
    """

    path: Path

    def __init__(self, path: Path, *, is_made: bool = True) -> None:
        self.path, self._is_made = path.absolute(), is_made
        self.where, self.name = shown_path(self.path), path.name

    @property
    def address(self) -> str:
        """The absolute path."""
        return str(self.path.resolve())

    @property
    def is_there(self) -> bool:
        """Whether the folder exists; it may be empty."""
        with explained(self.path, "read"):
            return self.path.is_dir()

    def where_is(self, key: str) -> str:
        """Return a file's path, to print."""
        return shown_path(self.path / key)

    def below(self, name: str) -> LocalFolder:
        """Return the folder of that name directly below this one; a link that leads elsewhere is refused."""
        path = self.path / name
        inside = path.resolve().parent == self.path.resolve()
        if not inside or path.name != name:
            raise InputError(f"{name!r} can't name a study: it must be one folder right below {self.where}")
        return LocalFolder(path)

    def as_it_is(self) -> LocalFolder:
        """Return the same folder, which a write doesn't make."""
        return LocalFolder(self.path, is_made=False)

    def holding(self, key: str) -> list[str]:
        """Return the names of the folders that have such a file."""
        with explained(self.path, "read"):
            return sorted(path.parent.name for path in self.path.glob(f"*/{key}") if path.is_file())

    def names(self, kind: str, suffix: str) -> list[str]:
        """Return the names in a folder."""
        with explained(self.path / kind, "read"):
            try:
                return sorted(path.name for path in (self.path / kind).iterdir() if path.name.endswith(suffix))
            except FileNotFoundError:
                return []

    def times(self, kind: str = "") -> dict[str, float]:
        """Return the names of the files in a folder with their times, but for files that are being written."""
        times = {}
        with explained(self.path / kind, "read"), suppress(FileNotFoundError), os.scandir(self.path / kind) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process may move it just now
                    if not _TEMPORARY.fullmatch(entry.name) and entry.is_file():
                        times[entry.name] = entry.stat().st_mtime
        return times

    def exists(self, key: str) -> bool:
        """Return whether there is such a file."""
        with explained(self.path / key, "read"):
            return (self.path / key).is_file()

    def read(self, key: str) -> bytes | None:
        """Read a file; None also if another process has moved it since it was listed."""
        path = self.path / key
        try:
            with explained(path, "read", let_pass=(FileNotFoundError,)):
                _check_file(path)
                # O_NONBLOCK: a pipe may just have taken the file's place.
                with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                    return file.read()
        except FileNotFoundError:
            return None

    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | NotAFileError | None]]:
        """Read files one after another: 4,000 files of 23 KB took 0.12 s, and 0.20 s in two threads."""
        for key in keys:
            try:
                content: bytes | NotAFileError | None = self.read(key)
            except NotAFileError as error:
                content = error
            yield key, content

    def write(self, key: str, data: bytes) -> None:
        """Put a complete file in place, flushed to the disk, or leave what is there."""
        path = self.path / key
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        with explained(path, "write"), self._missing_explained():
            if self._is_made:
                path.parent.mkdir(parents=True, exist_ok=True)
            for parent in reversed(path.relative_to(self.path).parents[:-1]):
                (self.path / parent).mkdir(exist_ok=True)
            try:
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                _discard(temporary)
                raise
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(self, key: str) -> None:
        """Remove a file."""
        with explained(self.path / key, "remove"):
            (self.path / key).unlink(missing_ok=True)

    def is_plain(self, key: str) -> bool:
        """Return whether a key is a regular file."""
        with suppress(FileNotFoundError), explained(self.path / key, "read", let_pass=(FileNotFoundError,)):
            return stat.S_ISREG((self.path / key).lstat().st_mode)
        return False

    def folders(self, kind: str) -> list[str]:
        """Return the names of the folders in a folder; links aren't among them."""
        with explained(self.path / kind, "read"), suppress(FileNotFoundError), os.scandir(self.path / kind) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return []

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the sizes of all files; links are listed, and not followed."""
        sizes = {}
        for folder, folders, files in os.walk(self.path / below):
            for path in (Path(folder, name) for name in (*folders, *files)):
                with suppress(FileNotFoundError):  # another process was quicker
                    status = path.lstat()
                    if not stat.S_ISDIR(status.st_mode):
                        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                        sizes[path.relative_to(self.path).as_posix()] = size
        return sizes

    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove files."""
        for key in keys:
            self.remove(key)

    def remove_folders(self) -> None:
        """Remove the folder and those in it, the deepest first."""
        with explained(self.path, "remove"):
            for folder, _, _ in os.walk(self.path, topdown=False):
                Path(folder).rmdir()

    def move(self, key: str, to: str) -> bool:
        """Rename a file; False if another process was quicker."""
        with explained(self.path / key, "set aside"):
            (self.path / to).parent.mkdir(exist_ok=True)
            try:
                (self.path / key).replace(self.path / to)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def lock(self, notify: Callable[[str], None]) -> Iterator[StudyLock]:
        """Hold the file ``lock``; the kernel releases it when this process dies, for whatever reason."""
        path = self.path / "lock"
        with explained(self.path, "make the folder"):
            self.path.mkdir(parents=True, exist_ok=True)
        with explained(path, "lock"):
            file = _open_lock(path)
        with file:
            previous = file.read()
            try:
                with explained(path, "lock", let_pass=(BlockingIOError,)):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"study {self.name!r} is being run by {holder_of(previous)}: wait for it, or stop it"
                ) from None
            if not _is_at(path, file):
                raise BusyError(f"study {self.name!r} was deleted just now, by {holder_of(previous)}: try again")
            file.seek(0)
            previous = file.read()
            if previous and not previous.startswith(_OURS):
                raise StoreError(f"can't lock {path}: it isn't a lock, and it is left as it is; move it away")
            if previous:
                notify(f"{holder_of(previous)} ended without a word, as if it was killed: going on from what it stored")
            with explained(path, "write"):
                file.truncate(0)
                file.seek(0)
                file.write(json.dumps(this_process()).encode())
            try:
                yield StudyLock()
            finally:
                with suppress(OSError):  # the lock is ours until the file is closed, whatever the file holds
                    file.truncate(0)

    def holder(self) -> str | None:
        """Ask the kernel about the file ``lock`` if a process has written its name there.

        A process takes its name out again at its end. So the kernel, which answers only by lending the lock for an
        instant, is asked about locks that are held or whose holders were killed, never about free ones.
        """
        content = self.read("lock")
        if not content:
            return None
        path = self.path / "lock"
        try:
            with explained(path, "read", let_pass=(BlockingIOError, FileNotFoundError)), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return holder_of(content)
        except FileNotFoundError:
            return None
        return None

    def clean(self) -> None:
        """Remove temporary files of writers that were killed."""
        with explained(self.path, "clean"):
            for path in self.path.rglob("*.tmp"):
                if _TEMPORARY.fullmatch(path.name) and not path.is_dir():
                    path.unlink(missing_ok=True)

    @contextmanager
    def _missing_explained(self) -> Iterator[None]:
        """Raise `StoreAwayError` if a write fails because the folder is gone."""
        try:
            yield
        except FileNotFoundError as error:
            if self.path.is_dir():
                raise
            raise StoreAwayError(
                f"{self.path} isn't there just now: it was removed or renamed, or its file system isn't mounted"
            ) from error


def _check_file(path: Path) -> None:
    """Check that a path leads to a regular file: reading a pipe would block, and a device may have no end.

    Raises:
        FileNotFoundError: if nothing is there.
        NotAFileError: if something else is there.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if not path.is_symlink():
            raise
        raise NotAFileError(str(path), "it is a link that leads to no file") from error
    _check_regular(path, mode)


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise NotAFileError(str(path), f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def _open_lock(path: Path) -> BinaryIO:
    """Open a study's lock, or make it; follow no link, so that no file of another user is written to."""
    if path.is_symlink():
        raise NotAFileError(str(path), "it is a link, and a lock must be a file of its own")
    with suppress(FileNotFoundError):
        _check_file(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.fdopen(os.open(path, flags, 0o666), "rb+", buffering=0)
    _check_regular(path, os.fstat(file.fileno()).st_mode)
    return file


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Return whether an open file is the one at a path: a lock that was deleted meanwhile holds nothing."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    return False


def _discard(temporary: Path) -> None:
    try:
        temporary.unlink(missing_ok=True)
    except OSError:  # as on a file system that has become read-only: `clean` removes it later
        return
