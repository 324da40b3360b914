"""Seeds on one core and on all of them, turn by turn, each turn in a process of its own.

python benchmarks/cores.py --method iq --seeds 20 --buffer-sizes 1 100 50000 --rounds 5
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from iqrl.training.cores import VARIABLE, available_cores

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--method", default="iq")
parser.add_argument("--seeds", type=int, default=20)
parser.add_argument("--buffer-sizes", type=int, nargs="+", default=[1, 100, 50_000])
parser.add_argument("--steps", type=int, default=40_000)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()

TURN = """
import json, sys, iqrl
settings = json.loads(sys.argv[1])
task, method = settings.pop("task"), settings.pop("method")
run = iqrl.train(task, method, **settings)
print(json.dumps([run.timing["steps_per_second"], run.returns.tolist()]))
"""


def turn(cores: int, buffer_size: int) -> tuple[float, list]:
    """Steps per second, and the returns of every seed."""
    settings = {key: vars(options)[key] for key in ("task", "method", "seeds", "steps")}
    command = [sys.executable, "-c", TURN, json.dumps(settings | {"buffer_size": buffer_size})]
    done = subprocess.run(command, check=True, capture_output=True, env=os.environ | {VARIABLE: str(cores)})
    speed, returns = json.loads(done.stdout)
    return speed, returns


cores = available_cores()
print(f"{options.method}, {options.task}, {options.seeds} seeds")
print(f"{'N':>8} {'1 core':>10} {f'{cores} cores':>10} {'ratio':>6}")
for size in options.buffer_sizes:
    speeds = []
    for _ in range(options.rounds):
        (one, returns), (many, same) = turn(1, size), turn(cores, size)
        assert json.dumps(returns) == json.dumps(same), "the seeds differ"
        speeds.append((one, many))
    medians = [statistics.median(column) for column in zip(*speeds, strict=True)]
    ratio = statistics.median(many / one for one, many in speeds)
    print(f"{size:8,} {medians[0]:10,.0f} {medians[1]:10,.0f} {ratio:6.2f}", flush=True)
