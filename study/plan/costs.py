"""Cost estimates of trials on a core, and groups of trials with the same training rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from study.interface.family import Family
from study.plugins.families import family_of
from study.records import Cell, Trial


def count_draws(trials: Iterable[Trial], family: Family | None = None) -> int:
    """Count the draws of rows if trials with the same rows share one.

    Args:
        trials: the trials.
        family: as for `make_packs`.

    Raises:
        ValueError: if `family` is None, and no installed family has a trial's task.
        InputError: if `family` is None, and a trial's family can't be imported, or several packages offer it.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> trials = make_plan(load_spec("simple")).trials
        >>> len(trials), count_draws(trials)
        (400, 100)
    """
    return len(by_draw(trials, family))


def by_draw(trials: Iterable[Trial], family: Family | None) -> list[list[Trial]]:
    """Group trials that draw the same training rows, in order of first occurrence.

    A trial whose rows aren't shared is a group of its own.

    Raises:
        ValueError: if `family` is None, and no installed family has a trial's task.
        InputError: if `family` is None, and a trial's family can't be imported, or several packages offer it.
    """
    rows: dict[Cell, object] = {}
    draws: dict[object, list[Trial]] = {}
    for trial in trials:
        cell = trial.cell
        if cell not in rows:
            rows[cell] = (family or family_of(cell)).rows_of(cell)
        draws.setdefault(trial.id if rows[cell] is None else (trial.sources.data, rows[cell]), []).append(trial)
    return list(draws.values())


def pack_cost(trials: Sequence[Trial], family: Family | None = None) -> float:
    """Estimate the microseconds of a pack on one core.

    Args:
        trials: the pack's trials; at least one.
        family: as for `make_packs`.

    Raises:
        ValueError: if `family` is None, and no installed family has a trial's task.
        InputError: if `family` is None, and a trial's family can't be imported, or several packages offer it.
    """
    cells = [trial.cell for trial in trials]
    return (family or family_of(cells[0])).cost_us(cells, count_draws(trials, family))
