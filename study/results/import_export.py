"""Import of an exported study: as a new study, or merged with the store's study of that name."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from study.errors import InputError, reason_of
from study.plan.plan import Plan
from study.results.load import extended_plan
from study.results.stored_code import keep_records
from study.results.stored_plan import rows_of_plan, stored_plan
from study.store import Store, StudyStore, merge, unpack_export
from study.words import count_of

_MERGED = ("spec.yaml", "results/", "curves/", "weights/", "files/")
_CLAIMS = {"report/": "report", "report.json": "report", "verified.json": "verify"}
"""Files that aren't imported, with the command that makes them again: a page or certificate can be forged."""


@dataclass(frozen=True)
class Import:
    """The outcome of an import.

    Args:
        study: the study's name.
        is_new: True if the store had no study of that name.
        new: number of trials that had no result before.
        there: number of the file's trials that had a result before.
        notices: sentences for the user.
    """

    study: str
    is_new: bool
    new: int
    there: int
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        action = "a new study of this store, with" if self.is_new else "merged with the study of this store:"
        count = f"{self.new:,} new {'trial' if self.new == 1 else 'trials'}"
        return f"{self.study}: {action} {count}" + (f", {self.there:,} there already" if self.there else "")


def import_export(file: Path, root: str | Path) -> Import:
    """Import a file that `study export` wrote. All of it is checked before anything is written.

    If the store has a study of that name, this study keeps its file and its code's declarations, and gets the trials
    that it lacks, with their files and copies of code. Reports and certificates aren't imported: they can be forged,
    and can be made again from the results.

    Args:
        file: the ZIP file.
        root: the store's folder, or its URL.

    Returns:
        The numbers of new and of existing trials, and notices for the user.

    Raises:
        InputError: if the file doesn't exist, isn't an export, is damaged or from a newer package, or holds a different
            study from the store's study of that name; if the store's study can't be planned, or a newer package wrote
            its results; or if the store's address isn't valid.
        ConflictError: if the store has another result of one of the trials, by the same engine and kind of device.
        BusyError: if the store's study is running.
        StoreError: if the store can't be read or written, or the file can't be unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="study-import-") as temporary:
        export = unpack_export(file, Path(temporary))
        source = Store(temporary, read_only=True).study(export.study)
        _check(source, file)
        study = Store(root).study(export.study)
        with study.lock():
            is_new = not study.exists
            if not is_new:
                _check_same_study(study, source, file)
            there = len(study.done() & source.done())
            new = merge(study, source, file.name)
            _copy_files(study, source, export.files, is_new=is_new)
        return Import(export.study, is_new, new, there, _notices(study, source, export.files, is_new=is_new))


def _copy_files(study: StudyStore, source: StudyStore, keys: Collection[str], *, is_new: bool) -> None:
    """Copy the files of trials, and copies of code; for a new study, also its other files, and its study file last.

    Files that the study already has stay as they are.
    """
    study.copy_files(source, source.trials_with_files())
    for key in keys:
        is_wanted = key.startswith("code/") or (is_new and not key.startswith((*_MERGED, *_CLAIMS)))
        if is_wanted and study.read_file(key) is None:
            study.write_file(key, source.read_file(key) or b"")
    keep_records(study)
    if is_new:  # last: from here on it is a study
        study.write_spec(source.read_spec())


def _check(source: StudyStore, file: Path) -> None:
    """Raise InputError unless the unpacked folder is a study whose results can all be read."""
    try:
        plan = stored_plan(source)
    except Exception as error:  # any error comes from the file's content
        raise InputError(f"{file}: its study file can't be used; nothing was imported. {reason_of(error)}") from error
    if plan.spec.study != source.name:
        raise InputError(f"{file}: its study file is for {plan.spec.study!r}, but must be for {source.name!r}")
    for pack_id in source.pack_ids():
        source.files_of(pack_id)
    if source.notices:
        raise InputError("\n  ".join([f"{file} has files that can't be used; nothing was imported", *source.notices]))


def _check_same_study(study: StudyStore, source: StudyStore, file: Path) -> None:
    """Raise InputError if the store's study has none of the imported cells, and so is another of that name."""
    cells = set(source.read_results()["cell_id"].to_pylist())
    if cells and not cells & {cell.id for cell in _extended(study).cells}:
        raise InputError(
            f"the store has another study {study.name!r}, which asks for none of the {count_of(len(cells), 'cell')} of "
            f"{file}; nothing was imported. Import it into another store with --store"
        )


def _extended(study: StudyStore) -> Plan:
    """Return the plan of a stored study with the trials that its results require."""
    plan = stored_plan(study)
    judged = study.judged_by(plan.criterion)
    return extended_plan(plan, judged, judged.read_results()) if plan.may_extend else plan


def _notices(study: StudyStore, source: StudyStore, files: Collection[str], *, is_new: bool) -> tuple[str, ...]:
    """Return the import's sentences for the user."""
    notices = list(study.notices)
    if not is_new and source.read_spec() != study.read_spec():
        notices.append(f"{study.spec_where} stays as it is; the ZIP file's study file differs, and wasn't imported")
    done = source.done_rows()
    unasked = len(done) - len(rows_of_plan(done, _extended(study)))
    if unasked:
        are, they = ("isn't", "it is") if unasked == 1 else ("aren't", "they are")
        notices.append(
            f"{count_of(unasked, 'trial')} of the ZIP file {are} planned by the store's study file: {they} in the "
            "store, and will be shown after a `study run` with a file that plans them"
        )
    code = [study.file_address(key) for key in files if key.startswith("code/") and key.endswith(".zip")]
    if code and is_new:
        notices.append(f"to train more of it, unpack its own code beside its study file: {', '.join(code)}")
    commands = dict.fromkeys(command for key in files for start, command in _CLAIMS.items() if key.startswith(start))
    if commands and is_new:
        calls = " and ".join(f"`study {command} {study.name}`" for command in commands)
        make = "makes" if len(commands) == 1 else "make"
        notices.append(f"reports and certificates aren't imported: {calls} {make} them again")
    return tuple(notices)
