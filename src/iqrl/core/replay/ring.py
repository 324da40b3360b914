"""RingReplay: the last N transitions, for every N >= 1.

A transition is one packed row of float32, so that storing is one write and sampling one gather. Its slot follows from
the step count. n-step returns leave a window before the ring, so that a ring of one transition can have them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.replay.base import (
    Label,
    Replay,
    StoredStates,
    empty_window,
    pack,
    push_window,
    relabel_rows,
    row_width,
    unpack,
)
from iqrl.core.replay.sampling import Sampling
from iqrl.core.types import Batch, Transition


class RingReplayState(NamedTuple):
    window: jax.Array
    """[(n - 1) n_envs, W]: the last steps, whose n-step returns are not yet complete"""
    rows: jax.Array
    """[N, W]: transitions"""
    sampler: Any


def ring_replay(
    capacity: int,
    obs_size: int,
    sampling: Sampling,
    *,
    n_step: int = 1,
    update_every: int = 1,
    actions: int = 0,
    n_envs: int = 1,
) -> Replay:
    """`actions`: how many a mask is about; 0: there are no masks. `n_envs`: environments that take turns."""
    sampler = sampling(capacity)

    def init() -> RingReplayState:
        return RingReplayState(
            window=empty_window(n_step, obs_size, actions, n_envs),
            rows=jnp.zeros((capacity, row_width(obs_size, actions))),
            sampler=sampler.init(),
        )

    def newest_number(t: jax.Array) -> jax.Array:
        """The number of the newest transition in the ring: the window holds those after it."""
        return t - (n_step - 1) * n_envs

    def add(
        stored: RingReplayState, step: Transition, t: jax.Array, uniforms: jax.Array | np.ndarray | None = None
    ) -> RingReplayState:
        window, leaving = push_window(stored.window, step, n_envs)
        slot = newest_number(t) % capacity
        rows = jax.lax.dynamic_update_slice(stored.rows, pack(leaving)[None], (slot, 0))
        state = sampler.add(stored.sampler, slot, newest_number(t) >= 0)
        return RingReplayState(window=window, rows=rows, sampler=state)

    def sample(stored: RingReplayState, t: jax.Array, uniforms: jax.Array) -> Batch:
        used = jnp.minimum(newest_number(t) + 1, capacity)
        slots, weights = sampler.draw(stored.sampler, 0, used, uniforms)
        rows = stored.rows if slots is None else stored.rows.at[slots].get(mode="promise_in_bounds")
        # The batch goes last: every variable of it is then contiguous, which makes the losses fast.
        return Batch(transitions=unpack(rows.T, obs_size, actions), slots=slots, weights=weights)

    def update_priorities(stored: RingReplayState, slots: jax.Array | None, losses: jax.Array) -> RingReplayState:
        return stored._replace(sampler=sampler.update_priorities(stored.sampler, slots, losses))

    def relabel(stored: RingReplayState, label: Label) -> RingReplayState:
        window, rows = (relabel_rows(part, obs_size, label, actions) for part in (stored.window, stored.rows))
        return stored._replace(window=window, rows=rows)

    def all_states(stored: RingReplayState) -> jax.Array:
        """[2N, d]: s_{t-1} and s_t of each slot."""
        return stored.rows[:, : 2 * obs_size].reshape(-1, obs_size)

    def newest_states(stored: RingReplayState, t: jax.Array) -> jax.Array:
        """Two states per step: rounding does not depend on how many steps lie between two updates."""
        slots = (newest_number(t) - jnp.arange(update_every)) % capacity
        return jnp.stack([2 * slots, 2 * slots + 1], axis=1)

    states = StoredStates(
        count=2 * capacity,
        get=lambda stored, numbers: all_states(stored).at[numbers].get(mode="promise_in_bounds"),
        newest=newest_states,
        used=lambda stored: 2 * capacity,
        chunk=2 * capacity,
        adjacent=True,
    )
    return Replay(
        init=init,
        add=add,
        sample=sample,
        update_priorities=update_priorities,
        relabel=relabel,
        num_uniforms=sampler.num_uniforms,
        states=states,
    )
