"""FrameReplay: replay of images. Each frame is stored once, as bytes; stacks are put together when they are sampled.

An observation is a stack of frames, the oldest first; frames from before the episode are zeros. A step writes the
newest frame of its state, and that of its next state in the row after it, where the next step finds it. Where an
episode ends, one row more is used, so that its last frame is kept and a time limit can be bootstrapped.

Row numbers count on; a frame lies at its number modulo the number of rows. Transitions are numbered by their step.
A transition is sampled once its n-step return is complete.

A vector may come with each frame. Its numbers follow the pixels: in an observation as they are, in a row as the four
bytes of each. So it is stored once, too, and exactly.

Where several environments take turns, step t is one of environment t modulo their number. Each has rows of its own,
numbered from 0, so that the frames of an episode lie one after the other.
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
from iqrl.errors import BadInput

CHUNK = 64
"""states that are labelled, or passed through a network, at once"""


class FrameReplayState(NamedTuple):
    frames: jax.Array
    """[n_envs rows, F] of bytes, with those of the vector that comes with a frame"""
    row: jax.Array
    """[N]: the row number of each transition's newest frame, among those of its environment"""
    age: jax.Array
    """[N]: steps since its episode began"""
    facts: jax.Array
    """[N, F]: all of each transition but its observations"""
    row_age: jax.Array
    """[n_envs rows]: age of the state whose newest frame is in this row, at most the stack size"""
    next_row: jax.Array
    """one number, or one for each environment where there are several"""
    oldest: jax.Array
    """the oldest transition whose frames are all there"""
    now: jax.Array
    """steps since the present episode began; of each environment where there are several"""
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
    n_envs: int = 1,
    vector: int = 0,
) -> Replay:
    """The last `capacity` transitions, or fewer where many episodes are so short that their ends take the room.

    `actions`: how many a mask is about; 0: there are no masks. `n_envs`: environments that take turns. `vector`:
    numbers that come with each frame.
    """
    if capacity % n_envs:
        raise BadInput(f"buffer_size is {capacity}; for images it must be a multiple of n_envs, {n_envs}.")
    # A step that ends an episode takes two rows. There is room for n such steps, so that the newest n-step return fits.
    rows, slots = capacity // n_envs + stack + 2 * n_step, capacity + (n_step - 1) * n_envs
    sampler = sampling(slots)

    def own(counters: jax.Array, env: jax.Array) -> jax.Array:
        return counters.reshape(n_envs)[env]

    def with_own(counters: jax.Array, env: jax.Array, count: jax.Array) -> jax.Array:
        return counters.reshape(n_envs).at[env].set(count).reshape(counters.shape)

    def place(env: jax.Array, row: jax.Array) -> jax.Array:
        """Where the row of this number lies."""
        return env * rows + row % rows

    def init() -> FrameReplayState:
        whole = lambda: jnp.int32(0)
        of_each = lambda: whole() if n_envs == 1 else jnp.zeros(n_envs, jnp.int32)
        return FrameReplayState(
            frames=jnp.zeros((n_envs * rows, frame + 4 * vector), jnp.uint8),
            row=jnp.zeros(slots, jnp.int32),
            age=jnp.zeros(slots, jnp.int32),
            facts=jnp.zeros((slots, count_facts(actions))),
            row_age=jnp.zeros(n_envs * rows, jnp.uint8),
            next_row=of_each(), oldest=whole(), now=of_each(), count=whole(),
            sampler=sampler.init(),
        )  # fmt: skip

    def add(
        stored: FrameReplayState, step: Transition, t: jax.Array, uniforms: jax.Array | np.ndarray | None = None
    ) -> FrameReplayState:
        env, slot = t % n_envs, t % slots
        here, now = own(stored.next_row, env), own(stored.now, env)
        newest = lambda obs: to_bytes(obs.reshape(stack, frame + vector)[-1:], frame)
        write = lambda frames, obs, row: jax.lax.dynamic_update_slice(frames, newest(obs), (place(env, row), 0))
        frames = write(write(stored.frames, step.obs_tm1, here), step.obs_t, here + 1)
        stored = stored._replace(
            frames=frames,
            row=stored.row.at[slot].set(here),
            age=stored.age.at[slot].set(now),
            facts=stored.facts.at[slot].set(pack_facts(step)),
            row_age=stored.row_age.at[place(env, here + jnp.arange(2))].set(_ages(now)),
            next_row=with_own(stored.next_row, env, here + 1 + step.done),
            now=with_own(stored.now, env, jnp.where(step.done, 0, now + 1)),
            count=t + 1,
        )
        return _with_complete(_without_lost(stored, slot, env), t - (n_step - 1) * n_envs)

    def _ages(now: jax.Array) -> jax.Array:
        return jnp.minimum(now + jnp.arange(2), stack).astype(jnp.uint8)

    def _without_lost(stored: FrameReplayState, slot: jax.Array, env: jax.Array) -> FrameReplayState:
        """What was stored longer ago than there is room for can no longer be drawn."""
        oldest = jnp.maximum(stored.oldest, stored.count - slots)
        state = sampler.drop(stored.sampler, slot, jnp.bool_(True))
        for _ in range(2):  # a step writes over two rows at most
            number = oldest + (env - oldest) % n_envs  # the oldest of this environment
            # Its whole stack must still be there; the row after the newest was just written too.
            lost = stored.row[number % slots] - (stack - 1) <= own(stored.next_row, env) - rows
            lost = lost & (number < stored.count)
            state = _drop_between(state, oldest, number, lost)
            oldest = jnp.where(lost, number + 1, oldest)
        return stored._replace(oldest=oldest, sampler=state)

    def _drop_between(state: Any, oldest: jax.Array, number: jax.Array, lost: jax.Array) -> Any:
        """With a transition go all that are older: those that can be drawn lie one after the other."""
        if n_envs == 1:
            return sampler.drop(state, oldest % slots, lost)
        drop = lambda i, state: sampler.drop(state, (oldest + i) % slots, lost & (oldest + i <= number))
        return jax.lax.fori_loop(0, n_envs, drop, state)

    def _with_complete(stored: FrameReplayState, number: jax.Array) -> FrameReplayState:
        """A transition can be drawn when the steps of its return are there."""
        there = (number >= 0) & (number >= stored.oldest)
        return stored._replace(sampler=sampler.add(stored.sampler, number % slots, there))

    def sample(stored: FrameReplayState, t: jax.Array, uniforms: jax.Array) -> Batch:
        used = t - (n_step - 1) * n_envs - stored.oldest + 1
        drawn, weights = sampler.draw(stored.sampler, stored.oldest % slots, used, uniforms)
        drawn = (stored.oldest + jnp.arange(capacity)) % slots if drawn is None else drawn
        # The transitions have row numbers where observations will stand.
        steps = n_step_transition([_one_step(stored, (drawn + i * n_envs) % slots) for i in range(n_step)])
        age, env = stored.age[drawn], drawn % n_envs
        stack_at = lambda row: stack_of(stored, env, row, age + row - steps.obs_tm1).T
        states = place(env, jnp.stack([steps.obs_tm1, steps.obs_t]))
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
            stack_at = lambda row, age: stack_of(stored, some % n_envs, row, age).T
            facts = stored.facts.at[some, CONTEXT_TM1].set(labels(stack_at(row, age)).astype(jnp.float32))
            facts = facts.at[some, CONTEXT_T].set(labels(stack_at(row + 1, age + 1)).astype(jnp.float32))
            return stored._replace(facts=facts)

        used = jnp.minimum(stored.count, slots)
        return jax.lax.fori_loop(0, -(-used // CHUNK), chunk, stored)

    def states_at(stored: FrameReplayState, numbers: jax.Array) -> jax.Array:
        return stack_of(stored, numbers // rows, numbers, stored.row_age[numbers].astype(jnp.int32))

    def stack_of(stored: FrameReplayState, env: jax.Array, row: jax.Array, age: jax.Array) -> jax.Array:
        back = jnp.arange(stack - 1, -1, -1)
        return stack_frames(stored.frames, place(env[:, None], row[:, None] - back), age, frame)

    def newest_states(stored: FrameReplayState, t: jax.Array) -> jax.Array:
        """Of the steps since the last update; a step takes two rows at most."""
        env = (t - jnp.arange(min(update_every, n_envs))) % n_envs
        # Where an episode has just ended, nothing lies in the next row yet.
        last = own(stored.next_row, env) - (own(stored.now, env) == 0)
        back = jnp.arange(2 * -(-update_every // n_envs))
        return place(env[:, None], last[:, None] - back).reshape(1, -1)

    states = StoredStates(
        count=n_envs * rows,
        get=states_at,
        newest=newest_states,
        used=lambda stored: jnp.minimum(stored.next_row + 1, rows) if n_envs == 1 else n_envs * rows,
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


def stack_frames(frames: jax.Array, places: jax.Array, age: jax.Array, frame: int) -> jax.Array:
    """[B, stack * F]: the frames at these places [B, stack], as many as the episode has, zeros before them."""
    back = jnp.arange(places.shape[1] - 1, -1, -1)
    seen = frames.at[places].get(mode="promise_in_bounds")
    there = (back <= age[:, None])[..., None]
    return from_bytes(jnp.where(there, seen, jnp.uint8(0)), frame).reshape(age.size, -1)


def to_bytes(numbers: jax.Array, frame: int) -> jax.Array:
    """Rows of so many pixels, and of a vector if there is one."""
    pixels, vector = numbers[:, :frame].astype(jnp.uint8), numbers[:, frame:]
    if not vector.size:
        return pixels
    return jnp.concatenate([pixels, jax.lax.bitcast_convert_type(vector, jnp.uint8).reshape(len(vector), -1)], axis=1)


def from_bytes(rows: jax.Array, frame: int) -> jax.Array:
    """The numbers again; bytes where there are pixels alone."""
    pixels, vector = rows[..., :frame], rows[..., frame:]
    if not vector.size:
        return pixels
    floats = jax.lax.bitcast_convert_type(vector.reshape(*vector.shape[:-1], -1, 4), jnp.float32)
    return jnp.concatenate([pixels.astype(jnp.float32), floats], axis=-1)
