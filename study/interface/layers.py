"""Layers that compute all trials of a pack at once, and declare bounds and regularisers of their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard

from torch import Tensor, nn


class PackLayer(Protocol):
    """A `torch.nn.Module` whose parameters may have a leading axis of trials.

    `torch.func.vmap` doesn't transform the layer's operations, so the layer itself must give each trial bit-identical
    results in any pack. Any module class with these three members counts as a pack layer; `units.Unit` has them.
    """

    @property
    def limits(self) -> Mapping[str, tuple[float, float]]:
        """Bounds (low, high) by parameter; parameters are clamped to them after each optimiser step."""

    @property
    def regularisers(self) -> Mapping[str, Callable[[Tensor], Tensor]]:
        """Regularisers by parameter: functions of the parameter that return a value per trial, shape [trials] or []."""

    def sparsity_error(self) -> Tensor:
        """Return the largest distance of an effective weight from -1, 0 or 1, per trial: shape [trials] or []."""


_NAMES = ("limits", "regularisers", "sparsity_error")


def is_pack_layer(object_: object) -> TypeGuard[type[Any]]:
    """Return True if an object is a class of pack layers.

    Example:
        >>> from units import UNITS
        >>> is_pack_layer(UNITS["NMU"]), is_pack_layer(nn.Linear)
        (True, False)
    """
    return isinstance(object_, type) and issubclass(object_, nn.Module) and all(hasattr(object_, n) for n in _NAMES)


def pack_layers(module: nn.Module) -> dict[str, Any]:
    """Return the pack layers in a module, by their paths; the module itself has an empty path."""
    return {path: part for path, part in module.named_modules() if is_pack_layer(type(part))}
