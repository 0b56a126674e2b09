"""Export of a study to one ZIP file, and its import with a check of every digest.

The ZIP file has one folder with the study's name. It holds the files as the store has them, and ``export.json``, which
lists their sizes and digests. Nothing is compressed, since Parquet files are already. So unpacked files can't exceed
the ZIP file's size, and equal files give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from study.environment import versions
from study.errors import InputError, StudyError
from study.interface.json_text import parse_json
from study.store.formats import SCHEMA_VERSION
from study.store.local import explained
from study.store.study_store import StudyStore
from study.store.trial_files import FILES, is_file_name
from study.store.validated import kind_of

FORMAT = 2
"""The newest format of exports: 2 has files of trials or tags, 1 has neither."""

_LIST = "export.json"
_SPEC, _TAGS = "spec.yaml", "tags.json"
_SINGLE = (
    *(_SPEC, "declared.json", "layouts.json", "search.json", "claim_looks.json"),
    *(_TAGS, "verified.json", "order.json", "report.json"),
)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_KEY = re.compile(
    rf"{'|'.join(map(re.escape, _SINGLE))}|code/[0-9a-f]+\.zip|report/\.?{_NAME}"
    r"|(results|curves|weights)/[A-Za-z0-9][A-Za-z0-9_-]*\.parquet"
)
_TRIAL_FILE = re.compile(rf"{FILES}/[0-9a-f]+/(.+)")
_MOST_LIST_BYTES = 256 * 2**20
_TIME, _MODE = (1980, 1, 1, 0, 0, 0), 0o100644 << 16  # the earliest time in ZIP files; a regular file


@dataclass(frozen=True)
class Export:
    """A study in a ZIP file.

    Args:
        file: the file.
        study: the study's name.
        trials: number of trials with a result.
        files: the size in bytes of each file, by key.
        notices: sentences about files that were left out because they failed their checks.
    """

    file: Path
    study: str
    trials: int
    files: Mapping[str, int]
    notices: Sequence[str] = ()


def write_export(study: StudyStore, file: Path) -> Export:
    """Write a study to a ZIP file atomically; the study may be running.

    Args:
        study: the study's store.
        file: path of the file, which must not exist.

    Returns:
        The content of the file; its `notices` name files that were left out.

    Raises:
        InputError: if the file exists or its folder doesn't, a newer package wrote one of the study's files, or a file
            of a trial has a name that isn't valid on every system.
        StoreError: if the store can't be read, or the file can't be written.
    """
    if file.exists() or file.is_symlink():
        raise InputError(f"{file} is there already, and nothing is overwritten: remove it, or name another file")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} to write {file.name} to")
    temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with explained(file, "write"):
            with temporary.open("xb") as output:
                with zipfile.ZipFile(output, "w") as archive:
                    export = _written(archive, study, file)
                output.flush()
                os.fsync(output.fileno())
            temporary.rename(file)
    finally:
        temporary.unlink(missing_ok=True)
    return export


def _written(archive: zipfile.ZipFile, study: StudyStore, file: Path) -> Export:
    """Write a study's files and their list into an archive, and return the description of the export."""
    listed: dict[str, dict[str, Any]] = {}
    trials: set[str] = set()
    for key, data in _contents(study, trials):
        archive.writestr(_member(f"{study.name}/{key}"), data)
        listed[key] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    about = {
        "format": FORMAT if _TAGS in listed or any(map(_is_of_trial, listed)) else 1,
        "study": study.name,
        "trials": len(trials),
        "schema_version": SCHEMA_VERSION,
        "versions": versions(),
        "files": listed,
    }
    archive.writestr(_member(f"{study.name}/{_LIST}"), json.dumps(about, indent=1, sort_keys=True))
    return Export(file, study.name, len(trials), {key: entry["bytes"] for key, entry in listed.items()}, study.notices)


def _member(name: str) -> zipfile.ZipInfo:
    """Return the ZIP entry of a regular file, with a fixed time and system, so that equal files give equal bytes."""
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system, info.external_attr = 3, _MODE  # as on Unix, on every system
    return info


def _contents(study: StudyStore, trials: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and bytes of each file to export, in a fixed order; files that are added meanwhile are left out.

    Args:
        study: the study's store.
        trials: set that receives the ids of the trials with a result.
    """
    for key in (_SPEC, *sorted(key for key in study.sizes() if _is_single(key))):
        data = study.read_file(key)
        if data is not None:
            yield key, data
    for trial_id in study.trials_with_files():
        for name in study.file_sizes(trial_id):
            key = study.trial_file(trial_id, name)
            if (data := study.read_file(key)) is not None:
                yield key, data
    # A pack's results are stored last: if they exist, so do its curves and weights.
    for pack_id in sorted(study.pack_ids()):
        files = study.files_of(pack_id)
        trials.update(study.trials_of(pack_id) if files else ())
        yield from files.items()


def _is_of_trial(key: str) -> bool:
    """Return True for the key of a trial's file."""
    match = _TRIAL_FILE.fullmatch(key)
    return match is not None and is_file_name(match[1])


def _is_single(key: str) -> bool:
    """Return True for the key of a file that belongs neither to a pack nor to a trial, except the study's file."""
    is_of_pack = kind_of(key) in ("results", "curves", "weights")
    return key != _SPEC and not is_of_pack and _KEY.fullmatch(key) is not None


def unpack_export(file: Path, into: Path) -> Export:
    """Check a ZIP file that `write_export` wrote, and unpack it.

    Each digest is checked when its file is unpacked, so files may remain in the folder after an error.

    Args:
        file: the file.
        into: an empty folder, in which a folder with the study's name is made.

    Returns:
        The content of the file, by its own list.

    Raises:
        InputError: if the file doesn't exist, isn't an export, was damaged or changed, or is from a newer package.
        StoreError: if it can't be unpacked there.
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    try:
        with zipfile.ZipFile(file) as archive:
            return _unpacked(archive, file, into)
    except StudyError:
        raise
    except (zipfile.BadZipFile, RuntimeError, EOFError, ValueError, OSError, zlib.error, lzma.LZMAError) as error:
        raise InputError(
            f"{file} can't be read as a ZIP file: it is truncated, damaged or of another type ({error}); nothing was "
            "imported. Copy it again, or export the study again"
        ) from error


def _unpacked(archive: zipfile.ZipFile, file: Path, into: Path) -> Export:
    """Check the list, the names and each digest, and unpack the files; raise InputError if the file isn't an export."""
    members = archive.infolist()
    lists = [member for member in members if re.fullmatch(rf"{_NAME}/{_LIST}", member.filename)]
    if len(lists) != 1:
        raise InputError(f"{file} isn't an exported study: it must have one file {_LIST}, which `study export` writes")
    study = lists[0].filename.partition("/")[0]
    listed = _listed(archive, lists[0], study, file)  # first: a newer format may have other files
    _check_members(members, study, file)
    by_key = {member.filename.removeprefix(f"{study}/"): member for member in members if member is not lists[0]}
    if differing := sorted(listed.keys() ^ by_key.keys()):
        raise InputError(f"{file} was changed after export: {differing[0]} is missing, or isn't listed")
    with explained(into, "unpack into"):
        for key, member in by_key.items():
            target = into / study / key
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("xb") as copy:
                if (member.file_size, _copied(source, copy)) != (listed[key]["bytes"], listed[key]["sha256"]):
                    raise InputError(f"{file} was changed after export: {key} has another digest; nothing was imported")
    trials = parse_json(archive.read(lists[0]))["trials"]
    return Export(file, study, trials, {key: entry["bytes"] for key, entry in listed.items()})


def _check_members(members: Sequence[zipfile.ZipInfo], study: str, file: Path) -> None:
    """Raise InputError unless each member is an uncompressed plain file of a study, and no two overlap."""
    wrong = f"{file} isn't an unchanged export of a study, and nothing was imported"
    for member in members:
        folder, _, key = member.filename.partition("/")
        if folder != study or not (_KEY.fullmatch(key) or _is_of_trial(key) or key == _LIST):
            raise InputError(f"{wrong}: it contains {member.filename!r}")
        is_plain = stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG)
        if member.compress_type != zipfile.ZIP_STORED or not is_plain:
            raise InputError(f"{wrong}: {member.filename} is compressed, or isn't a plain file")
    names = {member.filename for member in members}
    if len(names) < len(members) or sum(member.file_size for member in members) > file.stat().st_size:
        raise InputError(f"{wrong}: files in it overlap")


def _listed(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, study: str, file: Path
) -> Mapping[str, Mapping[str, Any]]:
    """Return each file's size and digest from ``export.json``; raise InputError if it is invalid."""
    if member.file_size > min(_MOST_LIST_BYTES, file.stat().st_size):
        raise InputError(f"{file} isn't an exported study: its {_LIST} has {member.file_size:,} bytes")
    try:
        about = parse_json(archive.read(member))
        is_newer = about["format"] > FORMAT or about["schema_version"] > SCHEMA_VERSION
        files: dict[str, Mapping[str, Any]] = {
            key: {"bytes": int(entry["bytes"]), "sha256": str(entry["sha256"])} for key, entry in about["files"].items()
        }
        is_ours = about["study"] == study and isinstance(about["trials"], int) and _SPEC in files
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} isn't an exported study: its {_LIST} can't be read ({type(error).__name__}: {error})"
        ) from error
    if is_newer:
        raise InputError(
            f"{file} has format {about['format']} and schema version {about['schema_version']}, but this package reads "
            f"up to {FORMAT} and {SCHEMA_VERSION}: upgrade the package"
        )
    if not is_ours:
        raise InputError(f"{file} isn't an exported study: its {_LIST} names another study, or no {_SPEC}")
    return files


def _copied(source: IO[bytes], copy: IO[bytes]) -> str:
    """Copy a file, and return the digest of the copy."""
    shutil.copyfileobj(source, copy, 2**20)
    copy.flush()
    with Path(copy.name).open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()
