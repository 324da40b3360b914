"""Consolidation: the network stays where the target network has it (MeDQN: Lan et al. 2023)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.parts.networks import Output
from iqrl.parts.regularisers import Moment, Regulariser
from iqrl.parts.schedules import Schedule

NAME = "consolidation"


def distance(online: Output, teacher: Output) -> jax.Array:
    """Mean over heads and actions of (Q(s, ·; θ) - Q(s, ·; θ⁻))²."""
    return jnp.mean(jnp.square(online.q - jax.lax.stop_gradient(teacher.q)), axis=(0, 1))


def on_replayed_states(weight: Schedule) -> Regulariser:
    """MeDQN(R): on the states of the batch."""
    return Regulariser(NAME, weight, lambda moment: distance(moment.samples.online_tm1, moment.samples.target_tm1))


def on_uniform_states(weight: Schedule, size: int, count: int, pixels: bool = False) -> Regulariser:
    """MeDQN(U): on states drawn uniformly from the box around all states seen (see `perception.with_box`).

    `pixels`: they are whole numbers.
    """

    def loss(moment: Moment) -> jax.Array:
        low, high = moment.perception.low[:, None], moment.perception.high[:, None]
        states = low + moment.uniforms.reshape(size, count) * (high - low + pixels)
        states = jnp.minimum(jnp.floor(states), high) if pixels else states
        return distance(moment.online(states), moment.teacher(states))

    return Regulariser(NAME, weight, loss, draws=size * count)
