"""Calls of functions, each in a fork of a fresh process; `study.engine.calls.fresh` is the parent.

The process imports what the calls need once, and each fork begins with that state: nothing that a call changes is there
in the next one.
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

_ANSWERED = 113  # the exit code of a fork that has sent its answer; user code that calls os._exit hardly uses it


def run(parent: Connection, request: Mapping[str, Any]) -> None:
    """Answer the parent's calls until it closes the connection.

    A call is a frame of JSON: `is_forked`, whether it runs in a fork; `module` and `name` of a function; and its
    `arguments`. An answer is a frame of JSON: the `value` of the function, or the `error` that kept it from returning.
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
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            parent.send_bytes(json.dumps({"error": f"its process ended {how}"}).encode())


def _answer(call: Mapping[str, Any]) -> bytes:
    try:
        function: Any = importlib.import_module(call["module"])
        for part in call["name"].split("."):
            function = getattr(function, part)
        return json.dumps({"value": function(*call["arguments"])}).encode()
    except BaseException as error:  # user code may raise anything
        return json.dumps({"error": str(failure_of(error))}).encode()
