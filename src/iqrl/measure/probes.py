"""Probes: what the network says of states kept apart before training, and how its contexts move."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.agent import Agent, AgentState
from iqrl.parts.contexts import Situation
from iqrl.parts.losses import pick
from iqrl.parts.teacher import answers, on_batch

DORMANT = 0.025
"""a unit is dormant below this share of its layer's mean activation (Sokar et al. 2023)"""


def probe(agent: Agent, state: AgentState, held_out: Situation) -> dict[str, jax.Array]:
    """The network's answers on held-out situations [n, …]."""
    output = on_batch(answers(agent.network, agent.perception))(state.q_function, held_out.obs.T)
    contexts = jax.vmap(lambda situation: agent.context(state, situation))(held_out)
    own_head = pick(output.q, contexts)
    return {
        "held_out_max_q": jnp.mean(jnp.max(own_head, axis=0)),
        "held_out_max_q_heads": jnp.mean(jnp.max(output.q, axis=1), axis=-1),
        "action_gap": action_gap(own_head),
        "dormant_units": dormant_units(output.features),
    }


def action_gap(q: jax.Array) -> jax.Array:
    """The mean over states of the best action's value above the second best's, from [A, n]."""
    best = jax.lax.top_k(q.T, min(2, q.shape[0]))[0]
    return jnp.mean(best[:, 0] - best[:, -1])


def dormant_units(features: jax.Array) -> jax.Array:
    """The share of units [H, n] whose mean activation is next to nothing beside that of the layer."""
    activation = jnp.mean(jnp.abs(features), axis=1)
    return jnp.mean(activation <= DORMANT * jnp.mean(activation))
