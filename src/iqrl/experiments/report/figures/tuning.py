"""The figure of a tuning: what each trial gave, over the trials and over each setting."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from iqrl.colours import COLOURS
from iqrl.experiments.report.figures.curves import drawing
from iqrl.experiments.tuning import Tuning
from iqrl.methods.base import Span


def draw_tuning(tuning: Tuning, path: Path) -> Path:
    """One panel for the trials in their order, one for each setting that was searched."""
    finished = [(number, trial) for number, trial in enumerate(tuning.trials, 1) if trial.value is not None]
    values = np.array([trial.value for _, trial in finished])
    numbers = [number for number, _ in finished]
    space = tuning.request.space
    with drawing(path, 3.2 * (1 + len(space)), 3.2) as figure:
        first, *others = figure.subplots(1, 1 + len(space), sharey=True, squeeze=False)[0]
        first.plot(numbers, values, "o", color=COLOURS[0], alpha=0.6)
        first.step(numbers, np.maximum.accumulate(values), where="post", color=COLOURS[1], label="best so far")
        first.set_xlabel("trial")
        first.set_ylabel(f"{tuning.request.by} of the mean curve")
        first.legend(frameon=False)
        best = int(np.argmax(values))
        for axis, (name, searched) in zip(others, space.items(), strict=True):
            tried = [trial.settings[name] for _, trial in finished]
            places = tried if isinstance(searched, Span) else [searched.index(value) for value in tried]
            axis.plot(places, values, "o", color=COLOURS[0], alpha=0.6)
            axis.plot(places[best], values[best], "o", color=COLOURS[1])
            axis.set_xlabel(name)
            if isinstance(searched, Span):
                axis.set_xscale("log" if searched.log else "linear")
            else:
                axis.set_xticks(range(len(searched)), [str(value) for value in searched])
        for axis in (first, *others):
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.25)
        figure.suptitle(f"{tuning.request.method} on {tuning.request.task}")
    return path
