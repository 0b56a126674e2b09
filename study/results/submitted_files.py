"""Files of a submitted study, kept in the store so that a job can go on without the user's folder."""

from __future__ import annotations

from pathlib import Path

from study.errors import InputError
from study.source import digest_of, pack_archive, read_archive
from study.source.archive import SIZE_LIMIT_BYTES
from study.source.source_data import DATA_LIMIT_BYTES
from study.spec import Spec
from study.store import StudyStore


def submitted_files(spec: Spec) -> dict[str, bytes]:
    """Return the code and the data of a study by the paths at which they lie beside its file."""
    files = {} if spec.source_code is None else dict(spec.source_code.files)
    for data in spec.source_data:
        files |= data.beside
    return files


def keep_submitted(spec: Spec, folder: StudyStore) -> None:
    """Store the files that a job was submitted with, each version once, unless they are stored as its code already."""
    files = submitted_files(spec)
    names = _names(digest_of(files))
    if files and all(folder.read_file(name) is None for name in names):
        folder.write_file(names[-1], pack_archive(files))


def restore_submitted(folder: StudyStore, digest: str, into: Path) -> None:
    """Write stored files beside a study file, where a job is to run it.

    Args:
        folder: the study's part of the store.
        digest: of the files, as the job was submitted with them.
        into: the folder of the study file; files of the same content may be there.

    Raises:
        InputError: if the store has no such files, they were changed, or others are in their places.
    """
    archives = (folder.read_file(name) for name in _names(digest))
    archive = next((content for content in archives if content is not None), None)
    if archive is None:
        raise InputError(
            f"the store has no copy of the code {digest} of study {folder.name!r}: the job that was submitted with it "
            "never began to train, or the store isn't the one that it used; submit the study's file again"
        )
    for name, content in read_archive(archive, digest, SIZE_LIMIT_BYTES + DATA_LIMIT_BYTES).items():
        path = into / name
        if path.exists() and path.read_bytes() != content:
            raise InputError(f"{path} isn't the file that the study was submitted with; it isn't overwritten")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _names(digest: str) -> tuple[str, str]:
    """Return the names of an archive in the store: of a study's code, and of code with data."""
    return f"code/{digest}.zip", f"submitted/{digest}.zip"
