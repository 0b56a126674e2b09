"""A lock where no kernel can hold one: an object that its holder keeps changing.

Machines' clocks may differ, so no time is written down. Whoever wants the lock watches the object, and takes it over
if by the watcher's own clock it has not changed for as long as several renewals. Every change is conditional on the
version last seen, so of two that try, one succeeds, and a holder that was taken for dead finds out at its next renewal.
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
from study.store.folder import StudyLock, holder_of, this_process

Version = Mapping[str, Any]
"""What tells one content of an object from the next."""


class Conditional(Protocol):
    """A place that changes an object only if nobody else has."""

    def look(self, key: str) -> tuple[bytes, Version] | None:
        """Give an object with its version, or None."""

    def put_if(self, key: str, data: bytes, version: Version | None) -> Version | None:
        """Put an object where that version is, or none is there; give the new version, or None if another is there."""


@dataclass(frozen=True)
class Timing:
    """How a lock is kept.

    Args:
        renew_s: seconds between renewals.
        dead_after_s: a lock that has not been renewed for so long is taken over; several times `renew_s`.
    """

    renew_s: float = 10.0
    dead_after_s: float = 40.0


class Lease(StudyLock):
    """A lock on an object, renewed by a thread until it is released or lost.

    Args:
        place: where the object is.
        key: of the object.
        name: of the study, for messages.
        timing: how it is kept.
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
        """Take the lock, and keep it.

        Args:
            notify: called if a holder must be watched first.

        Raises:
            BusyError: if another process holds it.
        """
        watched, since = b"", 0.0
        while True:
            found = self._place.look(self._key)
            data, version = (b"", None) if found is None else found
            dead = bool(watched) and data == watched and time.monotonic() - since >= self._timing.dead_after_s
            if not data or _is_free(data) or dead:
                if self._put(version):
                    if dead:
                        notify(f"{holder_of(data)} gives no sign of life: its lock is taken over")
                    break
                continue  # another was quicker; the next look tells who
            if watched and data != watched:
                raise BusyError(
                    f"study {self._name!r} is being run by {holder_of(data)}: wait for it, or stop it"
                )
            if not watched:
                watched, since = data, time.monotonic()
                notify(
                    f"{holder_of(data)} has the lock: seeing whether it lives, up to "
                    f"{self._timing.dead_after_s:.0f} s"
                )
            time.sleep(self._timing.renew_s / 4)  # an object store tells of no change
        self._check_conditions()
        self._thread.start()

    def release(self) -> None:
        """Let go of the lock, if it is still ours; a store that is away leaves it to be taken over."""
        self._released.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.lost is None and self._version is not None:
            try:
                self._place.put_if(self._key, json.dumps({"free": self._id}).encode(), self._version)
            except StudyError:
                return

    def _check_conditions(self) -> None:
        """Try what must fail, with either condition: a server that ignores one would let two drivers in."""
        outdated = self._version
        if not self._put(outdated):
            raise BusyError(f"study {self._name!r} was taken over by another process just now: wait for it")
        for version, condition in ((None, "If-None-Match"), (outdated, "If-Match")):
            if self._place.put_if(self._key, self._content(), version) is not None:
                raise StoreError(
                    f"study {self._name!r} can't be locked: the store's server ignores conditional writes "
                    f"({condition}), so two runs could meet; use a server that has them, or a shared folder"
                )

    def _content(self) -> bytes:
        # The beat is in it: stores that name a version by its content must see another one.
        return json.dumps(this_process() | {"id": self._id, "beat": self._beat}).encode()

    def _put(self, version: Version | None) -> bool:
        """Put our name where a version is; also if the answer to an earlier try of the same was lost."""
        self._beat += 1
        content = self._content()
        put = self._place.put_if(self._key, content, version)
        if put is None:
            found = self._place.look(self._key)
            put = found[1] if found is not None and found[0] == content else None
        if put is not None:
            self._version = put
        return put is not None

    def _renew(self) -> None:
        while not self._released.wait(self._timing.renew_s):
            try:
                if self._put(self._version):
                    continue
                found = self._place.look(self._key)
            except StudyError:  # the store is away: it is ours until another takes it
                continue
            if found is not None and _id_of(found[0]) == self._id:
                self._version = found[1]  # a renewal whose answer was lost
                continue
            self.lost = (
                f"the lock of study {self._name!r} was removed from the store, alone or with the study"
                if found is None
                else f"study {self._name!r} was taken over by {holder_of(found[0])}"
            )
            return


def _is_free(data: bytes) -> bool:
    return "free" in _parsed(data)


def _id_of(data: bytes) -> object:
    return _parsed(data).get("id")


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
