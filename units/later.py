"""Units that are layers for networks of one's own, and that no model, preset or engine uses yet."""

from __future__ import annotations

from units.golden import GNALU
from units.inalu import INALU, PrimerINALU
from units.npu import NPU, ModifiedRealNPU, RealNPU
from units.reciprocal import NMRU, NRU
from units.unit import Unit

LATER_UNITS: dict[str, type[Unit]] = {
    "NPU": NPU,
    "RealNPU": RealNPU,
    "RealNPU-modified": ModifiedRealNPU,
    "NRU": NRU,
    "NMRU": NMRU,
    "iNALU": INALU,
    "iNALU-Primer": PrimerINALU,
    "G-NALU": GNALU,
}
"""Apart from `units.UNITS`, of which every entry is a layer of a model that all engines train."""
