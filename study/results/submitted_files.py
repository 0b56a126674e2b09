"""Files of a submitted study, stored so that a job can continue without the user's folder."""

from __future__ import annotations

from pathlib import Path

from study.errors import InputError
from study.source import digest_of, pack_archive, read_archive
from study.source.archive import SIZE_LIMIT_BYTES
from study.source.source_data import DATA_LIMIT_BYTES
from study.spec import Spec
from study.store import StudyStore


def submitted_files(spec: Spec) -> dict[str, bytes]:
    """Return the files of a study's code and data, by their paths relative to a job's study file."""
    files = {} if spec.source_code is None else dict(spec.source_code.files)
    for data in spec.source_data:
        files |= data.beside
    return files


def keep_submitted(spec: Spec, folder: StudyStore) -> None:
    """Store the files that a job was submitted with; no-op if there are none, or the store has them already.

    Raises:
        StoreError: if the store can't be read or written.
        StudyError: if `folder.check` fails.
    """
    files = submitted_files(spec)
    names = _names(digest_of(files))
    if files and all(folder.read_file(name) is None for name in names):
        folder.write_file(names[-1], pack_archive(files))


def restore_submitted(folder: StudyStore, digest: str, into: Path) -> None:
    """Write stored files beside a study file, for a job.

    Args:
        folder: the study's part of the store.
        digest: the digest of the submitted files.
        into: the folder of the study file; it may have files with the same content.

    Raises:
        InputError: if the store has no such files or has changed ones, or if `into` has other files at their paths.
        OSError: if a file can't be written, or an existing one can't be read.
        StoreError: if the store can't be read.
    """
    archives = (folder.read_file(name) for name in _names(digest))
    archive = next((content for content in archives if content is not None), None)
    if archive is None:
        raise InputError(
            f"the store has no copy of the code {digest} of study {folder.name!r}: the job that was submitted with it "
            "never began to train, or used another store; submit the study's file again"
        )
    for name, content in read_archive(archive, digest, SIZE_LIMIT_BYTES + DATA_LIMIT_BYTES).items():
        path = into / name
        if path.exists() and path.read_bytes() != content:
            raise InputError(f"{path} differs from the file that the study was submitted with, and isn't overwritten")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _names(digest: str) -> tuple[str, str]:
    """Return an archive's possible names in the store: of a study's code, and of code with data."""
    return f"code/{digest}.zip", f"submitted/{digest}.zip"
