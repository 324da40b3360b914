"""TD errors of stored transitions under a Q-function: what interference is the change of."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from iqrl.agent import Agent
from iqrl.parts.losses import Sample, td_error
from iqrl.parts.replay import unpack
from iqrl.parts.teacher import QFunction, answers, on_batch

CHUNK = 1000
"""transitions evaluated at once: few enough for the hidden layer to stay in the cache"""

Errors = Callable[[QFunction, QFunction, jax.Array], jax.Array]
"""(Q-function, its target, rows [n, W]) -> δ [n]"""


def td_errors(agent: Agent) -> Errors:
    """δ = r + γ max_a Q(s', a, ω(s')) - Q(s, a, ω(s)), the maximum by a target that may be Q itself."""
    ask = on_batch(answers(agent.network, agent.perception))

    def of_rows(q: QFunction, target: QFunction, rows: jax.Array) -> jax.Array:
        steps = unpack(rows.T, agent.obs_size)
        of_s, of_next = ask(q, steps.obs_tm1), ask(target, steps.obs_t)
        return td_error(Sample(steps, of_s, of_next, of_s, of_next))

    return of_rows


def in_chunks(errors: Errors) -> Errors:
    """The same for a whole number of chunks, or for fewer rows than one has."""

    def of_rows(q: QFunction, target: QFunction, rows: jax.Array) -> jax.Array:
        def evaluate(number: jax.Array, done: jax.Array) -> jax.Array:
            chunk, start = chunk_around(rows, number * CHUNK)
            return jax.lax.dynamic_update_slice_in_dim(done, errors(q, target, chunk), start, axis=0)

        return jax.lax.fori_loop(0, -(-rows.shape[0] // CHUNK), evaluate, jnp.zeros(rows.shape[0]))

    return of_rows


def chunk_around(rows: jax.Array, place: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The chunk that a row is evaluated in, and where it begins."""
    size = min(CHUNK, rows.shape[0])
    start = place // size * size
    return jax.lax.dynamic_slice_in_dim(rows, start, size), start


def change_of_square(then: jax.Array, now: jax.Array) -> jax.Array:
    """now² - then², exact where they are nearly the same, and zero where they are."""
    return (now - then) * (now + then)
