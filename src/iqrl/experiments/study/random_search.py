"""A random search in a study: settings that are drawn, so many times for every cell of a grid.

search = { draws = 11, learning_rate = { low = 1e-4, high = 1e-2, log = true }, double_q = [false, true] }

What is drawn follows from the number of draws, the name of the setting and a seed (`draw_seed`, 0 if not given). So
every cell is tried with the same draws, and methods with the same values of what they have in common.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from iqrl.errors import BadInput, shown

DRAWS, SEED = "draws", "draw_seed"
NO_SETTINGS = (DRAWS, SEED)
"""keys of a search that are no settings"""
DIGITS = 3
"""of what is drawn from a range"""


def searched_settings(search: Mapping[str, Any]) -> dict[str, Any]:
    """What is searched, by setting."""
    return {name: space for name, space in search.items() if name not in NO_SETTINGS}


def draw_settings(search: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The values of each draw; one draw without values where nothing is searched.

    >>> draw_settings({"draws": 2, "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}})
    [{'learning_rate': 0.000916}, {'learning_rate': 0.00562}]
    """
    spaces, draws = searched_settings(search), search.get(DRAWS, 1)
    columns = [_values(space, draws, random.Random(f"{search.get(SEED, 0)} {name}")) for name, space in spaces.items()]
    return [dict(zip(spaces, values, strict=True)) for values in zip(*columns, strict=True)] or [{}]


def _values(space: Any, draws: int, chance: random.Random) -> list[Any]:
    """In a random order. Of a list each value about equally often; of a range one from each of its equal parts."""
    order = chance.sample(range(draws), draws)
    if isinstance(space, list):
        dealt = chance.sample(space, len(space))
        return [dealt[place % len(dealt)] for place in order]
    return [_within(space, (place + chance.random()) / draws) for place in order]


def _within(space: Mapping[str, Any], share: float) -> float:
    low, high = space["low"], space["high"]
    value = low * (high / low) ** share if space.get("log") else low + (high - low) * share
    return float(f"{value:.{DIGITS}g}")


def check_search(search: Any, block: Mapping[str, Any]) -> None:
    """Of a block of runs. The values themselves are checked when the runs are planned."""
    if not isinstance(search, dict) or not searched_settings(search):
        raise BadInput(f"search must be a table with draws and a setting to search, got {shown(search)}.")
    for name, least in ((DRAWS, 1), (SEED, 0)):
        value = search.get(name, least if name == SEED else None)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadInput(f"{name} of a search must be a whole number from {least} on, got {shown(value)}.")
    for name, space in searched_settings(search).items():
        if name in block:
            raise BadInput(f"{name} is searched and given; give one of both.")
        if not (isinstance(space, list) and space) and not _is_range(space):
            raise BadInput(
                f"{name} is searched in {shown(space)}; it must be a list of values, or a range such as "
                "{ low = 1e-4, high = 1e-2, log = true }."
            )


def _is_range(space: Any) -> bool:
    if not isinstance(space, dict) or not {"low", "high"} <= set(space) <= {"low", "high", "log"}:
        return False
    low, high, log = space["low"], space["high"], space.get("log", False)
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    return numbers and isinstance(log, bool) and low < high and (not log or low > 0)
