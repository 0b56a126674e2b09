"""Studies as jobs of a Ray cluster, from anywhere that reaches its dashboard.

- address: where a cluster is, and what a token has to guard
- rows: jobs and nodes, as the dashboard knows them
- client: the dashboard, asked quietly; the only file that uses Ray's job submission
- submit: a study to a job, once
- follow: what became of it: status, list, log, stop
"""

from study.jobs.address import Address, parse_address, token
from study.jobs.client import Client, connect
from study.jobs.follow import JobStatus, StopResult, Usage, follow, standing, standings, stop, told, usage
from study.jobs.rows import Job, Node
from study.jobs.submit import Order, Submission, again, connect_to_run, order, submit

__all__ = [
    "Address",
    "Client",
    "Job",
    "JobStatus",
    "Node",
    "Order",
    "StopResult",
    "Submission",
    "Usage",
    "again",
    "connect",
    "connect_to_run",
    "follow",
    "order",
    "parse_address",
    "standing",
    "standings",
    "stop",
    "submit",
    "token",
    "told",
    "usage",
]
