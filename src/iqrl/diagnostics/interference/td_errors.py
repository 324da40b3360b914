"""TD errors of stored transitions, one by one and by context: interference is a change of these.

Contexts are the agent's own, or clusters of states where it has only one. To first order, a gradient step for one
transition changes the loss of another by the inner product of their gradients. So the gradients of two contexts show
whether they pull the parameters the same way or against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from iqrl.core.agent import QFunction, QLearner
from iqrl.core.contexts.kmeans import kmeans_on_host
from iqrl.core.losses import huber, td_error
from iqrl.core.networks import Output, Params
from iqrl.core.replay.base import unpack
from iqrl.core.types import LossInputs, Transition

CHUNK = 1000
"""transitions evaluated at once: few enough for the hidden layer to stay in the cache"""
CLUSTERS = 3
"""contexts of an agent that has none of its own: as many as the paper's"""

Evaluate = Callable[[QFunction, jax.Array], Output]
"""(Q-function, states [d, n]) -> its output, with n as the last axis"""
Errors = Callable[[QFunction, QFunction, jax.Array], jax.Array]
"""(Q-function, its target, rows [n, W]) -> δ [n]"""


def evaluate_batch(agent: QLearner) -> Evaluate:
    """The agent's network on a batch of states."""
    return agent.batch_outputs


def one_step_errors(steps: Transition, of_s: Output, of_next: Output) -> jax.Array:
    """δ of a batch, from the network's output on s and the target's output on s'."""
    return td_error(LossInputs(transition=steps, online_tm1=of_s, online_t=of_next, target_tm1=of_s, target_t=of_next))


def td_errors(agent: QLearner) -> Errors:
    """δ = r + γ max_a Q(s', a, ω(s')) - Q(s, a, ω(s)); the maximum is by a target, which may be Q itself."""
    evaluate = evaluate_batch(agent)

    def errors(q: QFunction, target: QFunction, rows: jax.Array) -> jax.Array:
        steps = unpack(rows.T, agent.obs_size, agent.masked_actions)
        return one_step_errors(steps, evaluate(q, steps.obs_tm1), evaluate(target, steps.obs_t))

    return errors


def in_chunks(errors: Errors) -> Errors:
    """The same errors, chunk by chunk; the rows are a whole number of chunks, or fewer than one."""

    def chunked(q: QFunction, target: QFunction, rows: jax.Array) -> jax.Array:
        def evaluate(number: jax.Array, done: jax.Array) -> jax.Array:
            chunk, start = chunk_around(rows, number * CHUNK)
            return jax.lax.dynamic_update_slice_in_dim(done, errors(q, target, chunk), start, axis=0)

        return jax.lax.fori_loop(0, -(-rows.shape[0] // CHUNK), evaluate, jnp.zeros(rows.shape[0]))

    return chunked


def chunk_around(rows: jax.Array, place: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The chunk that the row at `place` is evaluated in, and where the chunk begins."""
    size = min(CHUNK, rows.shape[0])
    start = place // size * size
    return jax.lax.dynamic_slice_in_dim(rows, start, size), start


def change_of_square(before: jax.Array, after: jax.Array) -> jax.Array:
    """after² - before²: exact where the two are nearly the same, and zero where they are equal."""
    return (after - before) * (after + before)


# By context


class Grouping(NamedTuple):
    """The contexts by which measurements are divided."""

    count: int
    of_rows: Callable[[jax.Array], jax.Array]
    """stored transitions [n, W] -> the context of each one's state"""


def group_by_context(agent: QLearner, low: Sequence[float], high: Sequence[float], states: np.ndarray) -> Grouping:
    """The agent's contexts; where it has only one, clusters of `states` [n, d], scaled by the task's ranges."""
    if agent.contexts.count > 1:
        own = lambda rows: unpack(rows.T, agent.obs_size, agent.masked_actions).context_tm1
        return Grouping(count=agent.contexts.count, of_rows=own)
    scale = 1.0 / np.subtract(high, low)
    centroids = jnp.float32(kmeans_on_host(states * scale, min(CLUSTERS, len(states))))
    half_squares = 0.5 * jnp.sum(jnp.square(centroids), axis=1)[:, None]
    scale = jnp.float32(scale)[:, None]

    def nearest(rows: jax.Array) -> jax.Array:
        states = rows.T[: agent.obs_size] * scale
        # The nearest centroid has the largest c·s - ½c·c. One long product is faster than a distance per state.
        return jnp.argmax(centroids @ states - half_squares, axis=0)

    return Grouping(count=len(centroids), of_rows=nearest)


def mean_by_group(values: jax.Array, groups: jax.Array, weights: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """[count]: the weighted mean of the values in each group, 0 for an empty one; and which groups have any."""
    members = (groups == jnp.arange(count)[:, None]) * weights
    total = jnp.sum(members, axis=1)
    return members @ values / jnp.maximum(total, 1e-9), total > 0


def gradient_interference(
    agent: QLearner, grouping: Grouping, q: QFunction, target: QFunction, rows: jax.Array, weights: jax.Array
) -> dict[str, jax.Array]:
    """[C, C]: inner products and cosines between the mean gradients of the contexts' Huber TD loss.

    NaN where a context has no transition among the rows with a weight, or no gradient.
    """
    evaluate = evaluate_batch(agent)
    steps, groups = unpack(rows.T, agent.obs_size, agent.masked_actions), grouping.of_rows(rows)
    of_next = evaluate(target, steps.obs_t)

    def losses(params: Params) -> tuple[jax.Array, jax.Array]:
        of_s = evaluate(q._replace(params=params), steps.obs_tm1)
        each = huber(one_step_errors(steps, of_s, of_next))
        return mean_by_group(each, groups, weights, grouping.count)

    jacobian, present = jax.jacrev(losses, has_aux=True)(q.params)
    gradients = jax.vmap(lambda tree: ravel_pytree(tree)[0])(jacobian)
    inner = gradients @ gradients.T
    inner = jnp.where(present[:, None] & present[None, :], inner, jnp.nan)
    norms = jnp.sqrt(jnp.diagonal(inner))
    size = norms[:, None] * norms[None, :]
    return {"gradient_inner": inner, "gradient_cosine": jnp.where(size > 0, inner / size, jnp.nan)}
