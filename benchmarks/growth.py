"""How the time of a step grows with seeds, buffer size, contexts and width: a table and a picture, on one core.

    python benchmarks/growth.py [--rounds 5] [--method iq] [--picture docs/growth.png]

CartPole-v1, an update of batch 32 on every step. One thing is varied at a time from 5 seeds, N = 100, k = 3 and 64
units. Within a panel, all are compiled first and then take turns. Times are those of the processor, so that other
programs on the machine matter less. The ratio is to the usual setting, in turns of the same round.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ["IQRL_CORES"] = "1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import matplotlib
import numpy as np

from iqrl.colours import COLOURS, METHODS
from iqrl.make_run import resolve
from iqrl.training.compilation import compile_driver
from iqrl.training.cores import compute_in_threads
from iqrl.training.loop import driver_of

USUAL = {"seeds": 5, "buffer_size": 100, "contexts": 3, "hidden": 64}


class Panel(NamedTuple):
    setting: str
    label: str
    values: tuple[int, ...]


PANELS = (
    Panel("seeds", "seeds", (1, 2, 5, 10, 20, 50, 100)),
    Panel("buffer_size", "N, the size of the replay buffer", (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)),
    Panel("contexts", "k, the number of contexts", (1, 2, 3, 4, 8, 16, 32, 64)),
    Panel("hidden", "units of the hidden layer", (32, 64, 128, 256, 512, 1024)),
)
FIRST, TURN = 2_000, 2_000
"""steps of each seed before the first turn, and in each turn"""


def program(method: str, setting: str, value: int) -> Callable[[], float]:
    """A function that takes a turn: microseconds of a step of one seed."""
    chosen: dict[str, Any] = USUAL | {setting: value}
    chosen["hidden"] = (chosen["hidden"],)
    if method != "iq":
        del chosen["contexts"]
    run = resolve("CartPole-v1", method, steps=10**9, period=10**6, learning_starts=1000, **chosen)
    compiled = compile_driver(driver_of(run))
    state, stop = compiled.init(), 0

    def advance(steps: int) -> float:
        nonlocal state, stop
        stop += steps
        started = time.process_time()
        state, _ = jax.block_until_ready(compiled.advance(state, np.int32(stop)))
        return (time.process_time() - started) / (steps * run.seeds) * 1e6

    advance(FIRST)
    return lambda: advance(TURN)


def measure(method: str, panel: Panel, rounds: int) -> dict[int, list[float]]:
    programs = {value: program(method, panel.setting, value) for value in panel.values}
    times: dict[int, list[float]] = {value: [] for value in programs}
    for _ in range(rounds):
        for value, turn in programs.items():
            times[value].append(turn())
    return times


def print_panel(panel: Panel, times: dict[int, list[float]]) -> None:
    print(f"\n{panel.label}\n{'':>12}{'µs per seed-step':>18}{'steps/s':>10}{'ratio':>8}{'lowest':>8}{'highest':>8}")
    for value, each in times.items():
        ratios = [mine / usual for mine, usual in zip(each, times[USUAL[panel.setting]], strict=True)]
        middle = statistics.median(each)
        print(
            f"{value:>12,}{middle:>18.2f}{1e6 / middle:>10,.0f}{statistics.median(ratios):>8.2f}"
            f"{min(ratios):>8.2f}{max(ratios):>8.2f}",
            flush=True,
        )


def draw(method: str, panels: dict[Panel, dict[int, list[float]]], path: Path) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    short = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 3), layout="constrained", sharey=True)
    colour = COLOURS[METHODS.get(method, 0)]
    for axis, (panel, times) in zip(axes, panels.items(), strict=True):
        middle = [statistics.median(each) for each in times.values()]
        axis.fill_between(
            list(times), [min(t) for t in times.values()], [max(t) for t in times.values()], color=colour, alpha=0.2
        )
        axis.plot(list(times), middle, "o-", color=colour, markersize=4)
        axis.axvline(USUAL[panel.setting], color="0.7", linewidth=0.8, zorder=0)
        axis.set(xscale="log", yscale="log", xlabel=panel.label)
        for each in (axis.xaxis, axis.yaxis):
            each.set_major_formatter(short)
            each.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    bottom, top = axes[0].get_ylim()
    axes[0].set_yticks([each for each in (1, 2, 5, 10, 20, 50, 100) if bottom <= each <= top])
    axes[0].set_ylabel("µs per step of one seed")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="iq", choices=("iq", "dqn"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it there, too")
    options = parser.parse_args()
    compute_in_threads(1)
    print(f"{options.method}, CartPole-v1, one core; medians of {options.rounds} rounds")
    measured = {}
    for panel in PANELS:
        if options.method == "iq" or panel.setting != "contexts":
            measured[panel] = measure(options.method, panel, options.rounds)
            print_panel(panel, measured[panel])
            gc.collect()
    if options.picture:
        draw(options.method, measured, options.picture)


if __name__ == "__main__":
    main()
