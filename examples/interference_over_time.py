"""Interference and return over the same steps: the paper's Fig. 2, DQN on CartPole with a buffer of 100.

    python examples/interference_over_time.py [--steps 300000] [--seeds 3] [--every 1] [--folder interference-over-time]

Every update is measured on all of the last 10,000 transitions, as in the paper, which takes half an hour for three
seeds; with `--every 7` every seventh is. Interrupted, the same command goes on where it stopped.
"""

import argparse
from pathlib import Path

import iqrl
from iqrl.diagnostics.explain.page import explain
from iqrl.experiments.report.figures.interference import plot_interference

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=300_000)
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--every", type=int, default=1, help="measure every n-th update (default: 1, as in the paper)")
parser.add_argument("--folder", type=Path, default=Path("interference-over-time"), help="of the run and the picture")
arguments = parser.parse_args()

settings = {"steps": arguments.steps, "period": max(arguments.steps // 300, 1), "seeds": arguments.seeds}
measuring = {"measure_every": arguments.every, "measure_sample": 0}
tell = lambda progress: print(f"{progress.step:,} of {progress.steps:,} steps", end="\r")
result = iqrl.train(
    "CartPole-v0", "dqn", preset="paper", gamma=1.0, buffer_size=100, **settings, **measuring,
    out=arguments.folder / "run", display=tell,
)  # fmt: skip
print(explain(result.run, result.metrics))
print("drawn:", plot_interference(result.run, result.metrics, arguments.folder / "interference.png"))
