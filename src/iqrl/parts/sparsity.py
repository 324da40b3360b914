"""Sparse representations by a distributional regulariser (SRNN: Liu et al. 2019)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iqrl.parts.regularisers import Moment, Regulariser
from iqrl.parts.schedules import constant


def set_kl(mean: jax.Array, beta: float) -> jax.Array:
    """KL from the exponential distribution with mean β to the one with this mean; 0 for every mean up to β."""
    above = jnp.maximum(mean, beta)  # where it is β the value and the gradient are 0
    return jnp.log(above) + beta / above - jnp.log(beta) - 1.0


def surrogate(mean: jax.Array, beta: float) -> jax.Array:
    """What the paper's released code computes instead: about 1 - β / mean above β."""
    above = jnp.maximum(mean, beta)
    term = above * (1.0 / (above + 1e-4) - beta / (jnp.square(above) + 1e-4))
    return jnp.where(mean > beta, term, 0.0)


def sparsity(weight: float, beta: float, form: str) -> Regulariser:
    """`units`: Σ_j SKL(mean of unit j over the batch). `samples`: the surrogate on each sample's mean over units."""

    def over_units(moment: Moment) -> jax.Array:
        return jnp.sum(set_kl(jnp.mean(moment.samples.online_tm1.features, axis=1), beta))

    def over_samples(moment: Moment) -> jax.Array:
        return surrogate(jnp.mean(moment.samples.online_tm1.features, axis=0), beta)

    return Regulariser("sparsity", constant(weight), {"units": over_units, "samples": over_samples}[form])
