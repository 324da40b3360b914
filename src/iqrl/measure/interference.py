"""Interference: how much an update changes the squared TD error of other transitions.

AEI (the paper, after Liu et al. 2020)     E_d[δ(θ_t)² - δ(θ_{t-1})²], d the recent transitions, both δ by one network
negative interference (the paper)          its mean over the updates that raised the error
update interference (Liu et al. 2023)      max(E_d[…], 0), d a reservoir, both δ with the same target held fast
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Reading(NamedTuple):
    """What one update did."""

    aei: jax.Array
    squared_error: jax.Array
    """mean δ² before it"""
    by_context: jax.Array
    """[C]: the change in each context"""
    present: jax.Array
    """[C]: whether there were transitions of it"""
    update_interference: jax.Array


class Totals(NamedTuple):
    """Readings of a period, added up."""

    readings: jax.Array
    aei: jax.Array
    squared_error: jax.Array
    raised: jax.Array
    """the sum of AEI over the updates that raised the error"""
    raises: jax.Array
    """how many those were"""
    largest: jax.Array
    by_context: jax.Array
    present: jax.Array
    update_interference: jax.Array


def no_readings(contexts: int) -> Totals:
    zero = jnp.float32(0)
    nothing = Totals(*[zero] * len(Totals._fields))
    return nothing._replace(largest=jnp.float32(-jnp.inf), by_context=jnp.zeros(contexts), present=jnp.zeros(contexts))


def with_reading(totals: Totals, reading: Reading) -> Totals:
    raised = reading.aei > 0
    return Totals(
        readings=totals.readings + 1,
        aei=totals.aei + reading.aei,
        squared_error=totals.squared_error + reading.squared_error,
        raised=totals.raised + jnp.where(raised, reading.aei, 0.0),
        raises=totals.raises + raised,
        largest=jnp.maximum(totals.largest, reading.aei),
        by_context=totals.by_context + reading.by_context,
        present=totals.present + reading.present,
        update_interference=totals.update_interference + reading.update_interference,
    )


def means(totals: Totals) -> dict[str, jax.Array]:
    """The columns of a period; NaN where there was nothing to take the mean of."""
    per_reading = lambda total: _share(total, totals.readings)
    return {
        "aei": per_reading(totals.aei),
        "negative_interference": _share(totals.raised, totals.raises),
        "raised_share": per_reading(totals.raises),
        "aei_largest": jnp.where(totals.readings > 0, totals.largest, jnp.nan),
        "squared_td_error": per_reading(totals.squared_error),
        "aei_contexts": _share(totals.by_context, totals.present),
        "update_interference": per_reading(totals.update_interference),
    }


def _share(total: jax.Array, count: jax.Array) -> jax.Array:
    return jnp.where(count > 0, total / jnp.maximum(count, 1), jnp.nan)
