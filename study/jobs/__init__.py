"""Studies as jobs of a Ray cluster, from anywhere that reaches its dashboard.

- address: a cluster's address and token
- rows: the dashboard's descriptions of jobs and nodes
- client: requests to the dashboard; the only file that uses Ray's job submission
- shares: cores and GPUs of a cluster by study
- submit: submits a study as a job, once
- follow: a submitted study's status, list, log and stop
"""

from study.jobs.address import Address, parse_address, token
from study.jobs.client import Client, connect
from study.jobs.follow import (
    JobStatus,
    StopResult,
    Usage,
    follow,
    readable_lines,
    standing,
    standings,
    stop,
    usage,
    watch,
)
from study.jobs.rows import Job, Node
from study.jobs.submit import Order, Submission, connect_to_run, make_order, order_of, submit

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
    "connect",
    "connect_to_run",
    "follow",
    "make_order",
    "order_of",
    "parse_address",
    "readable_lines",
    "standing",
    "standings",
    "stop",
    "submit",
    "token",
    "usage",
    "watch",
]
