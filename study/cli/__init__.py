"""Command line of the service. Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted."""

from study.cli.main import main

__all__ = ["main"]
