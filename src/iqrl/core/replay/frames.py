"""FrameReplay: replay of images. Each frame is stored once, as bytes; stacks are put together when they are sampled.

An observation is a stack of frames, the oldest first; frames from before the episode are zeros. A step writes the
newest frame of its state, and that of its next state in the row after it, where the next step finds it. Where an
episode ends, one row more is used, so that its last frame is kept and a time limit can be bootstrapped.

Row numbers count on; a frame lies at its number modulo the number of rows. Transitions are numbered by their step.
A transition is sampled once its n-step return is complete.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.replay.base import (
    CONTEXT_T,
    CONTEXT_TM1,
    Label,
    Replay,
    StoredStates,
    count_facts,
    n_step_transition,
    pack_facts,
    unpack_facts,
)
from iqrl.core.replay.sampling import Sampling
from iqrl.core.types import Batch, Transition

CHUNK = 64
"""states that are labelled, or passed through a network, at once"""


class FrameReplayState(NamedTuple):
    frames: jax.Array
    """[rows, F] of bytes"""
    row: jax.Array
    """[N]: the row number of each transition's newest frame"""
    age: jax.Array
    """[N]: steps since its episode began"""
    facts: jax.Array
    """[N, F]: all of each transition but its observations"""
    row_age: jax.Array
    """[rows]: age of the state whose newest frame is in this row, at most the stack size"""
    next_row: jax.Array
    oldest: jax.Array
    """the oldest transition whose frames are all there"""
    now: jax.Array
    """steps since the present episode began"""
    count: jax.Array
    """transitions stored so far"""
    sampler: Any


def frame_replay(
    capacity: int,
    frame: int,
    stack: int,
    sampling: Sampling,
    *,
    n_step: int = 1,
    update_every: int = 1,
    actions: int = 0,
) -> Replay:
    """The last `capacity` transitions, or fewer where many episodes are so short that their ends take the room.

    `actions`: how many a mask is about; 0: there are no masks.
    """
    # A step that ends an episode takes two rows. There is room for n such steps, so that the newest n-step return fits.
    rows, slots = capacity + stack + 2 * n_step, capacity + n_step - 1
    sampler = sampling(slots)

    def init() -> FrameReplayState:
        whole = lambda: jnp.int32(0)
        return FrameReplayState(
            frames=jnp.zeros((rows, frame), jnp.uint8),
            row=jnp.zeros(slots, jnp.int32),
            age=jnp.zeros(slots, jnp.int32),
            facts=jnp.zeros((slots, count_facts(actions))),
            row_age=jnp.zeros(rows, jnp.uint8),
            next_row=whole(), oldest=whole(), now=whole(), count=whole(),
            sampler=sampler.init(),
        )  # fmt: skip

    def add(
        stored: FrameReplayState, step: Transition, t: jax.Array, uniforms: jax.Array | np.ndarray | None = None
    ) -> FrameReplayState:
        here, slot = stored.next_row, t % slots
        newest = lambda obs: obs.reshape(stack, frame)[-1:].astype(jnp.uint8)
        write = lambda frames, obs, row: jax.lax.dynamic_update_slice(frames, newest(obs), (row % rows, 0))
        frames = write(write(stored.frames, step.obs_tm1, here), step.obs_t, here + 1)
        stored = stored._replace(
            frames=frames,
            row=stored.row.at[slot].set(here),
            age=stored.age.at[slot].set(stored.now),
            facts=stored.facts.at[slot].set(pack_facts(step)),
            row_age=_row_ages(stored),
            next_row=here + 1 + step.done,
            now=jnp.where(step.done, 0, stored.now + 1),
            count=t + 1,
        )
        return _with_complete(_without_lost(stored, slot), t - (n_step - 1))

    def _row_ages(stored: FrameReplayState) -> jax.Array:
        here, age = stored.next_row, jnp.minimum(stored.now + jnp.arange(2), stack).astype(jnp.uint8)
        return stored.row_age.at[(here + jnp.arange(2)) % rows].set(age)

    def _without_lost(stored: FrameReplayState, slot: jax.Array) -> FrameReplayState:
        """What was stored longer ago than there is room for can no longer be drawn."""
        oldest = jnp.maximum(stored.oldest, stored.count - slots)
        state = sampler.drop(stored.sampler, slot, jnp.bool_(True))
        for _ in range(2):  # a step writes over two rows at most
            # Its whole stack must still be there; the row after the newest was just written too.
            lost = stored.row[oldest % slots] - (stack - 1) <= stored.next_row - rows
            lost = lost & (oldest < stored.count)
            state = sampler.drop(state, oldest % slots, lost)
            oldest = oldest + lost
        return stored._replace(oldest=oldest, sampler=state)

    def _with_complete(stored: FrameReplayState, number: jax.Array) -> FrameReplayState:
        """A transition can be drawn when the steps of its return are there."""
        there = (number >= 0) & (number >= stored.oldest)
        return stored._replace(sampler=sampler.add(stored.sampler, number % slots, there))

    def sample(stored: FrameReplayState, t: jax.Array, uniforms: jax.Array) -> Batch:
        used = t - (n_step - 1) - stored.oldest + 1
        drawn, weights = sampler.draw(stored.sampler, stored.oldest % slots, used, uniforms)
        drawn = (stored.oldest + jnp.arange(capacity)) % slots if drawn is None else drawn
        # The transitions have row numbers where observations will stand.
        steps = n_step_transition([_one_step(stored, (drawn + i) % slots) for i in range(n_step)])
        age = stored.age[drawn]
        stack_at = lambda row: stack_frames(stored.frames, row, age + row - steps.obs_tm1, stack).T
        states = jnp.stack([steps.obs_tm1, steps.obs_t]) % rows
        steps = steps._replace(obs_tm1=stack_at(steps.obs_tm1), obs_t=stack_at(steps.obs_t))
        return Batch(transitions=steps, slots=drawn, weights=weights, states=states)

    def _one_step(stored: FrameReplayState, drawn: jax.Array) -> Transition:
        row = stored.row[drawn]
        return unpack_facts(stored.facts.at[drawn].get(mode="promise_in_bounds").T, row, row + 1, actions)

    def update_priorities(stored: FrameReplayState, drawn: jax.Array | None, losses: jax.Array) -> FrameReplayState:
        return stored._replace(sampler=sampler.update_priorities(stored.sampler, drawn, losses))

    def relabel(stored: FrameReplayState, label: Label) -> FrameReplayState:
        labels = jax.vmap(label, in_axes=-1)

        def chunk(number: jax.Array, stored: FrameReplayState) -> FrameReplayState:
            some = jnp.minimum(number * CHUNK + jnp.arange(CHUNK), slots - 1)
            row, age = stored.row[some], stored.age[some]
            stack_at = lambda row, age: stack_frames(stored.frames, row, age, stack).T
            facts = stored.facts.at[some, CONTEXT_TM1].set(labels(stack_at(row, age)).astype(jnp.float32))
            facts = facts.at[some, CONTEXT_T].set(labels(stack_at(row + 1, age + 1)).astype(jnp.float32))
            return stored._replace(facts=facts)

        used = jnp.minimum(stored.count, slots)
        return jax.lax.fori_loop(0, -(-used // CHUNK), chunk, stored)

    def states_at(stored: FrameReplayState, numbers: jax.Array) -> jax.Array:
        return stack_frames(stored.frames, numbers, stored.row_age[numbers].astype(jnp.int32), stack)

    states = StoredStates(
        count=rows,
        get=states_at,
        # A step takes two rows at most.
        newest=lambda stored, t: (stored.next_row - jnp.arange(2 * update_every + 1)[None]) % rows,
        used=lambda stored: jnp.minimum(stored.next_row + 1, rows),
        chunk=CHUNK,
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


def stack_frames(frames: jax.Array, row: jax.Array, age: jax.Array, stack: int) -> jax.Array:
    """[B, stack * F]: the frames up to each row, as many as its episode has, zeros before them."""
    back = jnp.arange(stack - 1, -1, -1)
    seen = frames.at[(row[:, None] - back) % frames.shape[0]].get(mode="promise_in_bounds")
    there = (back <= age[:, None])[..., None]
    return jnp.where(there, seen, jnp.uint8(0)).reshape(row.size, -1)
