"""A ring of the last N transitions, for every N >= 1.

A transition is one packed row of float32, so that storing is one write and sampling one gather. Its place in the
ring follows from the step count. n-step returns come out of a window before the ring, so that a ring of one
transition can have them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.replay import Batch, Label, Note, Replay, Transition, pack, relabelled, row_width, unpack
from iqrl.parts.returns import empty_window, through_window
from iqrl.parts.sampling import Sampling, whole


class Ring(NamedTuple):
    window: jax.Array
    """[n - 1, W]: the last steps, whose n-step returns are not yet known"""
    rows: jax.Array
    """[N, W + 2 w]: transitions, and what was noted of both their states"""
    sampler: Any


def ring(capacity: int, obs_size: int, sampling: Sampling, *, n_step: int = 1, notes: int = 0) -> Replay:
    """`notes` is the number w of columns that are noted of a state."""
    width = row_width(obs_size)
    # A batch drawn from a ring of one is copies of one row, and the mean gradient over copies is the gradient of one:
    # the copies need not be computed.
    sampler = whole(1) if capacity == 1 else sampling(capacity)

    def init() -> Ring:
        return Ring(empty_window(n_step, obs_size), jnp.zeros((capacity, width + 2 * notes)), sampler.init())

    def stored(t: jax.Array) -> jax.Array:
        """The number of the newest transition in the ring: the window holds those after it."""
        return t - (n_step - 1)

    def add(ring: Ring, step: Transition, note: Note, t: jax.Array) -> Ring:
        window, leaving = through_window(ring.window, step)
        noted = note(jnp.stack([leaving.obs_tm1, leaving.obs_t])).reshape(2 * notes)
        slot = stored(t) % capacity
        rows = jax.lax.dynamic_update_slice(ring.rows, jnp.concatenate([pack(leaving), noted])[None], (slot, 0))
        return Ring(window, rows, sampler.add(ring.sampler, slot, stored(t) >= 0))

    def sample(ring: Ring, t: jax.Array, uniforms: jax.Array) -> Batch:
        slots, weights = sampler.draw(ring.sampler, 0, jnp.minimum(stored(t) + 1, capacity), uniforms)
        rows = ring.rows if slots is None else ring.rows.at[slots].get(mode="promise_in_bounds")
        # The batch goes last: every variable of it is then contiguous, which is what makes the losses fast.
        columns = rows.T
        return Batch(
            unpack(columns[:width], obs_size), columns[width:].reshape(2, notes, rows.shape[0]), slots, weights
        )

    def renew(ring: Ring, note: Note) -> Ring:
        if notes == 0:
            return ring
        states = ring.rows[:, : 2 * obs_size].reshape(-1, obs_size)
        return ring._replace(rows=ring.rows.at[:, width:].set(note(states).reshape(capacity, -1)))

    def relabel(ring: Ring, label: Label) -> Ring:
        window, rows = (relabelled(part, obs_size, label) for part in (ring.window, ring.rows))
        return ring._replace(window=window, rows=rows)

    def learned(ring: Ring, slots: jax.Array | None, losses: jax.Array) -> Ring:
        return ring._replace(sampler=sampler.learned(ring.sampler, slots, losses))

    return Replay(init, add, sample, renew, relabel, learned, sampler.draws)
