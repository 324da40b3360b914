"""Gradient interference: whether contexts pull the parameters the same way or against each other.

To first order, a step on the gradient of one transition changes the loss of another by the inner product
of their gradients.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from iqrl.agent import Agent
from iqrl.measure.grouping import Grouping, mean_by_group
from iqrl.parts.losses import Sample, huber, td_error
from iqrl.parts.networks import Params
from iqrl.parts.replay import unpack
from iqrl.parts.teacher import QFunction, answers, on_batch


def gradient_interference(
    agent: Agent, grouping: Grouping, q: QFunction, target: QFunction, rows: jax.Array, used: jax.Array
) -> dict[str, jax.Array]:
    """[C, C]: inner products and cosines between the mean gradients of the contexts' Huber TD loss.

    NaN where a context has no transition among the rows in `use`, or no gradient.
    """
    ask = on_batch(answers(agent.network, agent.perception))
    steps, groups = unpack(rows.T, agent.obs_size), grouping.of_rows(rows)
    of_target = ask(target, steps.obs_t)

    def losses(params: Params) -> tuple[jax.Array, jax.Array]:
        online = ask(q._replace(params=params), steps.obs_tm1)
        each = huber(td_error(Sample(steps, online, of_target, online, of_target)))
        return mean_by_group(each, groups, used, grouping.count)

    jacobian, present = jax.jacrev(losses, has_aux=True)(q.params)
    gradients = jax.vmap(lambda tree: ravel_pytree(tree)[0])(jacobian)
    inner = gradients @ gradients.T
    inner = jnp.where(present[:, None] & present[None, :], inner, jnp.nan)
    norms = jnp.sqrt(jnp.diagonal(inner))
    size = norms[:, None] * norms[None, :]
    return {"gradient_inner": inner, "gradient_cosine": jnp.where(size > 0, inner / size, jnp.nan)}
