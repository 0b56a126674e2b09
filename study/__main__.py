"""Run the command line as ``python -m study``."""

from study.cli import main

main()
