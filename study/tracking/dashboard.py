"""Addresses of a study, a cell's runs and a trial's run in MLflow's dashboard."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from study.addresses import page_of
from study.tracking.address import connect, database, imported
from study.tracking.pages import LINES
from study.tracking.rows import CELL_ID, TRIAL_ID

# The default address of `study ui`.
_DASHBOARD = "http://127.0.0.1:5000"
# On a browser's first visit the dashboard shows every experiment as a chat application.
_WORKFLOW = {"workflowType": "machine_learning"}
# In its default order, the dashboard hides trials' runs below the collapsed run of their cell. Ordered by name, it
# doesn't, and sorts 20,000 runs within a second; sorting by a tag or a metric takes 30 s.
_FLAT = {"orderByKey": "attributes.run_name", "orderByAsc": "true"}
# Otherwise the browser would keep applying the filter to the study.
_ONLY_NOW = {"isPreview": "true"}
# The length of an address is limited.
_MOST_STUDIES = 100


@dataclass(frozen=True)
class Links:
    """The dashboard's pages of one study.

    A link filters runs by tags, since looking up the ids of 20,000 runs would take 20 s; the dashboard filters them
    within a second. If the run of a link doesn't exist, the page shows no run.

    Args:
        dashboard: the dashboard's address.
        experiment_id: MLflow's id of the study's experiment.

    Example:
        >>> links = Links("http://127.0.0.1:5000", "1")
        >>> links.study
        'http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=lines&compareRunsMode=CHART'
        >>> links.trial("0a1b")
        'http://127.0.0.1:5000/#/experiments/1/runs?...&searchFilter=tags.%60study.trial_id%60%20%3D%20%270a1b%27'
    """

    dashboard: str
    experiment_id: str

    @property
    def study(self) -> str:
        """The address of the page with the study's run and its charts, success rates first."""
        return self._runs(_WORKFLOW | {"viewStateShareKey": LINES, "compareRunsMode": "CHART"})

    def cell(self, cell_id: str) -> str:
        """Return the address of the page with the runs of a cell and its trials, ordered by name."""
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
    """Return a study's links to the dashboard; arguments as for `links_of`.

    Returns:
        None without tracking, or if MLflow doesn't know the study or doesn't answer in time.
    """
    return links_of(uri, [study], address=address, timeout_s=timeout_s).get(study)


def links_of(
    uri: str | None, studies: Collection[str], *, address: str | None = None, timeout_s: float = 5.0
) -> dict[str, Links]:
    """Return the dashboard's links of studies.

    Args:
        uri: MLflow's address; None without tracking.
        studies: the studies' names.
        address: the dashboard's address; by default the server's, or for a database that of `study ui`.
        timeout_s: seconds to wait for a server's answers, without the 2 s of importing MLflow, or for a locked
            database.

    Returns:
        The links by study, without studies that MLflow doesn't know or has deleted, or for which its answer is late;
        empty if MLflow can't be read.
    """
    if uri is None or not studies:
        return {}
    path = database(uri)
    ids = _ids_on_server(uri, studies, timeout_s) if path is None else _ids_in_database(path, timeout_s)
    place = dashboard_of(uri, address)
    return {study: Links(place, ids[study]) for study in studies if study in ids}


def dashboard_of(uri: str, address: str | None = None) -> str:
    """Return the dashboard's address; arguments as for `links_of`.

    Example:
        >>> dashboard_of("https://me:secret@host/mlflow/"), dashboard_of("sqlite:///mlflow.db")
        ('https://host/mlflow', 'http://127.0.0.1:5000')
    """
    return (address or (page_of(uri) if uri.startswith("http") else _DASHBOARD)).rstrip("/")


def studies_page(dashboard: str, studies: Sequence[Links]) -> str:
    """Return the address of a dashboard's page with the studies' runs, one per study.

    It avoids MLflow's start page, which shows an assistant on the first visit, and its list of experiments, which leads
    to pages for chat applications. Without studies, it is that list; for one study, it is `Links.study`. At most 100
    studies are shown.

    Args:
        dashboard: the dashboard's address.
        studies: the studies' links.

    Example:
        >>> links = [Links("http://127.0.0.1:5000", "1"), Links("http://127.0.0.1:5000", "2")]
        >>> studies_page("http://127.0.0.1:5000", links)
        'http://127.0.0.1:5000/#/compare-experiments/s?experiments=%5B%221%22%2C%20%222%22%5D&workflowType=...'
        >>> studies_page("http://127.0.0.1:5000", [])
        'http://127.0.0.1:5000/#/experiments?workflowType=machine_learning'
    """
    if not studies:
        return f"{dashboard}/#/experiments?{urlencode(_WORKFLOW)}"
    if len(studies) == 1:
        return studies[0].study
    ids = json.dumps([study.experiment_id for study in studies[:_MOST_STUDIES]])
    query = {"experiments": ids} | _WORKFLOW | _ONLY_NOW | {"searchFilter": "tags.`study.kind` = 'study'"}
    return f"{dashboard}/#/compare-experiments/s?{urlencode(query, quote_via=quote, safe='')}"


def _ids_in_database(path: Path, timeout_s: float) -> dict[str, str]:
    """Return the ids of active experiments by name; empty if the database can't be read.

    A direct query takes 10 ms; importing MLflow and opening the database takes 4 s.
    """
    query = "SELECT name, experiment_id FROM experiments WHERE lifecycle_stage = 'active'"
    read_only = f"{path.absolute().as_uri()}?mode=ro"  # doesn't make a missing database, unlike MLflow
    try:
        with closing(sqlite3.connect(read_only, uri=True, timeout=timeout_s)) as connection:
            return {str(name): str(experiment_id) for name, experiment_id in connection.execute(query)}
    except sqlite3.Error:
        return {}


def _ids_on_server(uri: str, studies: Collection[str], timeout_s: float) -> Mapping[str, str]:
    """Return the ids of the studies' active experiments by name, without those that the server doesn't give in time.

    A thread asks, since without an answer the request blocks for MLflow's timeout of ten seconds.
    """
    ids: dict[str, str] = {}

    def ask() -> None:
        with suppress(Exception):  # requests, sqlalchemy, mlflow: each has its own exceptions
            client = connect(uri)
            for study in studies:
                experiment = client.get_experiment_by_name(study)
                if experiment is not None and experiment.lifecycle_stage == "active":
                    ids[study] = str(experiment.experiment_id)

    imported()  # imported first, so that the timeout doesn't include the import
    thread = threading.Thread(target=ask, name="links", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return dict(ids)
