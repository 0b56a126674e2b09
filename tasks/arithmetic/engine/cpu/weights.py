"""The effective weights of the fused engine's units, and the gradients of their parameters.

All arguments are one-dimensional. The same code runs in float32 and float64. Below, W̄ stands for dL/dW.
"""

from __future__ import annotations

from tasks.arithmetic.engine.compiled.cache import compiled
from tasks.arithmetic.engine.compiled.formulas import (
    clamp,
    clamp_back,
    nac_factors,
    nac_weight_back,
    squash,
    squash_back,
)


@compiled
def nac_weight_forward(weight_hat, mask_hat, size, mask, w):  # type: ignore[no-untyped-def]
    """Write W = tanh(Ŵ) ⊙ σ(M̂) to `w`, and its factors to `size` and `mask`."""
    for k in range(len(w)):
        size[k], mask[k] = nac_factors(weight_hat[k], mask_hat[k])
        w[k] = size[k] * mask[k]


@compiled
def nac_weight_backward(size, mask, w_grad, weight_hat_grad, mask_hat_grad):  # type: ignore[no-untyped-def]
    """Differentiate W by its factors' arguments: dL/dŴ = W̄ (1 - tanh²(Ŵ)) σ(M̂),  dL/dM̂ = W̄ tanh(Ŵ) σ(M̂) (1 - σ(M̂)).

    Both are written; `size` and `mask` are the factors tanh(Ŵ) and σ(M̂).
    """
    for k in range(len(w_grad)):
        weight_hat_grad[k], mask_hat_grad[k] = nac_weight_back(size[k], mask[k], w_grad[k])


@compiled
def sigmoid_weight_forward(weight_hat, w):  # type: ignore[no-untyped-def]
    """Write W = σ(Ŵ) to `w`."""
    for k in range(len(w)):
        w[k] = squash(weight_hat[k])


@compiled
def sigmoid_weight_backward(w, w_grad, weight_hat_grad):  # type: ignore[no-untyped-def]
    """Differentiate W = σ(Ŵ): dL/dŴ = W̄ W (1 - W), written."""
    for k in range(len(w)):
        weight_hat_grad[k] = squash_back(w[k], w_grad[k])


@compiled
def clamp_weight_forward(weight, low, high, w):  # type: ignore[no-untyped-def]
    """Write the weights clamped to [low, high] to `w`; NaN stays NaN."""
    for k in range(len(w)):
        w[k] = clamp(weight[k], low, high)


@compiled
def clamp_weight_backward(weight, low, high, w_grad, weight_grad):  # type: ignore[no-untyped-def]
    """Differentiate the clamp: W̄ within the bounds and on them, 0 outside; written."""
    for k in range(len(w_grad)):
        weight_grad[k] = clamp_back(weight[k], low, high, w_grad[k])
