"""Folders of copied code, and the import of objects from them.

An active folder is first on Python's search path, so that imports inside functions resolve there, too. It can't shadow
other packages, because `read_source_code` rejects code with their names. Python has one module per name, so a process
has one active folder at a time. The modules of an inactive folder are kept, and return as the same objects.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Set
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from study.errors import InputError, nearest
from study.interface.error_text import attempt, error_line
from study.interface.seeded import is_seeded
from study.interface.stop_signals import UnusualError, noting_stops, requested_stop
from study.plugins.import_string import ImportString, parse_import_string
from study.source.places import COPIES, OURS, is_installed, modules_in, place_elsewhere
from study.visible import visible

_FRAMES_OF_OURS = (__file__, importlib.__file__)
_lock = threading.RLock()
_active: CodeFolder | None = None


class CodeFolder:
    r"""A folder of modules, importable while the folder is active.

    As a context manager it is active inside the block.

    Args:
        path: the folder that `unpacked` returned; None if all objects are in installed packages.

    Example:
        >>> import tempfile
        >>> from study.source import ImportString
        >>> text = "from study import seeded\n@seeded\ndef train(seed):\n    return {'loss': seed / 2}\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "spirals.py").write_text(text)
        ...     with CodeFolder(Path(folder)) as code:
        ...         train = code.load(ImportString("spirals", "train"))
        >>> train(3)
        {'loss': 1.5}
    """

    def __init__(self, path: Path | None) -> None:
        self.path = None if path is None else path.resolve()
        self._search = [] if self.path is None else [str(self.path)]
        self._names = frozenset() if self.path is None else frozenset(modules_in(self.path))
        self._modules: dict[str, ModuleType] = {}  # this folder's modules, while it is inactive
        self._others: dict[str, ModuleType] = {}  # modules with the same names, while it is active

    def __enter__(self) -> Self:
        self.activate()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.deactivate()

    def activate(self) -> None:
        """Make this the active folder instead of any other.

        Call it before objects of the folder run, because they may import more modules. It is a cheap no-op if the
        folder is active already.

        Raises:
            InputError: if one of the folder's modules has a name of this package (`study`, `tasks`, `units`), or of a
                module of Python or of an installed package that the process has imported. No folder is active then.
        """
        global _active
        with _lock:
            if _active is self:
                return
            if _active is not None:
                _active.deactivate()
            self._check_names()
            self._others = self._taken()
            sys.modules.update(self._modules)
            sys.path[:0] = self._search
            COPIES.update(self._search)
            _active = self

    def deactivate(self) -> None:
        """Deactivate the folder and restore other modules with the same names; no-op if it isn't active.

        Objects that were imported from it remain usable.
        """
        global _active
        with _lock:
            if _active is not self:
                return
            self._modules = self._taken()
            sys.modules.update(self._others)
            self._search = [entry for entry in sys.path if self._contains(entry)]  # the code may have added entries
            sys.path[:] = [entry for entry in sys.path if not self._contains(entry)]
            _active = None

    def load(self, import_string: ImportString, bases: tuple[type, ...] = ()) -> Any:
        """Import an object marked by `study.seeded`, and leave the folder active.

        Args:
            import_string: the object.
            bases: classes whose subclasses need no mark.

        Raises:
            InputError: if the module doesn't exist, its import fails (the message has the failing line, if known), or
                it imports a module that isn't in the copy; also if the object doesn't exist or isn't marked, or as
                `activate` raises.
        """
        self.activate()
        known_modules = set(sys.modules)
        module = self._import(import_string)
        self._check_origins(import_string, sys.modules.keys() - known_modules)
        try:
            object_ = getattr(module, import_string.name)
        except AttributeError:
            names = [name for name, value in vars(module).items() if _may_call(value, bases)]
            hint = nearest(import_string.name, names) or f"; a study may call {', '.join(names) or 'nothing in it'}"
            raise InputError(f"{import_string}: {import_string.module} has no {import_string.name}{hint}") from None
        if not _may_call(object_, bases):
            classes = " or ".join(f"{base.__module__}.{base.__qualname__}" for base in bases)
            raise InputError(
                f"{import_string} isn't marked for studies: write @seeded above it, after "
                f"`from study import seeded`{f', or derive it from {classes}' if classes else ''}"
            )
        return object_

    def _import(self, import_string: ImportString) -> ModuleType:
        """Import a module; turn any error of it into an InputError, except a stop by a signal."""
        with noting_stops():
            try:
                return importlib.import_module(import_string.module)
            except BaseException as error:  # a module may even call sys.exit
                if requested_stop() is not None:
                    raise
                if isinstance(error, ModuleNotFoundError) and f"{import_string.module}.".startswith(f"{error.name}."):
                    raise InputError(
                        f"{import_string}: no module is called {error.name}, neither in the copy of the study's code "
                        "nor among the installed ones"
                    ) from None
                raise InputError(f"{import_string} can't be imported: {self.reason(error)}") from None

    def reason(self, error: BaseException) -> str:
        """Return an error's message with its file and line, in the user's own code if possible."""
        return visible(attempt(lambda: self._reason(error), error_line(error)))

    def _reason(self, error: BaseException) -> str:
        """Return an error's message after the file, number and text of the innermost line of the user's own code."""
        places = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
        words = [str(error)] if isinstance(error, UnusualError) else traceback.format_exception_only(error)
        if isinstance(error, SyntaxError):
            places.append((str(error.filename), error.lineno or 0))
            words = words[-1:]  # the earlier ones state the place
        reason = f"{''.join(words).strip()}{_hint(error)}"
        places = [place for place in places if Path(place[0]).is_absolute() and place[0] not in _FRAMES_OF_OURS]
        own_places = [place for place in places if self._contains(place[0])] or places
        if not own_places:  # such as for a file that can't be decoded
            return reason
        file, number = own_places[-1]
        name = Path(file).relative_to(self.path).as_posix() if self.path and self._contains(file) else file
        return f"{name}, line {number}:\n    {linecache.getline(file, number).strip()}\n{reason}"

    def _contains(self, path: str) -> bool:
        return self.path is not None and f"{path}/".startswith(f"{self.path}/")

    def _taken(self) -> dict[str, ModuleType]:
        """Remove modules with this folder's names or from its files from `sys.modules`, and return them."""
        taken = {
            name: module
            for name, module in sys.modules.copy().items()  # a copy, since another thread may import something
            if name.partition(".")[0] in self._names or self._contains(_file(module))
        }
        for name in taken:
            del sys.modules[name]
        return taken

    def _check_names(self) -> None:
        """Check that no module of this package, Python or an installed package has the name of one of the folder's."""
        # This package's names are always refused: its own later imports would find the folder's modules instead.
        for name in sorted(self._names & {*sys.modules, *OURS}):
            path = _file(sys.modules[name]) if name in sys.modules else ""
            if not path or name in OURS or name in sys.stdlib_module_names or is_installed(Path(path)):
                other = (
                    "that of this program"
                    if name in OURS
                    else f"{path or 'one'} that this process has imported already"
                )
                raise InputError(
                    f"two modules are called {name}: the study's, and {other}. A process can import only one of them: "
                    "rename yours, or uninstall the other"
                )

    def _check_origins(self, import_string: ImportString, imported: Set[str]) -> None:
        """Check that modules were imported from the copy or an installed package, not from the user's own folder."""
        for module in sorted(imported & sys.modules.keys()):
            file, top = _file(sys.modules[module]), module.partition(".")[0]
            if not file or self._contains(file):
                continue
            path = Path(file)
            if top in self._names:
                raise InputError(
                    f"two modules are called {module}: the study's, and {path}, which was imported instead. Rename the "
                    "study's"
                )
            if module == top and not is_installed(path) and top not in OURS and _is_from_search_path(top, path):
                raise InputError(
                    f"{import_string} imports {top} from {path}, which isn't in the copy of the study's code, because "
                    f"no import in that code names it: write `import {top}` into a module of yours, or include the file"
                )


def load_copied(folder: str, name: str) -> Any:
    """Import an object from a copy of code, in a process that runs nothing else.

    Args:
        folder: the folder that `unpacked` returned; empty if the object is in an installed package.
        name: the object's import string.

    Raises:
        InputError: if `name` isn't an import string, or as `CodeFolder.load` raises.
    """
    return CodeFolder(Path(folder) if folder else None).load(parse_import_string(name))


def load_announced(folder: str, name: str, sign: str) -> Any:
    """Import an object as `load_copied` does, then create an empty file to signal a waiting process.

    Args:
        folder: as for `load_copied`.
        name: as for `load_copied`.
        sign: path of the empty file; it isn't created if the import fails.

    Raises:
        InputError: as `load_copied` does.
        OSError: if the empty file can't be created.
    """
    loaded = load_copied(folder, name)
    Path(sign).touch()
    return loaded


def _is_from_search_path(name: str, path: Path) -> bool:
    place = place_elsewhere(name)
    return place is not None and place.path == path


def _may_call(object_: object, bases: tuple[type, ...]) -> bool:
    is_derived = isinstance(object_, type) and issubclass(object_, bases) and object_ not in bases
    return callable(object_) and (is_derived or is_seeded(object_))


def _file(module: ModuleType) -> str:
    """Return the folder of a package or the file of a module, or an empty text."""
    names = getattr(module, "__dict__", {})  # not the attributes: a module's own `__getattr__` may be slow
    folders, file = names.get("__path__"), names.get("__file__")
    try:
        file = next(iter(folders)) if folders else file
    except Exception:  # a module's stand-in, or part of a package that was removed
        return ""
    return file if isinstance(file, str) and file.startswith(os.sep) else ""


def _hint(error: BaseException) -> str:
    """Return a second line of advice on an error of an import, or an empty text."""
    if isinstance(error, SystemExit):
        return "\nA module must not end the program that imports it: write this under `if __name__ == '__main__':`"
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    top = error.name.partition(".")[0]
    if top in OURS:
        return f"\n{top} is a package of this program: a folder of yours with that name must be renamed"
    return "\nIt must be installed, or lie in the folder of the study file"
