"""Training steps per second on MinAtar, one seed on one core: the methods for images beside DQN.

    python benchmarks/minatar_throughput.py [--game Breakout] [--methods dqn iq-re stream-q local-q] [--beside COMMIT]

Each contestant is a process of its own, pinned to one core (`--core`). They compile first, empty caches each time, and
then take turns; ratios compare turns of the same round. Times are those of the processor, so that other programs on the
machine matter less. They still share its memory and cache. `--beside`: the same methods at another commit, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
METHODS = ["dqn", "iq-re", "stream-q", "local-q"]
FIRST = 6000
"""steps before the first turn: learning starts at 5000"""


def work(game: str, method: str, core: int, turn: int) -> None:
    """A contestant's process: a turn for each line of the input."""
    os.environ["IQRL_CORES"] = "1"
    os.sched_setaffinity(0, {core})
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as empty:
        os.environ["XDG_CACHE_HOME"] = empty

        import jax
        import numpy as np

        from iqrl.make_run import resolve
        from iqrl.training.compilation import compile_driver
        from iqrl.training.cores import compute_in_threads
        from iqrl.training.loop import driver_of

        compute_in_threads(1)
        started = time.process_time()
        program = compile_driver(driver_of(resolve(f"MinAtar/{game}-v1", method, seeds=1, steps=10**7, period=10**6)))
        compiling, done = time.process_time() - started, FIRST
        state, _ = jax.block_until_ready(program.advance(program.init(), np.int32(done)))
        print(json.dumps({"compiling": compiling}), file=answer, flush=True)
        for _ in sys.stdin:
            started, done = time.process_time(), done + turn
            state, _ = jax.block_until_ready(program.advance(state, np.int32(done)))
            print(json.dumps({"rate": turn / (time.process_time() - started)}), file=answer, flush=True)


def started(source: Path, method: str, options: argparse.Namespace) -> subprocess.Popen:
    command = [sys.executable, __file__, "--worker", method, "--game", options.game, "--core", str(options.core)]
    environment = os.environ | {"PYTHONPATH": str(source / "src"), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [*command, "--turn", str(options.turn)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def answer_of(process: subprocess.Popen) -> dict[str, float]:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def turn_of(process: subprocess.Popen) -> float:
    assert process.stdin is not None
    print(file=process.stdin, flush=True)
    return answer_of(process)["rate"]


def compare(sources: dict[str, Path], options: argparse.Namespace) -> None:
    contestants, compiling = {}, {}
    for commit, source in sources.items():
        for method in options.methods:
            name = f"{method} {commit}".strip()
            contestants[name] = started(source, method, options)
            compiling[name] = answer_of(contestants[name])["compiling"]  # one after the other
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, process in contestants.items():
            rates[name].append(turn_of(process))
    for process in contestants.values():
        process.communicate()
    print(f"MinAtar/{options.game}-v1, one seed, one core; medians of {options.rounds} rounds of {options.turn} steps")
    first = rates[options.methods[0]]
    print(
        f"{'':24}{'steps/s':>10}{'lowest':>10}{'highest':>10}{'its time / ' + options.methods[0]:>18}{'compile s':>12}"
    )
    for name, own in rates.items():
        ratio = statistics.median(base / one for base, one in zip(first, own, strict=True))
        print(f"{name:24}{statistics.median(own):>10,.0f}{min(own):>10,.0f}{max(own):>10,.0f}", end="")
        print(f"{ratio:>18.2f}{compiling[name]:>12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Breakout")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="the first is what ratios are to")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=int, default=2000, help="steps of a turn")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--beside", metavar="COMMIT", help="the same methods at this commit, too")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.game, options.worker, options.core, options.turn)
        return
    with tempfile.TemporaryDirectory() as folder:
        sources = {"": ROOT}
        if options.beside:
            packed = subprocess.run(
                ["git", "archive", options.beside, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True
            )
            subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
            sources[f"at {options.beside[:9]}"] = Path(folder)
        compare(sources, options)


if __name__ == "__main__":
    main()
