"""Check for a completely published study in a database, without the slow import of MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from study.tracking.address import database
from study.tracking.packs import SHOWS, shows_value
from study.tracking.rows import KIND

_TIMEOUT_S = 5.0
_QUERY = """
    SELECT COUNT(*) FROM experiments
    JOIN runs USING (experiment_id)
    JOIN tags AS kind ON kind.run_uuid = runs.run_uuid AND kind.key = ? AND kind.value = 'study'
    JOIN tags AS shows ON shows.run_uuid = runs.run_uuid AND shows.key = ? AND shows.value = ?
    WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active'
    AND runs.lifecycle_stage = 'active' AND runs.status = 'FINISHED'
"""


def shows_all(uri: str, study: str, mark: str) -> bool:
    """Return True if MLflow is known to show all of a study's current content.

    Args:
        uri: MLflow's address.
        study: the study's name.
        mark: mark of the content, as it was passed to `Publisher.shows`.

    Returns:
        False also for a server, or a database that isn't a file or can't be read. Publishing again then does no harm.
    """
    path = database(uri)
    if path is None:
        return False
    read_only = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(read_only, uri=True, timeout=_TIMEOUT_S)) as connection:
            (count,) = connection.execute(_QUERY, [KIND, SHOWS, shows_value(mark), study]).fetchone()
    except sqlite3.Error:
        return False
    return bool(count)
