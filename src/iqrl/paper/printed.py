"""The numbers printed in the paper, errors included."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

TABLE_I, ATARI = "table:highest_cumulative_score_classic_control", "table:highest_cumulative_score_atari"
DETERIORATION, KS = "table:maximum_deterioration_ratio", "table:ks-test"
METHODS = {"dqn": "DQN", "srnn": "DQN+SRNN", "dsom": "DQN+DSOM", "tcnn": "DQN+TCNN", "iq": "DQN+IQ"}
"""the paper's name of each of our methods that is in its Table I"""


class Printed(NamedTuple):
    """One number of a table."""

    value: float
    text: str
    """as printed, with as many digits"""
    bold: bool

    def agrees(self, value: float) -> bool:
        """Whether a number, rounded to the digits printed, is the printed one; a half may go either way."""
        last_digit = float(Decimal(1).scaleb(int(Decimal(self.text).as_tuple().exponent)))
        return abs(value - self.value) <= last_digit * (0.5 + 1e-6)


class PrintedP(NamedTuple):
    """One p-value of the table of Kolmogorov–Smirnov tests."""

    cell: Printed
    significant: bool
    """marked as significant at 1%"""
    worse: bool
    """marked as significant in the other direction: IQ-RE worse"""


def printed_value(task: str, method: str, buffer_size: int) -> Printed | None:
    """Highest return in Table I (classic control), by our names: `printed_value("CartPole-v0", "iq", 1)`."""
    return _printed(TABLE_I, task, METHODS.get(method, ""), buffer_size)


def printed_highest(game: str, method: str, buffer_size: int) -> Printed | None:
    """Highest return on Atari, by the paper's names: `printed_highest("Pong", "DQN+IQ-RE", 10_000)`."""
    return _printed(ATARI, game, method, buffer_size)


def printed_deterioration(game: str, method: str, buffer_size: int) -> Printed | None:
    """Maximum deterioration ratio on Atari; the game may be "Average"."""
    return _printed(DETERIORATION, game, method, buffer_size)


def printed_p(game: str, method: str, baseline: str, buffer_size: int) -> PrintedP | None:
    """p-value of a comparison on Atari: `printed_p("Pong", "DQN+IQ-RE", "DQN", 10_000)`."""
    cell = _cell(KS, game, f"{method} vs {baseline}", buffer_size)
    if cell is None:
        return None
    return PrintedP(Printed(cell["p"], cell["printed"], cell["bold"]), cell["bold"], cell["asterisk"])


def text_claims() -> dict[str, Any]:
    """What the text says in numbers of its own about the Atari results."""
    return _tables()["text_claims"]


def _printed(table: str, task: str, method: str, buffer_size: int) -> Printed | None:
    cell = _cell(table, task, method, buffer_size)
    return None if cell is None else Printed(cell["value"], cell["printed"], cell["bold"])


def _cell(table: str, task: str, column: str, buffer_size: int) -> dict[str, Any] | None:
    return _tables()[table]["data"].get(task, {}).get(column, {}).get(str(buffer_size))


@cache
def _tables() -> dict[str, Any]:
    return json.loads(resources.files("iqrl.paper").joinpath("tables.json").read_text(encoding="utf-8"))
