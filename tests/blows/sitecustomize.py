"""A blow at a counted event: after the n-th call of a method, its process sends itself a signal.

So the signal comes at the same point of the work on any machine. Python imports this file in each process that has its
folder on PYTHONPATH; `tests.commands.blow` makes the environment. Child processes, including workers on Ray, inherit
the blow; only one process strikes.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

BLOW = "STUDY_TEST_BLOW"


class Blow(MetaPathFinder):
    """An import hook that arms one method of a module.

    Args:
        method: ``package.module:Class.method``.
        count: number of the call after which it strikes.
        number: number of the signal.
        group: whether the whole process group gets it.
        marker: a file made at the blow; once it exists, no process strikes.
    """

    def __init__(self, method: str, count: int, number: int, group: bool, marker: str) -> None:
        self._module, _, path = method.partition(":")
        self._class, _, self._method = path.partition(".")
        self._count, self._number, self._group, self._marker = count, number, group, Path(marker)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find the module as usual, and arm it once it has been executed."""
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_arm(module: ModuleType) -> None:
            execute(module)
            self._arm(getattr(module, self._class))

        loader.exec_module = execute_and_arm
        return spec

    def _arm(self, owner: type) -> None:
        act, calls = getattr(owner, self._method), itertools.count(1)

        @functools.wraps(act)
        def armed(*args: Any, **named: Any) -> Any:
            result = act(*args, **named)
            if next(calls) == self._count:
                self._strike()
            return result

        setattr(owner, self._method, armed)

    def _strike(self) -> None:
        try:
            self._marker.touch(exist_ok=False)
        except FileExistsError:
            return
        if self._group:
            os.killpg(0, self._number)
        else:
            os.kill(os.getpid(), self._number)


if BLOW in os.environ:
    sys.meta_path.insert(0, Blow(**json.loads(os.environ[BLOW])))
