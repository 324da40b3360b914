"""One table of colours: a method has the same one on the page, in figures, in notebooks and in the terminal.

Every kind of colour vision tells them apart: the nearest two of the eight are 10 apart (OKLab × 100) in normal vision
and in simulated protanopia, deuteranopia and tritanopia. Each has a contrast of 3 to its background. The second
palette is for a dark background, hue for hue.
"""

from __future__ import annotations

from collections.abc import Sequence

COLOURS = ("#0c48bf", "#c2411a", "#17896f", "#8e5dec", "#b19130", "#34405e", "#3b9dd6", "#7d0228")
DARK_COLOURS = ("#5578f3", "#de5031", "#46c391", "#a999e5", "#ffc83d", "#ecedd3", "#abd0ff", "#b06397")
METHODS = {
    "iq": 1, "dqn": 2, "srnn": 0, "dsom": 3, "tcnn": 4, "local-q": 6, "medqn-u": 5, "medqn-r": 7,
    "iq-re": 1, "rainbow-iq-re": 3, "rainbow": 6, "stream-q": 0, "stream-c51": 7,
}  # fmt: skip
"""the number of a method's colour; the paper draws IQ in red and DQN in green"""


def shared_colours(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """The number of a colour for each name, the same in every group, different within a group while there are enough.

    A name begins with a method, or is a setting. Methods of the table keep their colour, others take what is left.

    >>> shared_colours([["dqn", "iq", "srnn"], ["iq", "k=1"], ["k=1", "srnn"]])
    {'dqn': 2, 'iq': 1, 'srnn': 0, 'k=1': 2}
    """
    chosen: dict[str, int] = {}
    for name in dict.fromkeys(name for group in groups for name in group):
        taken = [METHODS.get(other, chosen.get(other)) for other in _companions(name, groups)]
        own = METHODS.get(name)
        clash = own is not None and own in [chosen.get(other) for other in _companions(name, groups)]
        free = min(range(len(COLOURS)), key=lambda colour: (taken.count(colour), colour))
        chosen[name] = free if own is None or clash else own
    return chosen


def _companions(name: str, groups: Sequence[Sequence[str]]) -> set[str]:
    """Names that share a group with this one."""
    return {other for group in groups if name in group for other in group} - {name}


def method_colour(method: str) -> str | None:
    """On a light background; None for a method without a colour of its own."""
    return COLOURS[METHODS[method]] if method in METHODS else None


def cycle_colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]
