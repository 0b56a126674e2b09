"""What trials had reached at the rungs where they are compared, shared by the workers of a study.

Each worker has a file of its own, so no two write the same one; it is written anew at each rung.
"""

from __future__ import annotations

import json
import uuid
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
        compared: what is compared, such as ``lowest loss``; values of anything else are left out.
        worker: stands for this worker in the name of its file.
    """

    folder: Folder
    compared: str
    worker: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    _own: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    def add(self, rung: int, cell_id: str, trial_id: str, value: float) -> None:
        """Record that a trial of a cell has come to a rung."""
        self._own.setdefault(str(rung), {}).setdefault(cell_id, {})[trial_id] = value
        with suppress(StoreAwayError):  # training goes on meanwhile
            self.folder.write(f"{_KIND}/{self.worker}{_SUFFIX}", json.dumps({self.compared: self._own}).encode())

    def values(self, rung: int) -> dict[str, dict[str, float]]:
        """Return the values at a rung, by cell and trial."""
        found: dict[str, dict[str, float]] = {}
        contents = [{self.compared: self._own}]
        with suppress(StoreAwayError):
            keys = [f"{_KIND}/{name}" for name in self.folder.names(_KIND, _SUFFIX) if self.worker not in name]
            contents += [json.loads(data) for _, data in self.folder.read_all(keys) if isinstance(data, bytes)]
        for content in contents:
            for cell_id, values in content.get(self.compared, {}).get(str(rung), {}).items():
                found.setdefault(cell_id, {}).update(values)
        return found
