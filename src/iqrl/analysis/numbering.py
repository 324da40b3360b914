"""Contexts numbered alike in all seeds of a run, so that a mean over seeds means something."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from iqrl.analysis.experience import Experience
from iqrl.parts.contexts import nearest
from iqrl.parts.kmeans import kmeans
from iqrl.parts.scaling import fixed
from iqrl.tasks.base import Task


def clustered(states: np.ndarray, task: Task, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """K-means on the states [S, n, d] of all seeds together: labels [S, n] and the numbers 0 … k - 1 of each seed."""
    weights = fixed(task.low, task.high).weights(())
    everything = jnp.asarray(states).reshape(-1, states.shape[-1])
    centroids, _ = jax.jit(kmeans, static_argnums=2)(jax.random.key(seed), everything, k, weights)
    labels = nearest(jnp.asarray(states), centroids, weights)
    return np.asarray(labels), np.tile(np.arange(k), (len(states), 1))


def alike(experience: Experience, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The agents' own contexts, renumbered: labels [S, n], and the number [S, k] each has in its agent.

    Each agent divides states by itself, so that context 0 of one seed may be context 2 of another. Those that are
    most alike on the whole get the same number as in the first seed.
    """
    labels = experience.contexts
    middles = np.stack([_middles(*each, k) for each in zip(_described(experience), labels, strict=True)])
    distances = np.square(middles[:1, :, None] - middles[:, None]).sum(axis=-1)
    # An empty context has no middle: it takes the number that is left over.
    pairs = [linear_sum_assignment(np.nan_to_num(distance, nan=1e6)) for distance in distances]
    numbers = np.stack([own for _, own in pairs])
    return np.take_along_axis(np.argsort(numbers, axis=1), labels, axis=1), numbers


def _described(experience: Experience) -> np.ndarray:
    """[S, n, …]: whatever a context may depend on, each variable in units of its deviation."""
    obs, first, score = map(np.asarray, experience.situations[:3])
    described = np.concatenate([obs, first, score[..., None]], axis=-1)
    return described / np.maximum(described.std(axis=(0, 1)), 1e-6)


def _middles(described: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """[k, …]: the mean of each context."""
    belongs = labels == np.arange(k)[:, None]
    counts = belongs.sum(axis=1, keepdims=True)
    return np.where(counts > 0, belongs @ described / np.maximum(counts, 1), np.nan)
