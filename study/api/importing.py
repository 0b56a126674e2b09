"""What was trained elsewhere: a study from a ZIP file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from study.api.where import STORE

if TYPE_CHECKING:
    from study.results.import_export import Import


def import_study(file: str | Path, *, store: str | Path = STORE) -> Import:
    """Import a study from a ZIP file that `Study.export` wrote; trials that the store has stay as they are.

    Args:
        file: the ZIP file.
        store: the folder of the studies' results, or its URL.

    Returns:
        How many trials are new, how many were there, and what else there is to know.

    Raises:
        InputError: if it isn't such a file, if it is damaged, or if the store has another study of that name.
        ConflictError: if the store has another result of one of its trials, by the same engine and kind of device.
        BusyError: if the store's study is running.
    """
    from study.results.import_export import import_export

    return import_export(Path(file), str(store))
