"""local-q on CartPole-v1 on one core: steps per second by the number of bins, with Stream Q beside it.

    python benchmarks/local_q.py [--seeds 10] [--rounds 9]

All are compiled first and then take turns. Ratios compare turns of the same round. Times are those of the processor, so
that other programs on the machine matter less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ["IQRL_CORES"] = "1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import numpy as np

from iqrl.make_run import resolve
from iqrl.training.compilation import compile_driver
from iqrl.training.cores import compute_in_threads
from iqrl.training.loop import driver_of

WAYS = {f"local-q, {bins} bins": ("local-q", {"bins": bins}) for bins in (16, 64, 256)} | {"stream-q": ("stream-q", {})}
FIRST, TURN = 2000, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    compute_in_threads(1)
    programs, speeds = {}, {name: [] for name in WAYS}
    for name, (method, settings) in WAYS.items():
        run = resolve("CartPole-v1", method, seeds=options.seeds, steps=10**7, period=10**6, **settings)
        program = compile_driver(driver_of(run))
        programs[name] = (program, jax.block_until_ready(program.advance(program.init(), np.int32(FIRST))[0]))
    for number in range(options.rounds):
        for name, (program, state) in programs.items():
            started = time.process_time()
            state, _ = jax.block_until_ready(program.advance(state, np.int32(FIRST + (number + 1) * TURN)))
            speeds[name].append(options.seeds * TURN / (time.process_time() - started))
            programs[name] = (program, state)
    print(f"CartPole-v1, {options.seeds} seeds, one core; medians of {options.rounds} rounds")
    print(f"{'':20} {'steps/s':>10} {'ratio':>7} {'lowest':>7} {'highest':>8}")
    first = speeds[next(iter(WAYS))]
    for name, found in speeds.items():
        ratios = [base / own for base, own in zip(first, found, strict=True)]
        print(
            f"{name:20} {statistics.median(found):10,.0f} {statistics.median(ratios):7.2f} {min(ratios):7.2f} "
            f"{max(ratios):8.2f}"
        )


if __name__ == "__main__":
    main()
