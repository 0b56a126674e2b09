"""Pages of a store: its index, and MLflow's dashboard."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from study.api.where import STORE, Where

if TYPE_CHECKING:
    from collections.abc import Iterator


def index(*, store: str | Path = STORE, tracking_uri: str | None = None) -> Path:
    """Write the index of a store: a page with the progress and the finding of each study.

    Args:
        store: the store's folder or URL.
        tracking_uri: MLflow's address; None for a database in the store, ``off`` for none.

    Returns:
        The page: ``index.html`` in the store, or ``study-index.html`` in the working folder if the store isn't a
        writable folder.

    Raises:
        InputError: if the store doesn't exist, another file has the page's name, or `tracking_uri` is a word such as
            ``none`` instead of ``off``.
        StudyError: if the store can't be read, or the page can't be written.
    """
    from study.results.index import Index

    where = Where(str(store), tracking_uri)
    written = Index(where.store, tracking_uri=where.tracking)
    written.write()
    return written.path


def serve_pages(where: Where, port: int, *, opens: bool, notify: Callable[[str], None]) -> None:
    """Write the index of a store, keep it up to date, and serve it and MLflow's dashboard, until a signal comes.

    The signals are Ctrl-C, SIGTERM and SIGHUP. If only the database of `where` exists, there is no index. Call it in
    the main thread.

    Args:
        where: addresses of the store and of MLflow. A database is served; an MLflow server is only linked to.
        port: the dashboard's port; 0 for any free port. The index has the next port, or any if that is taken.
        opens: True to open the index in a browser.
        notify: called with each sentence for the user.

    Raises:
        InputError: if the store doesn't exist, unless ``where.tracking_uri`` is a database in a folder that does; if
            the port is taken; or if another file has the index's name.
        StudyError: if the store can't be read, or the index can't be written.
        TrackingError: if MLflow's server ends before a signal comes.
    """
    from study import tracking
    from study.store import Store

    uri = where.tracking
    served = None if uri is None or uri.startswith("http") else uri
    has_store = Store(where.store, read_only=True).is_there
    if served is None or where.tracking_uri is None:
        Store(where.store, read_only=True).require()
    if served is not None:
        tracking.check_servable(served)
        port = tracking.port_for(port)
    dashboard = None if served is None else f"http://127.0.0.1:{port}"
    pages = _index(where, dashboard, port, opens=opens, notify=notify) if has_store else _no_index(where, notify)
    with pages as page:
        sentence = f"dashboard: {page or _no_runs(uri, dashboard)} (Ctrl-C ends)"
        if served is not None:
            notify(sentence)
            tracking.serve(served, port)
        else:
            tracking.until_signal(lambda: notify(sentence))


def _no_runs(uri: str | None, dashboard: str | None) -> str:
    """Return the address of MLflow's list of experiments, or the reason why it doesn't exist."""
    from study import tracking

    if uri is None:
        return "none, since nothing is published to MLflow"
    return tracking.studies_page(tracking.dashboard_of(uri, dashboard), [])


@contextmanager
def _index(
    where: Where, dashboard: str | None, port: int, *, opens: bool, notify: Callable[[str], None]
) -> Iterator[str]:
    """Write and serve the index, update it in a thread, and yield the address of the studies' runs."""
    from study.results.index import Index
    from study.results.serve import served, ssh_command

    followed = Index(where.store, tracking_uri=where.tracking, dashboard=dashboard)
    followed.write(is_live=True)
    with served(followed.file_of, port + 1 if port else 0) as own_port:
        address = f"http://127.0.0.1:{own_port}/"
        notify(f"studies:   {address}")
        notify(f"elsewhere: {ssh_command([own_port, *([port] if dashboard else [])])}")
        if opens and _has_screen():
            webbrowser.open(address)
        over = threading.Event()
        thread = threading.Thread(target=followed.follow, args=(over, notify), name="index", daemon=True)
        thread.start()
        is_empty = dashboard is not None and not followed.has_runs  # an MLflow server may just not have answered
        try:
            yield followed.dashboard_page + (", with nothing published yet" if is_empty else "")
        finally:
            over.set()
            thread.join()


@contextmanager
def _no_index(where: Where, notify: Callable[[str], None]) -> Iterator[str]:
    notify(f"studies:   none: no store exists at {where.shown_store}")
    yield ""


def _has_screen() -> bool:
    """Return True if there is a display, or the user has set BROWSER; else Python might start a text browser."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
