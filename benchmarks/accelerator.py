"""The fused update beside the plain one, turn by turn in one process on one core: microseconds of processor time per
step of all seeds.

    python benchmarks/accelerator.py [--method iq] [--buffer-sizes 1 100 50000] [--seeds 1 5] [--rounds 15]

Its last bits are others, so the runs come out otherwise. Are their returns the same in distribution? With --returns
both are trained with twenty seeds of their own, and permutation tests of the seeds compare them.

    python benchmarks/accelerator.py --returns [--method iq] [--buffer-sizes 1 100 50000] [--steps 200000]
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

import iqrl
from iqrl import accelerator
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.statistics.curves import auc, final
from iqrl.statistics.significance import permutation_test
from iqrl.training.compilation import compile_driver
from iqrl.training.compiled import Driver

STEPS = 2000
SEEDS = 20


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


def compare_returns(method: str, size: int, steps: int, seed: int) -> str:
    settings = {"buffer_size": size, "steps": steps, "seeds": SEEDS}
    curves = [
        iqrl.train("CartPole-v1", method, seed=seed + SEEDS * number, accelerator=kind, **settings).returns
        for number, kind in enumerate(("none", "fused"))
    ]
    cells = []
    for measure in (final, auc):
        plain, fused = (measure(of) for of in curves)
        cells.append(f"{plain.mean():8.1f} {fused.mean():8.1f} {permutation_test(plain, fused).p:6.2f}")
    return f"{method:>6} {size:8,} {' '.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="iq")
    parser.add_argument("--buffer-sizes", type=int, nargs="+", default=[1, 100, 50_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--returns", action="store_true", help="compare the returns of 20 seeds instead of the times")
    parser.add_argument("--steps", type=int, default=200_000, help="of each seed, with --returns")
    parser.add_argument("--seed", type=int, default=0, help="the first of the forty, with --returns")
    options = parser.parse_args()
    if why := accelerator.missing():
        raise SystemExit(f"there is no fused update here: {why}.")
    if options.returns:
        print(f"CartPole-v1, {options.steps:,} steps, {SEEDS} seeds of each; p: permutation test")
        print(f"{'method':>6} {'N':>8}   final    fused      p      AUC    fused      p")
        for size in options.buffer_sizes:
            print(compare_returns(options.method, size, options.steps, options.seed), flush=True)
        return
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
