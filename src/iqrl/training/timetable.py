"""When a step learns, syncs and is measured. Drivers, the meter and the FLOP counter all read it here.

Steps count from 0. The steps before `learning_starts` only collect. Then the target network is synced, every
`update_every`-th step learns, and the target network is synced after every multiple of `target_period`. Numbers may be
Python's or traced. The loops of the compiled driver have the same times built into their bounds.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from iqrl.settings import Run

BLOCK = 500
"""steps whose random numbers are drawn at once: large enough to amortise, small enough for the cache"""

Number = Any
"""an int, or a traced one"""


class Timetable(NamedTuple):
    learning_starts: int
    update_every: int
    gradient_steps: int
    target_period: int
    syncs: bool
    """whether the agent has anything to sync"""
    period: int
    """steps between two points of the curve"""
    measure_every: int
    """every m-th time of learning is measured; 0: none"""

    @property
    def block(self) -> int:
        """Steps per draw of random numbers: whole updates, and no more than pass between two syncs."""
        longest = min(BLOCK, self.target_period) if self.syncs else BLOCK
        return -(-longest // self.update_every) * self.update_every

    def collects(self, step: Number) -> Number:
        """Whether this step comes before learning."""
        return step < self.learning_starts

    def learns(self, step: Number) -> Number:
        """Whether an update follows this step; for steps after the start of learning."""
        return (step - self.learning_starts + 1) % self.update_every == 0

    def starts_learning(self, done: Number) -> Number:
        """Whether learning starts after so many steps."""
        return done == self.learning_starts

    def syncs_after(self, done: Number) -> Number:
        """Whether the target is synced after so many steps; for steps after the start of learning."""
        return done % self.target_period == 0

    def measures(self, step: Number) -> Number:
        """Whether the update after this step is measured."""
        return (step + 1) // self.update_every % self.measure_every == 0

    def parts_of(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Steps from `begin` to before `end`, cut where learning starts and where the target is synced."""
        period, learning = self.target_period if self.syncs else end, max(begin, self.learning_starts)
        syncs = range((learning // period + 1) * period, end, period)
        cuts = sorted({step for step in (self.learning_starts, *syncs) if begin < step < end})
        return list(itertools.pairwise((begin, *cuts, end)))

    def period_end(self, done: int, steps: int) -> int:
        """Where the period ends that comes after so many steps, in a run of `steps`."""
        return min((done // self.period + 1) * self.period, steps)

    def times_of_learning(self, begin: int, end: int) -> int:
        """How often steps from `begin` to before `end` learn."""
        start = self.learning_starts
        return (max(end, start) - max(begin, start)) // self.update_every

    def count_updates(self, steps: int) -> int:
        """Gradient steps of one seed in a run of so many steps."""
        return self.times_of_learning(0, steps) * self.gradient_steps

    def count_readings(self, steps: int) -> int:
        """Times of learning that are measured: every m-th, counted from step 0."""
        if not self.measure_every:
            return 0
        before = self.learning_starts // self.update_every
        learned = self.times_of_learning(0, steps)
        return (before + learned) // self.measure_every - before // self.measure_every

    def count_computed_syncs(self, steps: int) -> int:
        """How often a compiled run of so many steps computes a sync.

        When learning starts, and then at the end of every segment of the loop. There is no condition around a sync: a
        segment that does not end at a multiple of `target_period` computes it too, and drops it.
        """
        begins = int(self.learning_starts > 0)
        if not self.syncs or self.learning_starts == steps:
            return begins
        ends = (self.block, self.target_period, self.period)
        last = int(all(steps % size for size in ends))
        return begins + last + count_multiples(ends, self.learning_starts, steps)


def timetable_of(run: Run, syncs: bool) -> Timetable:
    return Timetable(
        learning_starts=run.learning_starts,
        update_every=run.update_every,
        gradient_steps=run.gradient_steps,
        target_period=run.steps_between_syncs,
        syncs=syncs,
        period=run.period,
        measure_every=run.measure_every,
    )


def count_multiples(sizes: tuple[int, ...], low: int, high: int) -> int:
    """Numbers in (low, high] that are multiples of at least one of the sizes; by inclusion and exclusion.

    >>> count_multiples((2, 3), 0, 6)
    4
    """
    total = 0
    for count in range(1, len(sizes) + 1):
        for chosen in itertools.combinations(sizes, count):
            common = math.lcm(*chosen)
            total -= (-1) ** count * (high // common - low // common)
    return total
