"""Seeds on one core and on all of them, turn by turn in one process.

python benchmarks/cores.py --method iq --seeds 20 --rounds 5
"""

import argparse
import os
import statistics

import iqrl
from iqrl.training.cores import VARIABLE, available_cores

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--method", default="iq")
parser.add_argument("--seeds", type=int, default=20)
parser.add_argument("--steps", type=int, default=40_000)
parser.add_argument("--rounds", type=int, default=5)
options = parser.parse_args()


def steps_per_second(cores: int) -> float:
    os.environ[VARIABLE] = str(cores)
    run = iqrl.train(options.task, options.method, seeds=options.seeds, steps=options.steps)
    return run.timing["steps_per_second"]


counts = (1, available_cores())
speeds = [[steps_per_second(count) for count in counts] for _ in range(options.rounds)]
for number, count in enumerate(counts):
    print(f"{count} cores: {statistics.median(speed[number] for speed in speeds):,.0f} steps/s")
print(f"ratio: {statistics.median(many / one for one, many in speeds):.2f}")
