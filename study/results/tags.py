"""Tags of a stored study: those of its file, and those that `study tag` added or removed."""

from __future__ import annotations

import json
from collections.abc import Collection

from study.errors import InputError, StoreError
from study.interface.json_text import parse_json
from study.spec.tags import check_tags, is_tag, tags_in
from study.store import StudyStore

FILE = "tags.json"
"""The file of a study's folder with the changes by `study tag`."""


def study_tags(folder: StudyStore) -> tuple[str, ...]:
    """Return a study's tags, sorted.

    Raises:
        StoreError: if the tags or the study's file can't be read.
    """
    added, removed = _changes(folder)
    return tuple(sorted({*tags_in(folder.read_spec()), *added} - removed))


def change_tags(folder: StudyStore, add: Collection[str], remove: Collection[str]) -> tuple[str, ...]:
    """Add and remove tags without changing the study's file. The study may be running.

    Args:
        folder: the study's store.
        add: the tags to add.
        remove: the tags to remove, also those of the study's file.

    Returns:
        The study's tags, sorted.

    Raises:
        InputError: if a tag is invalid, is both added and removed, or is removed and doesn't exist.
        StoreError: if the tags can't be read or written.
    """
    check_tags([*add, *remove])
    before = study_tags(folder)
    if both := {*add} & {*remove}:
        raise InputError(f"{min(both)!r} can't be both added and removed: leave it out of one of the two")
    if unknown := {*remove} - {*before}:
        has = f"its tags are {', '.join(before)}" if before else "it has no tags"
        raise InputError(f"study {folder.name!r} has no tag {min(unknown)!r}; {has}")
    added, removed = _changes(folder)
    content = {"added": sorted((added | {*add}) - {*remove}), "removed": sorted((removed | {*remove}) - {*add})}
    if (added, removed) != (set(content["added"]), set(content["removed"])):
        folder.write_file(FILE, json.dumps(content, indent=1, ensure_ascii=False).encode())
    return study_tags(folder)


def _changes(folder: StudyStore) -> tuple[set[str], set[str]]:
    """Return the added and the removed tags; raise StoreError if their file is invalid."""
    content = folder.read_file(FILE)
    if content is None:
        return set(), set()
    try:
        data = parse_json(content)
        added, removed = set(data["added"]), set(data["removed"])
        if all(map(is_tag, added | removed)):
            return added, removed
    except (ValueError, KeyError, TypeError):  # a truncated file, or a foreign file of that name
        pass
    raise StoreError(f"{folder.file_address(FILE)} can't be read as tags: remove it, and add the tags again")
