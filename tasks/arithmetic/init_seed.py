"""Keys of initial weights, shared by the cells of one seed or specific to a cell."""

from __future__ import annotations

from study.records import Trial, short_digest
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.hyperparameters import HYPERPARAMETERS

_TABLES = ("task", "")


def init_seed(trial: Trial) -> int:
    """Return the key of the random stream of a trial's initial weights.

    By default it is the trial's seed for initial weights. With ``init: independent`` it is that seed XOR 64 bits of a
    hash of the cell, so that keys differ between cells of one seed, and between seeds of one cell. Cells that differ
    only in the protocol, the success criterion or the code of a user-defined unit have the same hash, so that a longer
    trial begins as a shorter one does.

    Args:
        trial: a trial of the arithmetic family.

    Returns:
        A number in [0, 2**64).

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> cells = [canonical_cell("simple", "NMU", values) for values in ({}, {"init": "independent"})]
        >>> [init_seed(Trial(cell, seed=7)) for cell in cells]
        [7, 10328801034283925796]
    """
    cell, seed = trial.cell, trial.sources.init
    if typed_cell(cell).init != "independent":
        return seed
    own = {name: cell.values.get(name) for name, declared in HYPERPARAMETERS.items() if declared.table in _TABLES}
    content = {"task": cell.task, "model": cell.model, **{name: v for name, v in own.items() if v is not None}}
    return seed ^ int(short_digest(content), 16)
