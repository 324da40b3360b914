"""The nearest states to a state in the space of their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from iqrl.errors import BadInput


class Neighbours(NamedTuple):
    """The neighbours of each query, nearest first."""

    queries: np.ndarray
    """[q]: positions of the states whose neighbours these are"""
    indices: np.ndarray
    """[q, count]: positions of the neighbours"""
    distances: np.ndarray
    """[q, count]: Euclidean"""


def nearest_neighbours(codes: np.ndarray, queries: Sequence[int], count: int, apart: int = 0) -> Neighbours:
    """The `count` states nearest to each query among the embeddings `codes` [n, d]; queries are positions in `codes`.

    A state is no neighbour of itself, nor are those at most `apart` positions before or after it: consecutive frames
    of a game are always near.
    """
    places = np.asarray(queries, int)
    if places.size == 0 or places.min() < 0 or places.max() >= len(codes):
        raise BadInput(f"queries must be positions in the codes, 0 to {len(codes) - 1}.")
    distances = cdist(codes[places], codes)
    too_close = np.abs(np.arange(len(codes)) - places[:, None]) <= apart
    left = int((~too_close).sum(axis=1).min())
    if not 1 <= count <= left:
        raise BadInput(
            f"count is {count}; there are {left} states to choose neighbours from, and one at least is needed."
        )
    distances[too_close] = np.inf
    indices = np.argsort(distances, axis=1, kind="stable")[:, :count]
    nearest = np.take_along_axis(distances, indices, axis=1)
    return Neighbours(queries=places, indices=indices, distances=nearest)
