"""Index of a store: the page that lists its studies, rewritten after changes."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from study import tracking
from study.errors import StudyError, reason_of
from study.reports import FORMATS
from study.reports.beside import beside
from study.reports.failures import MOST_REASONS
from study.reports.index_page import FailureEntry, IndexEntry, StoreIndex, write_index
from study.reports.strip import strip
from study.results.load import load_results
from study.results.serve import ServedFile
from study.results.study import own_folder
from study.results.tags import study_tags
from study.store import Store, StudyStore
from study.store.trial_files import ERROR, FILES, LOG, is_file_name
from study.summaries import heartbeat
from study.summaries.failures import Failure

EVERY_S = 3.0
"""Seconds between two looks at a store."""

_REST = 20.0
"""Seconds of rest for each CPU second spent on reading a study: training has priority."""

_REPORT_FILES = {name for names in FORMATS.values() for name in names}
_DEFAULT = "studies"  # the commands' default store


@dataclass(frozen=True)
class _StudyReading:
    """A cached entry of a study.

    Args:
        times: the modification times of the study's files when it was read.
        entry: the study's entry.
        due_s: the earliest time to read it again, by the monotonic clock.
    """

    times: dict[str, float]
    entry: IndexEntry
    due_s: float


class Index:
    """The index of a store.

    A study's results are read again when the times of its files have changed. MLflow is asked about each study until
    it knows the study.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: MLflow's address; None if nothing is published.
        dashboard: the address of MLflow's dashboard; None for the default.

    Raises:
        InputError: if no store exists at that address.
    """

    def __init__(self, root: str | Path, *, tracking_uri: str | None = None, dashboard: str | None = None) -> None:
        self._store = Store(root, read_only=True)
        self._store.require()
        self._option = "" if str(root) == _DEFAULT else shlex.join(["--store", str(root)])
        self._uri, self._dashboard = tracking_uri, dashboard
        self._readings: dict[str, _StudyReading] = {}
        self._links: dict[str, tracking.Links] = {}
        self._page: StoreIndex | None = None
        self.path = _path(root, self._store)

    def write(self, *, is_live: bool = False) -> bool:
        """Write the page, unless it exists and is the same as this object wrote last.

        Args:
            is_live: True if `follow` keeps the page current; it says so, and updates itself when it is served.

        Returns:
            True if the page was written.

        Raises:
            InputError: if another file has the page's name.
            StudyError: if the store can't be read, or the page can't be written.
        """
        entries = [self._entry(name, may_wait=is_live) for name in self._store.studies()]
        if self._uri is not None:
            unknown = [entry.name for entry in entries if entry.name not in self._links]
            self._links |= tracking.links_of(self._uri, unknown, address=self._dashboard)
        entries = [replace(e, dashboard=self._links[e.name].study if e.name in self._links else "") for e in entries]
        page = StoreIndex(
            where=self._store.where,
            entries=sorted(entries, key=_order),
            dashboard=self.dashboard_page if self._links else "",
            option=self._option,
            is_live=is_live,
        )
        if page == self._page and self.path.exists():
            return False
        try:
            write_index(self.path, page, datetime.now(UTC))
        except OSError as error:
            raise StudyError(f"can't write the index to {self.path}: {error.strerror or error}") from error
        self._page = page
        return True

    def follow(self, over: threading.Event, notify: Callable[[str], None]) -> None:
        """Write the page after each change until an event is set, then once more as a page that isn't live.

        Until then, a changed study is read again only after 20 s of rest per CPU second of its last reading. Call this
        in a thread of its own. A `StudyError` is reported, and doesn't end it.

        Args:
            over: the event that ends it.
            notify: called with the reason if the store can't be read, or the page can't be written; once for equal
                reasons in a row.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))  # for the main thread
        reason, is_live = "", True
        while is_live:
            is_live = not over.wait(EVERY_S)
            try:
                self.write(is_live=is_live)
                reason = ""
            except StudyError as error:
                if str(error) != reason:
                    notify(str(error))
                reason = str(error)

    def file_of(self, address: str) -> ServedFile | None:
        """Return the file at a path: the index, a file of a report that it links to, or a file of a trial.

        Args:
            address: the path, relative to the index as a browser resolves it.

        Returns:
            The file, which may be missing; None for any other path, or if the file's folder lies behind a symbolic
            link. Before the first `write`, only the index has a path.
        """
        if address in ("", self.path.name):
            return ServedFile(self.path)
        folder, _, name = address.rpartition("/")
        root = self._store.path or Path()
        for entry in self._page.entries if self._page is not None else ():
            study = self._store.study(entry.name)
            if entry.report and folder == _as_asked(entry.report).rpartition("/")[0] and name in _REPORT_FILES:
                place = own_folder(study)
                return ServedFile(place / name) if _is_inside(place, root) else None
            files = f"{_as_asked(entry.folder)}/{FILES}/"
            is_of_trial = address.startswith(files) and is_file_name(address.removeprefix(files))
            if entry.folder and is_of_trial and study.path is not None:
                file = study.path / FILES / address.removeprefix(files)
                return ServedFile(file, is_ours=False) if _is_inside(file.parent, root) else None
        return None

    @property
    def dashboard_page(self) -> str:
        """The address of MLflow's page of the studies that it knew at the last write; empty without MLflow.

        If it knew none, this is its list of experiments.
        """
        if self._uri is None:
            return ""
        return tracking.studies_page(tracking.dashboard_of(self._uri, self._dashboard), [*self._links.values()])

    @property
    def has_runs(self) -> bool:
        """True if MLflow knew any of the studies at the last write."""
        return bool(self._links)

    def _entry(self, name: str, *, may_wait: bool) -> IndexEntry:
        """Return a study's entry: the cached entry if the study hasn't changed, or isn't due and may wait.

        Its holder, heartbeat and addresses are always current.

        A study that couldn't be read is tried again: the store may have been unreachable.
        """
        try:
            folder = self._store.study(name)
            times, reading = folder.times(), self._readings.get(name)
            is_due = not may_wait or reading is None or time.monotonic() >= reading.due_s
            if reading is None or (is_due and (reading.times != times or reading.entry.error)):
                used_s = time.process_time()
                entry = _read(name, self._store, times)
                used_s = time.process_time() - used_s
                reading = self._readings[name] = _StudyReading(
                    times, entry, time.monotonic() + max(EVERY_S, _REST * used_s)
                )
            holder = folder.holder() or ""
            beat = heartbeat.read(folder.read_heartbeat()) if holder else None
            base = self.path.parent
            own = "" if folder.path is None else quote(os.path.relpath(folder.path, base))
            page = _page_address(folder, base)
            return replace(reading.entry, holder=holder, heartbeat=beat, folder=own, report=page)
        except StudyError as error:
            return IndexEntry(name=name, error=str(error))


def _read(name: str, store: Store, times: dict[str, float]) -> IndexEntry:
    """Read a study's entry: its finding, counts and failures, or the reason why it can't be read."""
    written = [at for key, at in times.items() if key.startswith("results/")]
    written_at = datetime.fromtimestamp(max(written), UTC) if written else None
    folder, tags = store.study(name), tuple[str, ...]()
    try:
        tags = study_tags(folder)
        results = load_results(name, store.address)
    except Exception as error:  # one broken study must not hide the others
        return IndexEntry(name=name, tags=tags, written_at=written_at, error=reason_of(error))
    counts, has_any = results.counts, bool(results.counts["done"])
    return IndexEntry(
        name=name,
        question=results.plan.spec.question,
        finding=results.headline if has_any else "",
        trials=counts["trials"],
        done=counts["done"],
        failed=counts["failed"],
        failures=[_failure(folder, failure) for failure in results.failures[:MOST_REASONS]],
        more_failures=max(0, len(results.failures) - MOST_REASONS),
        tags=tags,
        cells=len(results.summaries),
        strip=strip(results.rows) if has_any else None,
        beside=beside(results.rows, results.summaries) if has_any else None,
        written_at=written_at,
    )


def _failure(folder: StudyStore, failure: Failure) -> FailureEntry:
    """Return a failure's entry, with the path of its example's log, else of its traceback, or empty without either."""
    files = folder.file_sizes(failure.trial_id)
    log = next((folder.trial_file(failure.trial_id, name) for name in (LOG, ERROR) if name in files), "")
    return FailureEntry(failure.trials, failure.reason, log)


def _as_asked(address: str) -> str:
    """Return an address as a browser requests it, without parts that lead above the root."""
    return "/".join(part for part in PurePosixPath(unquote(address)).parts if part != "..")


def _is_inside(folder: Path, root: Path) -> bool:
    """Return True unless a folder of a store lies behind a symbolic link."""
    return folder.resolve() == root.resolve() / folder.relative_to(root)


def _order(entry: IndexEntry) -> tuple[bool, float, str]:
    """Return the sort key of an entry: running studies first, then those with the newest results."""
    return not entry.holder, -(entry.written_at.timestamp() if entry.written_at else 0.0), entry.name


def _page_address(folder: StudyStore, base: Path) -> str:
    """Return the address of a study's page relative to the index; empty if this machine has no such page."""
    page = own_folder(folder) / "report.html"
    return quote(os.path.relpath(page, base)) if page.is_file() else ""


def _path(root: str | Path, store: Store) -> Path:
    """Return the index's path: in the store, or in the working folder if the store isn't a writable folder."""
    folder = store.path
    can_write = folder is not None and os.access(folder, os.W_OK)
    return folder / "index.html" if folder is not None and can_write else Path("study-index.html")
