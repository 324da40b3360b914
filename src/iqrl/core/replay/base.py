"""Replay: what the agent stores of its experience, and how batches of it are sampled.

What is stored is one part, how it is sampled is another: `ring.py` stores packed transitions, `frames.py` the frames
of images, and both sample by a `sampling.Sampler`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.masks import count_words, pack_masks, says_nothing, unpack_masks
from iqrl.core.types import Batch, Transition

Label = Callable[[jax.Array], jax.Array]
"""state -> ω(s)"""


class StoredStates(NamedTuple):
    """The states of a replay by number, for what is computed once per state (`core/cached_targets.py`)."""

    count: int
    get: Callable[[Any, jax.Array], jax.Array]
    """(stored, numbers [n]) -> states [n, d]"""
    newest: Callable[[Any, jax.Array], jax.Array]
    """(stored, number of the newest step) -> the numbers [g, n] of the states written since the last update, in groups
    that are computed one after the other"""
    used: Callable[[Any], jax.Array | int]
    """stored -> how many numbers, from 0 on, are in use"""
    chunk: int
    """how many states may be computed at once"""
    adjacent: bool = False
    """whether a group of newest states has adjacent numbers: a slice is faster than a gather"""


class Replay(NamedTuple):
    init: Callable[[], Any]
    add: Callable[[Any, Transition, jax.Array, jax.Array | np.ndarray], Any]
    """(stored, transition, its number from 0, uniform numbers [num_add_uniforms]) -> stored"""
    sample: Callable[[Any, jax.Array, jax.Array], Batch]
    """(stored, number of the newest step, uniform numbers) -> a batch"""
    update_priorities: Callable[[Any, jax.Array | None, jax.Array], Any]
    """(stored, slots, their losses) -> stored"""
    relabel: Callable[[Any, Label], Any]
    """(stored, ω) -> stored, with new context labels"""
    num_uniforms: int
    """uniform numbers that a sample needs"""
    states: StoredStates
    num_add_uniforms: int = 0
    """uniform numbers that `add` needs"""


# A transition as a row of float32

FACTS, CONTEXT_TM1, CONTEXT_T = 7, 3, 4
"""how many numbers a transition has beside its observations and masks, and which of them are the contexts"""


def count_facts(actions: int = 0) -> int:
    """F: numbers beside the observations; `actions`: those that masks are about, 0 where there are no masks."""
    return FACTS + count_words(actions)


def pack_facts(step: Transition) -> jax.Array:
    """[F]: all but the observations; small integers are exact in float32, so masks are stored as bits of them."""
    facts = (step.a_tm1, step.r_t, step.discount_t, step.context_tm1, step.context_t, step.done, step.greedy)
    numbers = jnp.stack([jnp.float32(fact) for fact in facts])
    if says_nothing(step.mask_t):
        return numbers
    return jnp.concatenate([numbers, pack_masks(step.mask_tm1, step.mask_t)])


def unpack_facts(facts: jax.Array, obs_tm1: jax.Array, obs_t: jax.Array, actions: int = 0) -> Transition:
    """The inverse of `pack_facts`, for one transition [F] or a batch [F, B]."""
    mask_tm1, mask_t = unpack_masks(facts[FACTS:], actions) if actions else ((), ())
    return Transition(
        obs_tm1=obs_tm1,
        obs_t=obs_t,
        a_tm1=facts[0].astype(jnp.int32),
        r_t=facts[1],
        discount_t=facts[2],
        context_tm1=facts[CONTEXT_TM1].astype(jnp.int32),
        context_t=facts[CONTEXT_T].astype(jnp.int32),
        done=facts[5] > 0,
        greedy=facts[6] > 0,
        mask_tm1=mask_tm1,
        mask_t=mask_t,
    )


def row_width(obs_size: int, actions: int = 0) -> int:
    return 2 * obs_size + count_facts(actions)


def pack(step: Transition) -> jax.Array:
    """One transition as a row."""
    return jnp.concatenate([step.obs_tm1, step.obs_t, pack_facts(step)])


def unpack(rows: jax.Array, obs_size: int, actions: int = 0) -> Transition:
    """The inverse of `pack`, for one row [W] or a batch [W, B]."""
    return unpack_facts(rows[2 * obs_size :], rows[:obs_size], rows[obs_size : 2 * obs_size], actions)


def relabel_rows(rows: jax.Array, obs_size: int, label: Label, actions: int = 0) -> jax.Array:
    """Packed rows [n, W] with the labels that their states have now."""

    def relabel(row: jax.Array) -> jax.Array:
        step = unpack(row, obs_size, actions)
        return pack(step._replace(context_tm1=label(step.obs_tm1), context_t=label(step.obs_t)))

    return jax.vmap(relabel)(rows)


# n-step returns


def empty_window(n: int, obs_size: int, actions: int = 0, n_envs: int = 1) -> jax.Array:
    """[(n - 1) n_envs, W]: the steps whose n-step return is not yet complete, oldest first."""
    return jnp.zeros(((n - 1) * n_envs, row_width(obs_size, actions)), jnp.float32)


def push_window(window: jax.Array, step: Transition, n_envs: int = 1) -> tuple[jax.Array, Transition]:
    """The window with `step` in it, and the n-step transition of the oldest step, which leaves it.

    Environments take turns: every `n_envs`-th step is one of the same environment.
    """
    if window.shape[0] == 0:
        return window, step
    rows = jnp.concatenate([window, pack(step)[None]])
    actions = 0 if says_nothing(step.mask_t) else step.mask_t.size
    return rows[1:], n_step_transition([unpack(row, step.obs_tm1.size, actions) for row in rows[::n_envs]])


def n_step_transition(steps: Sequence[Transition]) -> Transition:
    """r_1 + γ r_2 + … and the state it leads to, cut where the episode ends."""
    total = steps[0]
    for later in steps[1:]:
        goes_on = jnp.logical_not(total.done)
        choose = lambda new, old, goes_on=goes_on: jnp.where(goes_on, new, old)
        total = total._replace(
            r_t=choose(total.r_t + total.discount_t * later.r_t, total.r_t),
            discount_t=choose(total.discount_t * later.discount_t, total.discount_t),
            obs_t=choose(later.obs_t, total.obs_t),
            context_t=choose(later.context_t, total.context_t),
            done=choose(later.done, total.done),
            mask_t=jax.tree.map(choose, later.mask_t, total.mask_t),
        )
    return total
