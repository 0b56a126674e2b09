"""Run the command line as ``python -m study``."""

import os
import sys

# After -m Python searches the working folder first, where a `tasks.py` would be taken for this package's. If this file
# itself was found there, in a checkout, it has to stay.
if not sys.flags.safe_path and __file__ != os.path.join(sys.path[0], "study", "__main__.py"):  # noqa: PTH118
    del sys.path[0]

from study.cli import main

main()
