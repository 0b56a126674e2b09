"""Pairs of cells of two models with equal values otherwise, for comparison seed by seed."""

from __future__ import annotations

from collections.abc import Sequence

from study.errors import InputError
from study.records import Cell
from study.spec.counterparts import are_alike, swept

Pair = tuple[Cell, Cell]


def pairs(cells: Sequence[Cell], model: str) -> list[Pair]:
    """Pair each cell of other models with the cells of `model` that have equal values of all swept hyperparameters.

    A hyperparameter that doesn't apply to one of the two cells counts as equal.

    Args:
        cells: the cells of a study.
        model: the model of the second cell of each pair.

    Raises:
        InputError: if a cell of another model has no counterpart.

    Example:
        >>> from study.plan.plan import study_cells
        >>> from study.spec import load_spec
        >>> compared = pairs(study_cells(load_spec("demo")), "NAC-mul")
        >>> len(compared), {(a.model, b.model, a.value('hidden_size') == b.value('hidden_size')) for a, b in compared}
        (15, {('NMU', 'NAC-mul', True)})
    """
    names = swept(cells)
    seconds = [cell for cell in cells if cell.model == model]
    matched = []
    for cell in cells:
        if cell.model != model:
            counterparts = [(cell, second) for second in seconds if are_alike(cell, second, names)]
            if not counterparts:
                values = ", ".join(f"{name} {cell.value(name)}" for name in names if name != "model")
                raise InputError(
                    f"different_from: {cell.model} with {values} has no counterpart among the cells of {model}: "
                    "set the values that both need outside of models, where they apply to all models"
                )
            matched += counterparts
    return matched
