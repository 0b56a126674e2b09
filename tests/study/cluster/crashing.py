"""An engine that crashes on NMU packs."""

from __future__ import annotations

from study.engine import Training
from study.plan.packs import shape_key
from study.records import Cell, Checkpoint, Pack
from tasks.arithmetic.engine.cpu.engine import FusedEngine


class Crashing(FusedEngine):
    """A fused engine that crashes on NMU packs."""

    name = "crashing"

    def pack_key(self, cell: Cell) -> tuple[object, ...]:
        """Return the shape key, so that crashing cells get packs of their own."""
        return shape_key(cell)

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin training; raise RuntimeError if the pack has an NMU."""
        if any(trial.cell.model == "NMU" for trial in pack.trials):
            raise RuntimeError("no NMU today")
        return super().start(pack, device=device, checkpoint=checkpoint)

    def prepare(self, cell: Cell) -> None:
        """Do nothing, so that only training crashes."""
