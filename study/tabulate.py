"""Tables of outcomes by any columns: from files and studies to one row a group.

files, studies -> outcomes -> groups -> terminal, Markdown, CSV, Parquet, LaTeX
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from study.aggregate import GroupSummary, aggregate_by
from study.errors import InputError, StudyError
from study.outcomes import SUFFIXES, Source, gather, read_source
from study.report import GROUP_FORMATS, groups, keyed_table, write_groups

_ROWS = 200
"""Rows that a terminal shows: nobody reads more there, and a thousand take seconds to lay out."""


@dataclass(frozen=True)
class Tabulated:
    """Groups of trials, and where their tables go.

    Args:
        title: over the table.
        groups: one a row.
        by: the columns that tell them apart, and their types.
        notices: sentences the reader must know.
        command: that makes the tables again, without folders.
        folder: where the tables go.
        formats: of `GROUP_FORMATS`.
    """

    title: str
    groups: Sequence[GroupSummary]
    by: pa.Schema
    notices: Sequence[str]
    command: str
    folder: Path
    formats: Collection[str]


def is_file(name: str) -> bool:
    """Say whether a name is that of a file of outcomes, and not of a study."""
    return name.lower().endswith(SUFFIXES)


def tabulate(
    names: Sequence[str],
    root: Path,
    by: Sequence[str] | None = None,
    *,
    tracking_uri: str | None = None,
    as_published: bool = False,
    out: Path | None = None,
    formats: Collection[str] = (),
) -> Tabulated:
    """Summarise the outcomes of files and studies; nothing is written.

    Args:
        names: paths of files that end in one of `study.outcomes.SUFFIXES`, and names of studies.
        root: the store's folder.
        by: columns that tell groups apart; None for those that vary.
        tracking_uri: read the results of studies from this MLflow server instead of the store.
        as_published: apply the published estimators, too.
        out: where tables shall go; None for a folder beside the first file, or in the study's.
        formats: of `GROUP_FORMATS`; none for all.

    Raises:
        InputError: if a file or a study isn't there or can't be used, or tables can't go where they shall.
    """
    _check_formats(formats)
    folder = out or _folder(names, root)
    _check_folder(folder, [Path(name) for name in names if is_file(name)])
    sources: list[Source] = []
    notices: list[str] = []
    for name in names:
        if is_file(name):
            sources.append(read_source(Path(name), also=by or ()))
        else:
            # only here, since MLflow takes seconds to import
            from study import results

            source, told = results.outcomes_of(name, root, tracking_uri=tracking_uri)
            sources.append(source)
            notices += told
    outcomes = gather(sources, by)
    short = [Path(name).name for name in names]
    words = ["study", "report", *short, *(["--by", ",".join(outcomes.by)] if outcomes.by else [])]
    return Tabulated(
        title=", ".join(short) + (f" by {', '.join(outcomes.by)}" if outcomes.by else ""),
        groups=aggregate_by(outcomes.table, outcomes.by, as_published=as_published),
        by=pa.schema([outcomes.table.schema.field(name) for name in outcomes.by]),
        notices=[*notices, *outcomes.notices],
        command=shlex.join([*words, *(["--as-published"] if as_published else [])]),
        folder=folder,
        formats=formats or tuple(GROUP_FORMATS),
    )


def show(found: Tabulated, console: Console) -> None:
    """Print the table, and what the reader must know."""
    rows = groups(found.groups, found.by.names)
    console.print(keyed_table(rows, title=found.title, most=_ROWS))
    if len(found.groups) > _ROWS:
        console.print(f"... and {len(found.groups) - _ROWS:,} more rows, in the files")
    for notice in found.notices:
        console.print(notice, style="yellow", markup=False)


def write(found: Tabulated) -> list[Path]:
    """Write the tables, and give their files.

    Raises:
        StudyError: if the folder can't be written.
    """
    try:
        return write_groups(
            found.folder,
            title=found.title,
            groups=found.groups,
            by=found.by,
            notices=found.notices,
            command=found.command,
            formats=found.formats,
        )
    except OSError as error:
        raise StudyError(f"can't write the tables into {found.folder}: {error.strerror or error}") from error


def _folder(names: Sequence[str], root: Path) -> Path:
    files = [Path(name) for name in names if is_file(name)]
    if files:
        return files[0].with_name(f"{files[0].stem}-report")
    if len(names) > 1:
        raise InputError("tables of several studies need a folder to go to: give --out")
    return root / names[0] / "tables"


def _check_folder(folder: Path, files: Sequence[Path]) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but must be a folder to write tables to: give another --out")
    written = {(folder / name).resolve() for names in GROUP_FORMATS.values() for name in names}
    for file in files:
        if file.resolve() in written:
            raise InputError(f"{file} would be written over by its own table: give another --out")


def _check_formats(formats: Collection[str]) -> None:
    foreign = [name for name in formats if name not in GROUP_FORMATS]
    if foreign:
        raise InputError(
            f"--format {', '.join(foreign)}: only the report of one study has it; tables of files, of several "
            f"studies and by columns come as {', '.join(GROUP_FORMATS)}"
        )
