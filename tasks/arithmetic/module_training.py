"""Published training values of each unit as a single layer.

Source: Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules", JMLR 2022; for the NRU, the NMRU and the
modified RealNPU "Learning Division with Neural Arithmetic Logic Modules", 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ModuleTraining:
    """Published hyperparameter values of a unit's training, besides those of all units.

    Args:
        values: values for any number of inputs.
        of_pairs: additional values for two inputs; they override `values`.
        of_more: additional values for more inputs; they override `values`.
    """

    values: Values = field(default_factory=dict)
    of_pairs: Values = field(default_factory=dict)
    of_more: Values = field(default_factory=dict)

    def at(self, input_size: int) -> dict[str, Any]:
        """Return the values for a number of inputs; one input counts as a pair.

        Example:
            >>> MODULE_TRAININGS["NRU"].at(2)["learning_rate"], MODULE_TRAININGS["NRU"].at(10)["learning_rate"]
            (1.0, 0.001)
        """
        return {**self.values, **(self.of_pairs if input_size <= 2 else self.of_more)}


def _ramp(start: int, end: int) -> Values:
    return {"sparsity_start": start, "sparsity_end": end}


_LATE_RAMP = _ramp(50_000, 75_000)
_RAMPS = {"of_pairs": _ramp(20_000, 35_000), "of_more": _LATE_RAMP}

_FAST = {"learning_rate": 5e-3}
_INALU = {"clip_value": 0.1, "outward_strength": 0.05, "outward_start": 10_001, "restart_memory": 5_000}

BOUNDED = ModuleTraining(**_RAMPS)
"""The values of units with bounded weights, unless other values were published."""

MODULE_TRAININGS: Mapping[str, ModuleTraining] = {
    "NPU": ModuleTraining(values=_FAST),
    "RealNPU": ModuleTraining(values=_FAST),
    "RealNPU-modified": ModuleTraining(
        values={**_FAST, "sparsity_strength": 1.0}, of_pairs=_ramp(40_000, 50_000), of_more=_LATE_RAMP
    ),
    "NRU": ModuleTraining(
        of_pairs={"learning_rate": 1.0, **_RAMPS["of_pairs"]}, of_more={"learning_rate": 1e-3, **_LATE_RAMP}
    ),
    "NMRU": ModuleTraining(values={"learning_rate": 1e-2, "clip_norm": 1.0}, **_RAMPS),
    "iNALU": ModuleTraining(values=_INALU, of_more={"iterations": 50_000}),
    "iNALU-Primer": ModuleTraining(values=_INALU, of_more={"iterations": 50_000}),
}
"""The values by unit name; other units were trained with `BOUNDED` or the common values."""

_PENALISED = ("NPU", "RealNPU", "RealNPU-modified")
_QUOTIENTS = (1e-9, 1e-7)
_L1: Mapping[str, tuple[float, float]] = {"mul": (1e-7, 1e-5), "div": _QUOTIENTS, "reciprocal": _QUOTIENTS}


def l1_strengths(unit: str, operation: str) -> tuple[float, float] | None:
    """Return the first and last published strength of a unit's L1 penalty; None without a penalty.

    Example:
        >>> l1_strengths("RealNPU", "div"), l1_strengths("NRU", "div")
        ((1e-09, 1e-07), None)
    """
    return _L1.get(operation) if unit in _PENALISED else None
