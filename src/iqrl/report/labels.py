"""Names for runs that are shown together."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.config import Run

UNSHOWN = ("task", "method", "steps", "period", "epsilon_decay")
SHORT = {"buffer_size": "N"}


def distinct_labels(runs: Sequence[Run]) -> list[str]:
    """The method, and every setting in which runs of that method differ."""

    def label(run: Run) -> str:
        same_method = [other.to_dict() for other in runs if other.method == run.method]
        settings = {name: value for name, value in run.to_dict().items() if name not in UNSHOWN}
        differs = lambda name, others: len({str(other[name]) for other in others}) > 1
        everyone = [other.to_dict() for other in runs]
        # The buffer size is what this library is about: it is named wherever runs differ in it.
        differing = [name for name in settings if differs(name, everyone if name == "buffer_size" else same_method)]
        return " ".join([run.method, *[f"{SHORT.get(name, name)}={settings[name]}" for name in differing]])

    return [label(run) for run in runs]


def common_settings(runs: Sequence[Run]) -> str:
    """The task, and the buffer size if the runs share it."""
    sizes = {run.buffer_size for run in runs}
    return runs[0].task + (f", N={sizes.pop():,}" if len(sizes) == 1 else "")
