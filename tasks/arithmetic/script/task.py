"""Script text of the task: its equation, and the lines that compute it."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.arithmetic.cell import ArithmeticCell, task_of

_EQUATIONS = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "squared": "a * a",
    "root": "sqrt(a)",
    "reciprocal": "1 / a",
}
_MANY = {"add": ("sum", "sum(sums)"), "mul": ("product", "math.prod(sums)")}


@dataclass(frozen=True)
class ScriptTarget:
    """The target of a script.

    Args:
        equation: the equation as text for readers.
        sums: the line that sums the subsets.
        result: the expression that combines these sums.
        places: number of possible starts of the first subset: 0, 1, ...; None in the simple task, where it starts at 0.
        source: the publication that introduced the task.
    """

    equation: str
    sums: str
    result: str
    places: int | None
    source: str = "Madsen & Johansen, ICLR 2020"


def target(cell: ArithmeticCell) -> ScriptTarget:
    """Describe the target of a cell's trials, for its script.

    Raises:
        KeyError: if the task is unknown.
        ValueError: if it can't be constructed from the cell's values.

    Example:
        >>> from tasks.arithmetic.canonical import canonical
        >>> target(canonical("arithmetic", "NMU", {})).sums
        'a, b = (x[:, at : at + 25].sum(1, keepdim=True) for at in (START, START + 13))'
    """
    task = task_of(cell)
    equation = _EQUATIONS[task.operation]
    result = "a.sqrt()" if task.operation == "root" else equation
    has_b = "b" in equation
    if task.simple:
        words = f"t = {equation}, a = x1 + x2" + (", b = x1 + x2 + x3 + x4" if has_b else "")
        sums = "a, b = x[:, :2].sum(1, keepdim=True), x.sum(1, keepdim=True)"
        return ScriptTarget(words, sums if has_b else "a = x[:, :2].sum(1, keepdim=True)", result, None)
    if task.single and not has_b:
        words = f"t = {equation}, a = one of {task.input_size} inputs"
        source = "Mistry, Farrahi & Hare, 2021"
        return ScriptTarget(words, "a = x[:, START : START + 1]", result, task.input_size - task.used + 1, source)
    if task.single:
        words = f"t = {equation}, a and b = neighbours among {task.input_size} inputs"
        sums = "a, b = (x[:, at : at + 1] for at in (START, START + 1))"
        return ScriptTarget(words, sums, result, task.input_size - 1, "Mistry, Farrahi & Hare, JMLR 2022")
    size, step, places = task.subset_size, task.subset_size - task.overlap, task.input_size - task.used + 1
    part = f"x[:, {{0}} : {{0}} + {size}].sum(1, keepdim=True)"
    if not has_b:
        words = f"t = {equation}, a = the sum of {size} of {task.input_size} inputs"
        return ScriptTarget(words, "a = " + part.format("START"), result, places)
    if task.subsets == 2:
        words = f"t = {equation}, a and b = sums of {size} of {task.input_size} inputs each"
        return ScriptTarget(words, f"a, b = ({part.format('at')} for at in (START, START + {step}))", result, places)
    words = f"t = the {_MANY[task.operation][0]} of {task.subsets} sums of {size} of {task.input_size} inputs each"
    sums = f"sums = [{part.format('at')} for at in (START + {step} * j for j in range({task.subsets}))]"
    return ScriptTarget(words, sums, _MANY[task.operation][1], places)
