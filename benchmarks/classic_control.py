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
from iqrl.methods import METHODS

PAPER = {
    # task: method: highest return at N = 1, 100, 50,000 (the paper's Table I)
    "CartPole-v0": {
        "dqn": (106.0, 185.4, 200.0), "srnn": (112.9, 182.9, 200.0), "dsom": (173.0, 200.0, 200.0),
        "tcnn": (102.3, 174.1, 200.0), "iq": (200.0, 200.0, 200.0),
    },
    "CartPole-v1": {
        "dqn": (188.4, 421.5, 497.7), "srnn": (250.1, 445.6, 498.6), "dsom": (295.5, 490.0, 500.0),
        "tcnn": (136.8, 341.1, 494.2), "iq": (489.3, 498.5, 500.0),
    },
    "Acrobot-v1": {
        "dqn": (-222.1, -89.2, -85.4), "srnn": (-204.7, -89.4, -83.2), "dsom": (-110.0, -218.2, -91.4),
        "tcnn": (-491.5, -426.5, -89.8), "iq": (-91.7, -85.7, -82.9),
    },
    "Pendulum-v0": {
        "dqn": (-1165.3, -375.2, -134.9), "srnn": (-1160.3, -567.1, -144.2), "dsom": (-1122.1, -834.7, -146.2),
        "tcnn": (-1204.8, -438.0, -142.0), "iq": (-1018.1, -209.1, -140.0),
    },
}  # fmt: skip
SIZES = (1, 100, 50_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="+", default=["CartPole-v0"], choices=PAPER)
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
    known = preset == "paper" and size in SIZES and method in PAPER[task]
    paper = PAPER[task][method][SIZES.index(size)] if known else ""
    finals = ", ".join(f"{seed['final']:.0f}" for seed in summary["seeds"])
    numbers = " | ".join(f"{summary[name]:.1f}" for name in ("highest", "final", "auc"))
    return f"| {task} | {size:,} | {method} | {paper} | {numbers} | {finals} |"


if __name__ == "__main__":
    main()
