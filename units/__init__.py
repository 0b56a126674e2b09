"""What a unit computes: layers of neural arithmetic, for one trial or for many at once.

`registry` names them. Each file holds one concept, the pure function first, then its module: `linear`, `nac`, `nalu`,
`nau`, `nmu`, `gated`, and later `npu`, `reciprocal`, `inalu`, `golden`. What they share: `unit` (what every unit is),
`initialize`, `regularize`, `sparsity`, `kernels`, `product`. What training may add: `gradients`,
`inalu_training`. What is known of units without torch: `traits`, `variance`, `moments`, `optimal_variance`,
`curvature`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from units.registry import UNITS
    from units.unit import Unit

__all__ = ["UNITS", "Unit"]


def __getattr__(name: str) -> Any:
    # Imported late: torch comes with them, which takes seconds to import, and `units.traits` does without it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from units import registry

    return getattr(registry, name)
