"""Methods on classic control at the paper's settings, as a Markdown table beside the paper's numbers.

    python benchmarks/classic_control.py [--tasks CartPole-v0 …] [--sizes 1 100 50000] [--seeds 5]
        [--methods dqn iq …] [--preset paper|library] [--set gamma=0.99 …]

`highest` is the maximum over periods of the mean over seeds, as in the paper's table; `final` the mean of the last
tenth of the periods; `AUC` the mean of all.
"""

from __future__ import annotations

import argparse
import ast

import iqrl
from iqrl.methods.registry import METHODS
from iqrl.reproduction.printed import printed_value

TASKS = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v0")
SIZES = (1, 100, 50_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="+", default=["CartPole-v0"], choices=TASKS)
    parser.add_argument("--methods", nargs="+", default=["dqn", "iq"])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--preset", default="paper", help="paper, or library for the library's own defaults")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings over the paper's preset")
    options = parser.parse_args()
    settings = {name: ast.literal_eval(value) for name, value in (item.split("=") for item in options.set)}
    print("| task | N | method | paper | highest | final | AUC | final per seed |\n|---|---|---|---|---|---|---|---|")
    for task in options.tasks:
        for size in options.sizes:
            for method in options.methods:
                if not fits(method, size):
                    continue
                print(row(task, method, size, options.seeds, options.preset, settings), flush=True)


def fits(method: str, size: int) -> bool:
    """A method without replay has one buffer size only."""
    return METHODS[method].fixed.get("buffer_size", size) == size


def row(task: str, method: str, size: int, seeds: int, preset: str, settings: dict) -> str:
    fixed = METHODS[method].fixed
    settings = {name: value for name, value in ({"buffer_size": size} | settings).items() if name not in fixed}
    summary = iqrl.train(
        task, method, preset=None if preset == "library" else preset, seeds=seeds, **settings
    ).summary()
    printed = printed_value(task, method, size) if preset == "paper" else None
    paper = printed.value if printed else ""
    finals = ", ".join(f"{seed['final']:.0f}" for seed in summary["seeds"])
    numbers = " | ".join(f"{summary[name]:.1f}" for name in ("highest", "final", "auc"))
    return f"| {task} | {size:,} | {method} | {paper} | {numbers} | {finals} |"


if __name__ == "__main__":
    main()
