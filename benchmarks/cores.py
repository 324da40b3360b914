"""Seeds on one core and on all of them, turn by turn, each turn in a process of its own. Beside it what processes
of one core reach that run at the same time and share the seeds: the most that this machine gives at that moment.

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


def started(cores: int, buffer_size: int, seeds: int) -> subprocess.Popen:
    settings = {key: vars(options)[key] for key in ("task", "method", "steps")}
    settings |= {"buffer_size": buffer_size, "seeds": seeds}
    command = [sys.executable, "-c", TURN, json.dumps(settings)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {VARIABLE: str(cores)})


def ended(process: subprocess.Popen) -> tuple[float, list]:
    """Steps per second, and the returns of every seed."""
    speed, returns = json.loads(process.communicate()[0])
    return speed, returns


def turn(cores: int, buffer_size: int) -> tuple[float, list]:
    return ended(started(cores, buffer_size, options.seeds))


def apart(cores: int, buffer_size: int) -> float:
    """Steps per second of as many processes as cores."""
    processes = [started(1, buffer_size, options.seeds // cores) for _ in range(cores)]
    return sum(ended(process)[0] for process in processes)


cores = available_cores()
print(f"{options.method}, {options.task}, {options.seeds} seeds")
print(f"{'N':>8} {'1 core':>10} {f'{cores} cores':>10} {'ratio':>6} {'apart':>10} {'ratio':>6}")
for size in options.buffer_sizes:
    speeds = []
    for _ in range(options.rounds):
        (one, returns), (many, same) = turn(1, size), turn(cores, size)
        assert json.dumps(returns) == json.dumps(same), "the seeds differ"
        speeds.append((one, many, apart(cores, size)))
    medians = [statistics.median(column) for column in zip(*speeds, strict=True)]
    ratios = [statistics.median(row[column] / row[0] for row in speeds) for column in (1, 2)]
    together, processes = (f"{speed:10,.0f} {ratio:6.2f}" for speed, ratio in zip(medians[1:], ratios, strict=True))
    print(f"{size:8,} {medians[0]:10,.0f} {together} {processes}", flush=True)
