"""Interface to the place of a store: atomically written bytes by key, and a lock."""

from __future__ import annotations

import os
import re
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from study.errors import StoreError
from study.interface.json_text import parse_json

T = TypeVar("T")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class StudyLock:
    """A held lock.

    Attributes:
        lost: a sentence about the loss of the lock to another process; None while the lock is held.
    """

    lost: str | None = None


class NotAFileError(StoreError):
    """Error if a folder, a pipe or the like has the name of one of the store's files.

    Args:
        where: its address.
        reason: a clause about its type, such as "it is a pipe, not a file".
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"can't read {where}: {reason}; move it away")
        self.reason = reason


class Folder(ABC):
    """A folder of named bytes, on a file system or in an object store.

    A key is a relative path with slashes, such as ``results/00aa.parquet``. A missing folder counts as empty.

    If the file system or the object store fails, every method raises a `StoreError` with advice: a `StoreAwayError` if
    the failure may be temporary. If the bucket of an object store doesn't exist, it raises an `InputError`.

    Attributes:
        where: its address, to print.
        name: the last part of the address.
        path: its path in this machine's file system; None for an object store.
    """

    where: str
    name: str
    path: Path | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """The absolute address, valid for other processes."""

    @property
    @abstractmethod
    def is_there(self) -> bool:
        """True if anything is at this address; in an object store, False for an empty prefix."""

    @abstractmethod
    def below(self, name: str) -> Folder:
        """Return the folder of that name directly below this one; it needn't exist.

        Raises:
            InputError: if the name leads elsewhere.
        """

    @abstractmethod
    def as_it_is(self) -> Folder:
        """Return the same folder, but a write to it raises `StoreAwayError` if it is gone."""

    @abstractmethod
    def holding(self, key: str) -> list[str]:
        """Return the names of the folders directly below this one that have the key, sorted."""

    @abstractmethod
    def names(self, kind: str, suffix: str) -> list[str]:
        """Return the names directly below ``kind/`` that end in a suffix, sorted."""

    @abstractmethod
    def times(self, kind: str = "") -> dict[str, float]:
        """Return the time of the last write of each file directly below ``kind/``, in seconds since 1970, by name."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Return True if the key exists."""

    @abstractmethod
    def read(self, key: str) -> bytes | None:
        """Return the bytes under a key; None if there are none.

        Raises:
            NotAFileError: if the key isn't a file.
        """

    @abstractmethod
    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | NotAFileError | None]]:
        """Yield each key with its bytes, None or a `NotAFileError`, in order, with few contents in memory at once."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write bytes under a key atomically, replacing earlier ones."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key, if it exists."""

    def is_plain(self, key: str) -> bool:
        """Return True if a key of `sizes` is a file, not a link; by default always, as object stores have no links."""
        return True

    @abstractmethod
    def folders(self, kind: str) -> list[str]:
        """Return the names of the folders directly below ``kind/``, sorted."""

    @abstractmethod
    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the size in bytes of each file below a folder, at any depth, by key; 0 for links and pipes."""

    @abstractmethod
    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove keys of `sizes`; links are removed, but not their targets."""

    @abstractmethod
    def remove_folders(self) -> None:
        """Remove the folder and its subfolders, all without files."""

    @abstractmethod
    def move(self, key: str, to: str) -> bool:
        """Rename a key, replacing `to`; return False if it doesn't exist (any more)."""

    @abstractmethod
    def lock(self, notify: Callable[[str], None]) -> AbstractContextManager[StudyLock]:
        """Hold the key ``lock`` exclusively over all machines.

        Args:
            notify: called with a sentence if the last holder was killed, or must be watched first.

        Raises:
            BusyError: if another process holds it.
        """

    @abstractmethod
    def holder(self) -> str | None:
        """Describe the process that holds the key ``lock``, without waiting or writing; None if none does.

        In an object store, a killed process is returned until another process has taken the lock.
        """

    @abstractmethod
    def clean(self) -> None:
        """Remove half-written files of killed processes. Call it with the lock held."""

    def where_is(self, key: str) -> str:
        """Return a key's address, to print."""
        return f"{self.where}/{key}"


def is_url(root: object) -> bool:
    """Return True if a store's address is a URL, not a folder of this machine's file system.

    Example:
        >>> is_url("s3://bucket/studies"), is_url("/shared/studies")
        (True, False)
    """
    return isinstance(root, str) and _URL.match(root) is not None


def in_order(read: Callable[[str], T], keys: Iterable[str], at_once: int) -> Iterator[tuple[str, T]]:
    """Read keys in threads, and yield each key with its content, in order, at most `at_once` ahead of the consumer.

    Args:
        read: returns the content of one key.
        keys: the keys to read.
        at_once: number of threads, >= 1.

    Raises:
        Exception: an error of `read`, at its key.

    Example:
        >>> list(in_order(len, ["a", "bb", "ccc"], at_once=2))
        [('a', 1), ('bb', 2), ('ccc', 3)]
    """
    ahead: deque[tuple[str, Future[T]]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="store") as pool:
        try:
            for key in keys:
                ahead.append((key, pool.submit(read, key)))
                if len(ahead) > at_once:
                    first, content = ahead.popleft()
                    yield first, content.result()
            while ahead:
                first, content = ahead.popleft()
                yield first, content.result()
        finally:
            for _, content in ahead:
                content.cancel()


def this_process() -> dict[str, str | int]:
    """Return this process's id and host, as a lock stores them."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def holder_of(content: bytes | None) -> str:
    """Describe the process that a lock's content names; "another process" if it names none."""
    try:
        holder = parse_json(content or b"")
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):  # the holder hasn't written its name yet
        return "another process"
