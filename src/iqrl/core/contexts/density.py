"""Density-based clustering: how many contexts there are and where they begin (paper, section on the parameter k).

A context is a peak of the density of states, apart from the others by a valley. States are taken from
the densest to the sparsest; each joins its densest neighbour, one that has no denser neighbour starts a
peak, and where two peaks meet, the lower joins the higher unless it is large and the valley deep
(ToMATo: Chazal, Guibas, Oudot, Skraba, "Persistence-based clustering in Riemannian manifolds", 2013).
Sparse states between the peaks belong to one of them and never start a context.
"""

from __future__ import annotations

import numpy as np

SMALLEST = 0.05
"""share of the states that a context holds at least"""
NEIGHBOURHOOD = SMALLEST / 10
"""share of the states over which the density is averaged: far less than a context, or valleys are filled"""
FEWEST = 10
"""neighbours below which an estimate of the density is worth nothing"""
DEPTH = 4.0
"""standard deviations of the estimated difference by which a peak rises above the valley: chance makes no context"""


def density_centroids(states: np.ndarray, weights: np.ndarray, largest: int = 8) -> np.ndarray:
    """[k, d]: the centroids of the contexts among states [n, d], largest context first; k is at most `largest`.

    `weights` are those of the squared distance (scaling.py); the centroids are in the task's own units.
    """
    count = len(states)
    near = min(max(round(NEIGHBOURHOOD * count), FEWEST), count - 1)
    if near < 1:
        return states.mean(axis=0, keepdims=True)
    neighbours, log_density = _density(_apart(states * np.sqrt(np.asarray(weights, np.float64))), near)
    # The logarithm of a density estimated from m neighbours has a standard deviation of about 1 / sqrt(m).
    peak_of = _peaks(neighbours, log_density, SMALLEST * count, DEPTH * np.sqrt(2 / near))
    peaks, sizes = np.unique(peak_of, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:largest]
    contexts = [peak_of == peaks[i] for i in order if sizes[i] >= SMALLEST * count]
    # Scattered clumps without a single peak of that size: all states are one context.
    return np.stack([states[members].mean(axis=0) for members in contexts or [peak_of >= 0]])


def _apart(points: np.ndarray) -> np.ndarray:
    """Points that coincide, as in a task of few states, moved apart by next to nothing: their density is finite."""
    scale = 1e-6 * (points.std(axis=0).max() or 1.0)
    return points + scale * np.random.default_rng(0).normal(size=points.shape)


def _density(points: np.ndarray, near: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest neighbours of each point [n, near] and, up to a constant, the logarithm of the density there [n]."""
    from scipy.spatial import KDTree

    distances, neighbours = KDTree(points).query(points, near + 1)  # the first is the point itself
    return neighbours[:, 1:], -points.shape[1] * np.log(distances[:, -1])


def _peaks(neighbours: np.ndarray, log_density: np.ndarray, smallest: float, depth: float) -> np.ndarray:
    """[n]: the index of the peak that each state belongs to."""
    order = np.argsort(-log_density, kind="stable")
    rank = np.argsort(order)
    joined = np.arange(len(order))  # the state that each one has joined; a peak has joined itself
    size = np.ones(len(order))

    def peak(i: int) -> int:
        while joined[i] != i:
            joined[i] = joined[joined[i]]
            i = joined[i]
        return i

    for i in order:
        denser = neighbours[i][rank[neighbours[i]] < rank[i]]
        if len(denser) == 0:
            continue
        own = joined[i] = peak(denser[np.argmin(rank[denser])])
        size[own] += 1
        for other in sorted({peak(j) for j in denser} - {own}):
            higher, lower = (own, other) if rank[own] < rank[other] else (other, own)
            if size[lower] < smallest or log_density[lower] - log_density[i] < depth:
                joined[lower] = own = higher
                size[higher] += size[lower]
    return np.array([peak(i) for i in range(len(order))])
