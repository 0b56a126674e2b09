"""The user's command that announces the end of a study, from their own settings file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from study.console import Console
from study.errors import last_line
from study.settings import FILE, NOTIFY, PLACES, folder_notifies, notify_command, user_file
from study.visible import visible

_TIMEOUT_S = 10.0


@dataclass
class News:
    """News of a run for the user's command.

    Args:
        study: the study's name.
        has_begun: whether anything was trained; otherwise nothing is announced.
        ending: how the run ended: ``finished``, ``failures``, ``report-failed``, ``interrupted`` or ``error``.
        finding: the study's finding in a sentence, or the message of an error.
        report: place of the report's page; empty if there is none.
    """

    study: str
    has_begun: bool = False
    ending: str = "error"
    finding: str = ""
    report: str = ""

    @property
    def places(self) -> Mapping[str, str]:
        """Values of the placeholders in `PLACES`, by name, with control characters escaped."""
        return {name: visible(getattr(self, name)) for name in PLACES}


@contextmanager
def notifying(study: str, console: Console) -> Iterator[News]:
    """Run the user's command after the block, also if it raised an Exception, but not KeyboardInterrupt or SystemExit.

    Nothing is run without a command, or if `has_begun` is still False. Only the user's own settings can have a command;
    one in the working folder's settings isn't run, and a warning says so before the block.

    Args:
        study: the study's name.
        console: where a failure of the command, and this warning, are printed.

    Yields:
        The news, to be filled in.

    Raises:
        InputError: if the user's settings can't be read or have mistakes; the block isn't run then.
    """
    command, news = notify_command(), News(study)
    if folder_notifies():
        console.print(
            f"{NOTIFY} in this folder's {FILE} isn't run, since the file may be somebody else's; put it into your own, "
            f"{user_file()}",
            style="yellow",
        )
    try:
        yield news
    except Exception as error:
        news.ending, news.finding = "error", str(error) or type(error).__name__
        _notify(command, news, console)
        raise
    _notify(command, news, console)


def _notify(command: Sequence[str], news: News, console: Console) -> None:
    """Run the command for at most ten seconds, and warn if it fails; no-op without one, or if the run hasn't begun."""
    if not command or not news.has_begun:
        return
    words = [re.sub(r"\{([a-z_]+)\}", lambda match: news.places[match[1]], word) for word in command]
    variables = {f"STUDY_{'NAME' if name == 'study' else name.upper()}": text for name, text in news.places.items()}
    with tempfile.TemporaryFile() as errors:
        try:
            code = _call(words, os.environ | variables, errors.fileno())
        except OSError as error:
            reason: str | None = error.strerror or str(error)
        else:
            errors.seek(0)
            reason = _reason(code, errors.read().decode(errors="replace"))
    if reason is not None:
        console.print(f"{NOTIFY}: {command[0]} failed: {reason}. Nothing else depends on it", style="yellow")


def _reason(code: int | None, errors: str) -> str | None:
    """Return the reason of a command's failure; None if it succeeded."""
    if code is None:
        return f"it took longer than {_TIMEOUT_S:g} s and was killed"
    return f"exit code {code}: {last_line(errors)}" if code else None


def _call(words: Sequence[str], environment: Mapping[str, str], errors: int) -> int | None:
    """Run a command and return its exit code; after a timeout, kill its process group and return None."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, env=environment, stdin=null, stdout=null, stderr=errors, start_new_session=True)
    try:
        return process.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
