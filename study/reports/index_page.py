"""The index of a store as one HTML page: its studies with what each has come to, any of them side by side.

This file says what the page shows; index.html.j2, index.css and index.js beside it say how.
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
    """A reason for which trials of a study failed.

    Args:
        trials: their number.
        reason: the error of one of them.
        log: the path of that trial's log in the study's folder; empty if there is none.
    """

    trials: int
    reason: str
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """A study of a store, in its index.

    Args:
        name: its name.
        question: the question that it answers.
        finding: the headline; empty before any trial has ended.
        trials: how many trials it asks for.
        done: how many have ended or failed.
        failed: how many have failed.
        failures: the most frequent reasons for which they failed.
        more_failures: how many other reasons there are.
        cells: how many rows its report has.
        tags: its tags, sorted.
        strip: its rows at a glance.
        beside: what `study.reports.beside` wrote of it.
        written_at: when its newest result was written; None if it has none.
        error: why it can't be read; empty if it can.
        holder: the process that runs it; empty if none does.
        heartbeat: how far that process is; None if it isn't known.
        folder: the address of its folder, relative to the page; empty if it isn't on this machine.
        report: the address of its report, relative to the page; empty if there is none.
        dashboard: the address of its runs in MLflow; empty if there are none.
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
        """Return the address of a failed trial's log, relative to the page; empty if there is none on this machine."""
        return f"{self.folder}/{failure.log}" if self.folder and failure.log else ""

    @property
    def progress(self) -> tuple[int, int]:
        """How many trials are done, and how many there are; of a running study by its heartbeat, if it has one."""
        beat = self.heartbeat
        return (beat.done, beat.trials) if beat is not None and beat.trials else (self.done, self.trials)

    @property
    def states(self) -> str:
        """The words by which the page filters studies, separated by spaces."""
        done, trials = self.progress
        is_done = "unreadable" if self.error else "finished" if trials and done >= trials else "unfinished"
        return " ".join([is_done, *(["running"] if self.holder else []), *(["failures"] if self.failed else [])])

    @property
    def training(self) -> Sequence[str]:
        """What is known of each cell that trains now."""
        beat = self.heartbeat
        if beat is None:
            return []
        means = {one.cell: f"{beat.metric} {words.measure(one.mean)} so far" for one in beat.values}
        lines = []
        for one in beat.training:
            share = [] if one.share is None else [f"{one.share:.0%} of the iterations"]
            parts = [words.count_of(one.trials, "trial"), *share, *([means[one.cell]] if one.cell in means else [])]
            lines.append(": ".join([*([one.cell] if one.cell else []), ", ".join(parts)]))
        more = beat.cells - len(beat.training)
        return [*lines, f"and {words.count_of(more, 'more cell')}"] if more > 0 else lines


@dataclass(frozen=True, kw_only=True)
class StoreIndex:
    """The content of an index.

    Args:
        where: the store's address.
        entries: the studies, in order.
        dashboard: the address of MLflow's list of experiments; empty if nothing is published.
        option: the words that name the store on a command line; empty if it needn't be named.
        is_live: whether the page is written again as long as something changes.
    """

    where: str
    entries: Sequence[IndexEntry]
    dashboard: str = ""
    option: str = ""
    is_live: bool = False


def index_page(index: StoreIndex, at: datetime, *, refresh_s: float = _REFRESH_S) -> str:
    """Write the page. Whatever comes from outside is escaped.

    Args:
        index: its content.
        at: when that was read from the store.
        refresh_s: after how long a page that is served asks for what has changed.
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
    """Write the page to a file, in place of an earlier one; the arguments are those of `index_page`.

    Raises:
        InputError: if the file is there and is no index.
        OSError: if it can't be written.
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
