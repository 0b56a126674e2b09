"""Copies of own code in a store, and the identity that code equal to one of them keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from study.errors import InputError, StoreError, StudyError
from study.results.adoptions import adopted_identity
from study.source import SourceCode, code_cache, parsed_digest, read_archive
from study.store import Store, StudyStore

DECLARED = "declared.json"
"""What the code of a study declared when it was started."""

_KIND, _ARCHIVE, _RECORD = "code", ".zip", ".json"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"(sha256|parsed):[0-9a-f]{64}")


@dataclass(frozen=True)
class CodeCopy:
    """A copy of own code in a study's folder.

    Args:
        digest: the digest of its files, byte by byte.
        parsed: the digest of its parsed files.
        identity: identity of its files in the ids of trials.
        stored_at: when it was stored, in seconds since 1970.
        has_record: whether parsed digest and identity are stored beside it.
    """

    digest: str
    parsed: str
    identity: str
    stored_at: float
    has_record: bool


def code_identity(root: str | Path, study: str, code: SourceCode) -> str:
    """Return the identity of a study's code, for the ids of its trials.

    It is that of equal code (equal but for comments, docstrings and formatting) of which the store has a copy, or that
    of earlier code whose results the user has adopted; otherwise it is new.

    Args:
        root: the store's address.
        study: the study's name.
        code: its code.
    """
    store = Store(root, read_only=True)
    folder = store.study(study)
    return adopted_identity(folder, code.identity()) or _identity(store, folder, code)


def _identity(store: Store, folder: StudyStore, code: SourceCode) -> str:
    if not code.files:
        return code.identity()
    stored = _equal(code, copies(folder), _declared_files(folder))
    for name in store.studies() if stored is None else ():
        with suppress(StudyError):  # other studies are no reason why this one can't be read
            stored = stored or _equal(code, copies(store.study(name)), None)
    return code.identity(files=stored)


def copies(folder: StudyStore) -> list[CodeCopy]:
    """List the copies of code in a study's folder, the earliest first; the folder is listed, and records are read."""
    times = folder.times_in(_KIND)
    names = [name.removesuffix(_ARCHIVE) for name in times if name.endswith(_ARCHIVE)]
    digests = [name for name in names if _DIGEST.fullmatch(name)]
    records = folder.read_files([f"{_KIND}/{digest}{_RECORD}" for digest in digests if f"{digest}{_RECORD}" in times])
    listed = []
    for digest in digests:
        record = _parse_record(records.get(f"{_KIND}/{digest}{_RECORD}", b""))
        # Copies were stored without a record while all bytes of the code counted.
        parsed, identity = record or (_parsed_once(folder, digest), f"sha256:{digest}")
        listed.append(CodeCopy(digest, parsed, identity, times[f"{digest}{_ARCHIVE}"], record is not None))
    return sorted(listed, key=lambda copy: (copy.stored_at, copy.digest))


def read_copy(folder: StudyStore, digest: str) -> dict[str, bytes]:
    """Read the files of a copy.

    Raises:
        StoreError: if it isn't there, or isn't as it was stored.
    """
    archive = folder.read_file(f"{_KIND}/{digest}{_ARCHIVE}")
    if archive is None:
        raise StoreError(f"{folder.file_address(f'{_KIND}/{digest}{_ARCHIVE}')} isn't there any more")
    try:
        return read_archive(archive, digest)
    except InputError as error:
        raise StoreError(str(error)) from None


def keep_copy(code: SourceCode, identity: str, folder: StudyStore) -> None:
    """Store a copy of code, once, and a record of each copy in the folder that has none.

    Args:
        code: the code.
        identity: its identity in the ids of trials, which may be user-supplied or adopted.
        folder: the study's folder.
    """
    stored = copies(folder)
    for copy in stored:
        if not copy.has_record:
            _write_record(folder, copy.digest, copy.parsed, copy.identity)
    if not code.files or code.digest in {copy.digest for copy in stored}:
        return
    files = identity.partition(";")[0]
    if not _IDENTITY.fullmatch(files) or adopted_identity(folder, code.identity()):
        files = _equal(code, stored, None) or f"parsed:{code.parsed}"
    # First the record: a copy without one counts as older than records.
    _write_record(folder, code.digest, code.parsed, files)
    folder.write_file(f"{_KIND}/{code.digest}{_ARCHIVE}", code.archive)


def keep_records(folder: StudyStore) -> None:
    """Store a record of each copy that came without one, as from an export: the identity that its results have."""
    stored = copies(folder)
    used = {identity.partition(";")[0] for identity in folder.trials_by_code()}
    for copy in stored:
        if not copy.has_record:
            equal = [f"sha256:{other.digest}" for other in stored if other.parsed == copy.parsed]
            identities = [f"parsed:{copy.parsed}", *equal]
            identity = next((one for one in identities if one in used), identities[0])
            _write_record(folder, copy.digest, copy.parsed, identity)


def _equal(code: SourceCode, stored: Iterable[CodeCopy], preferred: str | None) -> str | None:
    """Return the identity of a copy that is parsed as code is, rather the preferred one; None without such a copy."""
    parsed = code.parsed
    equal = {copy.identity: copy.digest for copy in stored if parsed == copy.parsed}
    if preferred in equal:
        return preferred
    same = [identity for identity, digest in equal.items() if digest == code.digest]
    return next(iter([*same, *equal]), None)


def _declared_files(folder: StudyStore) -> str | None:
    """Return the identity of the files with which the study was started last."""
    try:
        return str(json.loads(folder.read_file(DECLARED) or b"")["code"]).partition(";")[0]
    except (ValueError, KeyError, TypeError):
        return None


def _parse_record(content: bytes) -> tuple[str, str] | None:
    try:
        record = json.loads(content)
        parsed, identity = str(record["parsed"]), str(record["identity"])
    except (ValueError, KeyError, TypeError):
        return None
    return (parsed, identity) if _DIGEST.fullmatch(parsed) and _IDENTITY.fullmatch(identity) else None


def _write_record(folder: StudyStore, digest: str, parsed: str, identity: str) -> None:
    record = {"parsed": parsed, "identity": identity}
    folder.write_file(f"{_KIND}/{digest}{_RECORD}", json.dumps(record, indent=1).encode())


def _parsed_once(folder: StudyStore, digest: str) -> str:
    """Return the parsed digest of a copy without a record; this machine keeps it, since copies may be large."""
    kept = code_cache().with_name("parsed") / digest
    with suppress(OSError):
        if _DIGEST.fullmatch(parsed := kept.read_text()):
            return parsed
    try:
        parsed = parsed_digest(read_copy(folder, digest))
    except StoreError:
        return ""  # a damaged copy is equal to nothing
    with suppress(OSError):
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept.write_text(parsed)
    return parsed
