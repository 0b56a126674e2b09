"""Function calls, each in a fork of a fresh process; `study.engine.calls.fresh` is the parent.

The process imports the calls' modules once. Each fork starts from that state, so a call can't affect later calls.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from study.interface.function.call import failure_of

_ANSWERED = 113  # exit code of a fork that has sent its answer; unlikely in user code that calls os._exit


def run(parent: Connection, request: Mapping[str, Any]) -> None:
    """Answer the parent's calls until it closes the connection.

    A call is a frame of JSON: `is_forked`, true to run it in a fork; `module` and `name` of the function; its
    `arguments`. The answer is a frame of JSON with the function's `value`, or an `error`: the exception that it raised,
    or how its fork ended without an answer.

    Args:
        parent: connection to the parent.
        request: unused.

    Raises:
        OSError: if the connection breaks before an answer is sent.
    """
    while True:
        try:
            call = json.loads(parent.recv_bytes())
        except EOFError:
            return
        if not call["is_forked"]:
            parent.send_bytes(_answer(call))
            continue
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            parent.send_bytes(_answer(call))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_ANSWERED)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code != _ANSWERED:
            ending = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            parent.send_bytes(json.dumps({"error": f"its process ended {ending}"}).encode())


def _answer(call: Mapping[str, Any]) -> bytes:
    try:
        function: Any = importlib.import_module(call["module"])
        for part in call["name"].split("."):
            function = getattr(function, part)
        return json.dumps({"value": function(*call["arguments"])}).encode()
    except BaseException as error:  # user code may raise anything
        return json.dumps({"error": str(failure_of(error))}).encode()
