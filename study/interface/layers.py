"""Layers that compute all trials of a pack at once, and know bounds and regularisers of their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard

from torch import Tensor, nn


class PackLayer(Protocol):
    """A `torch.nn.Module` whose parameters may have a leading axis of trials.

    It must round a trial alike in any pack, because `torch.func.vmap` doesn't transform its operations. Any module
    class with these three members is taken for one; `units.Unit` has them.
    """

    @property
    def limits(self) -> Mapping[str, tuple[float, float]]:
        """Parameters to clamp after each optimiser step, with their bounds."""

    @property
    def regularisers(self) -> Mapping[str, Callable[[Tensor], Tensor]]:
        """By parameter, what measures how far it is from the values that it should have, [...]: one value a trial."""

    def sparsity_error(self) -> Tensor:
        """Return the largest distance of an effective weight from -1, 0 or 1, [...]: one value a trial."""


_NAMES = ("limits", "regularisers", "sparsity_error")


def is_pack_layer(object_: object) -> TypeGuard[type[Any]]:
    """Tell whether an object is a class of such layers.

    Example:
        >>> from units import UNITS
        >>> is_pack_layer(UNITS["NMU"]), is_pack_layer(nn.Linear)
        (True, False)
    """
    return isinstance(object_, type) and issubclass(object_, nn.Module) and all(hasattr(object_, n) for n in _NAMES)


def pack_layers(module: nn.Module) -> dict[str, Any]:
    """Return such layers in a module, by their paths."""
    return {path: part for path, part in module.named_modules() if is_pack_layer(type(part))}
