"""The torch engine with the code of user-defined units, as data for workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from study.engine.base import Training
from study.engine.own_code import OwnCode
from study.plugins.import_string import parse_import_string
from study.records import Cell, Checkpoint, Pack
from tasks.arithmetic.engine.torch.engine import TorchEngine
from tasks.arithmetic.own_units import register, unit_key


@dataclass(frozen=True, kw_only=True)
class OwnUnitsEngine(TorchEngine):
    """The engine of cells with a user-defined unit; the family's engines train all other cells.

    Args:
        code: the units' code.
        identity: the identity of their code in the ids of trials.
        units: their import strings.
    """

    code: OwnCode
    identity: str
    units: Sequence[str]

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason why this engine can't train the cell, or None if it can."""
        if cell.model in self.units and cell.value("code") == self.identity:
            return None
        return f"it trains {', '.join(self.units)} only"

    def prepare(self, cell: Cell) -> None:
        """Import the units, and compile the optimiser's step, by training a trial of the cell for a moment.

        Raises:
            InputError: if the code can't be loaded.
            OSError: if the copy of the code can't be written.
            ValueError: if the cell's success threshold can't be computed, or a unit's weights can't have its
                `init_variance`. A unit's own errors are raised as they are.
        """
        self._import()
        super().prepare(cell)

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Import the units, and begin a pack or continue it; see `TorchEngine.start`.

        Raises:
            InputError: if the code can't be loaded.
            OSError: if the copy of the code can't be written.
            ValueError: as for `TorchEngine.start`. A unit's own errors are raised as they are.
            DeviceError: as for `TorchEngine.start`.
        """
        self._import()
        return super().start(pack, device=device, checkpoint=checkpoint)

    def _import(self) -> None:
        folder = self.code.folder()
        for unit in self.units:
            class_ = folder.load(parse_import_string(unit), (nn.Module,))
            register(unit_key(unit, self.identity), class_.traits, class_)
