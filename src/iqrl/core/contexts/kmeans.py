"""Batch K-means: compiled, for the warm start of the centroids (paper, appendix A), and on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def squared_distances(points: jax.Array, centroids: jax.Array, weights: jax.Array) -> jax.Array:
    """[..., k]: weighted squared distance of points [..., d] to each centroid [k, d]."""
    return jnp.sum(weights * jnp.square(points[..., None, :] - centroids), axis=-1)


def kmeans(
    key: jax.Array, points: jax.Array, k: int, weights: jax.Array, iterations: int = 50
) -> tuple[jax.Array, jax.Array]:
    """Lloyd's iterations from a k-means++ seeding: centroids [k, d] and the number of points in each [k]."""
    centroids = _seeding(jax.random.uniform(key, (k,)), points, k, weights)

    def members(centroids: jax.Array) -> jax.Array:
        nearest = jnp.argmin(squared_distances(points, centroids, weights), axis=-1)
        return jax.nn.one_hot(nearest, k)

    def iterate(_: int, centroids: jax.Array) -> jax.Array:
        belongs = members(centroids)
        counts = jnp.sum(belongs, axis=0)[:, None]
        means = belongs.T @ points / jnp.maximum(counts, 1)
        return jnp.where(counts > 0, means, centroids)  # an empty cluster stays where it was

    centroids = jax.lax.fori_loop(0, iterations, iterate, centroids)
    return centroids, jnp.sum(members(centroids), axis=0)


def kmeans_on_host(points: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    """[k, d]: centroids of points [n, d] by SciPy, from a k-means++ seeding.

    For the contexts by which agents without contexts are measured. They are found once, before anything is compiled;
    other random numbers would divide the states differently and change what published runs measured.
    """
    from scipy.cluster.vq import kmeans2  # takes most of a second to load, and is seldom needed

    return kmeans2(points, k, minit="++", rng=np.random.default_rng(seed))[0]


def _seeding(uniforms: jax.Array, points: jax.Array, k: int, weights: jax.Array) -> jax.Array:
    """k-means++: each next seed is a point drawn in proportion to its squared distance to the nearest seed."""
    share = jnp.ones(points.shape[0])
    seeds = points[:0]
    for uniform in uniforms:
        total = jnp.cumsum(share)
        chosen = jnp.searchsorted(total, uniform * total[-1], side="right")
        seeds = jnp.concatenate([seeds, points[jnp.minimum(chosen, points.shape[0] - 1)][None]])
        share = jnp.min(squared_distances(points, seeds, weights), axis=-1)
    return seeds
