"""Linear or logarithmic: which axis a metric is readable on."""

from __future__ import annotations

import numpy as np
import polars as pl

LINEAR, LOG, SIGNED_LOG = "linear", "log", "signed log"
MANY_SIZES = 50
"""how many times the median the largest value is, where a linear axis would show it and nothing else"""


def axis_kind(metric: str, values: pl.Series) -> str:
    """The same for all charts of a metric in a study, so that they can be compared."""
    while values.dtype.is_nested():
        values = values.explode()
    known = values.cast(pl.Float64).to_numpy()
    known = known[np.isfinite(known)]
    sizes = np.abs(known[known != 0])
    if metric == "return" or not sizes.size or sizes.max() <= MANY_SIZES * np.median(sizes):
        return LINEAR
    return LOG if known.min() >= 0 else SIGNED_LOG
