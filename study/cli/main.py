"""The group of commands, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from study.cli import dashboard, files, jobs, moves, results, studies
from study.cli.options import INTERRUPTED
from study.errors import StudyError
from study.settings import default_map, load_settings
from study.visible import visible


class _Group(click.Group):
    """A group of commands that prints each error as one clear message."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **more: Any) -> Any:
        """Run the command line; without `args`, exit even if a training function left threads running."""
        if args is not None:
            return super().main(args, *others, **more)
        try:
            return super().main(args, *others, **more)
        except SystemExit as end:
            _exit_despite_threads(end.code)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StudyError as error:
            click.echo(visible(f"study: {error}"), err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("\nstudy: interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except MemoryError as error:
            click.echo(f"study: this machine has too little memory: {error or 'no reason was given'}", err=True)
            ctx.exit(1)
        except BrokenPipeError:
            # The reader has gone (study ... | head): print nothing, and avoid a second error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


def _exit_despite_threads(code: Any) -> None:
    """End the process if a thread that a training function left would keep Python from exiting; else do nothing.

    Args:
        code: as in `SystemExit`: the exit code, None for 0, any other object for 1.
    """
    left_threads = sys.modules.get("study.interface.function.left_threads")
    if left_threads is None or not left_threads.keeps_from_exiting():
        return
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="seeded-study")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run hundreds of seeded training trials, and measure the reliability and speed of training.\f

    Raises:
        InputError: if a settings file can't be read or has mistakes, except for the command `doctor`.
    """  # noqa: D301 - click's help ends at the form feed
    if ctx.invoked_subcommand != "doctor":  # the doctor reports mistakes in the settings itself
        ctx.default_map = default_map(main.commands.values(), load_settings())
    # Garbage collection at exit is useless here, and takes 2 s once torch, Ray and MLflow have been imported.
    atexit.register(gc.freeze)


for _command in (
    *(*studies.COMMANDS, *results.COMMANDS, *files.COMMANDS),
    *(*dashboard.COMMANDS, *moves.COMMANDS, *jobs.COMMANDS),
):
    main.add_command(_command)
