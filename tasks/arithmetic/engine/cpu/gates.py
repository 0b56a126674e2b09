"""Outputs and hand-written gradients of the gated units of the fused engine.

Array layouts are those of `gradients`, whose functions they use.
"""

from __future__ import annotations

from tasks.arithmetic.engine.compiled.cache import apart, compiled
from tasks.arithmetic.engine.compiled.formulas import gate, mix, mix_back
from tasks.arithmetic.engine.cpu.gradients import (
    back_to_inputs,
    logarithms_back,
    nac_mul_forward,
    nmu_backward,
    nmu_forward,
    times,
)
from tasks.arithmetic.engine.cpu.products import add_dots, multiply


@compiled
def mix_of_sums(sums, products, gates, y):  # type: ignore[no-untyped-def]
    """Compute y = g a + (1 - g) m, all [out, batch].

    Args:
        sums: a.
        products: m.
        gates: Gx; overwritten by g = σ(Gx).
        y: written.
    """
    for o in range(y.shape[0]):
        g, a, m, to = gates[o], sums[o], products[o], y[o]
        for b in range(len(g)):
            g[b] = gate(g[b])
        _mix(g, a, m, to)


@apart
def _mix(g, a, m, y):  # type: ignore[no-untyped-def]
    for b in range(len(y)):
        y[b] = mix(g[b], a[b], m[b])


@compiled
def mix_to_sums(y_grad, sums, products, gates, a_grad, m_grad, gate_grad):  # type: ignore[no-untyped-def]
    """Differentiate the mix: ā = ȳ g,  m̄ = ȳ (1 - g),  dL/d(Gx) = ȳ (a - m) g (1 - g), written; all [out, batch].

    Args:
        y_grad: ȳ.
        sums: a.
        products: m.
        gates: g.
        a_grad: ā; this and the next two may each be one of the arrays read here.
        m_grad: m̄.
        gate_grad: dL/d(Gx).
    """
    for o in range(y_grad.shape[0]):
        slope, a, m, g = y_grad[o], sums[o], products[o], gates[o]
        to_a, to_m, to_g = a_grad[o], m_grad[o], gate_grad[o]
        for b in range(len(slope)):
            to_a[b], to_m[b], to_g[b] = mix_back(slope[b], a[b], m[b], g[b])


@compiled
def nalu_forward(w_add, w_mul, w_gate, x, has_logs, logs, sums, products, gates, y):  # type: ignore[no-untyped-def]
    """Compute y = g ⊙ a + (1 - g) ⊙ m,  a = Ax,  m = exp(Ml),  l = log(|x| + 1e-7),  g = σ(Gx).

    Args:
        w_add: A, [out, in].
        w_mul: M, [out, in]; equal to A in the original unit, and may then be the same array.
        w_gate: G, [out, in].
        x: [in or more, batch].
        has_logs: True if `logs` already holds the logarithms of this x.
        logs: l, scratch, [in, batch].
        sums: a, scratch, [out, batch].
        products: m, scratch, [out, batch].
        gates: g, scratch, [out, batch].
        y: written, [out, batch].
    """
    multiply(sums, w_add, x, 0, w_add.shape[1])
    nac_mul_forward(w_mul, x, has_logs, logs, products)
    multiply(gates, w_gate, x, 0, w_gate.shape[1])
    mix_of_sums(sums, products, gates, y)


@compiled
def nalu_backward(  # type: ignore[no-untyped-def]
    w_add, w_mul, w_gate, x, logs, sums, products, gates, y_grad, a_grad, m_grad, spare, add_grad, mul_grad,
    gate_grad, x_grad
):  # fmt: skip
    """Differentiate a NALU: ā = ȳ g,  m̄ = ȳ (1 - g),  ḡ = ȳ (a - m); then as NAC+, NAC• and a sigmoid.

    Args:
        w_add: as given to `nalu_forward`, as are `w_mul`, `w_gate` and `x`.
        w_mul: as given.
        w_gate: as given.
        x: as given.
        logs: result of `nalu_forward`, as are `sums`, `products` and `gates`.
        sums: as it left them.
        products: as it left them.
        gates: as it left them; overwritten.
        y_grad: ȳ, [out, batch].
        a_grad: scratch, [out, batch].
        m_grad: scratch, [out, batch].
        spare: scratch, [in, batch].
        add_grad: dL/dA, added to, [out, in].
        mul_grad: dL/dM, added to; may be the same array as dL/dA, to sum both.
        gate_grad: dL/dG, added to.
        x_grad: added to, [in, batch]; [0, batch] if not needed.
    """
    mix_to_sums(y_grad, sums, products, gates, a_grad, m_grad, gates)
    add_dots(add_grad, a_grad, x, 0)
    add_dots(gate_grad, gates, x, 0)
    back_to_inputs(w_add, a_grad, x_grad)
    back_to_inputs(w_gate, gates, x_grad)
    times(m_grad, products, m_grad)
    add_dots(mul_grad, m_grad, logs, 0)
    if x_grad.shape[0]:
        logarithms_back(x, w_mul, m_grad, spare, x_grad)


@compiled
def gated_forward(w_add, w_mul, w_gate, x, before, sums, products, gates, y):  # type: ignore[no-untyped-def]
    """Compute y = g ⊙ NAU(x) + (1 - g) ⊙ NMU(x),  g = σ(Gx).

    Args: as for `nalu_forward`, with `before` as for `nmu_forward`.
    """
    multiply(sums, w_add, x, 0, w_add.shape[1])
    nmu_forward(w_mul, x, before, products)
    multiply(gates, w_gate, x, 0, w_gate.shape[1])
    mix_of_sums(sums, products, gates, y)


@compiled
def gated_backward(  # type: ignore[no-untyped-def]
    w_add, w_mul, w_gate, x, before, sums, products, gates, y_grad, ones, a_grad, m_grad, after, others,
    add_grad, mul_grad, gate_grad, x_grad
):  # fmt: skip
    """Differentiate a gated NAU/NMU: ā = ȳ g,  m̄ = ȳ (1 - g),  ḡ = ȳ (a - m); then as its units and a sigmoid.

    Args: as for `nalu_backward`, with `before`, `ones`, `after` and `others` as for `nmu_backward`.
    """
    mix_to_sums(y_grad, sums, products, gates, a_grad, m_grad, gates)
    nmu_backward(w_mul, x, before, products, m_grad, ones, after, others, mul_grad, x_grad)
    add_dots(add_grad, a_grad, x, 0)
    add_dots(gate_grad, gates, x, 0)
    back_to_inputs(w_add, a_grad, x_grad)
    back_to_inputs(w_gate, gates, x_grad)
