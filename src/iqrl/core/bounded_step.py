"""A step that cannot overshoot, along eligibility traces, for agents that learn from each step once (ObGD).

    z <- γλ z + ∇Q(s, a)
    θ <- θ + α' δ z,  α' = α / max(1, α κ max(|δ|, 1) ‖z‖₁)        (Elsayed, Vasan & Mahmood 2024)
    z <- 0 where the episode ended or the action was not the greedy one

The optimiser gets the loss inputs beside the gradient, from which it takes the TD error and where traces end.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from iqrl.core.losses import NextValue, ValueLoss, huber, max_value, prediction, td_error
from iqrl.core.types import LossInputs


def traced_q(next_value: NextValue = max_value) -> ValueLoss:
    """A loss in name: its value is that of the TD error, its gradient is ∇Q(s, a), which the traces are made of."""

    def loss(inputs: LossInputs) -> jax.Array:
        q = prediction(inputs)
        return jax.lax.stop_gradient(huber(td_error(inputs, next_value)) - q) + q

    return loss


def bounded_traces(
    rate: float,
    bound: float,
    decay: float,
    heads_only: bool = False,
    next_value: NextValue = max_value,
    trunk: float = 1.0,
) -> optax.GradientTransformationExtraArgs:
    """The optimiser to go with it; `decay` is γλ.

    `heads_only`: ‖z‖₁ is that of the heads' traces. The step of all other weights is `trunk` times that of the heads.
    """

    def init(params: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def update(gradient: Any, traces: Any, params: Any = None, *, inputs: LossInputs, **rest: Any) -> tuple[Any, Any]:
        error = -td_error(inputs, next_value)[0]  # the stream's batch is one step
        traces = jax.tree.map(lambda z, g: decay * z + g, traces, gradient)
        counted = traces["heads"] if heads_only else traces
        size = sum(jnp.sum(jnp.abs(z)) for z in jax.tree.leaves(counted))
        taken = bounded_size(rate, bound, error, size)
        updates = jax.tree.map(lambda z: taken * error * z, traces)
        if trunk != 1:
            below = {name: part for name, part in updates.items() if name != "heads"}
            updates = updates | jax.tree.map(lambda step: trunk * step, below)
        cut = inputs.transition.done[0] | ~inputs.transition.greedy[0]
        return updates, jax.tree.map(lambda z: jnp.where(cut, 0.0, z), traces)

    return optax.GradientTransformationExtraArgs(init, update)  # ty: ignore[invalid-argument-type]


def bounded_size(rate: float, bound: float, error: jax.Array, size: Any) -> jax.Array:
    """α', from the TD error and ‖z‖₁."""
    return rate / jnp.maximum(rate * bound * jnp.maximum(jnp.abs(error), 1.0) * size, 1.0)


def share_between_actions(share: float, actions: int) -> optax.GradientTransformation:
    """What the heads of one action get, the heads of every other action get times `share`.

    On heads W_a = √ρ V + √(1 - ρ) D_a this is the plain gradient step on V and D, without V and D.
    """

    def of_leaf(step: jax.Array) -> jax.Array:
        by_action = step.reshape(step.shape[0], actions, -1, *step.shape[2:])  # [k, A, Z, …]
        return mix_actions(by_action, share, axis=1).reshape(step.shape)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return updates | {"heads": jax.tree.map(of_leaf, updates["heads"])}, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def mix_actions(step: jax.Array, share: float, axis: int) -> jax.Array:
    """(1 - ρ) of its own and ρ of the sum over the actions."""
    return (1.0 - share) * step + share * jnp.sum(step, axis=axis, keepdims=True)
