"""Schedulers of packs: on Ray Tune, in this process, or in one beside it.

Only this folder and the client of jobs import Ray. `scheduler` is imported late, since importing Ray takes seconds.
"""

from study.cluster.beside import BesideScheduler, PackProcess
from study.cluster.connect import Capacity, ask, ask_each, capacity, check_versions, connection, watching_head
from study.cluster.local import LocalScheduler
from study.cluster.queue import CPU, GPU
from study.cluster.workers import Bundle, More, Scheduler, WorkerGroup

__all__ = [
    "CPU",
    "GPU",
    "BesideScheduler",
    "Bundle",
    "Capacity",
    "LocalScheduler",
    "More",
    "PackProcess",
    "Scheduler",
    "WorkerGroup",
    "ask",
    "ask_each",
    "capacity",
    "check_versions",
    "connection",
    "watching_head",
]
