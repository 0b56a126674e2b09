"""Packs on Ray Tune, or in this process; the only folder that imports Ray, except for the client of jobs.

`scheduler` is imported where it is used, since Ray takes seconds to import.
"""

from study.cluster.connect import Capacity, ask, ask_each, capacity, check_versions, connection, watching_head
from study.cluster.local import LocalScheduler
from study.cluster.queue import CPU, GPU
from study.cluster.workers import Bundle, More, Scheduler, WorkerGroup

__all__ = [
    "CPU",
    "GPU",
    "Bundle",
    "Capacity",
    "LocalScheduler",
    "More",
    "Scheduler",
    "WorkerGroup",
    "ask",
    "ask_each",
    "capacity",
    "check_versions",
    "connection",
    "watching_head",
]
