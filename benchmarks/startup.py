"""How long a run takes to start, from nothing and when its programs are cached: processor time of its parts, and the
whole command `iqrl train` up to the end of a first period, on one core.

    python benchmarks/startup.py [--methods local-q dqn iq] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

FIRST = 1000
"""steps of the first period"""

PARTS = f"""
import json, sys, time
from time import process_time as now
times = [now()]
def part_ends(): times.append(now())
import jax, numpy as np
from iqrl.make_run import resolve
from iqrl.training import compilation
from iqrl.training.loop import driver_of
part_ends()
driver = driver_of(resolve("CartPole-v1", sys.argv[1], learning_starts={FIRST // 2}))
compilation.enable_cache()
part_ends()
init = compilation.compile_init(driver)
part_ends()
advance = compilation.compile_advance(driver)
part_ends()
jax.block_until_ready(advance(init(), np.int32({FIRST})))
part_ends()
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""
NAMES = ("import", "build", "init", "advance", "first steps")


def of_parts(method: str, environment: dict[str, str]) -> list[float]:
    command = [sys.executable, "-c", PARTS, method]
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


def of_command(method: str, environment: dict[str, str]) -> list[float]:
    """Processor and wall seconds of the whole command."""
    settings = {"method": method, "steps": FIRST, "period": FIRST, "learning-starts": FIRST // 2}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "iqrl", "train", "CartPole-v1", *flags, "--out", f"{out}/run"]
        subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [processor, time.perf_counter() - began]


def starts(measure: Callable[[str, dict[str, str]], list[float]], method: str) -> tuple[list[float], list[float]]:
    """The first with no program cached, the second with those of the first."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        environment |= {"XDG_CACHE_HOME": cache, "IQRL_CORES": "1", "JAX_PLATFORMS": "cpu"}
        return measure(method, environment), measure(method, environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["local-q", "dqn", "iq"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"CartPole-v1, one core; seconds of processor time, medians of {options.rounds} rounds")
    titles = (*NAMES, "command", "its wall time")
    print(" " * 14 + "".join(f"{title:>14}" for title in titles))
    for method in options.methods:
        rounds = [(starts(of_parts, method), starts(of_command, method)) for _ in range(options.rounds)]
        for number, kind in enumerate(("cold", "warm")):
            rows = [parts[number] + whole[number] for parts, whole in rounds]
            medians = (statistics.median(column) for column in zip(*rows, strict=True))
            print(f"{method:9}{kind:5}" + "".join(f"{value:14.2f}" for value in medians), flush=True)


if __name__ == "__main__":
    main()
