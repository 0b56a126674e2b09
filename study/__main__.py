"""Run the command line as ``python -m study``."""

import os
import sys

# With -m, Python searches the working folder first, where a `tasks.py` would hide this package's. In a checkout, where
# this file itself was found in the working folder, the folder must stay on the path.
if not sys.flags.safe_path and __file__ != os.path.join(sys.path[0], "study", "__main__.py"):  # noqa: PTH118
    del sys.path[0]

from study.cli import main

main()
