"""Stream Q(λ): eligibility traces and a step that cannot overshoot (Elsayed, Vasan & Mahmood 2024).

z <- γλ z + ∇Q(s, a)
θ <- θ + α' δ z,  α' = α / max(1, α κ max(|δ|, 1) ‖z‖₁)
z <- 0 where the episode ended or the action was not the greedy one
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from iqrl.parts.losses import Sample, huber, prediction, td_error


def traced_q(sample: Sample) -> jax.Array:
    """A loss in name: its value is that of the TD error, its gradient is ∇Q(s, a), which the traces are made of."""
    q = prediction(sample)
    return jax.lax.stop_gradient(huber(td_error(sample)) - q) + q


def bounded_traces(rate: float, bound: float, decay: float) -> optax.GradientTransformationExtraArgs:
    """The optimiser (ObGD) to go with it; `decay` is γλ."""

    def init(params: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def update(gradient: Any, traces: Any, params: Any = None, *, samples: Sample, **rest: Any) -> tuple[Any, Any]:
        error = -td_error(samples)[0]  # the stream's batch is one step
        traces = jax.tree.map(lambda z, g: decay * z + g, traces, gradient)
        size = sum(jnp.sum(jnp.abs(z)) for z in jax.tree.leaves(traces))
        step = rate / jnp.maximum(rate * bound * jnp.maximum(jnp.abs(error), 1.0) * size, 1.0)
        updates = jax.tree.map(lambda z: step * error * z, traces)
        cut = samples.transition.over[0] | ~samples.transition.greedy[0]
        return updates, jax.tree.map(lambda z: jnp.where(cut, 0.0, z), traces)

    return optax.GradientTransformationExtraArgs(init, update)  # ty: ignore[invalid-argument-type]
