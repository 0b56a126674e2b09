"""Tables and lines that show studies of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from study.addresses import without_secret
from study.console import Console, ConsoleTable
from study.summaries.heartbeat import progress_words, value_texts
from study.words import count_of, duration

if TYPE_CHECKING:
    from study.doctor.nodes import Check
    from study.jobs import JobStatus, Usage


def studies_table(statuses: Sequence[JobStatus]) -> ConsoleTable:
    """Lay out the statuses of studies as a table with one row each."""
    table = ConsoleTable(box=None, pad_edge=False, elsewhere="`study list --cluster --json`")
    ranks = {
        "study": 0,
        "state": 0,
        "done": 1,
        "failed": 1,
        "left": 2,
        "training": 3,
        "share": 4,
        "by": 6,
        "submitted": 5,
        "store": 7,
    }
    unfolded = ("done", "failed", "left", "training", "share", "submitted")
    for heading, rank in ranks.items():
        table.add_column(heading, no_wrap=heading in unfolded, rank=rank)
    for status in statuses:
        beat = status.heartbeat
        done = "" if beat is None else f"{beat.done:,}/{beat.trials:,}"
        live = None if status.ended else beat
        table.add_row(
            status.study,
            status.wait.partition(":")[0] or status.state,
            done,
            "" if beat is None else str(beat.failed),
            duration(live.left_s) if live and live.left_s is not None else "",
            count_of(live.workers, "pack") if live else "",
            "" if status.share is None else f"{status.share.own:g} of {status.share.of:g} {status.share.unit}",
            f"{status.user}@{status.host}",
            f"{status.submitted_at:%Y-%m-%d %H:%M}",
            without_secret(status.store),
        )
    return table


def listing(statuses: Sequence[JobStatus], busy: Usage) -> dict[str, Any]:
    """Return the statuses of studies and the cluster's usage as JSON data."""
    return {"studies": [status.as_json() for status in statuses], "cluster": asdict(busy)}


def detail(status: JobStatus) -> ConsoleTable:
    """Lay out the status of one study."""
    table = ConsoleTable(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    beat = status.heartbeat
    rows = [("study", status.study), ("state", ", ".join(filter(None, (status.state, status.wait))))]
    if beat is not None:
        counts = f"{beat.done:,} of {beat.trials:,}"
        rows += [("done", counts)]
        rows += [("outcomes", f"{beat.outcomes}, {beat.pending} pending")]
        reasons = [f"{count_of(failure.trials, 'trial')}: {failure.reason}" for failure in beat.failures]
        rows += [("failed", "\n".join(reasons))] if reasons else []
        if not status.ended:
            left = "not known yet" if beat.left_s is None else duration(beat.left_s)
            rows += [("time left", left), ("training", count_of(beat.workers, "pack"))]
            values = value_texts(beat.metric, beat.values)
            rows += [("so far", "\n".join(values))] if values else []
        rows += [("updated", f"{beat.at:%Y-%m-%d %H:%M:%S} UTC")]
    rows += [] if status.share is None else [(status.share.unit, status.share.words)]
    rows += [
        ("submitted", f"{status.submitted_at:%Y-%m-%d %H:%M:%S} UTC by {status.user}@{status.host}"),
        ("store", without_secret(status.store)),
    ]
    rows += [("tracking", status.tracking_uri)] if status.tracking_uri else []
    rows += [("driver on", status.node)] if status.node and not status.ended else []
    rows += [("ended", f"{status.ended_at:%Y-%m-%d %H:%M:%S} UTC")] if status.ended_at else []
    rows += [("last output", "\n".join(status.last_lines))] if status.last_lines else []
    for name, value in (*rows, ("next", status.next)):
        table.add_row(name, value)
    return table


@contextmanager
def live_status(console: Console) -> Iterator[Callable[[JobStatus, Usage], None]]:
    """Show the status of a study while it changes: in place on a terminal, else a line per change and a final table.

    Yields:
        A function to call with each status and the cluster's usage.
    """
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda status, busy: live.update(Group(detail(status), Text(busy_line(busy))), refresh=True)
        return
    last = ""

    def show(status: JobStatus, busy: Usage) -> None:
        nonlocal last
        beat = status.heartbeat
        text = ", ".join(filter(None, (status.state, status.wait)))
        text += "" if beat is None else f" · {progress_words(beat)}"
        if text != last:
            console.print(text, soft_wrap=True)
        last = text
        if status.ended:
            console.print(detail(status), end="")

    yield show


def busy_line(busy: Usage) -> str:
    """Return a cluster's usage in one line."""
    parts = [count_of(busy.nodes, "node"), f"{busy.cpus:g} CPU{'' if busy.cpus == 1 else 's'}"]
    parts[-1] += "" if busy.cpu_percent is None else f", {busy.cpu_percent:g}% busy"
    if busy.gpus:
        parts += [f"{busy.gpus:g} GPU{'' if busy.gpus == 1 else 's'}"]
        parts[-1] += "" if busy.gpu_percent is None else f", {busy.gpu_percent:g}% busy"
    return "cluster: " + " · ".join(parts)


def checks_table(checks: Sequence[Check]) -> ConsoleTable:
    """Lay out the doctor's checks as a table."""
    colours = {"ok": "green", "failed": "bold red", "warning": "yellow", "skipped": "dim"}
    table = ConsoleTable(box=None, pad_edge=False)
    for heading in ("check", "", "found"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        result = Text.assemble(check.finding, *((("\n" + check.fix, "bold"),) if check.fix else ()))
        table.add_row(check.name, Text(check.state, style=colours[check.state]), result)
    return table
