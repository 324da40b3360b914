"""Replay: what the agent keeps of its experience, and how batches of it come back.

What is kept is told apart from how it is drawn: `ring` keeps packed transitions, `frames` the frames of images,
and both draw by a `sampling.Sampler`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """{s_{t-1}, ω(s_{t-1}), a_{t-1}, r_t, s_t, ω(s_t)}: what the paper's buffer B holds.

    `discount_t` is γ, or 0 when nothing follows; a time limit need not be such an end.
    """

    obs_tm1: jax.Array
    a_tm1: jax.Array
    r_t: jax.Array
    discount_t: jax.Array
    obs_t: jax.Array
    context_tm1: jax.Array
    context_t: jax.Array
    over: jax.Array
    """whether the episode ended here, for whatever reason"""
    greedy: jax.Array
    """whether a_{t-1} was the greedy action"""


class Batch(NamedTuple):
    steps: Transition
    """the batch is the last axis of everything"""
    notes: jax.Array
    """[2, w, B]: what was noted of s_{t-1} and of s_t"""
    slots: jax.Array | None
    """[B]: where they are stored; None: everything, in order"""
    weights: jax.Array | None
    """[B]: how much each counts; None: all the same"""


Note = Callable[[jax.Array], jax.Array]
"""states [n, d] -> what shall be kept beside them [n, w]"""
Label = Callable[[jax.Array], jax.Array]
"""state -> ω(s)"""


class Replay(NamedTuple):
    init: Callable[[], Any]
    add: Callable[[Any, Transition, Note, jax.Array], Any]
    """store the t-th step (from 0)"""
    sample: Callable[[Any, jax.Array, jax.Array], Batch]
    """(stored, number of the newest step, uniform numbers) -> a batch"""
    renew: Callable[[Any, Note], Any]
    """note everything anew"""
    relabel: Callable[[Any, Label], Any]
    """label everything anew"""
    learned: Callable[[Any, jax.Array | None, jax.Array], Any]
    """(stored, slots, their losses) -> stored: what was learned decides how it is drawn again"""
    draws: int
    """uniform numbers a sample consumes"""
    refresh: Callable[[Any, Note], Any] = lambda stored, note: stored
    """before an update: note what came since the last one, where `add` leaves that for later"""


FACTS, CONTEXT_TM1, CONTEXT_T = 7, 3, 4
"""how many facts a transition has beside its observations, and which of them are the contexts"""


def facts_of(step: Transition) -> jax.Array:
    """[7]: all but the observations; small integers are exact in float32."""
    facts = (step.a_tm1, step.r_t, step.discount_t, step.context_tm1, step.context_t, step.over, step.greedy)
    return jnp.stack([jnp.float32(fact) for fact in facts])


def with_facts(facts: jax.Array, obs_tm1: jax.Array, obs_t: jax.Array) -> Transition:
    """The inverse of `facts_of`, for one transition [7] or a batch [7, B]."""
    return Transition(
        obs_tm1=obs_tm1,
        obs_t=obs_t,
        a_tm1=facts[0].astype(jnp.int32),
        r_t=facts[1],
        discount_t=facts[2],
        context_tm1=facts[CONTEXT_TM1].astype(jnp.int32),
        context_t=facts[CONTEXT_T].astype(jnp.int32),
        over=facts[5] > 0,
        greedy=facts[6] > 0,
    )


def row_width(obs_size: int) -> int:
    return 2 * obs_size + FACTS


def pack(step: Transition) -> jax.Array:
    """One transition as a row."""
    return jnp.concatenate([step.obs_tm1, step.obs_t, facts_of(step)])


def unpack(rows: jax.Array, obs_size: int) -> Transition:
    """The inverse of `pack`, for one row [W] or a batch [W, B]."""
    return with_facts(rows[2 * obs_size :], rows[:obs_size], rows[obs_size : 2 * obs_size])


def relabelled(rows: jax.Array, obs_size: int, label: Label) -> jax.Array:
    """Packed rows [n, W] with the labels that their states have now."""

    def relabel(row: jax.Array) -> jax.Array:
        step = unpack(row, obs_size)
        step = step._replace(context_tm1=label(step.obs_tm1), context_t=label(step.obs_t))
        packed = pack(step)
        return row.at[: packed.size].set(packed)

    return jax.vmap(relabel)(rows)
