"""Properties of units that don't need torch: bounded weights, and the largest variance of initial weights.

Study files are checked with these before torch is imported, which takes longer than the check itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from units.variance import LARGEST_NAU_VARIANCE, LARGEST_NMU_VARIANCE, largest_nac_variance, largest_sigmoid_variance

if TYPE_CHECKING:
    from units.regularize import Kind


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of a unit that don't depend on its weights.

    Args:
        bounded: the kind of bounds and regulariser of each bounded parameter, by name.
        largest_init_variance: the largest variance of the initial effective weights; infinity if it has no bound, 0 if
            it can't be chosen.
    """

    bounded: Mapping[str, Kind] = field(default_factory=dict)
    largest_init_variance: float = math.inf


_NAC = Traits(largest_init_variance=largest_nac_variance())
_NAU = Traits(bounded={"weight": "NAU"}, largest_init_variance=LARGEST_NAU_VARIANCE)
_NMU = Traits(bounded={"weight": "NMU"}, largest_init_variance=LARGEST_NMU_VARIANCE)
# The iNALU's initial variance can't be chosen.
_NO_CHOICE = Traits(largest_init_variance=0.0)

TRAITS: dict[str, Traits] = {
    "NAC-add": _NAC,
    "NAC-mul": _NAC,
    "NAC-mul-sigma": Traits(largest_init_variance=largest_sigmoid_variance()),
    "NAC-mul-NMU": _NMU,
    "NALU": _NAC,
    "NALU-separate": _NAC,
    "NAU": _NAU,
    "NMU": _NMU,
    "NMU-normalized": _NMU,
    "gated-NAU-NMU": Traits(
        bounded={"weight_add": "NAU", "weight_mul": "NMU"},
        largest_init_variance=min(LARGEST_NAU_VARIANCE, LARGEST_NMU_VARIANCE),
    ),
    "NPU": Traits(),
    "RealNPU": Traits(),
    "RealNPU-modified": Traits(bounded={"weight": "sign", "gate": "NMU"}, largest_init_variance=LARGEST_NAU_VARIANCE),
    "NRU": _NAU,
    "NMRU": _NMU,
    "iNALU": _NO_CHOICE,
    "iNALU-Primer": _NO_CHOICE,
    "G-NALU": _NAC,
    **dict.fromkeys(("linear", "ReLU", "ReLU6", "tanh", "sigmoid", "softsign", "SELU", "ELU"), Traits()),
}
"""The traits of each unit, under the names of `units.UNITS`."""
