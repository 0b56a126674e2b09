"""Layers of neural arithmetic, for one trial or for many at once.

Names of units: `registry`. Units, each as a pure function and then as a module: `linear`, `nac`, `nalu`, `nau`, `nmu`,
`gated`, `npu`, `reciprocal`, `inalu`, `golden`. Shared code: `unit` (the base class), `initialize`, `regularize`,
`sparsity`, `kernels`, `product`. Training options: `gradients`, `inalu_training`. Properties of units, without torch:
`traits`, `variance`, `moments`, `optimal_variance`, `curvature`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from units.registry import UNITS
    from units.unit import Unit

__all__ = ["UNITS", "Unit"]


def __getattr__(name: str) -> Any:
    # Imported late: torch takes seconds to import, and `units.traits` doesn't need it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from units import registry

    return getattr(registry, name)
