"""Calls of functions, each in a fork of a process that has just been started; `study.driver.fresh` is the parent.

The process imports what the calls need once, and each fork begins with that state: nothing that a call changes is there
in the next one.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from tasks.function.call import failure_of

_ANSWERED = 113  # the exit code of a fork that has sent its answer; user code that calls os._exit hardly uses it


def run(parent: Connection, request: Mapping[str, Any]) -> None:
    """Answer the parent's calls until it closes the connection.

    A call is a pair: whether it runs in a fork, and the pickled function and arguments. An answer is a pair: whether
    the function returned, and its value or the reason why there is none. Both come from the user's own processes, never
    from a store.
    """
    while True:
        try:
            is_forked, call = parent.recv()
        except EOFError:
            return
        if not is_forked:
            parent.send_bytes(_answer(call, has_value=False))
            continue
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            parent.send_bytes(_answer(call, has_value=True))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_ANSWERED)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code != _ANSWERED:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            parent.send_bytes(pickle.dumps((False, f"its process ended {how}")))


def _answer(call: bytes, *, has_value: bool) -> bytes:
    """Return the pickled answer to a call."""
    try:
        function, arguments = pickle.loads(call)  # noqa: S301 (of the parent)
        value = function(*arguments)
        return pickle.dumps((True, value if has_value else None))
    except BaseException as error:  # user code may raise anything
        return pickle.dumps((False, str(failure_of(error))))
