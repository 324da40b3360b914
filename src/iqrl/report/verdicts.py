"""A measured return beside a printed one: as printed, above or below.

The paper gives no spread, so this is a description and no test: a difference is called one if it is more than a
twentieth of the task's range of returns.
"""

from __future__ import annotations

from typing import NamedTuple

TOLERANCE = 0.05
"""share of a task's range within which a measured return counts as the printed one"""


class Scale(NamedTuple):
    """What hardly any policy stays below, and what a good one reaches."""

    worst: float
    best: float


SCALES = {
    "CartPole-v0": Scale(9.0, 200.0),
    "CartPole-v1": Scale(9.0, 500.0),
    "Acrobot-v1": Scale(-500.0, -80.0),
    "Pendulum-v0": Scale(-1600.0, -130.0),
    "MountainCar": Scale(-1000.0, -100.0),
}


class Verdict(NamedTuple):
    word: str
    difference: float
    """measured minus printed, as a share of the task's range"""


AS_PRINTED, ABOVE, BELOW = "as printed", "above", "below"
SIGNS = {AS_PRINTED: "≈", ABOVE: "▲", BELOW: "▼"}


def verdict(task: str, measured: float | None, printed: float | None) -> Verdict | None:
    """None where there is nothing to compare, or no scale to compare on.

    >>> verdict("CartPole-v0", 195.0, 200.0).word, verdict("CartPole-v0", 150.0, 200.0).word
    ('as printed', 'below')
    """
    if measured is None or printed is None or task not in SCALES:
        return None
    scale = SCALES[task]
    difference = (measured - printed) / (scale.best - scale.worst)
    word = AS_PRINTED if abs(difference) <= TOLERANCE else ABOVE if difference > 0 else BELOW
    return Verdict(word, difference)


def legend() -> str:
    """What the words mean, in words."""
    scales = ", ".join(f"{task} {_plain(scale.worst)}…{_plain(scale.best)}" for task, scale in SCALES.items())
    return (
        f"Verdict: the highest point of the mean curve, compared with the number the paper prints. "
        f"{SIGNS[AS_PRINTED]} {AS_PRINTED}: the difference is at most {TOLERANCE:.0%} of the task's range of returns; "
        f"{SIGNS[ABOVE]} {ABOVE} or {SIGNS[BELOW]} {BELOW}: it is more. Ranges, from what hardly any policy stays "
        f"below to what a good one reaches: {scales}. The paper gives no spread over its five runs, so a verdict "
        f"describes the difference and does not test it. Runs with other settings, or of another length, "
        f"than the paper's have none."
    )


def _plain(value: float) -> str:
    return f"{value:g}".replace("-", "−")
