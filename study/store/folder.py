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
        lost: what happened, in a sentence, if another process has taken the lock over; None while it is ours.
    """

    lost: str | None = None


class NotAFileError(StoreError):
    """Under a name of ours is something that holds no bytes, such as a folder or a pipe.

    Args:
        where: its address.
        reason: what it is.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"can't read {where}: {reason}; move it away")
        self.reason = reason


class Folder(ABC):
    """A folder of named bytes, on a file system or in an object store.

    A key is relative, its parts parted by slashes: ``results/00aa.parquet``. Every method raises `StoreError`, in
    words, if the place fails; `StoreAwayError` if it may come back by itself.

    Attributes:
        where: its address, to print.
        name: the last part of it.
        path: where it lies in this machine's file system; None of an object store.
    """

    where: str
    name: str
    path: Path | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """Give the address that means the same to a process elsewhere."""

    @property
    @abstractmethod
    def is_there(self) -> bool:
        """Say whether anything has been made at this address; in an object store an empty prefix is none."""

    @abstractmethod
    def below(self, name: str) -> Folder:
        """Give the folder of that name right below this one, whether or not it is there.

        Raises:
            InputError: if the name would lead elsewhere.
        """

    @abstractmethod
    def as_it_is(self) -> Folder:
        """Give the same folder, but one that no write makes anew when it is gone: that is `StoreAwayError` then."""

    @abstractmethod
    def holding(self, key: str) -> list[str]:
        """Name the folders right below this one that have such a key, in order."""

    @abstractmethod
    def names(self, kind: str, suffix: str) -> list[str]:
        """Name what lies right below ``kind/`` and ends in a suffix, in order."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Say whether there is such a key."""

    @abstractmethod
    def read(self, key: str) -> bytes | None:
        """Give what lies under a key; None if nothing does.

        Raises:
            NotAFileError: if what lies there holds no bytes.
        """

    @abstractmethod
    def read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | NotAFileError | None]]:
        """Give many keys with what `read` gives or raises for them, in their order; few are in memory at once."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Put bytes under a key, whole, or leave what is there."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key, if it is there."""

    @abstractmethod
    def move(self, key: str, to: str) -> bool:
        """Give a key another name; False if it isn't there any more."""

    @abstractmethod
    def lock(self, notify: Callable[[str], None]) -> AbstractContextManager[StudyLock]:
        """Hold the key ``lock``, which no other process then can, on whatever machine.

        Args:
            notify: called if this takes long.

        Raises:
            BusyError: if another process holds it.
        """

    @abstractmethod
    def clean(self) -> None:
        """Remove what a kill left half-written. Call it with the lock held."""

    def where_is(self, key: str) -> str:
        """Give a key's address, to print."""
        return f"{self.where}/{key}"


def is_url(root: object) -> bool:
    """Say whether a store's address is a URL, and not a folder of this machine's file system.

    Example:
        >>> is_url("s3://bucket/studies"), is_url("/shared/studies")
        (True, False)
    """
    return isinstance(root, str) and _URL.match(root) is not None


def in_order(read: Callable[[str], T], keys: Iterable[str], at_once: int) -> Iterator[tuple[str, T]]:
    """Read many keys by threads, and give them in their order; at most so many are ahead of who takes them.

    Args:
        read: reads one.
        keys: which.
        at_once: threads, >= 1.

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
                    first, found = ahead.popleft()
                    yield first, found.result()
            while ahead:
                first, found = ahead.popleft()
                yield first, found.result()
        finally:
            for _, found in ahead:
                found.cancel()


def this_process() -> dict[str, str | int]:
    """Say who we are, for a lock."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def holder_of(content: bytes | None) -> str:
    """Say whose name is in a lock."""
    try:
        holder = json.loads(content or b"")
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):  # it has the lock and is just writing its name
        return "another process"
