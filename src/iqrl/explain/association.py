"""Whether returns fall after interference: one rank correlation over all seeds of a run.

Each period's interference is paired with the change of the return to the next period. Ranks are taken
within each seed, so that seeds which differ in level do not make a correlation; and the p-value comes
from shifting one of the two series in a circle within each seed, which keeps both as smooth as they are.

A high return has further to fall than a low one. If interference too is higher where the return is high,
the two go together without one preceding the other; so the correlation is given a second time, with the
rank of the period's own return taken out of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from iqrl.explain.seeds import SeedMetrics

MEASURES = ("negative_interference", "update_interference")
PERMUTATIONS = 2000
PAIRS_NEEDED = 20


class Correlation(NamedTuple):
    rho: float
    p: float
    """two-sided"""


class Association(NamedTuple):
    measure: str
    pairs: int
    plain: Correlation
    given_return: Correlation
    """with the return of the same period taken out"""


def associate(seeds: list[SeedMetrics]) -> Association | None:
    """None if interference was not measured, or too few periods follow one another."""
    measure = next((name for name in MEASURES if name in seeds[0].columns), None)
    if measure is None:
        return None
    ranked = [ranks for seed in seeds if (ranks := _ranks(seed, measure)) is not None]
    pairs = sum(len(x) for x, _, _ in ranked)
    if pairs < PAIRS_NEEDED:
        return None
    plain = correlate([(x, y) for x, y, _ in ranked])
    given_return = correlate([(_without(x, level), _without(y, level)) for x, y, level in ranked])
    return Association(measure, pairs, plain, given_return) if plain and given_return else None


def _ranks(seed: SeedMetrics, measure: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Ranks of interference, of the change to the next period and of the return, each with mean 0."""
    interference, level, change = seed.columns[measure][:-1], seed.returns[:-1], np.diff(seed.returns)
    usable = seed.settled[:-1] & np.isfinite(interference) & np.isfinite(change)
    if usable.sum() < 3:
        return None
    centred = lambda values: rankdata(values[usable]) - (usable.sum() + 1) / 2
    return centred(interference), centred(change), centred(level)


def _without(values: np.ndarray, other: np.ndarray) -> np.ndarray:
    size = float(other @ other)
    return values - other * (float(values @ other) / size) if size else values


def correlate(pairs: list[tuple[np.ndarray, np.ndarray]]) -> Correlation | None:
    """Of two series per seed, each with mean 0; None if one of them never changes."""
    norm = np.sqrt(sum(float(x @ x) for x, _ in pairs) * sum(float(y @ y) for _, y in pairs))
    if norm < 1e-9:
        return None  # something never changed
    # Every circular shift of every seed once; a permutation is then one shift chosen per seed.
    shifted = [np.array([np.roll(x, by) @ y for by in range(len(x))]) for x, y in pairs]
    generator = np.random.default_rng(0)
    chance = sum(sums[generator.integers(len(sums), size=PERMUTATIONS)] for sums in shifted) / norm
    rho = sum(float(sums[0]) for sums in shifted) / norm
    as_large = int((np.abs(chance) >= abs(rho) - 1e-12).sum())
    return Correlation(rho, (1 + as_large) / (1 + PERMUTATIONS))
