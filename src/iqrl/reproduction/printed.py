"""The numbers that the paper prints, errors included, and the settings that its authors ran on Atari.

Names of games and methods are the paper's: "DQN+IQ-RE" is IQ with the random encoder on top of DQN. The numbers are in
`printed.json`, transcribed from the paper's LaTeX source.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

GAMES = ("Pong", "Breakout", "Carnival", "Freeway", "Tennis", "FishingDerby")
BUFFER_SIZES = (10_000, 1_000_000)
FAMILIES = ("DQN", "Rainbow")
BASELINES = ("", "+SRNN")
"""what IQ-RE is compared with: the family itself, and the family with SRNN"""
ATARI_METHODS = tuple(family + part for family in FAMILIES for part in ("", "+SRNN", "+IQ-RE"))
RUNS, ITERATIONS, SMOOTHING = 5, 200, 4
"""runs per setting, iterations per run, iterations per point of the paper's figures and tables"""
ENCODER_GAMES, ENCODER_BUFFER = ("Breakout", "Carnival"), 10_000
"""where the random encoder (RE) was compared with the trained encoder (TE)"""
ENCODERS = tuple(f"{family}+IQ-{encoder}" for family in FAMILIES for encoder in ("RE", "TE"))

TABLE_I_NAMES = {"dqn": "DQN", "srnn": "DQN+SRNN", "dsom": "DQN+DSOM", "tcnn": "DQN+TCNN", "iq": "DQN+IQ"}
ATARI_NAMES = {
    "dqn": "DQN", "srnn": "DQN+SRNN", "iq-re": "DQN+IQ-RE",
    "rainbow": "Rainbow", "rainbow-srnn": "Rainbow+SRNN", "rainbow-iq-re": "Rainbow+IQ-RE",
}  # fmt: skip
"""the paper's name of each of our methods, in its Table I and on Atari"""


class Setting(NamedTuple):
    """A game, a replay capacity and a method. The authors have five runs of each setting."""

    game: str
    buffer_size: int
    method: str

    def __str__(self) -> str:
        return f"{self.game} {self.method} N={self.buffer_size:,}"


class Pair(NamedTuple):
    """IQ-RE and a baseline of the same family, on one game with one replay capacity."""

    game: str
    buffer_size: int
    method: str
    baseline: str

    @property
    def family(self) -> str:
        return self.method.partition("+")[0]

    @property
    def settings(self) -> tuple[Setting, Setting]:
        return Setting(self.game, self.buffer_size, self.method), Setting(self.game, self.buffer_size, self.baseline)

    def __str__(self) -> str:
        return f"{self.game} {self.method} against {self.baseline} N={self.buffer_size:,}"


ATARI_SETTINGS = [Setting(game, size, method) for game in GAMES for size in BUFFER_SIZES for method in ATARI_METHODS]
"""the 72 cells of the tables of highest returns and of deterioration"""
ATARI_PAIRS = [
    Pair(game, size, f"{family}+IQ-RE", family + part)
    for game in GAMES
    for size in BUFFER_SIZES
    for family in FAMILIES
    for part in BASELINES
]
"""the 48 cells of the table of tests"""
ENCODER_SETTINGS = [Setting(game, ENCODER_BUFFER, method) for game in ENCODER_GAMES for method in ENCODERS]


class PrintedNumber(NamedTuple):
    """One number of a table."""

    value: float
    text: str
    """as printed, with the same digits"""
    bold: bool

    def agrees(self, value: float) -> bool:
        """Whether a number, rounded to the printed digits, is the printed one. A half may be rounded either way."""
        last_digit = float(Decimal(1).scaleb(int(Decimal(self.text).as_tuple().exponent)))
        return abs(value - self.value) <= last_digit * (0.5 + 1e-6)


class PrintedP(NamedTuple):
    """One p-value of the table of Kolmogorov–Smirnov tests."""

    cell: PrintedNumber
    significant: bool
    """marked as significant at 1%"""
    worse: bool
    """marked as significant in the other direction: IQ-RE is worse"""


def printed_value(task: str, method: str, buffer_size: int) -> PrintedNumber | None:
    """The highest return in Table I (classic control), by our names: `printed_value("CartPole-v0", "iq", 1)`."""
    return _number("table:highest_cumulative_score_classic_control", task, TABLE_I_NAMES.get(method, ""), buffer_size)


def printed_highest(setting: Setting) -> PrintedNumber | None:
    """The highest return on Atari."""
    return _number("table:highest_cumulative_score_atari", setting.game, setting.method, setting.buffer_size)


def printed_deterioration(setting: Setting) -> PrintedNumber | None:
    """The maximum deterioration ratio on Atari. The game may be "Average"."""
    return _number("table:maximum_deterioration_ratio", setting.game, setting.method, setting.buffer_size)


def printed_p(pair: Pair) -> PrintedP | None:
    """The p-value of a comparison on Atari."""
    cell = _cell("table:ks-test", pair.game, f"{pair.method} vs {pair.baseline}", pair.buffer_size)
    if cell is None:
        return None
    number = PrintedNumber(value=cell["p"], text=cell["printed"], bold=cell["bold"])
    return PrintedP(cell=number, significant=cell["bold"], worse=cell["asterisk"])


def text_claims() -> dict[str, Any]:
    """Numbers that the text of the paper gives about the Atari results, beside its tables."""
    return _load()["text_claims"]


def _number(table: str, task: str, method: str, buffer_size: int) -> PrintedNumber | None:
    cell = _cell(table, task, method, buffer_size)
    return None if cell is None else PrintedNumber(value=cell["value"], text=cell["printed"], bold=cell["bold"])


def _cell(table: str, task: str, column: str, buffer_size: int) -> dict[str, Any] | None:
    return _load()[table]["data"].get(task, {}).get(column, {}).get(str(buffer_size))


@cache
def _load() -> dict[str, Any]:
    return json.loads(resources.files("iqrl.reproduction").joinpath("printed.json").read_text(encoding="utf-8"))
