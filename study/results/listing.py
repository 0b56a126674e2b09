"""Lists of a store's studies, and of the presets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from study import words
from study.console import ConsoleTable
from study.errors import InputError, reason_of
from study.plan.costs import pack_cost
from study.plan.plan import make_plan
from study.plugins.presets import preset_names, preset_text
from study.records import Trial
from study.results.stored_plan import rows_of_plan, stored_plan
from study.results.tags import study_tags
from study.spec import load_spec
from study.spec.document import read
from study.store import Store, StudyStore

_ROUGHLY = (
    "Core time is a rough estimate: `study plan PRESET` measures it here. Presets that need data show their size once "
    "the data are in this folder or in $STUDY_DATA."
)


@dataclass(frozen=True)
class StudyRow:
    """A study of a store, in a list.

    Args:
        study: its name.
        question: the study's question; empty if the study can't be read.
        done: number of trials with a result.
        trials: number of planned trials.
        cells: number of planned cells.
        failed: number of failed trials without a result.
        tags: its tags, sorted.
        error: why the study can't be read; empty if it can.
    """

    study: str
    question: str = ""
    done: int = 0
    trials: int = 0
    cells: int = 0
    failed: int = 0
    tags: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class PresetRow:
    """A preset, in a list.

    Args:
        preset: its name.
        task: the name of its task.
        question: the preset's question.
        trials: number of trials; None if the preset needs data that are missing.
        iterations: of the shortest and of the longest trial; None without data.
        core_s: rough estimate of the seconds on one core; None without data.
    """

    preset: str
    task: str
    question: str
    trials: int | None = None
    iterations: tuple[int, int] | None = None
    core_s: float | None = None


def studies(root: str | Path) -> list[StudyRow]:
    """List the studies of a store, sorted by name, also those that can't be read, with the reason.

    Raises:
        InputError: if no store exists at that address.
        StoreError: if the store can't be read.
    """
    store = Store(root, read_only=True)
    store.require()
    rows = []
    for name in store.studies():
        try:
            rows.append(_study_row(store.study(name)))
        except Exception as error:  # one broken study must not hide the others
            rows.append(StudyRow(name, error=reason_of(error)))
    return rows


def studies_table(root: str | Path) -> ConsoleTable:
    """Return `studies` as a table; the column of tags is left out if no study has any.

    Raises:
        InputError: if no store exists at that address.
        StoreError: if the store can't be read.
    """
    rows = studies(root)
    table = ConsoleTable(title=f"Studies in {Store(root, read_only=True).where}", elsewhere="`study list --json`")
    has_tags = any(row.tags for row in rows)
    ranks = {
        "study": 0,
        "done": 1,
        "failed": 1,
        "trials": 1,
        "cells": 3,
        **({"tags": 4} if has_tags else {}),
        "question": 2,
    }
    for column, rank in ranks.items():
        is_number = column not in ("study", "tags", "question")
        table.add_column(column, justify="right" if is_number else "left", rank=rank)
    for row in rows:
        tags = [", ".join(row.tags)] if has_tags else []
        if row.error:
            table.add_row(row.study, "?", "?", "?", "?", *tags, f"can't be read: {row.error}", style="yellow")
        else:
            counts = (f"{count:,}" for count in (row.done, row.failed, row.trials, row.cells))
            table.add_row(row.study, *counts, *tags, row.question)
    return table


def presets() -> list[PresetRow]:
    """List the presets, sorted by name, with their questions, sizes and rough core times.

    A preset that can't be planned, such as one whose data are missing, has neither size nor core time.

    Raises:
        InputError: if a package of presets can't be imported, or two packages offer presets by the same entry point.

    Example:
        >>> next(row.trials for row in presets() if row.preset == "demo")
        400
    """
    rows = []
    for name in preset_names():
        try:
            plan = make_plan(load_spec(name))
        except InputError:  # its data are missing
            file = read(preset_text(name)).data
            rows.append(PresetRow(name, file["task"]["name"], file["question"]))
            continue
        core_s = sum(pack_cost(trials, plan.spec.family) for trials in _by_length(plan.trials)) / 1e6
        lengths = sorted(cell.iterations for cell in plan.cells)
        between, spec = (lengths[0], lengths[-1]), plan.spec
        rows.append(PresetRow(name, spec.task_name, spec.question, len(plan.trials), between, core_s))
    return rows


def _by_length(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Group trials by their iterations."""
    groups: dict[int, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.cell.iterations, []).append(trial)
    return list(groups.values())


def presets_table() -> ConsoleTable:
    """Return `presets` as a table.

    Raises:
        InputError: as for `presets`.

    Example:
        >>> presets_table().columns[0].header, presets_table().row_count > 15
        ('preset', True)
    """
    elsewhere = "`study list --presets --json`"
    table = ConsoleTable(title="Presets", caption=_ROUGHLY, caption_justify="left", elsewhere=elsewhere)
    for column, rank in {"preset": 0, "task": 4, "trials": 1, "iterations": 5, "core time": 3, "question": 2}.items():
        is_number = column in ("trials", "iterations", "core time")
        table.add_column(column, justify="right" if is_number else "left", rank=rank)
    for row in presets():
        if row.trials is None or row.iterations is None or row.core_s is None:
            takes = ("", "", "needs data")
        else:
            between = " - ".join(words.iterations(length) for length in dict.fromkeys(row.iterations))
            takes = (f"{row.trials:,}", between, words.duration(row.core_s))
        table.add_row(row.preset, row.task, *takes, row.question)
    return table


def _study_row(folder: StudyStore) -> StudyRow:
    """Read a study's row; any error of its files is raised."""
    plan = stored_plan(folder)
    if plan.may_extend:
        # imported late: statistics and reports take longer to import than everything else here
        from study.results.load import extended_plan

        folder = folder.judged_by(plan.criterion)
        plan = extended_plan(plan, folder, folder.read_results())
    done = len(rows_of_plan(folder.done_rows(), plan))
    failed = len(rows_of_plan(folder.failed_rows(), plan))
    cells, tags = len(plan.cells), study_tags(folder)
    return StudyRow(folder.name, plan.spec.question, done, plan.trials_count, cells, failed, tags)
