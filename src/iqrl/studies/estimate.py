"""How long a run will take here: what such runs took on one core of a known machine, and how fast this one is.

`speeds.json` has the microseconds per environment step of every task, method and buffer size of a finished study, and
the time that a small piece of arithmetic took on the same core (`benchmarks/study_speeds.py` writes it). The arithmetic
is timed again here; what the two times say about each other is a guess, and a study corrects it as its runs end. The
speeds of images are of short runs, not of a study; those with a million frames are a third above those with 10,000, as
DQN's was.
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

from iqrl.config import Run

COMPILE_SECONDS = 12.0
"""of one run, with a process that has to start now and then"""


def seconds_of(run: Run) -> float:
    """On one core of this machine."""
    per_step = microseconds(run) * slowness() * measuring(run)
    return run.steps * run.seeds * per_step * 1e-6 + COMPILE_SECONDS * slowness()


def microseconds(run: Run) -> float:
    """Per environment step of one seed on the known machine: of the nearest run that is known."""
    alike = [entry for entry in _speeds()["runs"] if kind_of(entry["task"]) == kind_of(run.task)]
    known = alike or _speeds()["runs"]
    of = lambda *methods: [entry for entry in known if entry["method"] in methods]
    near = of(run.method) or of("iq", "iq-re") or known
    distance = lambda entry: (entry["task"] != run.task) + 2 * abs(np.log10(entry["buffer_size"] / run.buffer_size))
    return min(near, key=distance)["microseconds"]


def kind_of(task: str) -> str:
    """Tasks of one kind take about as long as each other: the classic ones, MinAtar's, Atari's."""
    return task.partition("/")[0] if "/" in task else ""


def measuring(run: Run) -> float:
    """How much longer it takes to measure interference as well; see docs/performance.md."""
    if not run.measure_every:
        return 1.0
    evaluated = run.measure_sample or run.measure_recent
    return 1.2 + 0.03 * evaluated / run.measure_every


def total_seconds(times: Iterable[float], workers: int) -> float:
    """Of runs that take these times, longest first, on so many cores.

    >>> total_seconds([3, 1, 1, 1], 2)
    3.0
    """
    ends = [0.0] * workers
    for seconds in sorted(times, reverse=True):
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


@functools.cache
def _speeds() -> dict[str, Any]:
    return json.loads((resources.files("iqrl.studies") / "speeds.json").read_text())


@functools.cache
def slowness() -> float:
    """How many times longer than the known machine this one takes."""
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
