"""What a script says of its training: the protocol's numbers, the optimiser and the regularisers."""

from __future__ import annotations

from collections.abc import Iterator

from study.records import Range
from tasks.arithmetic_cell import ArithmeticCell

_COUNTERS = 2**14
"""Of the random stream, at once: so many take little time each, and fit into a core's cache."""


def has_two_intervals(cell: ArithmeticCell) -> bool:
    """Tell whether inputs come from one of two intervals, in training or in the test."""
    return len(cell.interpolation_range) + len(cell.extrapolation_range) > 2


def constants(cell: ArithmeticCell, threshold: float) -> Iterator[str]:
    """Yield the lines of a cell's constants.

    Args:
        cell: of the trial.
        threshold: which the test MSE must undercut.
    """
    at_once = max(1, _COUNTERS // (cell.batch_size * -(-cell.input_size // 4)))
    sizes = f"{cell.input_size}, {cell.hidden_size}, {cell.batch_size}, {at_once}"
    yield f"INPUT_SIZE, HIDDEN_SIZE, BATCH_SIZE, AT_ONCE = {sizes}  # draws so many batches at once"
    protocol = f"{cell.iterations:_}, {cell.evaluate_every:_}, {cell.evaluation_rows:_}"
    yield f"ITERATIONS, EVALUATE_EVERY, EVALUATION_ROWS = {protocol}"
    two = has_two_intervals(cell)
    ranges = [_range(range_, two=two) for range_ in (cell.interpolation_range, cell.extrapolation_range)]
    yield f"TRAINED_ON, TESTED_ON = {ranges[0]}, {ranges[1]}" + ("  # two lower ends, and the width" if two else "")
    if cell.sparsity_strength:
        if cell.sparsity_scaling == "exponential":
            yield f"SPARSITY = {cell.sparsity_strength!r}"
        else:
            schedule = f"{cell.sparsity_strength!r}, {cell.sparsity_start:_}, {cell.sparsity_end:_}"
            yield f"SPARSITY, SPARSITY_START, SPARSITY_END = {schedule}"
    epsilon = cell.success_epsilon
    of = "that the study gives" if epsilon is None else f"of the right weights, each off by {epsilon:g}"
    yield f"THRESHOLD = {threshold!r}  # the test MSE {of}"


def _range(range_: Range, *, two: bool) -> str:
    (low, high), (last, _) = range_[0], range_[-1]
    return f"({low!r}, {last!r}, {high - low!r})" if two else f"({low!r}, {high!r})"


def optimizer(cell: ArithmeticCell) -> str:
    """Write the call that makes the optimiser; what isn't given is as torch has it, fused is only faster."""
    if cell.optimizer == "adam":
        return f"Adam(network.parameters(), lr={cell.learning_rate!r}, fused=True)"
    momentum = f", momentum={cell.momentum!r}" if cell.optimizer == "momentum" else ""
    return f"SGD(network.parameters(), lr={cell.learning_rate!r}{momentum}, fused=True)"


def penalties(cell: ArithmeticCell) -> Iterator[str]:
    """Yield the lines that add the regularisers to the loss."""
    if cell.sparsity_strength:
        ramp = "min(max((iteration - SPARSITY_START) / (SPARSITY_END - SPARSITY_START), 0), 1)"
        grown = "-math.expm1(-1e-5 * iteration)" if cell.sparsity_scaling == "exponential" else ramp
        yield f"λ = SPARSITY * {grown}"
        yield "if λ > 0:  # draw bounded weights to -1, 0 and 1, whichever is nearest"
        size = "(w.abs() if low else w)" if cell.bounds == "regularized" else "w.abs()"
        squared, linear = f"(w * (1 - {size})).square()", f"w.abs().minimum((1 - {size}).abs())"
        distance = squared if cell.sparsity_shape == "squared" else linear
        yield f"    loss = loss + λ * sum({distance}.mean() for w, low in lowest.items())"
    if cell.out_of_bounds_strength:
        excess = "torch.relu((w - (low + 1) / 2).abs() - (1 - low) / 2)"
        square = ".square()" if cell.out_of_bounds_shape == "squared" else ""
        yield "for w, low in lowest.items():  # draw them back into their bounds"
        yield f"    loss = loss + {cell.out_of_bounds_strength!r} * {excess}{square}.mean()"
