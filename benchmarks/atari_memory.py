"""How much memory a run on Atari takes, and whether its buffer is written in place.

    python benchmarks/atari_memory.py [--method dqn] [--capacity 10000 1000000] [--steps 400]

Each capacity in a process of its own: the run as `iqrl train` makes it, some steps of it, then the memory that was
resident at most, whether the frames still lie where they lay, and the time per step, which must not grow with N.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

GAME = "ALE/Pong-v5"


def measure(method: str, capacity: int, steps: int) -> dict:
    import jax
    import numpy as np

    from iqrl.make_run import resolve
    from iqrl.training.compilation import compile_driver
    from iqrl.training.loop import driver_of

    # Learning starts at once, so that batches are drawn; what is learned does not matter here.
    run = resolve(GAME, method, buffer_size=capacity, learning_starts=100, period=steps, steps=10 * steps)
    program = compile_driver(driver_of(run))
    state, _ = program.advance(program.init(), np.int32(steps))
    before = state.agent.replay.frames.unsafe_buffer_pointer()
    started = time.perf_counter()
    state, period = program.advance(state, np.int32(2 * steps))
    jax.block_until_ready(period)
    seconds = time.perf_counter() - started
    return {
        "resident_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "in_place": state.agent.replay.frames.unsafe_buffer_pointer() == before,
        "milliseconds": 1e3 * seconds / steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="dqn")
    parser.add_argument("--capacity", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.method, options.capacity[0], options.steps)))
        return
    print("| method | N | resident, at most | frames in place | per step |\n|---|---|---|---|---|")
    method = options.method
    for capacity in options.capacity:
        command = [sys.executable, __file__, "--one", "--method", method]
        command += ["--capacity", str(capacity), "--steps", str(options.steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        place = "yes" if found["in_place"] else "no"
        cells = (method, f"{capacity:,}", f"{found['resident_gb']:.2f} GB", place, f"{found['milliseconds']:.1f} ms")
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
