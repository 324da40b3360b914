"""DQN and IQ on classic control at the paper's settings, as a Markdown table beside the paper's numbers.

    python benchmarks/classic_control.py [--tasks CartPole-v0 …] [--sizes 1 100 50000] [--seeds 5] [--set gamma=0.99 …]

`highest` is the maximum over periods of the mean over seeds, as in the paper's table; `final` the mean of the last
tenth of the periods; `AUC` the mean of all.
"""

from __future__ import annotations

import argparse
import ast

import iqrl

PAPER = {
    # task: method: highest return at N = 1, 100, 50,000 (the paper's Table I)
    "CartPole-v0": {"dqn": (106.0, 185.4, 200.0), "iq": (200.0, 200.0, 200.0)},
    "CartPole-v1": {"dqn": (188.4, 421.5, 497.7), "iq": (489.3, 498.5, 500.0)},
    "Acrobot-v1": {"dqn": (-222.1, -89.2, -85.4), "iq": (-91.7, -85.7, -82.9)},
    "Pendulum-v0": {"dqn": (-1165.3, -375.2, -134.9), "iq": (-1018.1, -209.1, -140.0)},
}
SIZES = (1, 100, 50_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="+", default=["CartPole-v0"], choices=PAPER)
    parser.add_argument("--methods", nargs="+", default=["dqn", "iq"])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings over the paper's preset")
    options = parser.parse_args()
    settings = {name: ast.literal_eval(value) for name, value in (item.split("=") for item in options.set)}
    print("| task | N | method | paper | highest | final | AUC | final per seed |\n|---|---|---|---|---|---|---|---|")
    for task in options.tasks:
        for size in options.sizes:
            for method in options.methods:
                print(row(task, method, size, options.seeds, settings), flush=True)


def row(task: str, method: str, size: int, seeds: int, settings: dict) -> str:
    summary = iqrl.train(task, method, preset="paper", buffer_size=size, seeds=seeds, **settings).summary()
    paper = PAPER[task][method][SIZES.index(size)] if size in SIZES else ""
    finals = ", ".join(f"{seed['final']:.0f}" for seed in summary["seeds"])
    numbers = " | ".join(f"{summary[name]:.1f}" for name in ("highest", "final", "auc"))
    return f"| {task} | {size:,} | {method} | {paper} | {numbers} | {finals} |"


if __name__ == "__main__":
    main()
