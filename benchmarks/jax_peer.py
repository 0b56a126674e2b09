"""The network and the task of `benchmarks.packed` in JAX: seeds by vmap, updates by scan, all in one program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import lax, random
from jax import numpy as jnp

_RATE, _BETA_1, _BETA_2, _EPSILON = 1e-3, 0.9, 0.999, 1e-8


def jax_updates(hidden: int, seeds: int, batch: int, at_once: int) -> Callable[[], object]:
    """Return a function that makes `at_once` updates of a network of each seed.

    Args:
        hidden: hidden units of a network.
        seeds: number of seeds.
        batch: rows of a batch.
        at_once: updates of one call.
    """
    keys = random.split(random.key(0), seeds)

    def initial(number: int, shape: tuple[int, ...], bound: float) -> Any:
        return random.uniform(random.key(number), (seeds, *shape), minval=-bound, maxval=bound)

    first, last = 2**-0.5, hidden**-0.5
    weights = (initial(1, (hidden, 2), first), initial(2, (hidden,), first), initial(3, (1, hidden), last))
    weights = (*weights, initial(4, (1,), last))
    return updates_of_seeds(partial(_update, batch), weights, keys, at_once)


def updates_of_seeds(step: Callable[..., Any], weights: Any, keys: Any, at_once: int) -> Callable[[], object]:
    """Return a function that makes `at_once` updates of all seeds: seeds by vmap, updates by scan.

    Args:
        step: makes the next state of one seed from its state (its weights and both moments of Adam), the iteration,
            counted from 0, and its key.
        weights: the initial weights, arrays [seeds, ...].
        keys: a key for each seed.
        at_once: updates of one call.
    """
    each_seed = jax.vmap(step, (0, None, 0))

    def run(state: Any, first: Any) -> Any:
        return lax.scan(lambda state, i: (each_seed(state, i, keys), None), state, first + jnp.arange(at_once))[0]

    return repeated(run, weights, at_once)


def repeated(run: Callable[[Any, Any], Any], weights: Any, at_once: int) -> Callable[[], object]:
    """Return a function that makes `at_once` updates by a compiled program, and waits for them.

    Each call continues from the state of the last one; the first call compiles.

    Args:
        run: makes the state after `at_once` updates from a state and the number of the first.
        weights: the initial weights; a state is these and both moments of Adam.
        at_once: updates of one call.
    """
    compiled = jax.jit(run, donate_argnums=(0,))
    # The weights are copied because a call donates its state.
    state, made = (jax.tree.map(jnp.copy, weights), *(jax.tree.map(jnp.zeros_like, weights) for _ in range(2))), 0

    def update() -> None:
        nonlocal state, made
        state = jax.block_until_ready(compiled(state, made))
        made += at_once

    return update


def _update(batch: int, state: Any, i: Any, key: Any) -> Any:
    of_label, of_radius = random.split(random.fold_in(key, i))
    label = random.bernoulli(of_label, 0.5, (batch,)).astype(jnp.float32)
    radius = random.uniform(of_radius, (batch,))
    angle = jnp.pi * (2 * radius + label)
    x = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], -1)
    gradient = jax.grad(_loss)(state[0], x, label)
    return adam_step(state, gradient, i, _RATE)


def adam_step(state: Any, gradient: Any, i: Any, rate: Any) -> Any:
    """Return weights and both moments after Adam's update at iteration i, counted from 0.

    Args:
        state: weights and both moments before it.
        gradient: gradient by the weights.
        i: the iteration.
        rate: step size.
    """
    weights, first, second = state
    first = jax.tree.map(lambda m, g: _BETA_1 * m + (1 - _BETA_1) * g, first, gradient)
    second = jax.tree.map(lambda v, g: _BETA_2 * v + (1 - _BETA_2) * g * g, second, gradient)
    first_correction, second_correction = 1 - _BETA_1 ** (i + 1.0), 1 - _BETA_2 ** (i + 1.0)
    step = jax.tree.map(
        lambda m, v: rate * (m / first_correction) / (jnp.sqrt(v / second_correction) + _EPSILON), first, second
    )
    return jax.tree.map(jnp.subtract, weights, step), first, second


def _loss(weights: Any, x: Any, label: Any) -> Any:
    """Compute the network's mean binary cross-entropy for points x, [batch, 2], and labels 0 or 1, [batch]."""
    hidden = jnp.tanh(x @ weights[0].T + weights[1])
    logit = (hidden @ weights[2].T + weights[3])[:, 0]
    return jnp.mean(jnp.maximum(logit, 0) - logit * label + jnp.log1p(jnp.exp(-jnp.abs(logit))))
