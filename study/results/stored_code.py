"""Copies of own code in a store, and the identities of code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from study.errors import InputError, StoreError, StudyError
from study.interface.json_text import parse_json
from study.results.adoptions import adopted_identity
from study.source import SourceCode, code_cache, parsed_digest, read_archive
from study.store import Store, StudyStore

DECLARED = "declared.json"
"""The file of a study's folder with the declarations of its code at the last start."""

_KIND, _ARCHIVE, _RECORD = "code", ".zip", ".json"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"(sha256|parsed):[0-9a-f]{64}")


@dataclass(frozen=True)
class CodeCopy:
    """A copy of own code in a study's folder.

    Args:
        digest: the byte digest of its files.
        parsed: the digest of its parsed files; empty if the copy is damaged and has no record.
        identity: identity of its files in the ids of trials.
        stored_at: when it was stored, in seconds since 1970.
        has_record: True if parsed digest and identity are stored beside it.
    """

    digest: str
    parsed: str
    identity: str
    stored_at: float
    has_record: bool


def code_identity(root: str | Path, study: str, code: SourceCode) -> str:
    """Return the identity of a study's code, for the ids of its trials.

    It is the identity of earlier code whose results the user has adopted, or of equal code in the store, or a new one.
    Code is equal if it differs only in comments, docstrings and formatting.

    Args:
        root: the store's address.
        study: the study's name.
        code: its code.

    Raises:
        InputError: if the store's address or the study's name isn't valid.
        StoreError: if the study's copies of code or its log of adoptions can't be read, or studies can't be listed.
    """
    store = Store(root, read_only=True)
    folder = store.study(study)
    return adopted_identity(folder, code.identity()) or _identity(store, folder, code)


def _identity(store: Store, folder: StudyStore, code: SourceCode) -> str:
    """Return the identity of equal code in this study, else in the store's other studies, else a new one."""
    if not code.files:
        return code.identity()
    stored = _equal(code, copies(folder), _declared_files(folder))
    for name in store.studies() if stored is None else ():
        with suppress(StudyError):  # a broken study must not prevent reading this one
            stored = stored or _equal(code, copies(store.study(name)), None)
    return code.identity(files=stored)


def copies(folder: StudyStore) -> list[CodeCopy]:
    """List the copies of code in a study's folder, the earliest first.

    The parsed digest of a copy without a record is cached on this machine.

    Raises:
        StoreError: if the folder can't be read.
    """
    times = folder.times_in(_KIND)
    names = [name.removesuffix(_ARCHIVE) for name in times if name.endswith(_ARCHIVE)]
    digests = [name for name in names if _DIGEST.fullmatch(name)]
    records = folder.read_files([f"{_KIND}/{digest}{_RECORD}" for digest in digests if f"{digest}{_RECORD}" in times])
    listed = []
    for digest in digests:
        record = _parse_record(records.get(f"{_KIND}/{digest}{_RECORD}", b""))
        # Copies without a record date from when the identity was the byte digest.
        parsed, identity = record or (_cached_parsed_digest(folder, digest), f"sha256:{digest}")
        listed.append(CodeCopy(digest, parsed, identity, times[f"{digest}{_ARCHIVE}"], record is not None))
    return sorted(listed, key=lambda copy: (copy.stored_at, copy.digest))


def read_copy(folder: StudyStore, digest: str) -> dict[str, bytes]:
    """Read the files of a copy.

    Raises:
        StoreError: if the copy is missing, has changed or can't be read.
    """
    archive = folder.read_file(f"{_KIND}/{digest}{_ARCHIVE}")
    if archive is None:
        raise StoreError(f"{folder.file_address(f'{_KIND}/{digest}{_ARCHIVE}')} isn't there any more")
    try:
        return read_archive(archive, digest)
    except InputError as error:
        raise StoreError(str(error)) from None


def keep_copy(code: SourceCode, identity: str, folder: StudyStore) -> None:
    """Store a copy of code unless it has no files or is stored already, and a record of each copy without one.

    Args:
        code: the code.
        identity: its identity in the ids of trials, which may be user-supplied or adopted.
        folder: the study's folder.

    Raises:
        StoreError: if the folder can't be read or written.
        StudyError: if `folder.check` fails.
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
    # The record comes first: a copy without one would be taken for an old copy.
    _write_record(folder, code.digest, code.parsed, files)
    folder.write_file(f"{_KIND}/{code.digest}{_ARCHIVE}", code.archive)


def keep_records(folder: StudyStore) -> None:
    """Store a record of each copy without one, such as imported copies, with the identity that its results use.

    Raises:
        InputError: if a newer package wrote one of the results.
        StoreError: if the folder can't be read or written, or results contradict each other.
        StudyError: if `folder.check` fails.
    """
    stored = copies(folder)
    used = {identity.partition(";")[0] for identity in folder.trials_by_code()}
    for copy in stored:
        if not copy.has_record:
            equal = [f"sha256:{other.digest}" for other in stored if other.parsed == copy.parsed]
            identities = [f"parsed:{copy.parsed}", *equal]
            chosen = next((identity for identity in identities if identity in used), identities[0])
            _write_record(folder, copy.digest, copy.parsed, chosen)


def _equal(code: SourceCode, stored: Iterable[CodeCopy], preferred: str | None) -> str | None:
    """Return the identity of a copy with the same parsed files, if possible the preferred one; None without a copy."""
    parsed = code.parsed
    equal = {copy.identity: copy.digest for copy in stored if parsed == copy.parsed}
    if preferred in equal:
        return preferred
    same = [identity for identity, digest in equal.items() if digest == code.digest]
    return next(iter([*same, *equal]), None)


def _declared_files(folder: StudyStore) -> str | None:
    """Return the identity of the study's files at its last start; None if it isn't stored."""
    try:
        return str(parse_json(folder.read_file(DECLARED) or b"")["code"]).partition(";")[0]
    except (ValueError, KeyError, TypeError):
        return None


def _parse_record(content: bytes) -> tuple[str, str] | None:
    """Return the parsed digest and the identity of a record; None if it is invalid."""
    try:
        record = parse_json(content)
        parsed, identity = str(record["parsed"]), str(record["identity"])
    except (ValueError, KeyError, TypeError):
        return None
    return (parsed, identity) if _DIGEST.fullmatch(parsed) and _IDENTITY.fullmatch(identity) else None


def _write_record(folder: StudyStore, digest: str, parsed: str, identity: str) -> None:
    """Store the record of a copy."""
    record = {"parsed": parsed, "identity": identity}
    folder.write_file(f"{_KIND}/{digest}{_RECORD}", json.dumps(record, indent=1).encode())


def _cached_parsed_digest(folder: StudyStore, digest: str) -> str:
    """Return the parsed digest of a copy without a record, cached on this machine; empty for a damaged copy."""
    cached = code_cache().with_name("parsed") / digest
    with suppress(OSError):
        if _DIGEST.fullmatch(parsed := cached.read_text()):
            return parsed
    try:
        parsed = parsed_digest(read_copy(folder, digest))
    except StoreError:
        return ""  # a damaged copy equals no code
    with suppress(OSError):
        cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        cached.write_text(parsed)
    return parsed
