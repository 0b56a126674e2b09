"""What trials had reached at the rungs where they are compared, shared by the workers of a study.

Each worker has a file of its own, so no two write the same one; it is written anew at each rung.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from study.errors import StoreAwayError
from study.store.folder import Folder

_KIND, _SUFFIX = "rungs", ".json"


@dataclass(frozen=True)
class StoredRungs:
    """The values at rungs in a study's folder.

    Args:
        folder: the study's folder.
        worker: stands for this worker in the name of its file.
    """

    folder: Folder
    worker: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    _own: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, rung: int, trial_id: str, value: float) -> None:
        """Record that a trial has come to a rung."""
        self._own.setdefault(str(rung), {})[trial_id] = value
        with suppress(StoreAwayError):  # training goes on meanwhile
            self.folder.write(f"{_KIND}/{self.worker}{_SUFFIX}", json.dumps(self._own).encode())

    def values(self, rung: int) -> dict[str, float]:
        """Return the values at a rung, by trial."""
        found: dict[str, float] = {}
        with suppress(StoreAwayError):
            keys = [f"{_KIND}/{name}" for name in self.folder.names(_KIND, _SUFFIX) if self.worker not in name]
            for _, data in self.folder.read_all(keys):
                found |= _at_rung(data, rung) if isinstance(data, bytes) else {}
        return found | self._own.get(str(rung), {})


def _at_rung(data: bytes, rung: int) -> Mapping[str, float]:
    content: dict[str, dict[str, float]] = json.loads(data)
    return content.get(str(rung), {})
