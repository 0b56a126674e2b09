"""Records to and from MLflow: a view of the store. The only files importing MLflow.

Each study has one experiment, with one run for the study, below it one for each cell, and below that one for each
trial. Training never waits for MLflow and never fails because of it: what a `Publisher` misses, `sync` publishes later;
publishing twice changes nothing.
"""

from study.tracking.address import check_reachable, default_uri
from study.tracking.cell_runs import CellRun
from study.tracking.charts import CURVE, LINE, ChartLine
from study.tracking.complete import shows_all
from study.tracking.dashboard import Links, dashboard_of, links, links_of, studies_page
from study.tracking.deletion import StudyExperiment, delete_experiments, experiments_of
from study.tracking.experiment_runs import experiment_runs
from study.tracking.packs import Packs
from study.tracking.publisher import Publisher
from study.tracking.read import load, published
from study.tracking.rows import CURVE_POINTS
from study.tracking.serve import check_servable, port_for, serve, until_signal
from study.tracking.sync import sync

__all__ = [
    "CURVE",
    "CURVE_POINTS",
    "LINE",
    "CellRun",
    "ChartLine",
    "Links",
    "Packs",
    "Publisher",
    "StudyExperiment",
    "check_reachable",
    "check_servable",
    "dashboard_of",
    "default_uri",
    "delete_experiments",
    "experiment_runs",
    "experiments_of",
    "links",
    "links_of",
    "load",
    "port_for",
    "published",
    "serve",
    "shows_all",
    "studies_page",
    "sync",
    "until_signal",
]
