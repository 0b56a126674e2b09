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
from study.tracking.pages import CELLS
from study.tracking.rows import CELL_ID, TRIAL_ID

# Where `study ui` serves a database by default.
_DASHBOARD = "http://127.0.0.1:5000"
# On a browser's first visit the dashboard shows every experiment as a chat application.
_WORKFLOW = {"workflowType": "machine_learning"}
# In its default order the dashboard hides trials' runs below the collapsed run of their cell. Ordered by name it
# doesn't, and sorts 20,000 runs within a second; by a tag or a metric that takes 30 s.
_FLAT = {"orderByKey": "attributes.run_name", "orderByAsc": "true"}
# Otherwise the browser would remember the filter, and apply it to the study from then on.
_ONLY_NOW = {"isPreview": "true"}


@dataclass(frozen=True)
class Links:
    """The dashboard's pages of one study.

    A link selects runs by a filter on their tags, which the dashboard applies to 20,000 runs in less than a second:
    looking up all their ids would take 20 s. So a link may point to a run that isn't there yet, or no longer; the page
    then shows no run.

    Args:
        dashboard: the dashboard's address.
        experiment_id: MLflow's id of the study's experiment.

    Example:
        >>> links = Links("http://127.0.0.1:5000", "1")
        >>> links.study
        'http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=cells'
        >>> links.trial("0a1b")
        'http://127.0.0.1:5000/#/experiments/1/runs?...&searchFilter=tags.%60study.trial_id%60%20%3D%20%270a1b%27'
    """

    dashboard: str
    experiment_id: str

    @property
    def study(self) -> str:
        """The address of the page that lists the study's run and those of its cells."""
        return self._runs(_WORKFLOW | {"viewStateShareKey": CELLS})

    def cell(self, cell_id: str) -> str:
        """Return the address of the page of a cell's run and those of its trials, ordered by name."""
        return self._tagged(CELL_ID, cell_id)

    def trial(self, trial_id: str) -> str:
        """Return the address of the page of one trial's run."""
        return self._tagged(TRIAL_ID, trial_id)

    def _tagged(self, tag: str, value: str) -> str:
        return self._runs(_WORKFLOW | _FLAT | _ONLY_NOW | {"searchFilter": f"tags.`{tag}` = '{value}'"})

    def _runs(self, query: dict[str, str]) -> str:
        encoded = urlencode(query, quote_via=quote, safe="")
        return f"{self.dashboard}/#/experiments/{quote(self.experiment_id, safe='')}/runs?{encoded}"


def links(uri: str | None, study: str, *, address: str | None = None, timeout_s: float = 5.0) -> Links | None:
    """Find where the dashboard shows a study.

    Args:
        uri: MLflow's address; None if nothing is tracked.
        study: the study's name.
        address: the dashboard's address; by default the server's, or for a database where `study ui` serves it.
        timeout_s: how long to wait for a server's answer, once MLflow is imported, which takes 2 s.

    Returns:
        None if MLflow doesn't know the study, doesn't answer, or isn't there: a report can do without links.
    """
    if uri is None:
        return None
    path = database(uri)
    experiment_id = _of_server(uri, study, timeout_s) if path is None else _of_database(path, study, timeout_s)
    is_server = uri.startswith("http")
    dashboard = address or (page_of(uri) if is_server else _DASHBOARD)
    return None if experiment_id is None else Links(dashboard.rstrip("/"), experiment_id)


def _of_database(path: Path, study: str, timeout_s: float) -> str | None:
    """Query the database itself, which takes 10 ms; MLflow takes 4 s to be imported and to open it."""
    query = "SELECT experiment_id FROM experiments WHERE name = ? AND lifecycle_stage = 'active'"
    read_only = f"{path.absolute().as_uri()}?mode=ro"  # a missing database isn't made, as it would be by MLflow
    try:
        with closing(sqlite3.connect(read_only, uri=True, timeout=timeout_s)) as connection:
            row = connection.execute(query, [study]).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _of_server(uri: str, study: str, timeout_s: float) -> str | None:
    """Ask a server in a thread, since one that never answers would block for MLflow's timeout of ten seconds."""
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask() -> None:
        experiment_id = None
        with suppress(Exception):  # requests, sqlalchemy, mlflow: each has its own exceptions
            experiment = connect(uri).get_experiment_by_name(study)
            if experiment is not None and experiment.lifecycle_stage == "active":
                experiment_id = str(experiment.experiment_id)
        answers.put(experiment_id)

    imported()  # the seconds this takes aren't the server's
    threading.Thread(target=ask, name="links", daemon=True).start()
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        return None
