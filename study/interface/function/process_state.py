"""State of the process that a training function may change, saved before and restored after each trial.

The state of a library is saved only if the library has been imported. State that can't be restored, such as global
variables of modules, requires a process for each trial (`isolation: process`).
"""

from __future__ import annotations

import signal  # imports `_signal`, whose `getsignal` is twenty times as fast
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

from study.interface.error_text import attempt, is_users_file

_OURS = {"study", "tasks", "units"}
_UNKNOWN = object()


class _Part(NamedTuple):
    """A part of the state.

    Args:
        module: name of the module that has the part, if it is imported.
        read: returns the part, given the module.
        write: restores the part, given the module and the saved value.
        is_setting: True if modules may set it at import, for the lifetime of the process.
    """

    module: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object]
    is_setting: bool = True


@dataclass(frozen=True)
class ProcessState:
    """State of this process at a point in time.

    Args:
        values: saved value of each part.
        modules: number of imported modules.

    Example:
        >>> import decimal
        >>> before = ProcessState.now()
        >>> decimal.getcontext().prec = 3
        >>> before.restore()
        >>> decimal.getcontext().prec
        28
    """

    values: Mapping[_Part, Any]
    modules: int

    @classmethod
    def now(cls) -> ProcessState:
        """Save the current state."""
        return cls({part: _read(part) for part in _PARTS}, len(sys.modules))

    def restore(self, *, keeps_settings: bool = False) -> None:
        """Restore the state; parts that weren't saved or can't be restored are left unchanged.

        If modules of the user were imported meanwhile, settings such as environment variables and numbers of threads
        are kept: the modules may have made them, and won't run again when the next trial imports them.

        Args:
            keeps_settings: True to keep settings in any case.
        """
        keeps_settings = keeps_settings or self._users_modules_were_imported()
        for part, before in self.values.items():
            if before is _UNKNOWN or (keeps_settings and part.is_setting):
                continue
            module = sys.modules.get(part.module)
            with suppress(BaseException):  # a user's object may raise anything
                if _read(part) != before:
                    part.write(module, before)

    def _users_modules_were_imported(self) -> bool:
        count = len(sys.modules) - self.modules
        return count > 0 and any(map(_is_users_module, list(islice(reversed(sys.modules), count))))


def _is_users_module(name: str) -> bool:
    module = sys.modules.get(name)
    file = attempt(lambda: vars(module).get("__file__"), None)
    return isinstance(file, str) and name.partition(".")[0] not in _OURS and is_users_file(file)


def _read(part: _Part) -> Any:
    module = sys.modules.get(part.module)
    try:
        return _UNKNOWN if module is None else part.read(module)
    except Exception:  # such as a working directory that was removed
        return _UNKNOWN


def _attribute(module: str, path: str, *, is_setting: bool = True) -> _Part:
    """Make a part from an attribute of a module, or from one of an object in the module."""
    *parents, name = path.split(".")

    def holder(parent: Any) -> Any:
        for attribute in parents:
            parent = getattr(parent, attribute)
        return parent

    return _Part(
        module,
        lambda root: getattr(holder(root), name),
        lambda root, before: setattr(holder(root), name, before),
        is_setting,
    )


def _set_environment(module: Any, before: Mapping[bytes, bytes]) -> None:
    now = dict(module.environ._data)
    for name in now.keys() - before.keys():
        del module.environb[name]
    for name in before.keys() - {name for name, value in now.items() if before.get(name) == value}:
        module.environb[name] = before[name]


def _handlers(module: Any) -> Mapping[int, Any]:
    return {number: module.getsignal(number) for number in _SIGNAL_NUMBERS}


def _set_handlers(module: Any, before: Mapping[int, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and module.getsignal(number) is not handler:
            module.signal(number, handler)


def _set_timer(module: Any, before: tuple[float, float]) -> None:
    """Cancel a trial's alarm, whose handler is removed; set the earlier alarm again if it was replaced."""
    left_s = module.getitimer(module.ITIMER_REAL)[0]
    if bool(left_s) != bool(before[0]) or left_s > before[0]:
        module.setitimer(module.ITIMER_REAL, *before)


def _set_filters(module: Any, before: list[Any]) -> None:
    module.resetwarnings()
    module.filters[:] = before


def _set_backend(module: Any, before: Any) -> None:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if isinstance(pyplot, ModuleType) and isinstance(before, str):
        pyplot.switch_backend(before)
    dict.__setitem__(module.rcParams, "backend", before)


def _deterministic(torch: Any) -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _default_device(torch: Any) -> Any:
    """Return torch's default device, or None; unlike `torch.get_default_device`, this makes no tensor."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


_SIGNAL_NUMBERS = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE")
)

_PARTS = (
    _Part("os", lambda os: os.getcwd(), lambda os, before: os.chdir(before), is_setting=False),
    _Part("os", lambda os: dict(os.environ._data), _set_environment),
    _Part("_signal", _handlers, _set_handlers, is_setting=False),
    _Part("_signal", lambda m: m.getitimer(m.ITIMER_REAL), _set_timer, is_setting=False),
    _Part("sys", lambda sys: sys.argv[:], lambda sys, before: setattr(sys, "argv", before), is_setting=False),
    _attribute("sys", "stdout", is_setting=False),
    _attribute("sys", "stderr", is_setting=False),
    _Part("sys", lambda sys: sys.getrecursionlimit(), lambda sys, before: sys.setrecursionlimit(before)),
    _Part("warnings", lambda warnings: warnings.filters[:], _set_filters),
    _Part("decimal", lambda decimal: decimal.getcontext().copy(), lambda decimal, before: decimal.setcontext(before)),
    _Part("locale", lambda m: m.setlocale(m.LC_ALL), lambda m, before: m.setlocale(m.LC_ALL, before)),
    _Part("numpy", lambda numpy: numpy.geterr(), lambda numpy, before: numpy.seterr(**before)),
    _Part("matplotlib", lambda m: dict.__getitem__(m.rcParams, "backend"), _set_backend),
    _Part("torch", lambda torch: torch.is_grad_enabled(), lambda torch, before: torch.set_grad_enabled(before), False),
    _Part("torch", lambda torch: torch.get_default_dtype(), lambda torch, before: torch.set_default_dtype(before)),
    _Part("torch", _default_device, lambda torch, before: torch.set_default_device(before)),
    _Part("torch", lambda torch: torch.get_num_threads(), lambda torch, before: torch.set_num_threads(before)),
    _Part("torch", _deterministic, lambda torch, b: torch.use_deterministic_algorithms(b[0], warn_only=b[1])),
    _Part(
        "torch",
        lambda torch: torch.get_float32_matmul_precision(),
        lambda torch, before: torch.set_float32_matmul_precision(before),
    ),
    _Part("torch", lambda torch: torch.is_anomaly_enabled(), lambda torch, b: torch.autograd.set_detect_anomaly(b)),
    _attribute("torch", "backends.cudnn.deterministic"),
    _attribute("torch", "backends.cudnn.benchmark"),
)
