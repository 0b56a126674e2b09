"""Records to and from MLflow: a view of the store. The only files importing MLflow.

One experiment a study; in it one run for the study, and under that one run a trial. Training never waits for
MLflow and never fails because of it: what a `Publisher` misses, `sync` publishes later; publishing twice
changes nothing.
"""

from study.tracking.address import check_reachable, default_uri, ui_command
from study.tracking.dashboard import Links, links
from study.tracking.experiment import sync
from study.tracking.publisher import Publisher
from study.tracking.read import load, published
from study.tracking.rows import CURVE_POINTS, Point

__all__ = [
    "CURVE_POINTS",
    "Links",
    "Point",
    "Publisher",
    "check_reachable",
    "default_uri",
    "links",
    "load",
    "published",
    "sync",
    "ui_command",
]
