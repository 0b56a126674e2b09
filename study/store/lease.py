"""A lock in an object store: an object that its holder renews regularly.

Machines' clocks may differ, so the object holds no time. A process that wants the lock watches the object, and takes it
over if, by its own clock, the object hasn't changed for several renewal periods. Every change is conditional on the
version last read: if two processes try, one succeeds, and a holder presumed dead notices at its next renewal.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from study.errors import BusyError, StoreError, StudyError
from study.interface.json_text import parse_json
from study.store.folder import StudyLock, holder_of, this_process

Version = Mapping[str, Any]
"""Attributes that identify one version of an object."""


class Conditional(Protocol):
    """A store with conditional writes.

    Each method raises StoreError if the store can't be reached or refuses the request, and InputError if the bucket
    doesn't exist.
    """

    def read_versioned(self, key: str) -> tuple[bytes, Version] | None:
        """Return an object's bytes and version; None if it doesn't exist."""

    def put_if(self, key: str, data: bytes, version: Version | None) -> Version | None:
        """Replace a version of an object, or create the object if `version` is None.

        Returns:
            The new version; None if the object has another version.
        """


@dataclass(frozen=True)
class Timing:
    """Renewal and takeover times of a lock.

    Args:
        renew_s: seconds between renewals.
        dead_after_s: seconds without a renewal after which a lock is taken over; several times `renew_s`.
    """

    renew_s: float = 10.0
    dead_after_s: float = 40.0


class Lease(StudyLock):
    """A lock on an object, renewed by a thread until it is released or lost.

    Args:
        place: the store of the object.
        key: the object's key.
        name: the study's name, for messages.
        timing: renewal and takeover times.
    """

    def __init__(self, place: Conditional, key: str, name: str, timing: Timing) -> None:
        self.lost = None
        self._place, self._key, self._name, self._timing = place, key, name, timing
        self._id = uuid.uuid4().hex
        self._beat = 0
        self._version: Version | None = None
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lock", daemon=True)

    def acquire(self, notify: Callable[[str], None]) -> None:
        """Acquire the lock, and start renewing it.

        If the object names a holder, watch it for up to `dead_after_s` seconds, and take over unless it is renewed.

        Args:
            notify: called with a sentence if an earlier holder must be watched first, and on a takeover.

        Raises:
            BusyError: if another process holds it.
            StoreError: if the store can't be reached, refuses the request, or ignores conditional writes.
            InputError: if the bucket doesn't exist.
        """
        watched, since = b"", 0.0
        while True:
            current = self._place.read_versioned(self._key)
            data, version = (b"", None) if current is None else current
            dead = bool(watched) and data == watched and time.monotonic() - since >= self._timing.dead_after_s
            if not data or _is_free(data) or dead:
                if self._put(version):
                    if dead:
                        notify(f"{holder_of(data)} hasn't renewed the lock: it is taken over")
                    break
                continue  # another process was quicker; reading again shows which
            if watched and data != watched:
                raise BusyError(f"study {self._name!r} is being run by {holder_of(data)}: wait for it, or stop it")
            if not watched:
                watched, since = data, time.monotonic()
                notify(
                    f"{holder_of(data)} has the lock: waiting up to {self._timing.dead_after_s:.0f} s to see if "
                    "it is alive"
                )
            time.sleep(self._timing.renew_s / 4)  # an object store reports no changes
        self._check_conditions()
        self._thread.start()

    def release(self) -> None:
        """Stop renewing the lock, and free it unless it is lost; if the store fails, another process takes it over."""
        self._released.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.lost is None and self._version is not None:
            try:
                self._place.put_if(self._key, json.dumps({"free": self._id}).encode(), self._version)
            except StudyError:
                return

    def _check_conditions(self) -> None:
        """Raise StoreError if the server ignores conditions of writes; BusyError if the lock was just taken over."""
        outdated = self._version
        if not self._put(outdated):
            raise BusyError(f"study {self._name!r} was taken over by another process just now: wait for it")
        for version, condition in ((None, "If-None-Match"), (outdated, "If-Match")):
            if self._place.put_if(self._key, self._content(), version) is not None:
                raise StoreError(
                    f"study {self._name!r} can't be locked: the store's server ignores conditional writes "
                    f"({condition}), so two runs could write at once; use a server that has them, or a shared folder"
                )

    def _content(self) -> bytes:
        # The beat makes each content differ, for stores that derive the version from the content.
        """Return the lock's content: this process, and a number that differs at each renewal."""
        return json.dumps(this_process() | {"id": self._id, "beat": self._beat}).encode()

    def _put(self, version: Version | None) -> bool:
        """Write this process as the holder over a version; return False if the object has another version.

        If only the answer to the write was lost, the object has this process's content, and the result is True.
        """
        self._beat += 1
        content = self._content()
        new_version = self._place.put_if(self._key, content, version)
        if new_version is None:
            current = self._place.read_versioned(self._key)
            new_version = current[1] if current is not None and current[0] == content else None
        if new_version is not None:
            self._version = new_version
        return new_version is not None

    def _renew(self) -> None:
        """Renew the lock until it is released; if another process took or removed it, set `lost` and end."""
        while not self._released.wait(self._timing.renew_s):
            try:
                if self._put(self._version):
                    continue
                current = self._place.read_versioned(self._key)
            except StudyError:  # the store is away: the lock is held until another process takes it
                continue
            if current is not None and _id_of(current[0]) == self._id:
                self._version = current[1]  # a renewal whose answer was lost
                continue
            self.lost = (
                f"the lock of study {self._name!r} was removed from the store, alone or with the study"
                if current is None
                else f"study {self._name!r} was taken over by {holder_of(current[0])}"
            )
            return


def named_holder(data: bytes | None) -> str | None:
    """Describe the process that a lock's content names; None without content, or if the lock is free.

    Example:
        >>> named_holder(b'{"pid": 12, "host": "here", "id": "0a1b", "beat": 3}')
        'process 12 on here'
        >>> named_holder(b'{"free": "0a1b"}') is named_holder(None) is None
        True
    """
    return holder_of(data) if data and not _is_free(data) else None


def _is_free(data: bytes) -> bool:
    """Return True if a lock's content says that it was released."""
    return "free" in _parsed(data)


def _id_of(data: bytes) -> object:
    """Return the id of the lock's holder; None without one."""
    return _parsed(data).get("id")


def _parsed(data: bytes) -> dict[str, Any]:
    """Parse a lock's content; empty if it isn't a JSON object."""
    try:
        content = parse_json(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
