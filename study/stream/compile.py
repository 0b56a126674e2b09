"""Linking of compiled functions, and their cache on disk, valid until one of their source files changes."""

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
# numba's types lack options of njit, and its other modules have no suitable types.
_njit: Any = nb.njit
_bytecode: Any = bytecode
_caching: Any = caching
_codegen: Any = codegen
_compiler: Any = compiler
_unliteral: Any = nb.types.unliteral
_numbers = itertools.count()

# numba names machine code after its function, its types and the function's number, which each process counts from 1.
# Two functions of a factory then have the same name if one is compiled here and the other comes from another process's
# cache. A caller of both silently gets one of them for both, and so wrong numbers (numba's issue 10486).
_ID_BITS = 62
_bytecode.FunctionIdentity._unique_ids = iter(lambda: secrets.randbits(_ID_BITS), None)

Library: Any = _codegen.JITCodeLibrary
"""numba's class for the machine code of a function and its callees."""


def digest(sources: Iterable[Path]) -> str:
    """Return the hexadecimal SHA-256 of the files' contents, joined in the given order.

    Raises:
        OSError: if a file can't be read.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


class _ClosedLibrary(Library):  # type: ignore[misc]
    """Machine code that calls its own copies of its parts.

    Each part of a function exists twice in a process: compiled by itself, and inside the function, optimised with it.
    By default the linker may replace one by the other, as C++ allows for inline functions. It takes the first, which
    differs between the process that compiles the function and those that only load it.
    """

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = llvm.Linkage.internal


class IntoLibrary(_compiler.Compiler):  # type: ignore[misc]
    """A compiler into a library of its own class; a ``pipeline_class`` for `cached`."""

    library_class: type[Any] = _ClosedLibrary

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        if library is None:
            library = self.library_class(target.codegen(), f"{self.library_class.__name__}-{next(_numbers)}")
            library.enable_object_caching()
        super().__init__(typing, target, library, *others)


class _CacheFile(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """A function's machine code on disk, safe for several processes and versions of the program, even if one is killed.

    numba numbers the files of a function's signatures by its index, and writes the index first. Two processes may then
    give one number to two signatures. A process that is killed between both writes leaves an index of its sources with
    another version's machine code. Here a file is named after its signature, contains the stamp of its sources, and is
    written before the index names it.
    """

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(hashlib.sha256(repr((self._version, key)).encode()).hexdigest()[:16])
        self._save_data(name, (self._source_stamp, data))
        self._save_index(self._load_index() | {key: name})

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # it names a class that this version doesn't have
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
    """Return numba's dispatcher of a function, with machine code on disk, if need be in a temporary folder."""
    try:
        return _njit(cache=True, **options)(function)
    except RuntimeError:  # none of its folders is writable, as in a container with a read-only file system
        nb.config.CACHE_DIR = str(_temporary_folder(nb.config.CACHE_DIR))  # type: ignore[attr-defined]
        return _njit(cache=True, **options)(function)


def _temporary_folder(unwritable: str) -> Path:
    """Return this user's temporary folder for machine code; a new one starts as a copy of the given folder.

    Machine code is executed, so an existing folder that others can write to isn't used: a new one with another
    name is returned instead.
    """
    new = Path(tempfile.mkdtemp(prefix="study-numba-"))
    if unwritable and Path(unwritable).is_dir():
        with suppress(OSError):  # unreadable code is compiled again
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
    """Return a decorator that compiles a function with numba, and uses machine code on disk only with the same stamp.

    numba itself compares only the function's own file, and would keep using old versions of the functions that it
    calls. The process that compiles a function runs the same machine code that others load.

    numba would also compile a function again for each integer constant in a call by compiled code. Here a constant is
    an integer like any other; when the function is inlined, LLVM knows its value anyway.

    If none of numba's folders is writable, machine code goes to a temporary folder, also that of functions which numba
    caches later in this process.

    Args:
        stamp: a `digest` of all files that the function depends on; this file is added.
        made_for: key that distinguishes the functions of a factory; its repr must be the same in every process. numba
            would distinguish them by the compiled functions that they call, which differ in every process.
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
    """Return True if a function's machine code, for any types, is on disk for its present sources and this processor.

    Args:
        function: made by `cached`, or by numba with ``cache=True``.
    """
    this_processor = function.targetctx.codegen().magic_tuple()
    return any(key[1] == this_processor for key in function._cache._cache_file._load_index())
