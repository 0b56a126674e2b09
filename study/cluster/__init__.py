"""Packs on Ray Tune, or in this process; the only files that import Ray, but for jobs."""

from study.cluster.connect import Capacity, ask, ask_each, capacity, check_versions, connection, watching_head
from study.cluster.local import run_here
from study.cluster.queue import CPU, GPU
from study.cluster.scheduler import run_on_tune
from study.cluster.workers import Lanes

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
