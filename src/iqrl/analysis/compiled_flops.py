"""Floating-point operations in the compiled program, as XLA counts them.

XLA counts the body of a loop once, however often it runs. So the pieces that the loops repeat are compiled by
themselves, for one seed, and each count is multiplied by how often a run executes the piece.

XLA's count has every elementwise operation in it, on integers too, but neither tanh, exp and the like, which it keeps
apart, nor what is done once: the warm start of the contexts. The drawing of random numbers is left out.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from iqrl.analysis.flops import updates_of
from iqrl.measure.errors import td_errors
from iqrl.measure.meter import RunMeter
from iqrl.training.compilation import COMPILER_OPTIONS, enable_cache
from iqrl.training.compiled import Driver
from iqrl.training.states import Carry, Noise


class Piece(NamedTuple):
    """A part of the program, for one seed."""

    flops: float
    """of one execution"""
    times: int
    """executions in the whole run"""

    @property
    def total(self) -> float:
        return self.flops * self.times


def pieces_of(driver: Driver) -> dict[str, Piece]:
    """What one seed's run executes, piece by piece."""
    counts = executions(driver)
    return {name: Piece(flops_of(*program), counts[name]) for name, program in programs(driver).items()}


def programs(driver: Driver) -> dict[str, tuple[Any, ...]]:
    """Each piece as a function and the shapes of its arguments."""
    carry, t = _carry_of_one_seed(driver), jax.ShapeDtypeStruct((), "int32")
    noise = Noise(*map(_uniforms, driver._draws))
    # Several gradient steps are a loop of their own.
    once = dataclasses.replace(driver.agent, gradient_steps=1)
    pieces: dict[str, tuple[Any, ...]] = {
        "collecting": (driver._collect_step, carry, t, noise),
        "observing": (driver._observe_step, carry, t, noise),
        "learning": (once.learn, carry.agent, t, _uniforms(once.learn_draws)),
        "syncing": (driver.agent.sync, carry.agent),
    }
    if isinstance(driver.meter, RunMeter):
        # All transitions at once: chunk by chunk would be a loop.
        meter = dataclasses.replace(driver.meter, errors=td_errors(driver.agent))
        pieces["measuring"] = (meter.read_now, carry.meter, carry.agent, carry.agent, t)
    return pieces


def flops_of(function: Callable, *shapes: Any) -> float:
    """XLA's count for the function as it is compiled for training."""
    enable_cache()
    counts = jax.jit(function).lower(*shapes).compile(COMPILER_OPTIONS).cost_analysis()
    return float((counts or {}).get("flops", 0.0))


def executions(driver: Driver) -> dict[str, int]:
    """How often one seed's run executes each piece."""
    run = driver.run
    measured = {"measuring": updates_of(run) // run.gradient_steps // run.measure_every} if run.measure_every else {}
    return measured | {
        "collecting": run.learning_starts,
        "observing": run.steps - run.learning_starts,
        "learning": updates_of(run),
        "syncing": _syncs(driver),
    }


def _syncs(driver: Driver) -> int:
    """Times that a sync is computed: when learning starts, and then at the end of every segment of the loop.

    Nothing in the loop is conditional: a segment that ends elsewhere than at a multiple of C computes it as well, and
    drops it.
    """
    run = driver.run
    begins = int(run.learning_starts > 0)
    if not driver.agent.lags or run.learning_starts == run.steps:
        return begins
    ends = (driver.block, run.target_period, run.period)
    last = int(all(run.steps % size for size in ends))
    return begins + last + multiples(ends, run.learning_starts, run.steps)


def multiples(sizes: tuple[int, ...], low: int, high: int) -> int:
    """Numbers in (low, high] that are multiples of at least one of the sizes; by inclusion and exclusion."""
    total = 0
    for count in range(1, len(sizes) + 1):
        for chosen in itertools.combinations(sizes, count):
            common = math.lcm(*chosen)
            total -= (-1) ** count * (high // common - low // common)
    return total


def _carry_of_one_seed(driver: Driver) -> Carry:
    state, statistics = jax.eval_shape(driver.init), jax.eval_shape(driver._zero_statistics)
    of_seed = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)
    return jax.tree.map(of_seed, Carry(state.env, state.agent, state.meter, statistics))


def _uniforms(count: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((count,), "float32")
