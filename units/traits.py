"""What is known of a unit without torch: its bounded weights, and the largest variance of initial ones.

A study's file is checked with these before torch is imported, which takes longer than the rest of the check.
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
    """What is known of a unit without its weights.

    Args:
        bounded: the kind of bounds and regulariser of each bounded parameter, by name.
        largest_init_variance: of the initial effective weights; infinity if there is no bound.
    """

    bounded: Mapping[str, Kind] = field(default_factory=dict)
    largest_init_variance: float = math.inf


_NAC = Traits(largest_init_variance=largest_nac_variance())
_NMU = Traits(bounded={"weight": "NMU"}, largest_init_variance=LARGEST_NMU_VARIANCE)

TRAITS: dict[str, Traits] = {
    "NAC-add": _NAC,
    "NAC-mul": _NAC,
    "NAC-mul-sigma": Traits(largest_init_variance=largest_sigmoid_variance()),
    "NAC-mul-NMU": _NMU,
    "NALU": _NAC,
    "NALU-separate": _NAC,
    "NAU": Traits(bounded={"weight": "NAU"}, largest_init_variance=LARGEST_NAU_VARIANCE),
    "NMU": _NMU,
    "NMU-normalized": _NMU,
    "gated-NAU-NMU": Traits(
        bounded={"weight_add": "NAU", "weight_mul": "NMU"},
        largest_init_variance=min(LARGEST_NAU_VARIANCE, LARGEST_NMU_VARIANCE),
    ),
    **dict.fromkeys(("linear", "ReLU", "ReLU6", "tanh", "sigmoid", "softsign", "SELU", "ELU"), Traits()),
}
"""The traits of each unit, under the names of `units.UNITS`."""

LATER_TRAITS: dict[str, Traits] = {
    "NPU": Traits(),
    "RealNPU": Traits(),
    "RealNPU-modified": Traits(bounded={"weight": "NAU", "gate": "NMU"}, largest_init_variance=LARGEST_NAU_VARIANCE),
    "NRU": TRAITS["NAU"],
    "NMRU": _NMU,
    "iNALU": Traits(largest_init_variance=0.0),
    "iNALU-Primer": Traits(largest_init_variance=0.0),
    "G-NALU": _NAC,
}
"""The traits of each unit of `units.LATER_UNITS`; 0 is the largest variance where the start can't be chosen."""
