"""Colours of lines, told apart by every kind of colour vision.

The nearest two of the eight are 10 apart (OKLab × 100) in normal vision and in simulated protanopia, deuteranopia and
tritanopia; each has a contrast of 3 to its background. The second palette is for a dark one, hue for hue.
"""

from __future__ import annotations

from collections.abc import Sequence

COLOURS = ("#0c48bf", "#c2411a", "#17896f", "#8e5dec", "#b19130", "#34405e", "#3b9dd6", "#7d0228")
DARK_COLOURS = ("#5578f3", "#de5031", "#46c391", "#a999e5", "#ffc83d", "#ecedd3", "#abd0ff", "#b06397")
AS_IN_THE_PAPER = {"iq": 1, "dqn": 2}
"""the paper draws IQ in red and DQN in green"""


def shared_colours(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """The number of a colour for each name, the same in every group, different within a group while there are enough.

    >>> shared_colours([["dqn", "iq", "srnn"], ["iq", "k=1"], ["k=1", "srnn"]])
    {'dqn': 2, 'iq': 1, 'srnn': 0, 'k=1': 2}
    """
    chosen: dict[str, int] = {}
    for name in dict.fromkeys(name for group in groups for name in group):
        if name in AS_IN_THE_PAPER:
            chosen[name] = AS_IN_THE_PAPER[name]
            continue
        reserved = [AS_IN_THE_PAPER.get(other, chosen.get(other)) for other in _companions(name, groups)]
        chosen[name] = min(range(len(COLOURS)), key=lambda colour: (reserved.count(colour), colour))
    return chosen


def _companions(name: str, groups: Sequence[Sequence[str]]) -> set[str]:
    """Names that share a group with this one."""
    return {other for group in groups if name in group for other in group} - {name}
