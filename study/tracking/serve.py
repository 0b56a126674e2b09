"""Server of a database's dashboard on this machine."""

from __future__ import annotations

import errno
import os
import queue
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from study.errors import InputError, TrackingError
from study.interface.stop_signals import set_handlers, signal_name
from study.tracking.address import ENVIRONMENT, artifacts, database, log_ahead

_HOST = "127.0.0.1"
_GRACE_S = 10
_GENTLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def ui_command(uri: str, port: int = 5000, host: str = _HOST) -> tuple[list[str], dict[str, str]]:
    """Return the command that serves a database to browsers, and its complete environment.

    The database's address is in the environment, since all users could read the password of an argument. Variables of
    `ENVIRONMENT` replace those already set.

    Args:
        uri: the database's address.
        port: 1..65535.
        host: interface to listen on; the dashboard has no password.
    """
    command = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1"]
    command += ["--uvicorn-opts", "--log-level warning"]  # else every request prints a line
    folder = artifacts(uri)
    if folder is not None:
        command += ["--artifacts-destination", folder.as_uri()]
    return command, os.environ | ENVIRONMENT | {
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "PYTHONWARNINGS": "ignore",  # deprecations in its libraries don't concern users of studies
        # Python and uvicorn, which MLflow starts, must not import files of the working folder.
        "PYTHONSAFEPATH": "1",
        "UVICORN_APP_DIR": sysconfig.get_path("purelib"),
    }


def port_for(port: int) -> int:
    """Return a free port of this machine's interface 127.0.0.1: the given one, or any for 0.

    Args:
        port: the port to check, 0..65535; 0 for any.

    Raises:
        InputError: if the port is out of range, in use, or not permitted.
    """
    if not 0 <= port < 2**16:
        raise InputError(f"port must be from 0 to 65535, but got {port}")
    with socket.socket() as probe:
        # Servers set this option, too; with it, the port of a server that has just ended is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
            probe.listen()
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "another program listens there, perhaps another `study ui`" if taken else error.strerror
            raise InputError(
                f"can't listen on port {port} of this machine: {reason}; give another one, such as "
                f"--port {port % 65535 + 1}, or --port 0 for any that is free"
            ) from error
        return int(probe.getsockname()[1])


def check_servable(uri: str) -> None:
    """Check that a database file's folder exists, since MLflow would make it and show nothing; no-op for others.

    Raises:
        InputError: if it doesn't exist.
    """
    path = database(uri)
    if path is not None and not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}, so no dashboard: correct --store or --tracking-uri, or run a study "
            "there, which makes it"
        )


def until_signal(begin: Callable[[], None]) -> None:
    """Wait for Ctrl-C, SIGTERM or SIGHUP, then restore the former signal handlers. Call it in the main thread.

    Args:
        begin: called once the signal handlers are set.
    """
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()  # reentrant, so that a handler may put into it at any time
    before = {number: signal.signal(number, lambda number, frame: signals.put(number)) for number in _GENTLY}
    try:
        begin()
        signals.get()
    finally:
        set_handlers(before)


def serve(uri: str, port: int) -> None:
    """Serve a database's dashboard until a signal comes, then end all its processes; make a missing database file.

    The signals are Ctrl-C, SIGTERM and SIGHUP. The processes are killed if they don't end within ten seconds. Call it
    in the main thread.

    Args:
        uri: the database's address.
        port: 1..65535.

    Raises:
        TrackingError: if the server ends by itself, or is killed.
        sqlite3.Error: if a missing database file can't be made.
    """
    command, environment = ui_command(uri, port=port)
    path = database(uri)
    if path is not None and not path.exists():
        log_ahead(path)
    is_ending = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal is_ending
        is_ending = True
        _signal(server, signal.SIGTERM)
        signal.alarm(_GRACE_S)

    def end_now(number: int, frame: FrameType | None) -> None:
        _signal(server, signal.SIGKILL)

    # Signals stay pending until the handlers are set.
    signal.pthread_sigmask(signal.SIG_BLOCK, _GENTLY)
    # MLflow starts nested processes; in their own group, one signal reaches all of them.
    server = subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_unblock_signals)
    before = {number: signal.signal(number, end) for number in _GENTLY}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, end_now)
    _unblock_signals()
    try:
        code = server.wait()
    finally:
        signal.alarm(0)
        _signal(server, signal.SIGKILL)  # child processes that are left
        set_handlers(before)
    if not is_ending:
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        raise TrackingError(f"MLflow's server {how}; start `study ui` again")


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _GENTLY)


def _signal(server: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(server.pid, number)
