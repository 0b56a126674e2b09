"""Dense layers of any width whose matrices all begin on a cache line.

BLAS rounds depending on where a matrix begins in memory. The dense layers' matrices of a pack lie one after another, so
those of odd sizes begin at other offsets for each trial. Zero-padded to whole cache lines, all begin at the same
offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_ALIGNED = 16


class AlignedProducts(TorchFunctionMode):
    """A context for zero-padded matrices in `torch.nn.functional.linear`.

    Example:
        >>> import torch
        >>> x, weight, bias = torch.ones(2, 3), torch.ones(5, 3), torch.ones(5)
        >>> with AlignedProducts():
        ...     functional.linear(x, weight, bias).sum()
        tensor(40.)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Replace `linear`, and call all other functions unchanged."""
        compute = _linear if func is functional.linear else func
        return compute(*args, **(kwargs or {}))


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    out, size = weight.shape
    more_out, more_in = -out % _ALIGNED, -size % _ALIGNED
    x = functional.pad(input, (0, more_in))
    y = functional.linear(x, functional.pad(weight, (0, more_in, 0, more_out)))[..., :out]
    return y if bias is None else y + bias
