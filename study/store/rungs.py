"""Values of trials at the rungs where they are compared, shared by the workers of a study.

Each worker has its own file, which it rewrites at each rung, so no two workers write the same file.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from study.errors import StoreAwayError, StoreError
from study.interface.json_text import parse_json
from study.store.folder import Folder

_KIND, _SUFFIX = "rungs", ".json"


@dataclass(frozen=True)
class StoredRungs:
    """The values at rungs in a study's folder.

    Args:
        folder: the study's folder.
        compared: the compared quantity, such as ``lowest loss``; values of other quantities are ignored.
        worker: id of this worker in the name of its file.
    """

    folder: Folder
    compared: str
    worker: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    _own: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    def add(self, rung: int, cell_id: str, trial_id: str, value: float) -> None:
        """Store the value of a trial at a rung.

        While the store is away, the value is kept in memory, and stored with the next one.

        Raises:
            StoreError: if the store fails for good.
        """
        self._own.setdefault(str(rung), {}).setdefault(cell_id, {})[trial_id] = value
        with suppress(StoreAwayError):  # training continues meanwhile
            self.folder.write(f"{_KIND}/{self.worker}{_SUFFIX}", json.dumps({self.compared: self._own}).encode())

    def values(self, rung: int) -> dict[str, dict[str, float]]:
        """Return the values at a rung, by cell and trial.

        They include those of other workers, unless the store is away.

        Raises:
            StoreError: if the store fails for good, or another worker's file is damaged.
        """
        by_cell: dict[str, dict[str, float]] = {}
        contents = [{self.compared: self._own}]
        with suppress(StoreAwayError):
            keys = [f"{_KIND}/{name}" for name in self.folder.names(_KIND, _SUFFIX) if self.worker not in name]
            contents += [self._parse(key, data) for key, data in self.folder.read_all(keys) if isinstance(data, bytes)]
        for content in contents:
            for cell_id, values in content.get(self.compared, {}).get(str(rung), {}).items():
                by_cell.setdefault(cell_id, {}).update(values)
        return by_cell

    def _parse(self, key: str, data: bytes) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        """Return a worker's values by quantity, rung, cell and trial; raise StoreError if they aren't a JSON object."""
        try:
            content = parse_json(data)
            if isinstance(content, dict):
                return content
            reason = "it isn't a JSON object"
        except ValueError as error:
            reason = str(error)
        raise StoreError(f"{self.folder.where_is(key)} can't be read: {reason}; remove it, and resume the study")
