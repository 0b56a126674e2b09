"""How compiled functions are linked, and cached on disk until a file that they are made of changes."""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba as nb
from numba.core import bytecode, caching, codegen, compiler

Decorator = Callable[[Callable[..., Any]], Any]
# numba's types know fewer options of njit than it takes, and the other modules have no types that fit.
_njit: Any = nb.njit
_bytecode: Any = bytecode
_caching: Any = caching
_codegen: Any = codegen
_compiler: Any = compiler
_unliteral: Any = nb.types.unliteral
_numbers = itertools.count()

# numba names machine code after its function, its types and the function's number, and counts in each process from 1.
# Two functions of a factory have the same name then if one was compiled here and the other in the process that cached
# it, and a caller of both gets one of them for both: wrong numbers, and no error (numba's issue 10486).
_ID_BITS = 62
_bytecode.FunctionIdentity._unique_ids = iter(lambda: secrets.randbits(_ID_BITS), None)

Library: Any = _codegen.JITCodeLibrary
"""The machine code of a function and of what it calls, as numba makes it."""


def digest(sources: Iterable[Path]) -> str:
    """Hash the contents of some files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


class _ClosedLibrary(Library):  # type: ignore[misc]
    """Machine code that calls its own copies of its parts.

    Each part of a function is in the process twice: compiled by itself, and inside the function, optimised with it. By
    default the linker may take one for the other, as C++ allows for inline functions. It takes the first, which is one
    copy in the process that compiles the function, and the other in those that only load it.
    """

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = llvm.Linkage.internal


class IntoLibrary(_compiler.Compiler):  # type: ignore[misc]
    """Compiles a function into a library of its own class; a ``pipeline_class`` for `cached`."""

    library_class: type[Any] = _ClosedLibrary

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        if library is None:
            library = self.library_class(target.codegen(), f"{self.library_class.__name__}-{next(_numbers)}")
            library.enable_object_caching()
        super().__init__(typing, target, library, *others)


class _CacheFile(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """A function's machine code on disk, which several processes and versions of the program write, or begin to.

    numba numbers the files of a function's signatures by what its index holds, and writes the index first. Two
    processes may then give one number to two signatures, and one that is killed between both writes leaves an index
    of its sources with another version's machine code. Here a file is named after its signature, tells its sources,
    and is there before the index names it.
    """

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(hashlib.sha256(repr((self._version, key)).encode()).hexdigest()[:16])
        self._save_data(name, (self._source_stamp, data))
        self._save_index(self._load_index() | {key: name})

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # it names a class of that version that this one doesn't have
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            stamp, data = super()._load_data(name)
        except (AttributeError, ImportError):
            stamp, data = None, None
        if stamp != self._source_stamp:
            raise FileNotFoundError(name)
        return data

    def _data_name(self, name: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"


_STAMP = digest([Path(__file__)])


def _define(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make numba's dispatcher of a function, with machine code on disk."""
    try:
        return _njit(cache=True, **options)(function)
    except RuntimeError:  # of its folders, none can be written to, as in a container with a read-only file system
        nb.config.CACHE_DIR = str(_temporary_folder(nb.config.CACHE_DIR))  # type: ignore[attr-defined]
        return _njit(cache=True, **options)(function)


def _temporary_folder(unwritable: str) -> Path:
    """Make this user's temporary folder for machine code, or find it; at first it has what the other folder has.

    Machine code is run, so a folder that others can write to isn't used.
    """
    new = Path(tempfile.mkdtemp(prefix="study-numba-"))
    if unwritable and Path(unwritable).is_dir():
        with suppress(OSError):  # what can't be read is compiled
            shutil.copytree(unwritable, new, dirs_exist_ok=True, copy_function=shutil.copyfile)
    new.chmod(0o700)
    folder = new.with_name(f"study-numba-{os.getuid()}")
    with suppress(OSError):  # it is there already
        return new.rename(folder)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        return new
    shutil.rmtree(new)
    return folder


def cached(stamp: str, *, made_for: object = None, **options: Any) -> Decorator:
    """Compile a function with numba, and use what is on disk only if it has the same stamp.

    numba itself compares only the function's own file, and would go on using old versions of the functions that it
    calls. The process that compiles a function runs the machine code that others load.

    numba would also compile a function once more for each integer constant that compiled code calls it with. Here a
    constant is an integer like any other; where the function becomes part of its caller, LLVM knows its value anyway.

    Where none of numba's folders can be written to, machine code goes to one in the temporary folder.

    Args:
        stamp: a `digest` of all files that the function is made of; this one is added.
        made_for: what distinguishes the functions that a factory makes; its text must be the same in every process.
            numba would distinguish them by the compiled functions that they call, which differ in every process.
        options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _define(function, {"pipeline_class": IntoLibrary} | options)
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda types, named: template(
            tuple(map(_unliteral, types)), {name: _unliteral(type_) for name, type_ in named.items()}
        )
        cache = dispatcher._cache
        name = cache._impl.filename_base
        if made_for is not None:
            name += f".{hashlib.sha256(repr(made_for).encode()).hexdigest()[:16]}"
            cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())
        cache._cache_file = _CacheFile(cache.cache_path, name, stamp + _STAMP)
        return dispatcher

    return decorate


def is_on_disk(function: Any) -> bool:
    """Return whether a compiled function is on disk for its present sources and this processor.

    Args:
        function: made by `cached`, or by numba with ``cache=True``.
    """
    this_processor = function.targetctx.codegen().magic_tuple()
    return any(key[1] == this_processor for key in function._cache._cache_file._load_index())
