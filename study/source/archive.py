"""Archives of the user's code for the store, verified and unpacked once per machine.

An archive is a ZIP file, which common tools can open. Its digest covers the names and contents of its files, not the
ZIP bytes, which may differ between versions of the ZIP library.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath
from typing import Final

from study.errors import InputError

SIZE_LIMIT_BYTES: Final = 16 * 2**20
"""Largest total size of the files of a study's code, in bytes."""

_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can state
_UNIX, _MODE = 3, 0o100644 << 16


def code_cache() -> Path:
    """Return this machine's folder for copies of code: ``$XDG_CACHE_HOME/seeded-study/code``; it may not exist yet."""
    return _cache() / "code"


def data_cache() -> Path:
    """Return this machine's folder for copies of data files, beside that of `code_cache`; it may not exist yet."""
    return _cache() / "data"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seeded-study"


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the hexadecimal SHA-256 of file names and contents, independent of their order.

    Example:
        >>> digest_of({"a.py": b"1", "b.py": b""}) == digest_of({"b.py": b"", "a.py": b"1"})
        True
    """
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def pack_archive(files: Mapping[str, bytes]) -> bytes:
    """Return files as the bytes of an archive; with the same ZIP library, the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _MODE
            archive.writestr(info, files[name])
    return buffer.getvalue()


def read_archive(archive: bytes, digest: str, limit_bytes: int = SIZE_LIMIT_BYTES) -> dict[str, bytes]:
    """Return the files of an archive, by name.

    Args:
        archive: the result of `pack_archive`.
        digest: the expected digest of its files.
        limit_bytes: largest total size of its files.

    Raises:
        InputError: if the bytes aren't an archive, its files have another digest or are too large, or a name in it
            leads out of its folder or isn't a plain relative path, such as that of a folder.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            wrong = [member.filename for member in members if not _is_relative(member.filename)]
            if wrong:
                raise InputError(f"the archive of code {digest} is refused: {wrong[0]!r} leads out of its folder")
            if sum(member.file_size for member in members) > limit_bytes:
                raise InputError(f"the archive of code {digest} is refused: it has more than {limit_bytes >> 20} MiB")
            files = {member.filename: opened.read(member) for member in members}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise InputError(f"the archive of code {digest} can't be read, and isn't run: {error}") from None
    if len(files) != len(members) or digest_of(files) != digest:
        raise InputError(
            f"the archive of code {digest} was changed: its files have the digest {digest_of(files)}. It isn't run; "
            "put the archive back as it was, or run the study on another store"
        )
    return files


def unpacked(archive: bytes, digest: str, cache: Path) -> Path:
    """Unpack an archive into the cache if necessary, and return its folder.

    The folder appears atomically, even if processes are killed or unpack it concurrently.

    Args:
        archive: the value of `SourceCode.archive`.
        digest: the expected digest of its files.
        cache: a folder of this machine that only this user may write to; it is created if missing.

    Raises:
        InputError: if the archive is damaged or has another digest, the folder was changed, or the cache isn't private.
        OSError: if the cache can't be written.
    """
    return placed(read_archive(archive, digest), digest, cache)


def placed(files: Mapping[str, bytes], digest: str, cache: Path) -> Path:
    """Write files into the cache if necessary, atomically as `unpacked` does, and return their folder.

    Args:
        files: contents by name.
        digest: a digest of the files, which names the folder.
        cache: a folder of this machine that only this user may write to; it is created if missing.

    Raises:
        InputError: if the folder was changed, or the cache belongs to another user or is writable for others.
        OSError: if the cache can't be written.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(cache)
    folder = cache.resolve() / digest
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=f".{digest[:16]}-", dir=cache) as temporary:
            complete = Path(temporary) / digest
            _write(files, complete)
            try:
                complete.rename(folder)
            except OSError:
                if not folder.exists():  # otherwise another process was faster
                    raise
    _check_same(files, folder)
    return folder


def _is_relative(name: str) -> bool:
    path = PurePosixPath(name)
    is_plain = str(path) == name and bool(path.parts) and not set(name) & set("\\:\0")
    return is_plain and not path.is_absolute() and ".." not in path.parts


def _check_private(cache: Path) -> None:
    status = cache.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise InputError(
            f"{cache} must be writable for you alone, since code is run from it: remove it, or choose another folder"
        )


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o444)  # editors warn about read-only files


def _check_same(files: Mapping[str, bytes], folder: Path) -> None:
    """Raise InputError unless a folder has the files unchanged, and no other modules."""
    changed = [name for name, content in files.items() if not _holds(folder / name, content)]
    present = (path for path in folder.rglob("*") if path.name.endswith(tuple(all_suffixes())))
    names = (path.relative_to(folder).as_posix() for path in present if path.parent.name != "__pycache__")
    changed += [name for name in names if name not in files]
    if changed:
        raise InputError(
            f"{folder / changed[0]} was changed after it was unpacked, so nothing in that folder is run: "
            f"remove {folder} to unpack it again"
        )


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False
