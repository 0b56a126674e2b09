"""Recorded operations of torch as operations of JAX, so that XLA compiles an update into one program.

Operations are looked up by name in `_OPERATIONS`. Torch first decomposes all others into these. An operation that an
installed package registers with `torch.library.custom_op` is lowered if it has a decomposition
(`register_decomposition`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import torch
from jax import lax
from jax import numpy as jnp
from torch import Tensor
from torch._decomp import core_aten_decompositions, global_decomposition_table
from torch.func import functionalize
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from study.engine.packed.traced import LoweringError

Array = Any
"""An array of JAX, or its tracer while a program is compiled."""


# 6,000 operations, a recurrent network over 1,280 steps, take half a minute to compile on a busy core.
_MOST_OPERATIONS = 10_000


def lowered(compute: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor]) -> Callable[..., list[Array]]:
    """Translate a function of torch into a function of JAX.

    Args:
        compute: takes tensors and returns tensors; its operations must not depend on the tensors' values.
        tensors: example inputs; the function is for their shapes and types.

    Raises:
        LoweringError: if an operation has no counterpart, or there are too many operations. The returned function
            raises it if only an operation's arguments have no counterpart, such as a transposed convolution.
        Exception: any error of `compute`, or of its recording.

    Example:
        >>> double = lowered(lambda x: [2 * x + 1], [torch.arange(3.0)])
        >>> print(*double(jnp.arange(3.0)))
        [1. 3. 5.]
    """
    # The first recording includes autograd's operations; the second replaces operations that write in place.
    first = make_fx(compute)(*tensors)
    own = {op: into for op, into in global_decomposition_table["post_autograd"].items() if not _is_of_torch(op)}
    table = {**core_aten_decompositions(), **own}
    graph = make_fx(functionalize(first, remove="mutations_and_views"), decomposition_table=table)(*tensors)
    graph.graph.eliminate_dead_code()
    if len(graph.graph.nodes) > _MOST_OPERATIONS:
        raise LoweringError(f"XLA would take minutes to compile the {len(graph.graph.nodes):,} operations of an update")
    missing = sorted({str(node.target) for node in graph.graph.nodes if _is_missing(node)})
    if missing:
        raise LoweringError(f"no XLA counterpart is implemented for {', '.join(missing)}")
    return partial(_run, graph, _constants(graph))


def _is_of_torch(operation: Any) -> bool:
    return str(operation).partition(".")[0] in ("aten", "prims", "prim", "quantized", "rngprims")


def _is_missing(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem and _name(node.target) not in _OPERATIONS


def _name(operation: Any) -> str:
    """Return an operation's name, without its overload and the suffix `_copy`."""
    packet = getattr(operation, "overloadpacket", operation)
    return str(packet).rpartition(".")[2].removesuffix("_copy")


def _constants(graph: GraphModule) -> dict[str, Array]:
    names = [str(node.target) for node in graph.graph.nodes if node.op == "get_attr"]
    return {name: jnp.asarray(operator.attrgetter(name)(graph).detach().numpy()) for name in names}


def _run(graph: GraphModule, constants: Mapping[str, Array], *inputs: Array) -> list[Array]:
    """Compute the recorded operations with arrays of JAX, and return their outputs."""
    values: dict[Node, Any] = {}
    given = iter(inputs)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "get_attr":
            values[node] = constants[str(node.target)]
        elif node.op == "output":
            return [values[output] for output in node.args[0]]
        else:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            compute = operator.getitem if node.target is operator.getitem else _OPERATIONS[_name(node.target)]
            values[node] = _as_expected(node, compute(*args, **kwargs))
    raise LoweringError("the recorded operations have no output")


def _as_expected(node: Node, value: Any) -> Any:
    """Convert a result to torch's dtype, since JAX promotes by other rules; another shape raises LoweringError."""
    expected = node.meta.get("val")
    if not isinstance(expected, Tensor):
        return value
    if tuple(jnp.shape(value)) != tuple(expected.shape):
        raise LoweringError(f"{node.target} gives shape {jnp.shape(value)} instead of {tuple(expected.shape)}")
    return jnp.asarray(value).astype(_dtype(expected.dtype))


def _dtype(dtype: torch.dtype) -> np.dtype[Any]:
    return np.dtype(str(dtype).removeprefix("torch."))


# --- the operations, with torch's arguments ------------------------------------------------------------------------


def _axes(x: Array, dim: Any) -> tuple[int, ...] | None:
    if dim is None or dim == []:
        return None
    return tuple(axis % max(1, x.ndim) for axis in ([dim] if isinstance(dim, int) else dim))


def _reduction(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def compute(x: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
        return reduce(x, axis=_axes(x, dim), keepdims=keepdim)

    return compute


def _index_reduction(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def compute(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        return reduce(x, axis=dim, keepdims=keepdim)

    return compute


def _extreme(reduce: Callable[..., Array], place: Callable[..., Array]) -> Callable[..., Any]:
    def compute(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        return reduce(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    return compute


def _variance(x: Array, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Array:
    return jnp.var(x, axis=_axes(x, dim), ddof=1 if correction is None else int(correction), keepdims=keepdim)


def _divide(x: Array, y: Array, *, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return x / y
    return jnp.floor_divide(x, y) if rounding_mode == "floor" else jnp.trunc(x / y)


def _power(x: Array, exponent: Any) -> Array:
    # An integer exponent is computed by products; a float one takes a logarithm.
    return x ** (int(exponent) if isinstance(exponent, float) and exponent.is_integer() else exponent)


def _clamp(x: Array, min: Any = None, max: Any = None) -> Array:  # noqa: A002
    return jnp.clip(x, min, max)


def _elu(x: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Array:
    return jnp.where(x > 0, x * scale, jnp.expm1(jnp.minimum(x, 0) * input_scale) * (alpha * scale))


def _gelu(x: Array, *, approximate: str = "none") -> Array:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


def _softmax(x: Array, dim: int, half_to_float: bool = False) -> Array:
    return jax.nn.softmax(x, axis=dim)


def _log_softmax(x: Array, dim: int, half_to_float: bool = False) -> Array:
    return jax.nn.log_softmax(x, axis=dim)


def _layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, epsilon: float
) -> tuple[Array, Array, Array]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axes, keepdims=True)
    scale = lax.rsqrt(jnp.square(x - mean).mean(axes, keepdims=True) + epsilon)
    y = (x - mean) * scale
    y = y if weight is None else y * weight
    return y if bias is None else y + bias, mean, scale


def _vector_norm(x: Array, order: float = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
    if order == 2:
        return jnp.sqrt(jnp.square(x).sum(_axes(x, dim), keepdims=keepdim))
    if order in (1, math.inf):
        return (jnp.sum if order == 1 else jnp.max)(jnp.abs(x), axis=_axes(x, dim), keepdims=keepdim)
    raise LoweringError(f"no XLA counterpart is implemented for a norm of order {order:g}")


def _expand(x: Array, shape: Sequence[int], **_: Any) -> Array:
    padded_shape = [1] * (len(shape) - x.ndim) + list(x.shape)
    return jnp.broadcast_to(x, [old if new == -1 else new for old, new in zip(padded_shape, shape, strict=True)])


def _slice(x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return x[_slices(x, dim, start, end, step)]


def _slices(x: Array, dim: int, start: int | None, end: int | None, step: int = 1) -> tuple[slice, ...]:
    return (*[slice(None)] * (dim % x.ndim), slice(start, end, step))


def _slice_scatter(
    x: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    return x.at[_slices(x, dim, start, end, step)].set(src)


def _select(x: Array, dim: int, index: int) -> Array:
    return lax.index_in_dim(x, index, dim % x.ndim, keepdims=False)


def _squeeze(x: Array, dim: Any = None) -> Array:
    axes = range(x.ndim) if dim is None else _axes(x, dim) or ()
    return jnp.squeeze(x, tuple(axis for axis in axes if x.ndim and x.shape[axis] == 1))


def _split(x: Array, size: int, dim: int = 0) -> list[Array]:
    return jnp.split(x, list(range(size, x.shape[dim], size)), axis=dim)


def _split_with_sizes(x: Array, sizes: Sequence[int], dim: int = 0) -> list[Array]:
    return jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis=dim)


def _pad(x: Array, pad: Sequence[int], value: float = 0) -> Array:
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[0::2], pad[1::2], strict=True))[::-1]
    return lax.pad(x, jnp.asarray(value, x.dtype), [(low, high, 0) for low, high in pairs])


def _full(shape: Sequence[int], value: Any, **_: Any) -> Array:
    return jnp.full(tuple(shape), value)


def _index(x: Array, indices: Sequence[Array | None]) -> Array:
    return x[tuple(slice(None) if index is None else index for index in indices)]


def _index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Array:
    at = x.at[tuple(slice(None) if index is None else index for index in indices)]
    return at.add(values) if accumulate else at.set(values)


def _gather_index(x: Array, dim: int, index: Array) -> tuple[Array, ...]:
    """Return the index of the elements that torch's gather and scatter address, as a tuple of arrays, one per axis.

    For three axes and `dim` 0, place [i, j, k] addresses element [index[i, j, k], j, k].
    """
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim % x.ndim] = index
    return tuple(places)


def _gather(x: Array, dim: int, index: Array, **_: Any) -> Array:
    return x[_gather_index(x, dim, index)]


def _scatter(x: Array, dim: int, index: Array, src: Array) -> Array:
    return x.at[_gather_index(x, dim, index)].set(src)


def _scatter_add(x: Array, dim: int, index: Array, src: Array) -> Array:
    return x.at[_gather_index(x, dim, index)].add(src)


def _addmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    return beta * x + alpha * (a @ b)


def _convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    if transposed:
        raise LoweringError("no XLA counterpart is implemented for a transposed convolution")
    if groups == 1:
        y = lax.conv_general_dilated(x, weight, stride, [(p, p) for p in padding], rhs_dilation=dilation)
    else:
        y = _grouped_convolution(x, weight, stride, padding, dilation, groups)
    return y if bias is None else y + bias.reshape(1, -1, *[1] * len(stride))


def _grouped_convolution(
    x: Array, weight: Array, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Array:
    """Convolve in groups, by sums of matrix products: XLA's convolution is slow for a pack's trials as groups.

    The image x is [batch, groups * in, *image], the weight [groups * out, in, *kernel], and the result [batch, groups *
    out, *sizes].

    For a batch of 32 images of 8x8 pixels, two layers and packs of 16, this takes 0.3 times as long as XLA's.
    """
    kernel = weight.shape[2:]
    padded = jnp.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    sizes = [(full - r - 1) // s + 1 for full, r, s in zip(padded.shape[2:], reach, stride, strict=True)]
    channels = padded.reshape(len(x), groups, -1, *padded.shape[2:])
    weights = weight.reshape(groups, -1, *weight.shape[1:])
    y: Array = 0.0
    for place in np.ndindex(*kernel):
        starts = [at * d for at, d in zip(place, dilation, strict=True)]
        window = tuple(slice(at, at + s * (size - 1) + 1, s) for at, s, size in zip(starts, stride, sizes, strict=True))
        y = y + jnp.einsum("goi,ngi...->ngo...", weights[(..., *place)], channels[(..., *window)])
    return y.reshape(len(x), -1, *sizes)


def _convolution_backward(
    grad: Array, x: Array, weight: Array, bias_sizes: Any, *more: Any
) -> tuple[Array | None, Array | None, Array | None]:
    *options, _mask = more
    _, back = jax.vjp(lambda x, weight: _convolution(x, weight, None, *options), x, weight)
    return (*back(grad), grad.sum((0, *range(2, grad.ndim))))


def _windows(x: Array, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> dict[str, Any]:
    front = x.ndim - len(kernel)
    return {
        "window_dimensions": (1,) * front + tuple(kernel),
        "window_strides": (1,) * front + tuple(stride or kernel),
        "padding": [(0, 0)] * front + [(p, p) for p in (padding if len(padding) > 1 else [*padding] * len(kernel))],
    }


def _max_pool(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Return the largest element of each window of x, [..., *image], and its place in the flattened image.

    NaN counts as the largest. The first of equal elements is taken.

    Dilation and `ceil_mode` raise LoweringError.
    """
    if ceil_mode or set(dilation) != {1}:
        raise LoweringError("no XLA counterpart is implemented for pooling with dilation or ceil_mode")
    windows = _windows(x, kernel, stride, padding)
    size = math.prod(x.shape[-len(kernel) :])
    places = jnp.broadcast_to(jnp.arange(size).reshape(x.shape[-len(kernel) :]), x.shape)

    def larger(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        (a, i), (b, j) = first, second
        is_first = (a > b) | ((a == b) & (i < j)) | jnp.isnan(a)
        return jnp.where(is_first, a, b), jnp.where(is_first, i, j)

    start = (jnp.asarray(-jnp.inf, x.dtype), jnp.asarray(size, places.dtype))
    return lax.reduce_window((x, places), start, larger, **windows)  # type: ignore[no-any-return]


def _max_pool_backward(grad: Array, x: Array, kernel: Sequence[int], *more: Any) -> Array:
    *_, places = more
    flat = (*x.shape[: x.ndim - len(kernel)], -1)
    zeros = jnp.zeros_like(x).reshape(flat)
    return _scatter_add(zeros, -1, places.reshape(flat), grad.reshape(flat)).reshape(x.shape)


def _identity(x: Array, *_: Any, **__: Any) -> Array:
    return x


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in ("abs", "exp", "log", "log1p", "expm1", "log2", "log10", "sqrt", "sign")},
    **{name: getattr(jnp, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "round")},
    **{name: getattr(jnp, name) for name in ("trunc", "isnan", "isinf", "logical_not", "reciprocal", "maximum")},
    **{name: getattr(jnp, name) for name in ("minimum", "fmod", "remainder", "logical_and", "logical_or", "where")},
    **{name: getattr(jnp, name) for name in ("logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "mul")},
    **{name: getattr(lax, name) for name in ("rsqrt", "erf", "erfc")},
    **{"asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "atan2": jnp.arctan2, "asinh": jnp.arcsinh},
    **{"acosh": jnp.arccosh, "atanh": jnp.arctanh},
    **dict.fromkeys(("clone", "detach", "alias", "lift_fresh", "_to"), _identity),
    "view": lambda x, shape: jnp.reshape(x, shape),
    "full": _full,
    **dict.fromkeys(("empty", "empty_permuted"), lambda shape, *_, **__: jnp.zeros(tuple(shape))),
    **dict.fromkeys(("bmm", "mm"), jnp.matmul),
    "add": lambda x, y, *, alpha=1: x + (y if alpha == 1 else alpha * y),
    "sub": lambda x, y, *, alpha=1: x - (y if alpha == 1 else alpha * y),
    "div": _divide,
    "pow": _power,
    "clamp": _clamp,
    "hardtanh": lambda x, low=-1.0, high=1.0: jnp.clip(x, low, high),
    "relu": lambda x: jnp.maximum(x, 0),
    "leaky_relu": lambda x, slope=0.01: jnp.where(x > 0, x, x * slope),
    "sigmoid": jax.nn.sigmoid,
    "elu": _elu,
    "gelu": _gelu,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "native_layer_norm": _layer_norm,
    "linalg_vector_norm": _vector_norm,
    "expand": _expand,
    "copy": lambda x, src, *_: jnp.broadcast_to(src, x.shape),
    "permute": jnp.transpose,
    "unsqueeze": jnp.expand_dims,
    "squeeze": _squeeze,
    "select": _select,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "split": _split,
    "split_with_sizes": _split_with_sizes,
    "unbind": lambda x, dim=0: [_select(x, dim, i) for i in range(x.shape[dim])],
    "cat": lambda tensors, dim=0: jnp.concatenate(tensors, axis=dim),
    "flip": lambda x, dims: jnp.flip(x, dims),
    "repeat": lambda x, times: jnp.tile(x, times),
    "constant_pad_nd": _pad,
    "full_like": lambda x, value, **_: jnp.full_like(x, value),
    "scalar_tensor": lambda value, **_: jnp.asarray(value),
    "arange": lambda start, end, step=1, **_: jnp.arange(start, end, step),
    "sum": _reduction(jnp.sum),
    "mean": _reduction(jnp.mean),
    "prod": _reduction(jnp.prod),
    "amax": _reduction(jnp.max),
    "amin": _reduction(jnp.min),
    "any": _reduction(jnp.any),
    "argmax": _index_reduction(jnp.argmax),
    "argmin": _index_reduction(jnp.argmin),
    "max": _extreme(jnp.max, jnp.argmax),
    "min": _extreme(jnp.min, jnp.argmin),
    "var": _variance,
    "cumsum": lambda x, dim, **_: jnp.cumsum(x, axis=dim),
    "cumprod": lambda x, dim, **_: jnp.cumprod(x, axis=dim),
    "addmm": _addmm,
    "index": _index,
    "index_put": _index_put,
    "index_select": lambda x, dim, index: jnp.take(x, index, axis=dim),
    "embedding": lambda weight, index, *_: weight[index],
    "gather": _gather,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "max_pool2d_with_indices": _max_pool,
    "max_pool2d_with_indices_backward": _max_pool_backward,
}
