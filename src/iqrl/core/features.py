"""Local features: a last hidden layer of which few outputs differ from 0 for any one state.

What is learned in one part of the state space then leaves the weights of other parts alone. Each unit is a projection
of its inputs. The first three divide a unit's range into `bins` overlapping parts, with an output for each:

    hats      piecewise linear, at most two of a unit's are above 0; they sum to one (B-splines of the first degree)
    rbf       Gaussians around the bins, divided by their sum
    fta       fuzzy tiles (Pan et al. 2021)
    elephant  one output per unit, near 0 except where the projection is near 0 (Lan et al. 2025)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.layers import layer_norm


class Features(NamedTuple):
    init: Callable[[jax.Array, int, int], Any]
    """(key, inputs, units) -> the weights of the projections"""
    project: Callable[[Any, jax.Array], jax.Array]
    """(weights, sums) -> [units]: where each unit's projection lies; `sums` are those of the layer"""
    expand: Callable[[jax.Array], jax.Array]
    """[units] -> [units * per_unit]"""
    per_unit: int
    sum_to_one: bool = False
    """whether a unit's outputs do; a bias in the heads would then say nothing new"""
    weigh: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """(weights [..., units * per_unit], [units]) -> their product with what `expand` gives, where most of that is 0"""


def make_features(name: str, bins: int, width: float | None = None, one_sample: bool = False) -> Features | None:
    """None for dense layers; `width` is that of the kind if not given.

    `one_sample`: a loss is that of one sample. Reading the active hats alone is faster then, and so it is without a
    gradient. The gradient of a batch is faster as a product with all of them.
    """

    def in_bins(expand: Callable[[jax.Array], jax.Array], sum_to_one: bool = False) -> Features:
        return Features(random_projection, positions(bins), expand, bins, sum_to_one)

    return {
        "dense": lambda: None,
        "hats": lambda: in_bins(hats(bins), sum_to_one=True)._replace(
            weigh=weigh_hats(bins) if one_sample and bins > 1 else None
        ),
        "rbf": lambda: in_bins(gaussians(bins, width or 0.5), sum_to_one=True),
        "fta": lambda: in_bins(fuzzy_tiles(bins, width or 1.0)),
        "elephant": lambda: Features(spread_projection, normalised_sums, elephant(width or 0.2), 1),
    }[name]()


# Projections


def random_projection(key: jax.Array, inputs: int, units: int) -> Any:
    """w ~ N(0, 1 / inputs), b ~ U(-0.5, 0.5)."""
    weight_key, bias_key = jax.random.split(key)
    weights = jax.random.normal(weight_key, (inputs, units)) / jnp.sqrt(inputs)
    return {"w": weights, "b": jax.random.uniform(bias_key, (units,), minval=-0.5, maxval=0.5)}


def positions(bins: int) -> Callable[[Any, jax.Array], jax.Array]:
    """The place of tanh(½ w·x + b) among the bins, from 0 to bins - 1."""
    return lambda layer, sums: 0.5 * (bins - 1) * (jnp.tanh(0.5 * sums + layer["b"]) + 1.0)


def spread_projection(key: jax.Array, inputs: int, units: int) -> Any:
    """w ~ U(-1/√d, 1/√d), and biases spread evenly over ±0.4 √3, as in the Elephant paper."""
    bound = 1 / jnp.sqrt(inputs)
    weights = jax.random.uniform(key, (inputs, units), minval=-bound, maxval=bound)
    return {"w": weights, "b": 0.4 * jnp.linspace(-(3.0**0.5), 3.0**0.5, units)}


def normalised_sums(layer: Any, sums: jax.Array) -> jax.Array:
    return layer_norm(sums + layer["b"])


# What each unit's projection becomes


def neighbours(places: jax.Array, bins: int) -> tuple[jax.Array, jax.Array]:
    """The lower one of the two bins that each place lies between, and how far it is from it, in [0, 1]."""
    lower = jnp.clip(jnp.floor(places), 0, bins - 2)
    return lower.astype(jnp.int32), places - jax.lax.stop_gradient(lower)


def hats(bins: int) -> Callable[[jax.Array], jax.Array]:
    """g_b = max(0, 1 - |p - b|) for the bins b = 0 … bins - 1."""

    def expand(places: jax.Array) -> jax.Array:
        if bins == 1:
            return jnp.ones_like(places)
        lower, above = neighbours(places, bins)
        distance = jnp.arange(bins) - lower[:, None]
        shares = jnp.where(distance == 0, 1.0 - above[:, None], jnp.where(distance == 1, above[:, None], 0.0))
        return shares.reshape(-1)

    return expand


def weigh_hats(bins: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Σ over units and bins of w_ub g_ub, of which two bins of each unit are read."""

    def weigh(weights: jax.Array, places: jax.Array) -> jax.Array:
        lower, above = neighbours(places, bins)
        active = jnp.arange(places.shape[0]) * bins + lower
        at_lower, at_upper = (
            weights.at[..., bin].get(mode="promise_in_bounds", unique_indices=True) for bin in (active, active + 1)
        )
        return jnp.sum((1.0 - above) * at_lower + above * at_upper, axis=-1)

    return weigh


def gaussians(bins: int, width: float) -> Callable[[jax.Array], jax.Array]:
    """Gaussians around the bins, divided by their sum; `width` is their deviation in bins."""

    def expand(places: jax.Array) -> jax.Array:
        distance = (places[:, None] - jnp.arange(bins)) / width
        return jax.nn.softmax(-0.5 * jnp.square(distance), axis=1).reshape(-1)

    return expand


def fuzzy_tiles(bins: int, width: float) -> Callable[[jax.Array], jax.Array]:
    """1 inside the tile [b - ½, b + ½], and a slope of 1 for `width` bins beside it."""

    def expand(places: jax.Array) -> jax.Array:
        outside = jnp.maximum(jnp.abs(places[:, None] - jnp.arange(bins)) - 0.5, 0.0)
        return (1.0 - jnp.where(outside <= width, outside, 1.0)).reshape(-1)

    return expand


def elephant(width: float) -> Callable[[jax.Array], jax.Array]:
    """1 / (1 + |x / width|⁴)."""
    return lambda sums: 1.0 / (1.0 + jnp.square(jnp.square(sums / width)))
