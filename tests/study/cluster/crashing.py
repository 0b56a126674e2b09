"""An engine that crashes where told to."""

from __future__ import annotations

from study.engine import Training
from study.plan.packs import shape_key
from study.records import Cell, Checkpoint, Pack
from tasks.arithmetic.engine.cpu.engine import FusedEngine


class Crashing(FusedEngine):
    """Crashes where told to."""

    name = "crashing"

    def pack_key(self, cell: Cell) -> tuple[object, ...]:
        """Return the shape: what crashes is apart from what doesn't."""
        return shape_key(cell)

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin, unless the pack has a NMU."""
        if any(trial.cell.model == "NMU" for trial in pack.trials):
            raise RuntimeError("no NMU today")
        return super().start(pack, device=device, checkpoint=checkpoint)

    def prepare(self, cell: Cell) -> None:
        """Need nothing."""
