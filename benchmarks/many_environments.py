"""Environment steps per second with one environment per seed and with eight, at the same number of updates per step.

    python benchmarks/many_environments.py [--seconds 3] [--rounds 3] [--processes 2]

Three environments: a fast one, in the process that trains; one that computes for a millisecond, in as many processes as
there are cores; one that waits for a millisecond, as for a simulator elsewhere, in eight processes. Contestants take
turns, and a ratio compares turns of the same round: a machine is never quite idle. What computes needs cores that do
nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import iqrl
from iqrl.training.compilation import Program, compile_driver
from iqrl.training.loop import driver_of
from iqrl.training.states import TrainState


class Walk(gymnasium.Env):
    """A random walk of four numbers, cut after 200 steps."""

    observation_space, action_space = Box(-1.0, 1.0, (4,), np.float32), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.zeros(4, np.float32), 0
        return self.place, {}

    def step(self, action):
        self.place = np.clip(self.place + np.float32(0.1 if action else -0.1), -1, 1)
        self.steps += 1
        return self.place, float(self.place[0]), False, self.steps == 200, {}


class ComputingWalk(Walk):
    def step(self, action):
        end = time.thread_time() + 0.001  # of a core, not of a clock that goes on while others have the core
        while time.thread_time() < end:
            pass
        return super().step(action)


class WaitingWalk(Walk):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)


PERIOD = 80
SETTINGS = {
    "seeds": 1, "steps": 80_000_000, "period": PERIOD, "learning_starts": 80, "buffer_size": 1000,
    "target_period": 1000,
}  # fmt: skip


class Contestant:
    """A run that is advanced for a while when it is its turn."""

    def __init__(self, env: type, **settings: int):
        driver = driver_of(iqrl.resolve(env, "dqn", **SETTINGS, **settings))
        self.program: Program = compile_driver(driver)
        self.state: TrainState = self.program.init()
        self.run_for(1.0)

    def run_for(self, seconds: float) -> float:
        """Steps per second, an update with each of them."""
        began, first = time.perf_counter(), int(self.state.step)
        while time.perf_counter() - began < seconds:
            self.state, _ = self.program.advance(self.state, np.int32(int(self.state.step) + PERIOD))
        return (int(self.state.step) - first) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="for the environment that computes")
    given = parser.parse_args()
    kinds = {
        "fast, in the process": (Walk, 0),
        f"computes 1 ms, in {given.processes} processes": (ComputingWalk, given.processes),
        "waits 1 ms, in 8 processes": (WaitingWalk, 8),
    }
    print("| environment | one, steps/s | eight, steps/s | ratio |\n|---|---|---|---|")
    for name, (env, processes) in kinds.items():
        pair = Contestant(env), Contestant(env, n_envs=8, env_processes=processes)
        rounds = [[each.run_for(given.seconds) for each in pair] for _ in range(given.rounds)]
        one, eight = (statistics.median(speeds) for speeds in zip(*rounds, strict=True))
        ratio = statistics.median(eight / one for one, eight in rounds)
        print(f"| {name} | {one:,.0f} | {eight:,.0f} | {ratio:.2f} |")
        for each in pair:
            each.program.close()


if __name__ == "__main__":
    main()
