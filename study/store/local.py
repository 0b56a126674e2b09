"""A folder of a local or shared file system."""

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
# Temporary errors: space may be freed, a file system mounted again, or its server restarted.
_PASSING = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN, errno.EBUSY),
    *(errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.ECONNREFUSED, errno.ECONNRESET, errno.EREMOTEIO),
}
_OURS = b'{"pid": '  # prefix of a lock that is held
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
    """Convert the system's errors into the package's errors, with advice for the user.

    Args:
        path: the path in the message.
        doing: the verb in the message, such as ``read``.
        let_pass: types of errors that aren't converted.

    Raises:
        OSError: of the types in `let_pass`, unchanged.
        StoreAwayError: instead of another OSError that may be temporary.
        StoreError: instead of any other OSError.
    """
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


def _raise_unless_missing(error: OSError) -> None:
    """Raise a listing's error as a `StoreError`, unless the folder is gone: another process may have removed it."""
    if not isinstance(error, FileNotFoundError):
        with explained(Path(error.filename), "read"):
            raise error


class LocalFolder(Folder):
    """A folder of a file system, made by the first write to it.

    Args:
        path: its path; made absolute, since the working directory may change.
        is_made: let writes make the folder.
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
        """True if the folder exists, even if it is empty.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path, "read"):
            return self.path.is_dir()

    def where_is(self, key: str) -> str:
        """Return a file's path, to print."""
        return shown_path(self.path / key)

    def below(self, name: str) -> LocalFolder:
        """Return the folder of that name directly below this one.

        Raises:
            InputError: if the name or a link leads elsewhere.
        """
        path = self.path / name
        inside = path.resolve().parent == self.path.resolve()
        if not inside or path.name != name:
            raise InputError(f"{name!r} can't name a study: it must be one folder right below {self.where}")
        return LocalFolder(path)

    def as_it_is(self) -> LocalFolder:
        """Return the same folder, without making it on writes."""
        return LocalFolder(self.path, is_made=False)

    def holding(self, key: str) -> list[str]:
        """Return the names of the folders directly below that have a file of that key, sorted.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path, "read"):
            return sorted(path.parent.name for path in self.path.glob(f"*/{key}") if path.is_file())

    def names(self, kind: str, suffix: str) -> list[str]:
        """Return the names in a folder that end in a suffix, sorted; empty without the folder.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path / kind, "read"):
            try:
                return sorted(path.name for path in (self.path / kind).iterdir() if path.name.endswith(suffix))
            except FileNotFoundError:
                return []

    def times(self, kind: str = "") -> dict[str, float]:
        """Return the modification time (s since 1970) of each complete file in a folder, by name; empty without it.

        Raises:
            StoreError: if the file system fails.
        """
        times = {}
        with explained(self.path / kind, "read"), suppress(FileNotFoundError), os.scandir(self.path / kind) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process may move it
                    if not _TEMPORARY.fullmatch(entry.name) and entry.is_file():
                        times[entry.name] = entry.stat().st_mtime
        return times

    def exists(self, key: str) -> bool:
        """Return True if the key is a file, or a link to one.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path / key, "read"):
            return (self.path / key).is_file()

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a file; None if it doesn't exist (any more).

        Raises:
            NotAFileError: if it is a folder, a pipe, a broken link or the like.
            StoreError: if it can't be read.
        """
        path = self.path / key
        try:
            with explained(path, "read", let_pass=(FileNotFoundError,)):
                _check_file(path)
                # O_NONBLOCK: a pipe may have replaced the file since the check.
                with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                    return file.read()
        except FileNotFoundError:
            return None

    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | NotAFileError | None]]:
        """Yield each key with its bytes, None or a `NotAFileError`, in order.

        Files are read sequentially: 4,000 files of 23 KB take 0.12 s, but 0.20 s in two threads.

        Raises:
            StoreError: if the file system fails.
        """
        for key in keys:
            try:
                content: bytes | NotAFileError | None = self.read(key)
            except NotAFileError as error:
                content = error
            yield key, content

    def write(self, key: str, data: bytes) -> None:
        """Write a file atomically, flushed to the disk, replacing an earlier one.

        Raises:
            StoreAwayError: if the folder is gone and `is_made` is False, or the failure may be temporary.
            StoreError: if the file can't be written.
        """
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
        """Remove a file; no-op if it doesn't exist.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path / key, "remove"):
            (self.path / key).unlink(missing_ok=True)

    def is_plain(self, key: str) -> bool:
        """Return True if the key is a regular file, not a link.

        Raises:
            StoreError: if the file system fails.
        """
        with suppress(FileNotFoundError), explained(self.path / key, "read", let_pass=(FileNotFoundError,)):
            return stat.S_ISREG((self.path / key).lstat().st_mode)
        return False

    def folders(self, kind: str) -> list[str]:
        """Return the names of the folders in a folder, sorted, without links; empty without the folder.

        Raises:
            StoreError: if the file system fails.
        """
        with explained(self.path / kind, "read"), suppress(FileNotFoundError), os.scandir(self.path / kind) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return []

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the size in bytes of each file below a folder, at any depth, by key; empty without the folder.

        Links, which aren't followed, pipes and the like have size 0.

        Raises:
            StoreError: if a folder can't be read.
        """
        sizes = {}
        for folder, folders, files in os.walk(self.path / below, onerror=_raise_unless_missing):
            for path in (Path(folder, name) for name in (*folders, *files)):
                with suppress(FileNotFoundError):  # another process was quicker
                    status = path.lstat()
                    if not stat.S_ISDIR(status.st_mode):
                        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                        sizes[path.relative_to(self.path).as_posix()] = size
        return sizes

    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove files and links, but not the links' targets; missing ones are skipped.

        Raises:
            StoreError: if a file can't be removed.
        """
        for key in keys:
            self.remove(key)

    def remove_folders(self) -> None:
        """Remove the folder and those in it, the deepest first; no-op if it doesn't exist.

        Raises:
            StoreError: if a folder isn't empty, or can't be removed.
        """
        with explained(self.path, "remove"):
            for folder, _, _ in os.walk(self.path, topdown=False):
                Path(folder).rmdir()

    def move(self, key: str, to: str) -> bool:
        """Rename a file, replacing `to` and making its folder; return False if it doesn't exist (any more).

        Raises:
            StoreError: if the file system fails, or this folder doesn't exist.
        """
        with explained(self.path / key, "set aside"):
            (self.path / to).parent.mkdir(exist_ok=True)
            try:
                (self.path / key).replace(self.path / to)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def lock(self, notify: Callable[[str], None]) -> Iterator[StudyLock]:
        """Hold the file ``lock``, and make the folder if needed; the kernel releases the lock when this process dies.

        Args:
            notify: called with a sentence if the last holder was killed.

        Yields:
            The lock, which can't be lost.

        Raises:
            BusyError: if another process holds it, or deleted the study just now.
            StoreError: if it can't be opened or written, or isn't a lock file.
        """
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
                raise StoreError(f"can't lock {path}: it isn't a lock file; move it away")
            if previous:
                notify(f"{holder_of(previous)} ended without a word, as if it was killed: going on from what it stored")
            with explained(path, "write"):
                file.truncate(0)
                file.seek(0)
                file.write(json.dumps(this_process()).encode())
            try:
                yield StudyLock()
            finally:
                with suppress(OSError):  # the lock is held until the file is closed, regardless of its content
                    file.truncate(0)

    def holder(self) -> str | None:
        """Describe the process that holds the file ``lock``; None if none does.

        A process removes its name from the file at its end. This method tries the lock only if there is a name. If the
        holder was killed, it then holds the lock for an instant, in which `lock` raises BusyError in another process.

        Raises:
            StoreError: if the file system fails.
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
        """Remove temporary files of killed writers.

        Raises:
            StoreError: if the file system fails.
        """
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
    """Raise NotAFileError unless a path leads to a regular file: a pipe would block, and a device may be endless."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if not path.is_symlink():
            raise
        raise NotAFileError(str(path), "it is a broken link") from error
    _check_regular(path, mode)


def _check_regular(path: Path, mode: int) -> None:
    """Raise NotAFileError unless a mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        raise NotAFileError(str(path), f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def _open_lock(path: Path) -> BinaryIO:
    """Open or make a study's lock file; raise NotAFileError for another type, or a link, which may lead elsewhere."""
    if path.is_symlink():
        raise NotAFileError(str(path), "it is a link, and a lock must be a file of its own")
    with suppress(FileNotFoundError):
        _check_file(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.fdopen(os.open(path, flags, 0o666), "rb+", buffering=0)
    _check_regular(path, os.fstat(file.fileno()).st_mode)
    return file


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Return True if an open file is still at its path: a deleted lock has no effect."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    return False


def _discard(temporary: Path) -> None:
    """Remove a temporary file, if possible."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError:  # such as a file system that became read-only: `clean` removes it later
        return
