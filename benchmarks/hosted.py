"""Steps per second on a Gymnasium environment: iqrl with one and five seeds beside Stable-Baselines3, on one core.

    python benchmarks/hosted.py [--task LunarLander-v3] [--rounds 5]

One hidden layer of 64 tanh units, batches of 32, an update on every step. All take turns in one process. Ratios compare
turns of the same round. Times are those of the processor, so that other programs on the machine matter less. The peer:
pip install -r benchmarks/requirements.txt
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable

os.environ["IQRL_CORES"] = os.environ["OMP_NUM_THREADS"] = "1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import numpy as np

from iqrl.make_run import resolve
from iqrl.training.compilation import compile_driver
from iqrl.training.cores import compute_in_threads
from iqrl.training.loop import driver_of

FIRST, TURN = 1000, 1000
SIZE = 10_000

Turn = Callable[[], None]


def iqrl_turn(task: str, method: str, seeds: int) -> Turn:
    settings = {"buffer_size": SIZE, "learning_starts": FIRST} if method == "dqn" else {}
    run = resolve(task, method, seeds=seeds, steps=10**6, period=10**5, **settings)
    program = compile_driver(driver_of(run))
    held, stop = program.advance(program.init(), np.int32(FIRST))[0], FIRST

    def turn() -> None:
        nonlocal held, stop
        stop += TURN
        held = jax.block_until_ready(program.advance(held, np.int32(stop))[0])

    turn()
    return turn


def sb3_turn(task: str) -> Turn:
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    policy = {"net_arch": [64], "activation_fn": torch.nn.Tanh}
    settings = {"batch_size": 32, "train_freq": 1, "target_update_interval": 1000, "policy_kwargs": policy}
    model = DQN("MlpPolicy", task, buffer_size=SIZE, learning_starts=FIRST, device="cpu", **settings)
    model.learn(FIRST + TURN)
    return lambda: model.learn(TURN, reset_num_timesteps=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="LunarLander-v3")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    compute_in_threads(1)
    seeds = {
        f"iqrl {method}, {count} seed{'s' * (count > 1)}": (method, count)
        for method in ("dqn", "local-q")
        for count in (1, 5)
    }
    turns = {name: (iqrl_turn(options.task, *it), it[1]) for name, it in seeds.items()}
    if importlib.util.find_spec("stable_baselines3"):
        turns["stable-baselines3 dqn"] = (sb3_turn(options.task), 1)
    speeds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(options.rounds):
        for name, (turn, count) in turns.items():
            started = time.process_time()
            turn()
            speeds[name].append(TURN * count / (time.process_time() - started))
    print(f"{options.task}, one core; medians of {options.rounds} rounds; ratio: to the last row")
    last = speeds[list(turns)[-1]]
    for name, found in speeds.items():
        ratios = [own / base for own, base in zip(found, last, strict=True)]
        middle, spread = statistics.median(ratios), f"{min(ratios):.2f}…{max(ratios):.2f}"
        print(f"{name:24} {statistics.median(found):8,.0f} steps/s  ratio {middle:5.2f} ({spread})")


if __name__ == "__main__":
    main()
