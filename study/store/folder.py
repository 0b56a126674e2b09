"""What the store needs of the place where it is: named bytes, whole or not at all, and a lock."""

from __future__ import annotations

import json
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

T = TypeVar("T")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class StudyLock:
    """A lock that is held.

    Attributes:
        lost: a sentence that says what happened, if another process has taken the lock over; None while it is ours.
    """

    lost: str | None = None


class NotAFileError(StoreError):
    """Something that holds no bytes, such as a folder or a pipe, has one of our names.

    Args:
        where: its address.
        reason: a clause that says what it is.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"can't read {where}: {reason}; move it away")
        self.reason = reason


class Folder(ABC):
    """A folder of named bytes, on a file system or in an object store.

    A key is relative, and slashes separate its parts: ``results/00aa.parquet``. Every method raises a `StoreError` that
    explains what to do if the file system or the object store fails; `StoreAwayError` if it may recover by itself.

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
        """The address that means the same to a process elsewhere."""

    @property
    @abstractmethod
    def is_there(self) -> bool:
        """Whether there is anything at this address; in an object store an empty prefix is nothing."""

    @abstractmethod
    def below(self, name: str) -> Folder:
        """Return the folder of that name directly below this one, whether or not it exists.

        Raises:
            InputError: if the name would lead elsewhere.
        """

    @abstractmethod
    def as_it_is(self) -> Folder:
        """Return the same folder, except that a write to it raises `StoreAwayError` if it is gone."""

    @abstractmethod
    def holding(self, key: str) -> list[str]:
        """Return the names of the folders directly below this one that have such a key, sorted."""

    @abstractmethod
    def names(self, kind: str, suffix: str) -> list[str]:
        """Return the names directly below ``kind/`` that end in a suffix, sorted."""

    @abstractmethod
    def times(self, kind: str = "") -> dict[str, float]:
        """Return the names directly below ``kind/``, each with when it was written last, in seconds since 1970."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Return whether there is such a key."""

    @abstractmethod
    def read(self, key: str) -> bytes | None:
        """Return the bytes under a key; None if there are none.

        Raises:
            NotAFileError: if something is there that holds no bytes.
        """

    @abstractmethod
    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | NotAFileError | None]]:
        """Yield each key with what `read` returns or raises for it, in order; few contents are in memory at once."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write bytes under a key completely, or leave what is there."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key, if it is there."""

    def is_plain(self, key: str) -> bool:
        """Return whether a key of `sizes` is a file of its own, and isn't a link."""
        return True

    @abstractmethod
    def folders(self, kind: str) -> list[str]:
        """Return the names of the folders directly below ``kind/``, sorted."""

    @abstractmethod
    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the size in bytes of everything below a folder, at any depth, by key; whatever isn't a file has 0."""

    @abstractmethod
    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove keys of `sizes`; a link is removed, and what it leads to is left alone."""

    @abstractmethod
    def remove_folders(self) -> None:
        """Remove the folder and those in it, if nothing else is left there."""

    @abstractmethod
    def move(self, key: str, to: str) -> bool:
        """Rename a key; False if it isn't there any more."""

    @abstractmethod
    def lock(self, notify: Callable[[str], None]) -> AbstractContextManager[StudyLock]:
        """Hold the key ``lock``, so that no other process on any machine can.

        Args:
            notify: called if this takes long.

        Raises:
            BusyError: if another process holds it.
        """

    @abstractmethod
    def holder(self) -> str | None:
        """Describe the process that holds the key ``lock``, without waiting or writing; None if none does.

        In an object store a process that was killed is named until another has taken the lock: only who watches the
        object for a while can tell them apart.
        """

    @abstractmethod
    def clean(self) -> None:
        """Remove what a killed process left half-written. Call it with the lock held."""

    def where_is(self, key: str) -> str:
        """Return a key's address, to print."""
        return f"{self.where}/{key}"


def is_url(root: object) -> bool:
    """Return whether a store's address is a URL, rather than a folder of this machine's file system.

    Example:
        >>> is_url("s3://bucket/studies"), is_url("/shared/studies")
        (True, False)
    """
    return isinstance(root, str) and _URL.match(root) is not None


def in_order(read: Callable[[str], T], keys: Iterable[str], at_once: int) -> Iterator[tuple[str, T]]:
    """Read many keys in threads, and yield their contents in order, at most `at_once` ahead of the consumer.

    Args:
        read: reads one key.
        keys: the keys to read.
        at_once: number of threads, >= 1.

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
    """Describe this process, for a lock."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def holder_of(content: bytes | None) -> str:
    """Describe the process that a lock names."""
    try:
        holder = json.loads(content or b"")
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):  # it has the lock, and hasn't written its name yet
        return "another process"
