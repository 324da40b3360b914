"""A metric of one run as an array."""

from __future__ import annotations

import numpy as np
import polars as pl


def values_of(curves: pl.DataFrame, metric: str, head: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Steps [P] and values [S, P] of the rows of a run; NaN where a seed has none. `head`: which of several values."""
    value = pl.col(metric)
    if head is not None:
        value = value.cast(pl.List(pl.Float64)).list.get(head, null_on_oob=True)
    rows = curves.sort("seed", "step").select("seed", "step", value=value.cast(pl.Float64))
    table = rows.pivot("seed", index="step", values="value").sort("step")
    return table["step"].to_numpy(), table.drop("step").fill_null(float("nan")).to_numpy().T
