"""Many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from iqrl.errors import BadInput


def holm(p_values: ArrayLike) -> np.ndarray:
    """[n]: p-values adjusted so that a false alarm anywhere among them is as rare as the level says (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise BadInput(f"p-values must be a list of numbers between 0 and 1, got {p_values}.")
    order = np.argsort(p, kind="stable")
    raised = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted = np.empty_like(p)
    adjusted[order] = raised
    return adjusted
