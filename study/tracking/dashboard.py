"""Where MLflow's dashboard shows a study, a cell's runs and a trial's run."""

from __future__ import annotations

import queue
import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from study.addresses import page_of
from study.tracking.address import connect, database, imported
from study.tracking.rows import CELL_ID, TRIAL_ID

# Where `study ui` serves a database, unless told otherwise.
_DASHBOARD = "http://127.0.0.1:5000"
# A browser that is there for the first time takes every experiment for a chat application.
_SHOWN_AS = {"workflowType": "machine_learning"}
# In its usual order the dashboard folds a trial's run away below the study's. By name it doesn't, and 20,000 runs
# are in order within a second; by a tag or a metric that takes it 30.
_FLAT = {"orderByKey": "attributes.run_name", "orderByAsc": "true"}
# Else a browser would remember the filter, and show the study through it from then on.
_ONLY_NOW = {"isPreview": "true"}


@dataclass(frozen=True)
class Links:
    """The dashboard's pages of one study.

    Runs are named by a filter on their tags, which the dashboard answers in less than a second of 20,000 runs: to look
    up all their ids would take 20. So a link can be to a run that isn't there yet, or is no more; then it shows none.

    Args:
        dashboard: its address.
        experiment_id: what MLflow calls the study.

    Example:
        >>> links = Links("http://127.0.0.1:5000", "1")
        >>> links.study
        'http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning'
        >>> links.trial("0a1b").removeprefix(links.study)
        '&...&searchFilter=tags.%60study.trial_id%60%20%3D%20%270a1b%27'
    """

    dashboard: str
    experiment_id: str

    @property
    def study(self) -> str:
        """Give the page of all runs."""
        return self._runs(_SHOWN_AS)

    def cell(self, cell_id: str) -> str:
        """Give the page of a cell's runs, one a trial, ordered by name."""
        return self._tagged(CELL_ID, cell_id)

    def trial(self, trial_id: str) -> str:
        """Give the page of one trial's run."""
        return self._tagged(TRIAL_ID, trial_id)

    def _tagged(self, tag: str, value: str) -> str:
        return self._runs(_SHOWN_AS | _FLAT | _ONLY_NOW | {"searchFilter": f"tags.`{tag}` = '{value}'"})

    def _runs(self, query: dict[str, str]) -> str:
        encoded = urlencode(query, quote_via=quote, safe="")
        return f"{self.dashboard}/#/experiments/{quote(self.experiment_id, safe='')}/runs?{encoded}"


def links(uri: str | None, study: str, *, address: str | None = None, timeout_s: float = 5.0) -> Links | None:
    """Find where the dashboard shows a study.

    Args:
        uri: of MLflow; None where nothing is tracked.
        study: its name.
        address: where the dashboard of a database is served, by default where `study ui` does; a server is its own.
        timeout_s: how long a server's answer is waited for, once MLflow is imported, which takes 2 s.

    Returns:
        None if MLflow doesn't know the study, doesn't answer, or isn't there: a report without links is a report.
    """
    if uri is None:
        return None
    path = database(uri)
    found = _of_server(uri, study, timeout_s) if path is None else _of_database(path, study, timeout_s)
    is_server = uri.startswith("http")
    dashboard = address or (page_of(uri) if is_server else _DASHBOARD)
    return None if found is None else Links(dashboard.rstrip("/"), found)


def _of_database(path: Path, study: str, timeout_s: float) -> str | None:
    """Ask the database itself: 10 ms, where MLflow takes 4 s to be imported and to open it."""
    query = "SELECT experiment_id FROM experiments WHERE name = ? AND lifecycle_stage = 'active'"
    read_only = f"{path.absolute().as_uri()}?mode=ro"  # and not made if it isn't there, as MLflow would
    try:
        with closing(sqlite3.connect(read_only, uri=True, timeout=timeout_s)) as connection:
            row = connection.execute(query, [study]).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _of_server(uri: str, study: str, timeout_s: float) -> str | None:
    """Ask a server in a thread of its own: one that never answers would hold us up for MLflow's ten seconds."""
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask() -> None:
        found = None
        with suppress(Exception):  # requests, sqlalchemy, mlflow: each has its own tree
            experiment = connect(uri).get_experiment_by_name(study)
            if experiment is not None and experiment.lifecycle_stage == "active":
                found = str(experiment.experiment_id)
        answers.put(found)

    imported()  # its seconds don't count as the server's
    threading.Thread(target=ask, name="links", daemon=True).start()
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        return None
