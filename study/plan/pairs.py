"""Which cells of two models ask the same, so that their seeds can be compared one by one."""

from __future__ import annotations

from collections.abc import Sequence

from study.errors import InputError
from study.records import Cell
from study.spec.counterparts import are_alike, swept

Pair = tuple[Cell, Cell]


def pairs(cells: Sequence[Cell], model: str) -> list[Pair]:
    """Pair each cell of the other models with those cells of one model that have equal values in all that is swept.

    What doesn't apply to one of the two (a sparsity schedule, to a model without one) counts as equal.

    Args:
        cells: the cells of a study.
        model: the model whose cells come second in the pairs.

    Raises:
        InputError: if a cell has no counterpart.

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
                    "put what both are to be tried at where it holds for all models"
                )
            matched += counterparts
    return matched
