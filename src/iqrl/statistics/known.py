"""Numbers of which some are not known (NaN)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput


def mean_known(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The mean of what is not NaN; NaN where nothing is known, without a warning."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(known.any(axis=axis), total / np.maximum(known.sum(axis=axis), 1), np.nan)


def known_scores(scores: ArrayLike, whose: str = "scores") -> np.ndarray:
    """[n]: the scores that are known, at least one."""
    array = np.asarray(scores, float)
    if array.ndim != 1:
        raise BadInput(f"{whose} must be one number per seed, got an array of shape {array.shape}.")
    known = array[np.isfinite(array)]
    if not known.size:
        raise BadInput(f"{whose} must hold at least one known number, got {array.size} of which none is known.")
    return known


def known_tasks(tasks: Sequence[ArrayLike], whose: str = "scores") -> list[np.ndarray]:
    """The known scores of each task; tasks may differ in their number of runs."""
    if not len(tasks):
        raise BadInput(f"{whose} must hold at least one task, got none.")
    return [known_scores(scores, f"{whose} of task {i}") for i, scores in enumerate(tasks)]
