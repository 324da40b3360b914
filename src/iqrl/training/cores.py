"""Seeds on several cores or devices: they are divided into groups, which one compiled program advances.

Seeds share nothing but the step. The groups are of one size, so the program is compiled once; where the seeds do not
fill the last group, its last seed is computed several times and counted once. On cores, threads advance the groups;
the groups do not depend on the number of cores, so a seed has the same bits on all of them. On devices (GPUs, or what
XLA makes of a CPU) each has one group; there the last bits may differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from iqrl.errors import BadInput
from iqrl.training.devices import platform
from iqrl.training.states import Period, TrainState

VARIABLE = "IQRL_CORES"
"""how many to use; tells processes that are started from here, too"""
TOGETHER = 5
"""seeds at most in one program: more make a step no cheaper, and leave fewer groups to share"""


def choose_cores(count: int) -> None:
    if count < 1:
        raise BadInput(f"cores is {count}; it must be at least 1.")
    os.environ[VARIABLE] = str(count)


def available_cores() -> int:
    """Those that were chosen, or all that this process may use."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.isdigit() and int(chosen):
        return int(chosen)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # where processes are not bound to cores
        return os.cpu_count() or 1


def compute_in_threads(groups: int) -> None:
    """As many threads of XLA's own as groups are advanced at a time.

    XLA hands parts of a program to them. With more threads than groups, a group's small parts go from thread to thread,
    which takes longer than to compute them; with fewer, groups wait for each other. XLA reads this when it is used
    first in a process; later it does nothing.
    """
    os.environ.setdefault("NPROC", str(min(available_cores(), groups)))


class Groups(NamedTuple):
    """Which seeds are computed together."""

    size: int
    places: tuple[np.ndarray, ...]
    """[size] of each group: numbers of seeds; in the last group the last one may stand several times"""
    counts: tuple[int, ...]
    """of each group: how many of them count"""


def groups_of(seeds: int, one_by_one: bool) -> Groups:
    """Groups of one size, the same on every machine: a program of another number of seeds may round in another way.

    `one_by_one`: the program of many seeds is that of one, in a loop.

    >>> groups_of(7, one_by_one=False).places
    (array([0, 1, 2, 3]), array([4, 5, 6, 6]))
    >>> groups_of(5, one_by_one=False).counts
    (5,)
    """
    return equal_groups(seeds, count_groups(seeds, one_by_one))


def count_groups(seeds: int, one_by_one: bool) -> int:
    """How many `groups_of` makes."""
    return seeds if one_by_one else -(-seeds // TOGETHER)


def equal_groups(seeds: int, count: int) -> Groups:
    """So many groups, or fewer where they would be empty.

    >>> equal_groups(5, 3).places
    (array([0, 1]), array([2, 3]), array([4, 4]))
    """
    size = -(-seeds // count)
    begins = range(0, seeds, size)
    places = tuple(np.minimum(np.arange(begin, begin + size), seeds - 1) for begin in begins)
    return Groups(size=size, places=places, counts=tuple(min(size, seeds - begin) for begin in begins))


GroupProgram = Callable[[TrainState, Any], tuple[TrainState, Period]]


def count_threads(groups: Groups) -> int:
    """How many groups are advanced at a time."""
    return min(available_cores() if platform() == "cpu" else 1, len(groups.places))


class Parts(NamedTuple):
    """The state of a run in groups of seeds."""

    states: tuple[TrainState, ...]


class InGroups:
    """A program of one group, for all of them.

    Threads that run the same program take up to a tenth longer: they write what it counts in the same places. So each
    has a copy of it.
    """

    def __init__(self, groups: Groups, copies: Sequence[GroupProgram]):
        """`copies`: of the same program; where there are fewer than threads, threads share them."""
        self.groups = groups
        threads = count_threads(groups)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="seeds")
        self._idle = SimpleQueue[GroupProgram]()
        for number in range(threads):
            self._idle.put(copies[number % len(copies)])

    def split(self, whole: TrainState) -> Parts:
        take = lambda leaf, places: jax.numpy.asarray(np.asarray(leaf)[places])
        step = lambda: jax.numpy.array(whole.step)  # each group's is given to its program
        of_group = lambda places: TrainState(step(), *jax.tree.map(lambda leaf: take(leaf, places), tuple(whole[1:])))
        return Parts(tuple(map(of_group, self.groups.places)))

    def join(self, parts: Parts) -> TrainState:
        return TrainState(parts.states[0].step, *self._joined([tuple(state[1:]) for state in parts.states]))

    def advance(self, parts: Parts, stop: Any) -> tuple[Parts, Period]:
        done = list(self._threads.map(lambda state: self._advance_group(state, stop), parts.states))
        states, periods = zip(*done, strict=True)
        return Parts(states), self._joined(periods)

    def _advance_group(self, state: TrainState, stop: Any) -> tuple[TrainState, Period]:
        program = self._idle.get()
        try:
            state, period = jax.block_until_ready(program(state, stop))
            return state, jax.device_get(period)  # here, while other groups are still computed
        finally:
            self._idle.put(program)

    def _joined(self, of_groups: Sequence[Any]) -> Any:
        """Arrays over all seeds, from those over the seeds of each group."""
        counts = self.groups.counts
        join = lambda *leaves: np.concatenate(
            [np.asarray(leaf)[:count] for leaf, count in zip(leaves, counts, strict=True)]
        )
        return jax.tree.map(join, *of_groups)


class OnDevices:
    """A program of one group, for all of them: each device has its own."""

    def __init__(self, groups: Groups, devices: Sequence[jax.Device]):
        self.groups = groups
        self._mesh = Mesh(np.array(devices[: len(groups.places)]), ("seeds",))
        seeds, everywhere = PartitionSpec("seeds"), PartitionSpec()
        of_field: dict[str, Any] = dict.fromkeys(TrainState._fields, seeds) | {"step": everywhere}
        self._state = TrainState(**of_field)
        self._given, self._made = (self._state, everywhere), (self._state, seeds)

    def program(self, advance: Callable[[TrainState, Any], tuple[TrainState, Period]]) -> Any:
        """Of all devices, given that of one; to be compiled."""
        everywhere = jax.shard_map(
            advance, mesh=self._mesh, in_specs=self._given, out_specs=self._made, check_vma=False
        )
        given, made = self._shardings(self._given), self._shardings(self._made)
        return jax.jit(everywhere, in_shardings=given, out_shardings=made, donate_argnums=0)

    def split(self, whole: TrainState) -> TrainState:
        return TrainState(*map(jax.device_put, self.padded(whole), self._shardings(self._state)))

    def padded(self, whole: TrainState) -> TrainState:
        places = np.concatenate(self.groups.places)
        return TrainState(whole.step, *jax.tree.map(lambda leaf: leaf[places], tuple(whole[1:])))

    def join(self, state: TrainState) -> TrainState:
        return TrainState(jax.numpy.asarray(state.step), *self.counted(tuple(state[1:])))

    def counted(self, of_seeds: Any) -> Any:
        """Only the last group may have seeds that do not count."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: sum(self.groups.counts)], of_seeds)

    def _shardings(self, specs: Any) -> Any:
        of_spec = lambda spec: NamedSharding(self._mesh, spec)
        return jax.tree.map(of_spec, specs, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec))
