"""Probes: the network's values and units on states that were set apart before training."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.core.agent import AgentState, QFunction, QLearner
from iqrl.core.masks import Mask, legal_values, says_nothing
from iqrl.core.networks import select_head
from iqrl.core.types import ContextInputs
from iqrl.diagnostics.interference.td_errors import evaluate_batch

DORMANT = 0.025
"""a unit is dormant below this share of its layer's mean activation (Sokar et al. 2023)"""


def probe_network(agent: QLearner, state: AgentState, q: QFunction, held_out: ContextInputs) -> dict[str, jax.Array]:
    """The metrics of the held-out inputs [n, …]; contexts are those of the state."""
    output = evaluate_batch(agent)(q, held_out.obs.T)
    contexts = jax.vmap(lambda inputs: agent.context(state, inputs))(held_out)
    legal = held_out.mask if says_nothing(held_out.mask) else held_out.mask.T
    own_head = select_head(output.q, contexts)
    return {
        "held_out_max_q": jnp.mean(jnp.max(legal_values(own_head, legal), axis=0)),
        "held_out_max_q_heads": jnp.mean(jnp.max(legal_values(output.q, legal), axis=1), axis=-1),
        "action_gap": action_gap(own_head, legal),
        "dormant_units": dormant_units(output.features),
    }


def action_gap(q: jax.Array, mask: Mask = ()) -> jax.Array:
    """The mean over states of the best action's value above the second best's, from [A, n]."""
    best = jax.lax.top_k(legal_values(q, mask).T, min(2, q.shape[0]))[0]
    gaps = best[:, 0] - best[:, -1]
    # Where one action alone is legal, there is no second best.
    return jnp.mean(gaps if says_nothing(mask) else jnp.where(jnp.sum(mask, axis=0) > 1, gaps, 0.0))


def dormant_units(features: jax.Array) -> jax.Array:
    """The share of units [H, n] whose mean activation is far below that of the layer."""
    activation = jnp.mean(jnp.abs(features), axis=1)
    return jnp.mean(activation <= DORMANT * jnp.mean(activation))
