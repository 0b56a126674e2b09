"""Packs on Ray Tune, or in this process; the only files that import Ray, but for jobs."""

from study.cluster.connect import Capacity, ask, ask_each, capacity, check_versions, connection, watching_head
from study.cluster.desk import CPU, GPU
from study.cluster.here import run_here
from study.cluster.lanes import Lanes, run_on_tune

__all__ = [
    "CPU",
    "GPU",
    "Capacity",
    "Lanes",
    "ask",
    "ask_each",
    "capacity",
    "check_versions",
    "connection",
    "run_here",
    "run_on_tune",
    "watching_head",
]
