"""Files in a working folder that have names of modules and record their import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_TRAP = """
with open({marker!r}, "a") as marker:
    marker.write(__file__ + "\\n")
raise ImportError("a module of the working folder was imported")
"""
PACKAGE = "study/__init__.py"
MODULES = ("tasks.py", "units.py", "json.py", "numpy.py", "ray.py", "torch.py", "mlflow.py", "sqlalchemy.py")


def lay_traps(folder: Path, *names: str) -> Callable[[], list[str]]:
    """Write traps, and return a function that lists the files that were imported.

    Args:
        folder: the working folder.
        names: the names of the files.
    """
    marker = folder / "imported.txt"
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(_TRAP.format(marker=str(marker)))
    return lambda: marker.read_text().splitlines() if marker.exists() else []
