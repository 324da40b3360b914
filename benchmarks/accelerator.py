"""The fused update beside the plain one, turn by turn in one process on one core: microseconds of processor time per
step of all seeds.

    python benchmarks/accelerator.py [--method iq] [--buffer-sizes 1 100 50000] [--seeds 1 5] [--rounds 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import numpy as np

from iqrl import accelerator
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training.compilation import compile_driver
from iqrl.training.compiled import Driver

STEPS = 2000


def turns(method: str, size: int, seeds: int, kind: str) -> Callable[[], float]:
    """A compiled run with a full buffer; each call takes a turn and gives its microseconds per step."""
    run = resolve("CartPole-v1", method, epsilon_decay=1000, buffer_size=size, seeds=seeds, accelerator=kind)
    task = make_task(run)
    init, advance, *_ = compile_driver(Driver(run, task, build_agent(run, task)))
    state, _ = jax.block_until_ready(advance(init(), np.int32(max(size, 2000))))

    def turn() -> float:
        nonlocal state
        started = time.process_time()
        state, _ = jax.block_until_ready(advance(state, np.int32(int(state.step) + STEPS)))
        return 1e6 * (time.process_time() - started) / STEPS

    return turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="iq")
    parser.add_argument("--buffer-sizes", type=int, nargs="+", default=[1, 100, 50_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if why := accelerator.missing():
        raise SystemExit(f"there is no fused update here: {why}.")
    print(f"{options.method}, CartPole-v1: microseconds of processor time per step, medians of {options.rounds} rounds")
    print(f"{'N':>8} {'seeds':>6} {'none':>8} {'fused':>8} {'ratio':>6} {'lowest':>7} {'highest':>8}")
    for size in options.buffer_sizes:
        for seeds in options.seeds:
            plain, fused = (turns(options.method, size, seeds, kind) for kind in ("none", "fused"))
            rounds = [(plain(), fused()) for _ in range(options.rounds)]
            slow, fast = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = [one / other for one, other in rounds]
            print(
                f"{size:8,} {seeds:6} {slow:8.2f} {fast:8.2f} {statistics.median(ratios):6.2f} {min(ratios):7.2f} "
                f"{max(ratios):8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
