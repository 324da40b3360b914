"""How long a run will take here, from the time of such runs on one core of a reference machine.

`speeds.json` has the microseconds per environment step of every task, method and buffer size of a finished study, and
the time that a small piece of arithmetic took on the same core (`benchmarks/study_speeds.py` writes it). The arithmetic
is timed again here. The ratio of the two times is a guess, and a study corrects it as its runs end. The speeds of
images are of short runs, not of a study; those with a million frames are a third above those with 10,000, as for DQN.
"""

from __future__ import annotations

import functools
import heapq
import json
import time
from collections.abc import Iterable
from importlib import resources
from typing import Any

import numpy as np

from iqrl.envs.registry import TASKS
from iqrl.settings import Run

COMPILE_SECONDS = 12.0
"""of one run, with a process that has to start now and then"""
HOSTED_MICROSECONDS = 150.0
"""more, where the environment runs in Python: a guess, since nobody knows how long its steps take"""


def seconds_of(run: Run) -> float:
    """The time of a run on one core of this machine."""
    per_step = microseconds(run) * slowness() * measuring_factor(run)
    return run.steps * run.seeds * per_step * 1e-6 + COMPILE_SECONDS * slowness()


def microseconds(run: Run) -> float:
    """Per environment step of one seed on the reference machine, of the most similar run there."""
    same_kind = [entry for entry in _speeds()["runs"] if kind_of(entry["task"]) == kind_of(run.task)]
    entries = same_kind or _speeds()["runs"]
    of = lambda *methods: [entry for entry in entries if entry["method"] in methods]
    near = of(run.method) or of("iq", "iq-re") or entries
    distance = lambda entry: (entry["task"] != run.task) + 2 * abs(np.log10(entry["buffer_size"] / run.buffer_size))
    found = min(near, key=distance)["microseconds"]
    return found if same_kind and is_compiled(run.task) else found + HOSTED_MICROSECONDS


def is_compiled(task: str) -> bool:
    """Or has times of its own, as Atari's games have."""
    return task in TASKS or task.startswith("ALE/")


def kind_of(task: str) -> str:
    """Tasks of one kind take about as long as each other: the classic ones, MinAtar's, Atari's."""
    return task.partition("/")[0] if "/" in task else ""


def measuring_factor(run: Run) -> float:
    """How much longer it takes to measure interference as well; see docs/performance.md."""
    if not run.measure_every:
        return 1.0
    evaluated = run.measure_sample or run.measure_recent
    return 1.2 + 0.03 * evaluated / run.measure_every


def total_seconds(times: Iterable[float], workers: int) -> float:
    """The time of all runs, given the time of each, longest first, on so many cores.

    >>> total_seconds([3, 1, 1, 1], 2)
    3.0
    """
    ends = [0.0] * workers
    for seconds in sorted(times, reverse=True):
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


@functools.cache
def _speeds() -> dict[str, Any]:
    return json.loads((resources.files("iqrl.experiments.study") / "speeds.json").read_text())


@functools.cache
def slowness() -> float:
    """How many times longer than the reference machine this one takes."""
    return arithmetic_seconds() / _speeds()["arithmetic_seconds"]


def arithmetic_seconds() -> float:
    """Products the size of a small network's, in turn: the best of a few tries, the least disturbed by others."""
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32) / 8
    tries = []
    for _ in range(5):
        batch, started = np.ones((64, 32), np.float32), time.perf_counter()
        for _ in range(500):
            batch = np.tanh(weights @ batch)
        tries.append(time.perf_counter() - started)
    return min(tries)
