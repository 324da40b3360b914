"""Replay of images: each frame is stored once, as bytes, and what the agent saw is put together when it is sampled.

An observation is a stack of frames, the oldest first; frames from before the episode are zeros. A step writes the
newest frame of its state, and that of its next state in the place after it, where the next step finds it. Where an
episode ends, one place more is used, so that its last frame is kept and a time limit can be bootstrapped.

What the target network says of a state is noted beside the newest frame of it, if it is to be remembered: a step stores
no note; before an update the newest few are noted together, in one pass of the network.

Row numbers count on; a frame lies at its number modulo the number of rows. Transitions are numbered by their step,
and the one that waits for its n-step return is simply not yet drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.replay import (
    CONTEXT_T,
    CONTEXT_TM1,
    FACTS,
    Batch,
    Label,
    Note,
    Replay,
    Transition,
    facts_of,
    with_facts,
)
from iqrl.parts.returns import joined
from iqrl.parts.sampling import Sampling

CHUNK = 64
"""states that are labelled, or noted, at once"""


class Film(NamedTuple):
    frames: jax.Array
    """[rows, F] of bytes"""
    row: jax.Array
    """[N]: the row number of each transition's newest frame"""
    age: jax.Array
    """[N]: steps since its episode began"""
    facts: jax.Array
    """[N, 7]: all of each transition but its observations"""
    notes: jax.Array
    """[rows, w]: what was noted of the state that a frame is the newest of"""
    ages: jax.Array
    """[rows]: steps from the begin of the episode to that state, at most as many as a stack has; only for notes"""
    next_row: jax.Array
    oldest: jax.Array
    """the oldest transition whose frames are all there"""
    now: jax.Array
    """steps since the present episode began"""
    count: jax.Array
    """transitions stored so far"""
    sampler: Any


def film(
    capacity: int, frame: int, stack: int, sampling: Sampling, *, n_step: int = 1, notes: int = 0, update_every: int = 1
) -> Replay:
    """The last `capacity` transitions, or fewer where many episodes are so short that their ends take the room.

    `notes` is the number w of columns that are noted of a state; `update_every` how many steps there are between
    updates, which is needed only for them.
    """
    # A step takes two rows where it ends an episode: the newest whole return is there even if each of its steps did.
    rows, slots = capacity + stack + 2 * n_step, capacity + n_step - 1
    sampler = sampling(slots)

    def init() -> Film:
        whole = lambda: jnp.int32(0)
        return Film(
            frames=jnp.zeros((rows, frame), jnp.uint8),
            row=jnp.zeros(slots, jnp.int32),
            age=jnp.zeros(slots, jnp.int32),
            facts=jnp.zeros((slots, FACTS)),
            notes=jnp.zeros((rows, notes)),
            ages=jnp.zeros(rows if notes else 0, jnp.uint8),
            next_row=whole(), oldest=whole(), now=whole(), count=whole(),
            sampler=sampler.init(),
        )  # fmt: skip

    def add(film: Film, step: Transition, note: Note, t: jax.Array) -> Film:
        here, slot = film.next_row, t % slots
        newest = lambda obs: obs.reshape(stack, frame)[-1:].astype(jnp.uint8)
        write = lambda frames, obs, row: jax.lax.dynamic_update_slice(frames, newest(obs), (row % rows, 0))
        frames = write(write(film.frames, step.obs_tm1, here), step.obs_t, here + 1)
        film = film._replace(
            frames=frames,
            row=film.row.at[slot].set(here),
            age=film.age.at[slot].set(film.now),
            facts=film.facts.at[slot].set(facts_of(step)),
            ages=_with_ages(film) if notes else film.ages,
            next_row=here + 1 + step.over,
            now=jnp.where(step.over, 0, film.now + 1),
            count=t + 1,
        )
        return _with_complete(_without_lost(film, slot), t - (n_step - 1))

    def _with_ages(film: Film) -> jax.Array:
        here, age = film.next_row, jnp.minimum(film.now + jnp.arange(2), stack).astype(jnp.uint8)
        return film.ages.at[(here + jnp.arange(2)) % rows].set(age)

    def _without_lost(film: Film, slot: jax.Array) -> Film:
        """What was stored longer ago than there is room for can no longer be drawn."""
        oldest = jnp.maximum(film.oldest, film.count - slots)
        state = sampler.drop(film.sampler, slot, jnp.bool_(True))
        for _ in range(2):  # a step writes over two rows at most
            # Its whole stack must still be there; the row after the newest was just written too.
            lost = film.row[oldest % slots] - (stack - 1) <= film.next_row - rows
            lost = lost & (oldest < film.count)
            state = sampler.drop(state, oldest % slots, lost)
            oldest = oldest + lost
        return film._replace(oldest=oldest, sampler=state)

    def _with_complete(film: Film, number: jax.Array) -> Film:
        """A transition can be drawn when the steps of its return are there."""
        there = (number >= 0) & (number >= film.oldest)
        return film._replace(sampler=sampler.add(film.sampler, number % slots, there))

    def sample(film: Film, t: jax.Array, uniforms: jax.Array) -> Batch:
        used = t - (n_step - 1) - film.oldest + 1
        drawn, weights = sampler.draw(film.sampler, film.oldest % slots, used, uniforms)
        drawn = (film.oldest + jnp.arange(capacity)) % slots if drawn is None else drawn
        steps, noted = _steps(film, drawn)
        return Batch(steps, noted, drawn, weights)

    def _steps(film: Film, drawn: jax.Array) -> tuple[Transition, jax.Array]:
        """The n-step transitions that begin at these slots, the batch last; and what was noted of both their states."""
        steps = joined([_one_step(film, (drawn + i) % slots) for i in range(n_step)])
        # What `joined` took for observations are row numbers.
        age = film.age[drawn]
        seen = lambda row: stacked(film.frames, row, age + row - steps.obs_tm1, stack).T
        both = jnp.stack([steps.obs_tm1, steps.obs_t])
        noted = film.notes.at[both % rows].get(mode="promise_in_bounds").swapaxes(1, 2)
        return steps._replace(obs_tm1=seen(steps.obs_tm1), obs_t=seen(steps.obs_t)), noted

    def _one_step(film: Film, drawn: jax.Array) -> Transition:
        row = film.row[drawn]
        return with_facts(film.facts.at[drawn].get(mode="promise_in_bounds").T, row, row + 1)

    def relabel(film: Film, label: Label) -> Film:
        labels = jax.vmap(label, in_axes=-1)

        def chunk(number: jax.Array, film: Film) -> Film:
            some = jnp.minimum(number * CHUNK + jnp.arange(CHUNK), slots - 1)
            row, age = film.row[some], film.age[some]
            seen = lambda row, age: stacked(film.frames, row, age, stack).T
            facts = film.facts.at[some, CONTEXT_TM1].set(labels(seen(row, age)).astype(jnp.float32))
            facts = facts.at[some, CONTEXT_T].set(labels(seen(row + 1, age + 1)).astype(jnp.float32))
            return film._replace(facts=facts)

        stored = jnp.minimum(film.count, slots)
        return jax.lax.fori_loop(0, -(-stored // CHUNK), chunk, film)

    def _noted(film: Film, note: Note, some: jax.Array) -> Film:
        """What is noted of these rows is what the target says now."""
        states = stacked(film.frames, some, film.ages[some].astype(jnp.int32), stack)
        return film._replace(notes=film.notes.at[some].set(note(states)))

    def renew(film: Film, note: Note) -> Film:
        if notes == 0:
            return film
        chunk = lambda number, film: _noted(film, note, jnp.minimum(number * CHUNK + jnp.arange(CHUNK), rows - 1))
        used = jnp.minimum(film.next_row + 1, rows)
        return jax.lax.fori_loop(0, -(-used // CHUNK), chunk, film)

    def refresh(film: Film, note: Note) -> Film:
        """A step takes two rows at most."""
        if notes == 0:
            return film
        return _noted(film, note, (film.next_row - jnp.arange(2 * update_every + 1)) % rows)

    def learned(film: Film, drawn: jax.Array | None, losses: jax.Array) -> Film:
        return film._replace(sampler=sampler.learned(film.sampler, drawn, losses))

    return Replay(init, add, sample, renew, relabel, learned, sampler.draws, refresh)


def stacked(frames: jax.Array, row: jax.Array, age: jax.Array, stack: int) -> jax.Array:
    """[B, stack * F]: the frames up to each row, as many as its episode has, zeros before them."""
    back = jnp.arange(stack - 1, -1, -1)
    seen = frames.at[(row[:, None] - back) % frames.shape[0]].get(mode="promise_in_bounds")
    there = (back <= age[:, None])[..., None]
    return jnp.where(there, seen, jnp.uint8(0)).reshape(row.size, -1)
