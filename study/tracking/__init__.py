"""Publication of results to MLflow, and reading them back. Only this folder imports MLflow.

Each study has one experiment, with one run for the study, one below it for each cell, and one below that for each
trial. Training neither waits for MLflow nor fails because of it: `sync` publishes later what a `Publisher` missed.
Publishing twice has no further effect.
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
