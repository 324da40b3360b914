"""n-step returns: a window of the last n steps, out of which comes one transition per step, n - 1 steps late."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from iqrl.parts.replay import Transition, pack, row_width, unpack


def empty_window(n: int, obs_size: int) -> jax.Array:
    """[n - 1, W]: the steps still waiting, oldest first."""
    return jnp.zeros((n - 1, row_width(obs_size)), jnp.float32)


def through_window(window: jax.Array, step: Transition) -> tuple[jax.Array, Transition]:
    """The window with `step` in it, and the n-step transition of the oldest step, which leaves."""
    if window.shape[0] == 0:
        return window, step
    rows = jnp.concatenate([window, pack(step)[None]])
    return rows[1:], joined([unpack(row, step.obs_tm1.size) for row in rows])


def joined(steps: Sequence[Transition]) -> Transition:
    """r_1 + γ r_2 + … and where it leads, cut where the episode ends."""
    total = steps[0]
    for later in steps[1:]:
        going_on = jnp.logical_not(total.over)
        choose = lambda new, old, going_on=going_on: jnp.where(going_on, new, old)
        total = total._replace(
            r_t=choose(total.r_t + total.discount_t * later.r_t, total.r_t),
            discount_t=choose(total.discount_t * later.discount_t, total.discount_t),
            obs_t=choose(later.obs_t, total.obs_t),
            context_t=choose(later.context_t, total.context_t),
            over=choose(later.over, total.over),
        )
    return total
