"""A new Python process that calls functions, each in a fork of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from study.engine.calls.guarded import GuardedProcess, import_path

_PROGRAM = "study.interface.function.fresh"


class FreshCallError(Exception):
    """A call in a fresh process that didn't return; the message is one line."""


class FreshProcess:
    """A process that has imported no user code yet; as a context manager, it ends with the block.

    The process and everything it has started end with this process, even if this process is killed.

    Args:
        environment: environment variables; None for those of this process.
        is_quiet: whether to drop the calls' output; otherwise it goes to stderr.

    Example:
        >>> with FreshProcess() as fresh:
        ...     fresh.call(divmod, 7, 2)
        [3, 1]
    """

    def __init__(self, *, environment: Mapping[str, str] | None = None, is_quiet: bool = False) -> None:
        self._environment, self._is_quiet = environment, is_quiet

    def __enter__(self) -> Self:
        output = None if self._is_quiet else 2
        self._process = GuardedProcess(_PROGRAM, {"path": import_path()}, environment=self._environment, output=output)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.close()

    def prepare(self, function: Callable[..., object], *arguments: Any) -> None:
        """Start a module's function in the process itself, whose imports later calls reuse; `ready` waits for it.

        Raises:
            TypeError: if the arguments aren't JSON.
        """
        self._send(False, function, arguments)

    def ready(self, timeout_s: float | None = None) -> None:
        """Wait until the prepared call has returned.

        Args:
            timeout_s: seconds to wait; None for no limit.

        Raises:
            FreshCallError: if the call failed, its process ended, or it took longer.
        """
        self._receive(timeout_s)

    def call(self, function: Callable[..., Any], *arguments: Any, timeout_s: float | None = None) -> Any:
        """Call a module's function in a fork of the process, and return its value.

        Args:
            function: a function of a module; it is sent by name.
            arguments: its arguments, as JSON; the return value is JSON, too.
            timeout_s: seconds that it may take; None for no limit.

        Raises:
            FreshCallError: if the call failed or its value isn't JSON, its process ended, or it took longer than
                `timeout_s`. After a timeout, no other call can be made.
            TypeError: if the arguments aren't JSON.
        """
        self._send(True, function, arguments)
        return self._receive(timeout_s)

    def _send(self, is_forked: bool, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        name = {"module": function.__module__, "name": function.__qualname__}
        self._process.send({"is_forked": is_forked, "arguments": arguments} | name)

    def _receive(self, timeout_s: float | None) -> Any:
        """Return the value of the next answer; an error, a timeout or the process's end raises FreshCallError."""
        try:
            if not self._process.connection.poll(timeout_s):
                raise FreshCallError(f"it took longer than {timeout_s:g} s")
            answer = json.loads(self._process.connection.recv_bytes())
        except (EOFError, OSError, ValueError):
            raise FreshCallError("its process ended") from None
        if "error" in answer:
            raise FreshCallError(answer["error"])
        return answer["value"]
