"""The metrics table, one seed at a time and as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from iqrl.config import Run


class SeedMetrics(NamedTuple):
    """What was measured of one seed, a row per period."""

    seed: int
    steps: np.ndarray
    """[P]: the step at which each period ended"""
    returns: np.ndarray
    """[P]: NaN where no episode ended"""
    settled: np.ndarray
    """[P]: whether the whole period came after learning had started and ε had finished decaying"""
    columns: dict[str, np.ndarray]
    """every column as [P], [P, k] or [P, C, C]"""

    @property
    def heads(self) -> int:
        """How many contexts the agent itself has."""
        return self.columns["occupancy"].shape[1] if "occupancy" in self.columns else 1


def by_seed(run: Run, metrics: pl.DataFrame) -> list[SeedMetrics]:
    seeds = []
    for rows in metrics.sort("seed", "step").partition_by("seed", maintain_order=True):
        columns = {name: _array(rows[name]) for name in rows.columns}
        steps = rows["step"].to_numpy()
        began = np.concatenate([[0], steps[:-1]])
        settled = began >= max(run.learning_starts, run.epsilon_decay)
        seeds.append(SeedMetrics(int(rows["seed"][0]), steps, columns["return"], settled, columns))
    return seeds


def _array(series: pl.Series) -> np.ndarray:
    """Numbers or lists of numbers as floats; what is missing is NaN."""
    rows = series.to_list()
    known = next((np.asarray(row, np.float64) for row in rows if row is not None), np.float64(np.nan))
    missing = np.full(known.shape, np.nan)
    return np.stack([missing if row is None else np.asarray(row, np.float64) for row in rows])


def last_share(values: np.ndarray, share: float) -> np.ndarray:
    """The last part of a row of periods, at least one of them."""
    return values[-max(int(len(values) * share), 1) :]
