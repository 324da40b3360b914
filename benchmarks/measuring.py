"""What measuring interference costs, and what a sample of the window loses.

    python benchmarks/measuring.py [--rounds 9] [--seeds 5] [--buffer-size 100]
    python benchmarks/measuring.py --accuracy [--steps 40000]

The first times IQ on CartPole-v0 on one core, unmeasured and measured in several ways, taking turns; each
ratio compares with the unmeasured turn of the same round. The second trains with the same seeds, measuring the whole
window and samples of it, and compares what each period reports.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import numpy as np

import iqrl
from iqrl.make_run import resolve
from iqrl.training.compilation import compile_driver
from iqrl.training.loop import driver_of

WAYS = {
    "not measured": {},
    "every 100 updates": {"measure_every": 100},
    "every 100 updates, the whole window": {"measure_every": 100, "measure_sample": 0},
    "every 10 updates": {"measure_every": 10},
    "every update, a sample": {"measure_every": 1},
    "every update, the whole window": {"measure_every": 1, "measure_sample": 0},
}
SECONDS = 0.3
"""length of a turn"""


class Contestant:
    """A compiled run that is taken further in turns of about the same time."""

    def __init__(self, seeds: int, size: int, settings: dict):
        run = resolve("CartPole-v0", "iq", buffer_size=size, seeds=seeds, steps=10**8, period=10**6, **settings)
        init, self.advance, self.compile_seconds, *_ = compile_driver(driver_of(run))
        self.state, self.step, self.turn = init(), 0, 100
        self.go_on(run.learning_starts)
        self.turn = max(int(self.turn * SECONDS / self.go_on(self.turn) / 100) * 100, 100)

    def go_on(self, steps: int) -> float:
        """Seconds."""
        self.step += steps
        started = time.perf_counter()
        self.state, _ = jax.block_until_ready(self.advance(self.state, np.int32(self.step)))
        return time.perf_counter() - started

    def microseconds_per_step(self) -> float:
        """The best of three: what else the machine does only ever makes a turn longer."""
        return 1e6 * min(self.go_on(self.turn) for _ in range(3)) / self.turn


def overhead(rounds: int, seeds: int, size: int) -> None:
    contestants = {name: Contestant(seeds, size, settings) for name, settings in WAYS.items()}
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            times[name].append(contestant.microseconds_per_step())
    plain = times["not measured"]
    print(f"IQ, CartPole-v0, N = {size:,}, {seeds} seeds, one core; {rounds} rounds")
    print(f"{'':38}{'µs/step':>10}{'ratio':>10}{'lowest':>10}{'highest':>10}{'compile s':>11}")
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, plain, strict=True)]
        spread = f"{min(ratios):10.2f}{max(ratios):10.2f}"
        compiled = contestants[name].compile_seconds
        print(f"{name:38}{statistics.median(values):10.1f}{statistics.median(ratios):10.2f}{spread}{compiled:11.1f}")


def accuracy(steps: int, seeds: int) -> None:
    names = ("aei", "negative_interference", "raised_share", "squared_td_error", "update_interference")
    print(f"samples beside the whole window, every 100 updates, CartPole-v0, N = 100, {seeds} seeds, {steps:,} steps:")
    print("correlation over periods and seeds, and the median ratio")
    for method in ("dqn", "iq"):
        columns = {}
        for sample in (0, 125, 1000):
            settings = {"steps": steps, "period": steps // 20, "seeds": seeds, "preset": "paper"}
            result = iqrl.train("CartPole-v0", method, **settings, measure_every=100, measure_sample=sample)
            table = result.metrics.sort("seed", "step")
            columns[sample] = {name: table[name].to_numpy().astype(float) for name in names}
        for name in names:
            whole, cells = columns[0][name], []
            for sample in (125, 1000):
                known = np.isfinite(whole) & np.isfinite(columns[sample][name])
                a, b = whole[known], columns[sample][name][known]
                cells.append(f"{sample:5}: {np.corrcoef(a, b)[0, 1]:5.2f} {np.median(b / a):6.2f}")
            print(f"  {method:5}{name:24}" + "   ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--buffer-size", type=int, default=100)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--accuracy", action="store_true")
    options = parser.parse_args()
    if options.accuracy:
        accuracy(options.steps, options.seeds)
    else:
        overhead(options.rounds, options.seeds, options.buffer_size)


if __name__ == "__main__":
    main()
