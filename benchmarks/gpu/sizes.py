"""Sizes of the measurements: the full ones, or a minimum as a smoke test."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measure import published_cell
from study.records import Cell
from study.spec.cells import canonical_cell
from tasks.arithmetic import MODELS
from tasks.arithmetic.engine.gpu.engine import GpuEngine

Model = tuple[str, int, int]
"""Model, inputs, hidden units."""

PUBLISHED = ("NMU", "NAC-mul", "NAC-mul-sigma", "NAC-mul-NMU", "NALU")
"""The models of the hidden-size figure."""


def models() -> list[str]:
    """List the models that the fused GPU engine trains, those of the hidden-size figure first."""
    engine = GpuEngine(emulated=True)
    others = [name for name in MODELS if name not in PUBLISHED]
    return [name for name in (*PUBLISHED, *others) if engine.refuses(published_cell(name, 4, 2)) is None]


@dataclass(frozen=True)
class Sizes:
    """Sizes of all measurements.

    Args:
        bits: shapes compared bit for bit with the emulation.
        alone: shapes trained alone, and among `among` others.
        updates: number of updates of both.
        distribution: cell whose success rate is compared with the fused CPU engine's, over `seeds` seeds each.
        speed: shapes whose speed is measured, the most important first.
        torch: shapes among these that the torch engine trains too, in packs of `torch_packs`.
        packs: shapes trained in packs of `multiples` times the multiprocessors.
        registers: shapes compiled with each of `limits`.
        floor: shapes beside their floor.
        evaluate_every: iterations between evaluations, in measurements that include them.
        evaluation_rows: rows of the validation set, and of the test set, in these measurements.
    """

    bits: tuple[Model, ...]
    alone: tuple[Model, ...]
    among: int
    updates: int
    distribution: Cell
    seeds: int
    speed: tuple[Model, ...]
    torch: tuple[Model, ...]
    torch_packs: tuple[int, ...]
    packs: tuple[Model, ...]
    multiples: tuple[float, ...]
    registers: tuple[Model, ...]
    limits: tuple[int, ...]
    floor: tuple[Model, ...]
    evaluate_every: int
    evaluation_rows: int

    def evaluated(self, shape: Model) -> Cell:
        """Return the published cell of a shape, with `evaluate_every` and `evaluation_rows`.

        Raises:
            KeyError: if there is no such model.
            ValueError: if the number of inputs is too small for the task's subsets.
        """
        changes = {"evaluate_every": self.evaluate_every, "evaluation_rows": self.evaluation_rows}
        return published_cell(*shape).replace(**changes)

    def checked(self, shape: Model) -> Cell:
        """Return the published cell of a shape, shortened for checks.

        The regulariser's schedule is within a check's updates, and an evaluation has two chunks of rows.

        Raises:
            KeyError: if there is no such model.
            ValueError: if the number of inputs is too small for the task's subsets.
        """
        values = {
            "input_size": shape[1],
            "hidden_size": shape[2],
            "sparsity_start": self.updates // 4,
            "sparsity_end": self.updates // 2,
            "iterations": 1000,
            "evaluation_rows": 1100,  # two chunks
        }
        return canonical_cell("simple" if shape[1] == 4 else "arithmetic", shape[0], values)


def _contested(iterations: int, hidden_size: int) -> Cell:
    """Return a cell of the simple task's NMU; at 20,000 iterations and 4 hidden units about half of its trials succeed.

    The sparsity regulariser grows from a half to three quarters of the iterations.
    """
    values = {
        "hidden_size": hidden_size, "iterations": iterations, "evaluate_every": iterations // 40,
        "evaluation_rows": 1000, "best_step_window": 10, "sparsity_strength": 1.0,
        "sparsity_start": iterations // 2, "sparsity_end": 3 * iterations // 4,
    }  # fmt: skip
    return canonical_cell("simple", "NMU", values)


def full() -> Sizes:
    """Return the full sizes."""
    names, wanted = models(), (("NMU", 100, 2), ("NMU", 100, 10))
    sizes = [(100, 2), (100, 10), (4, 2), (4, 10)]
    return Sizes(
        bits=(
            *((name, 4, 2) for name in names), ("NMU", 100, 2), ("NALU", 100, 2), ("gated-NAU-NMU", 100, 2),
            ("NMU", 100, 10),
        ),
        alone=(("NMU", 100, 2), ("NALU", 100, 2)),
        among=999,
        updates=200,
        distribution=_contested(20_000, 4),
        seeds=400,
        speed=tuple((name, *size) for name in names for size in sizes),
        torch=tuple((name, *size) for name in ("NMU", "NALU") for size in sizes),
        torch_packs=(256, 2048),
        packs=wanted,
        multiples=(0, 0.5, 1, 2, 3, 4, 5, 6, 8, 12, 16),
        registers=(*wanted, ("NALU", 100, 10)),
        limits=(64, 80, 96, 128, 168, 255),
        floor=wanted,
        evaluate_every=1000,
        evaluation_rows=10_000,
    )  # fmt: skip


def tiny() -> Sizes:
    """Return the sizes of a smoke test."""
    shape, second_shape = ("NMU", 4, 2), ("NALU", 4, 2)
    return Sizes(
        bits=(shape, second_shape), alone=(shape,), among=4, updates=20, distribution=_contested(80, 2), seeds=3,
        speed=(shape, second_shape), torch=(shape,), torch_packs=(2, 4), packs=(shape,), multiples=(0, 0.5, 1, 2),
        registers=(shape,), limits=(64, 128), floor=(shape,), evaluate_every=20, evaluation_rows=100,
    )  # fmt: skip
