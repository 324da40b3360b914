"""What the authors ran on Atari: games, methods and replay capacities, by the paper's names."""

from __future__ import annotations

from typing import NamedTuple

GAMES = ("Pong", "Breakout", "Carnival", "Freeway", "Tennis", "FishingDerby")
BUFFER_SIZES = (10_000, 1_000_000)
FAMILIES = ("DQN", "Rainbow")
METHODS = tuple(family + part for family in FAMILIES for part in ("", "+SRNN", "+IQ-RE"))
RUNS, POINTS, SMOOTHING = 5, 200, 4
"""runs per setting, iterations per run, iterations per point of the paper's figures and tables"""
ENCODER_GAMES, ENCODER_BUFFER = ("Breakout", "Carnival"), 10_000
"""where the random encoder (RE) was compared with the trained one (TE)"""
ENCODERS = tuple(f"{family}+IQ-{encoder}" for family in FAMILIES for encoder in ("RE", "TE"))


class Setting(NamedTuple):
    """Five runs of the authors."""

    game: str
    buffer_size: int
    method: str

    def __str__(self) -> str:
        return f"{self.game} {self.method} N={self.buffer_size:,}"


class Pair(NamedTuple):
    """IQ-RE against a baseline of the same family."""

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


def every_setting() -> list[Setting]:
    """The 72 cells of the tables of highest returns and of deterioration."""
    return [Setting(game, size, method) for game in GAMES for size in BUFFER_SIZES for method in METHODS]


def every_pair() -> list[Pair]:
    """The 48 cells of the table of tests."""
    return [
        Pair(game, size, f"{family}+IQ-RE", family + part)
        for game in GAMES
        for size in BUFFER_SIZES
        for family in FAMILIES
        for part in ("", "+SRNN")
    ]


def encoder_settings() -> list[Setting]:
    return [Setting(game, ENCODER_BUFFER, method) for game in ENCODER_GAMES for method in ENCODERS]
