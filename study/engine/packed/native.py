"""Pack layers in a user's module: in packs they use their own axis of trials, and keep their bounds.

Their arithmetic rounds a trial the same in any pack, unlike `torch.func.vmap` of their operations. Their gradients may
have formulas of their own, which vmap can't transform.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from study.interface.layers import pack_layers


class _Plain(nn.Module):
    """A unit that computes by its class's `forward`, even if the instance's is replaced."""

    def __init__(self, unit: nn.Module) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = type(self.unit).forward(self.unit, x)
        return output


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(plain: _Plain, x: Tensor, *tensors: Tensor) -> Tensor:
        raise NotImplementedError("outside of vmap, a unit computes by itself")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save nothing: autograd differentiates the operations inside of `vmap` directly."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], plain: _Plain, x: Tensor, *tensors: Tensor) -> tuple[Tensor, int]:
        many = [
            tensor.expand(info.batch_size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip((x, *tensors), in_dims[1:], strict=True)
        ]
        parameters = dict(zip(_names(plain), many[1:], strict=True))
        output: Tensor = functional_call(plain, parameters, (many[0],))
        return output, 0


def side_by_side(module: nn.Module) -> None:
    """Make a module's pack layers compute with their own axis of trials.

    A module with pack layers then works only within `torch.func.vmap`.

    Example:
        >>> from torch.func import vmap
        >>> from units import UNITS
        >>> module = nn.Sequential(UNITS["NMU"](2, 1))
        >>> side_by_side(module)
        >>> weight, x = torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]), torch.tensor([[3.0, 7.0]])
        >>> vmap(lambda weight: functional_call(module, {"0.weight": weight}, (x,)))(weight).flatten().tolist()
        [3.0, 21.0]
    """
    for unit in pack_layers(module).values():
        plain = _Plain(unit)

        def forward(x: Tensor, plain: _Plain = plain) -> Tensor:
            output: Tensor = _Packed.apply(plain, x, *dict(plain.named_parameters()).values())  # type: ignore[no-untyped-call]
            return output

        unit.forward = forward


def limits_of(module: nn.Module) -> Mapping[str, tuple[float, float]]:
    """Return the bounds of the trained parameters that are clamped after each step, by name in the module.

    Example:
        >>> from units import UNITS
        >>> limits_of(nn.Sequential(UNITS["NAU"](2, 3), nn.Linear(3, 1)))
        {'0.weight': (-1.0, 1.0)}
    """
    return {
        f"{path}.{name}".lstrip("."): limits
        for path, unit in pack_layers(module).items()
        for name, limits in unit.limits.items()
        if unit.get_parameter(name).requires_grad
    }


def frozen_names(module: nn.Module) -> list[str]:
    """Return the names in a module of its pack layers' parameters without a gradient.

    Example:
        >>> from units import UNITS
        >>> frozen_names(nn.Sequential(UNITS["NAU"](2, 3).requires_grad_(False), nn.Linear(3, 1)))
        ['0.weight']
    """
    return [
        f"{path}.{name}".lstrip(".")
        for path, unit in pack_layers(module).items()
        for name, parameter in unit.named_parameters()
        if not parameter.requires_grad
    ]


class _SparsityError(nn.Module):
    """A unit whose output is its sparsity error; for some units, the mean over their matrices."""

    def __init__(self, unit: nn.Module) -> None:
        super().__init__()
        self.unit: Any = unit

    def forward(self) -> Tensor:
        error: Tensor = self.unit.sparsity_error()
        return error


def sparsity_errors(module: nn.Module, parameters: Mapping[str, Tensor]) -> Tensor | None:
    """Return each trial's largest sparsity error over the units of a module.

    Args:
        module: any module.
        parameters: the trials' parameters by name in the module, each [trials, ...].

    Returns:
        Shape [trials]; None for a module without units.

    Raises:
        KeyError: if a unit's parameter is missing.

    Example:
        >>> from units import UNITS
        >>> module = nn.Sequential(UNITS["NMU"](1, 1), nn.Linear(1, 1))
        >>> sparsity_errors(module, {"0.weight": torch.tensor([[[1.0]], [[0.75]]])})
        tensor([0.0000, 0.2500])
    """
    errors = []
    for path, unit in pack_layers(module).items():
        names = {f"unit.{name}": f"{path}.{name}".lstrip(".") for name, _ in unit.named_parameters()}
        own = {name: parameters[of_module] for name, of_module in names.items()}
        errors.append(functional_call(_SparsityError(unit), own, ()))
    return torch.stack(errors).amax(0) if errors else None


def regularisers(module: nn.Module) -> Mapping[str, Callable[[Tensor], Tensor]]:
    """Return the regularisers of the pack layers' trained weights, by the weights' name in the module.

    Example:
        >>> from units import UNITS
        >>> list(regularisers(nn.Sequential(UNITS["NAU"](2, 3), nn.Linear(3, 1), UNITS["NMU"](1, 1))))
        ['0.weight', '2.weight']
    """
    return {
        f"{path}.{name}".lstrip("."): regulariser
        for path, unit in pack_layers(module).items()
        for name, regulariser in unit.regularisers.items()
        if unit.get_parameter(name).requires_grad
    }


def _names(plain: _Plain) -> list[str]:
    return [name for name, _ in plain.named_parameters()]
