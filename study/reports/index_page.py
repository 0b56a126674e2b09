"""The index of a store as one HTML page: its studies with their results, and any of them side by side.

This module collects the content; index.html.j2, index.css and index.js present it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template

from study import words
from study.errors import InputError
from study.reports.beside import titles
from study.reports.strip import HEIGHT, WIDTH, Strip
from study.reports.templates import asset, template
from study.reports.write import write_page
from study.summaries.heartbeat import Heartbeat

_OURS = '<meta name="generator" content="study index">'
_HEAD_BYTES = 2000
_REFRESH_S = 5.0


@dataclass(frozen=True)
class FailureEntry:
    """A reason of failed trials of a study.

    Args:
        trials: the number of failed trials.
        reason: the error of one of them.
        log: the path of that trial's log in the study's folder; empty without one.
    """

    trials: int
    reason: str
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """A study in the index of a store.

    Args:
        name: the study's name.
        question: the question that the study answers.
        finding: the headline; empty before any trial has ended.
        trials: the number of planned trials.
        done: the number of trials that have ended or failed.
        failed: the number of failed trials.
        failures: the most frequent reasons of failed trials.
        more_failures: the number of other reasons.
        cells: the number of rows in the report.
        tags: the tags, sorted.
        strip: the rows at a glance.
        beside: the study's result of `study.reports.beside`.
        written_at: when the newest result was written; None without results.
        error: why the study can't be read; empty if it can.
        holder: the process that runs the study; empty without one.
        heartbeat: the progress of that process; None if unknown.
        folder: the address of the study's folder, relative to the page; empty if it isn't on this machine.
        report: the address of the report, relative to the page; empty without one.
        dashboard: the address of the runs in MLflow; empty without any.
    """

    name: str
    question: str = ""
    finding: str = ""
    trials: int = 0
    done: int = 0
    failed: int = 0
    failures: Sequence[FailureEntry] = ()
    more_failures: int = 0
    cells: int = 0
    tags: tuple[str, ...] = ()
    strip: Strip | None = None
    beside: dict[str, Any] | None = None
    written_at: datetime | None = None
    error: str = ""
    holder: str = ""
    heartbeat: Heartbeat | None = None
    folder: str = ""
    report: str = ""
    dashboard: str = ""

    def log_address(self, failure: FailureEntry) -> str:
        """Return the address of a failed trial's log, relative to the page; empty without one on this machine."""
        return f"{self.folder}/{failure.log}" if self.folder and failure.log else ""

    @property
    def progress(self) -> tuple[int, int]:
        """The numbers of trials done and planned, from the heartbeat if there is one with a number of trials."""
        beat = self.heartbeat
        return (beat.done, beat.trials) if beat is not None and beat.trials else (self.done, self.trials)

    @property
    def states(self) -> str:
        """The study's states for the page's filter, separated by spaces.

        The first is ``unreadable``, ``finished`` or ``unfinished``; ``running`` and ``failures`` follow if they apply.
        """
        done, trials = self.progress
        is_done = "unreadable" if self.error else "finished" if trials and done >= trials else "unfinished"
        return " ".join([is_done, *(["running"] if self.holder else []), *(["failures"] if self.failed else [])])

    @property
    def training(self) -> Sequence[str]:
        """One line for each cell that the heartbeat lists as training, and a line that counts the others, if any.

        A line has the cell's name, unless the study has only one cell, and the number of its trials; the progress and
        the metric's mean follow if known. Empty without a heartbeat.
        """
        beat = self.heartbeat
        if beat is None:
            return []
        means = {value.cell: f"{beat.metric} {words.measure(value.mean)} so far" for value in beat.values}
        lines = []
        for value in beat.training:
            share = [] if value.share is None else [f"{value.share:.0%} of the iterations"]
            parts = [
                words.count_of(value.trials, "trial"),
                *share,
                *([means[value.cell]] if value.cell in means else []),
            ]
            lines.append(": ".join([*([value.cell] if value.cell else []), ", ".join(parts)]))
        more = beat.cells - len(beat.training)
        return [*lines, f"and {words.count_of(more, 'more cell')}"] if more > 0 else lines


@dataclass(frozen=True, kw_only=True)
class StoreIndex:
    """The content of an index.

    Args:
        where: the store's address.
        entries: the studies, in order.
        dashboard: the address of MLflow's list of experiments; empty if nothing is published.
        option: the option that names the store on a command line; empty if it isn't needed.
        is_live: whether the page is updated while something changes.
    """

    where: str
    entries: Sequence[IndexEntry]
    dashboard: str = ""
    option: str = ""
    is_live: bool = False


def index_page(index: StoreIndex, at: datetime, *, refresh_s: float = _REFRESH_S) -> str:
    """Return the index as one HTML page; all inserted text is escaped.

    Args:
        index: the content.
        at: the time, in UTC, at which the content was read from the store.
        refresh_s: the seconds between a served page's requests for changes.
    """
    compared = {entry.name: entry.beside for entry in index.entries if entry.beside is not None}
    running = [entry for entry in index.entries if entry.holder]
    return _template().render(
        index=index,
        at=at,
        running=running,
        refresh_s=refresh_s,
        beside={
            "studies": compared,
            "names": [entry.name for entry in index.entries],
            "titles": titles([*compared.values()]),
            "option": index.option,
        },
    )


def write_index(path: Path, index: StoreIndex, at: datetime) -> Path:
    """Write the page to a file, replacing an earlier index, and return the path; arguments are as for `index_page`.

    Raises:
        InputError: if the file exists and isn't an index.
        OSError: if it can't be read or written.
    """
    if path.exists() and _OURS.encode() not in path.read_bytes()[:_HEAD_BYTES]:
        raise InputError(f"{path} isn't an index of studies, so it isn't overwritten: move it away")
    return write_page(path, index_page(index, at))


@cache
def _template() -> Template:
    return template(
        "index.html.j2",
        style=asset("page.css") + asset("index.css"),
        script=asset("index.js"),
        filters={"utc": lambda at: f"{at:%Y-%m-%d %H:%M} UTC", "duration": words.duration},
        generator=_OURS,
        strip_width=WIDTH,
        strip_height=HEIGHT,
    )
