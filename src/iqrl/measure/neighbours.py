"""Which states lie nearest to a state in the space of their codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from iqrl.errors import BadInput


class Neighbours(NamedTuple):
    """Of each query, nearest first."""

    queries: np.ndarray
    """[q]: which states they are"""
    indices: np.ndarray
    """[q, count]"""
    distances: np.ndarray
    """[q, count]: Euclidean"""


def nearest_neighbours(codes: np.ndarray, queries: Sequence[int], count: int, apart: int = 0) -> Neighbours:
    """The `count` states nearest to each query among codes [n, d], where queries are positions in `codes`.

    A state is no neighbour of itself, nor are those at most `apart` positions before or after it: in a film of a game
    the next picture is always near.
    """
    asked = np.asarray(queries, int)
    if asked.size == 0 or asked.min() < 0 or asked.max() >= len(codes):
        raise BadInput(f"queries must be positions in the codes, 0 to {len(codes) - 1}.")
    distances = cdist(codes[asked], codes)
    too_close = np.abs(np.arange(len(codes)) - asked[:, None]) <= apart
    left = int((~too_close).sum(axis=1).min())
    if not 1 <= count <= left:
        raise BadInput(
            f"count is {count}; there are {left} states to choose neighbours from, and one at least is needed."
        )
    distances[too_close] = np.inf
    indices = np.argsort(distances, axis=1, kind="stable")[:, :count]
    return Neighbours(asked, indices, np.take_along_axis(distances, indices, axis=1))
