"""Script text of the training: the protocol's numbers, optimiser, loss, gradient limits and restarts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from study.records import Range
from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.script.layers import ScriptLayer
from tasks.arithmetic.script.literals import literal

_COUNTERS = 2**14
"""Counters of the random stream processed at once: few enough to fit into a core's cache."""

_L1_EVERY = 10_000
"""Iterations between increases of the L1 penalty's strength, each by a factor of ten."""


def has_two_intervals(cell: ArithmeticCell) -> bool:
    """Return True if training or test inputs come from two intervals."""
    return len(cell.interpolation_range) + len(cell.extrapolation_range) > 2


def constants(cell: ArithmeticCell, threshold: float) -> Iterator[str]:
    """Yield the lines of a cell's constants.

    Args:
        cell: the trial's cell.
        threshold: the test MSE to undercut.

    Raises:
        TypeError: if a needed number is None, such as the start of a sparsity strength that grows linearly.
    """
    at_once = max(1, _COUNTERS // (cell.batch_size * -(-cell.input_size // 4)))
    sizes = f"{cell.input_size}, {cell.hidden_size}, {cell.batch_size}, {at_once}"
    yield f"INPUT_SIZE, HIDDEN_SIZE, BATCH_SIZE, AT_ONCE = {sizes}  # AT_ONCE: number of batches drawn at once"
    protocol = f"{cell.iterations:_}, {cell.evaluate_every:_}, {cell.evaluation_rows:_}"
    yield f"ITERATIONS, EVALUATE_EVERY, EVALUATION_ROWS = {protocol}"
    yield _sources(cell)
    if cell.sparsity_strength:
        if cell.sparsity_scaling == "exponential":
            yield f"SPARSITY = {cell.sparsity_strength!r}"
        else:
            schedule = f"{cell.sparsity_strength!r}, {cell.sparsity_start:_}, {cell.sparsity_end:_}"
            yield f"SPARSITY, SPARSITY_START, SPARSITY_END = {schedule}"
    epsilon = cell.success_epsilon
    origin = "given by the study" if epsilon is None else f"of the right weights, each off by {epsilon:g}"
    yield f"THRESHOLD = {literal(threshold)}  # the test MSE {origin}"


def _sources(cell: ArithmeticCell) -> str:
    if cell.distribution == "benford":
        powers = [range_[0][0] for range_ in (cell.interpolation_range, cell.extrapolation_range)]
        return f"TRAINED_ON, TESTED_ON = [{powers[0]!r}], [{powers[1]!r}]  # the least number with that digit count"
    if cell.distribution == "normal":
        ends = [(*source.range[0], source.mean) for source in (cell.trained_on, cell.tested_on)]
        numbers = f"{ends[0]}, {ends[1]}, {cell.deviation!r}"
        return f"TRAINED_ON, TESTED_ON, DEVIATION = {numbers}  # two ends, and the mean before the cut"
    two = has_two_intervals(cell)
    ranges = [_range(range_, two=two) for range_ in (cell.interpolation_range, cell.extrapolation_range)]
    return f"TRAINED_ON, TESTED_ON = {ranges[0]}, {ranges[1]}" + ("  # two lower ends, and the width" if two else "")


def _range(range_: Range, *, two: bool) -> str:
    (low, high), (last, _) = range_[0], range_[-1]
    return f"({low!r}, {last!r}, {high - low!r})" if two else f"({low!r}, {high!r})"


def optimizer(cell: ArithmeticCell) -> str:
    """Write the call that constructs the optimiser; `fused` changes only its speed and rounding."""
    if cell.optimizer == "adam":
        return f"Adam(network.parameters(), lr={cell.learning_rate!r}, fused=True)"
    momentum = f", momentum={cell.momentum!r}" if cell.optimizer == "momentum" else ""
    return f"SGD(network.parameters(), lr={cell.learning_rate!r}{momentum}, fused=True)"


def penalties(cell: ArithmeticCell, signs: Sequence[str]) -> Iterator[str]:
    """Yield the lines that add the regularisers to the loss; no line if all are off.

    Args:
        cell: the trial's cell.
        signs: expressions of the parameters that should become -1 or 1, but not 0.

    Raises:
        ValueError: unless 0 < first strength <= last strength holds for the cell's L1 penalty.
    """
    yield from _sparsity(cell, signs)
    if cell.out_of_bounds_strength:
        excess = "torch.relu((w - (low + 1) / 2).abs() - (1 - low) / 2)"
        square = ".square()" if cell.out_of_bounds_shape == "squared" else ""
        yield "for w, low in lowest.items():  # draw them back into their bounds"
        yield f"    loss = loss + {cell.out_of_bounds_strength!r} * {excess}{square}.mean()"
    if cell.l1_strength is not None:
        yield f"β = {_l1_strength(cell)}"
        yield "loss = loss + β * sum(p.abs().sum() for p in network.parameters())"
    if cell.outward_strength is not None:
        yield f"if iteration >= {cell.outward_start or 0:_} and mse[0] < 1:  # push parameters outward"
        far = "sum(torch.relu(20 - p.abs()).mean() for p in network.parameters())"
        yield f"    loss = loss + {cell.outward_strength!r} * {far}"


def _sparsity(cell: ArithmeticCell, signs: Sequence[str]) -> Iterator[str]:
    if not cell.sparsity_strength:
        return
    ramp = "min(max((iteration - SPARSITY_START) / (SPARSITY_END - SPARSITY_START), 0), 1)"
    grown = "-math.expm1(-1e-5 * iteration)" if cell.sparsity_scaling == "exponential" else ramp
    yield f"λ = SPARSITY * {grown}"
    yield "if λ > 0:  # draw bounded weights to -1, 0 and 1, whichever is nearest"
    size = "(w.abs() if low else w)" if cell.bounds == "regularized" else "w.abs()"
    squared, linear = f"(w * (1 - {size})).square()", f"w.abs().minimum((1 - {size}).abs())"
    is_squared, drawn = cell.sparsity_shape == "squared", "lowest.items()"
    if signs:
        drawn, is_other = "others", " and ".join(f"w is not {sign}" for sign in signs)
        yield f"    others = [(w, low) for w, low in lowest.items() if {is_other}]"
    for sign in signs:
        to_sign = f"(1 - {sign}.abs()).{'square' if is_squared else 'abs'}().mean()"
        yield f"    loss = loss + λ * {to_sign}  # to -1 or 1: a gate leaves inputs out"
    yield f"    loss = loss + λ * sum({squared if is_squared else linear}.mean() for w, low in {drawn})"


def _l1_strength(cell: ArithmeticCell) -> str:
    from study.engine.penalties import stepwise  # imported late: it imports torch, which takes seconds

    first, last = cell.l1_first_strength or 0.0, cell.l1_strength or 0.0
    steps = next(step for step in count() if stepwise(step * _L1_EVERY, first, last) == last)
    grown = f"{first!r} * 10 ** (iteration // {_L1_EVERY:_})"
    return f"{last!r} if iteration >= {steps * _L1_EVERY:_} else {grown}" if steps else f"{last!r}"


def limits(cell: ArithmeticCell) -> Iterator[str]:
    """Yield the lines that limit the gradient; no line if the cell has no limit."""
    if cell.clip_norm is not None:
        yield f"torch.nn.utils.clip_grad_norm_(network.parameters(), {cell.clip_norm!r})"
    if cell.clip_value is not None:
        yield f"torch.nn.utils.clip_grad_value_(network.parameters(), {cell.clip_value!r})"


def restart(cell: ArithmeticCell, of_name: Mapping[str, ScriptLayer]) -> Iterator[str]:
    """Yield the lines that restart an iNALU; no line if the cell has no restarts.

    Args:
        cell: the trial's cell.
        of_name: the network's layers by name.
    """
    if cell.restart_memory is None:
        return
    parameters = sum(layer.parameters for layer in of_name.values())
    yield "losses[iteration], trained = mse[0], iteration + 1 - since"
    yield f"if iteration % 10 == 0 and trained > {cell.restart_memory:_}:"
    yield "    early, late = losses[since : iteration + 1].split([trained // 2, trained - trained // 2])"
    yield "    if late.mean() > 1 and early.mean() <= late.mean() + late.std(correction=0):  # start anew"
    for number, (name, layer) in enumerate(of_name.items()):
        index = f"{len(of_name) * parameters} * iteration" + (f" + {number * parameters}" if number else "")
        yield f"        {name}.load_state_dict({layer.name}({layer.sizes}, {index}, RESTART).state_dict())"
    yield "        since = iteration + 1"
