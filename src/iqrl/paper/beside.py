"""Runs of ours beside the authors' Atari curves, over the steps that both have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from iqrl.errors import BadInput
from iqrl.paper.curves import AuthorsCurves
from iqrl.paper.settings import BUFFER_SIZES, GAMES, Setting
from iqrl.studies.results import StudyResults

ITERATION = 50_000
"""steps to a point of theirs"""
METHODS = {
    "dqn": "DQN", "srnn": "DQN+SRNN", "iq-re": "DQN+IQ-RE",
    "rainbow": "Rainbow", "rainbow-srnn": "Rainbow+SRNN", "rainbow-iq-re": "Rainbow+IQ-RE",
}  # fmt: skip


class Beside(NamedTuple):
    setting: Setting
    ours: np.ndarray
    """[seeds, iterations]: mean return of an iteration's episodes"""
    authors: np.ndarray
    """[5, iterations]"""


def beside(results: StudyResults, curves: AuthorsCurves) -> list[Beside]:
    """What a study has of the authors' settings, in the order of its runs."""
    found: dict[Setting, list[np.ndarray]] = {}
    for setting, own in _ours(results):
        found.setdefault(setting, []).extend(own)
    if not found:
        raise BadInput(
            f"study {results.name} has no finished run that the authors have: of {', '.join(METHODS)} on "
            f"{', '.join(GAMES)} with a buffer of 10,000 or 1,000,000, of {ITERATION:,} steps or more, and with a "
            f"period that divides {ITERATION:,}."
        )
    length = lambda own: min(len(each) for each in own)
    return [
        Beside(setting, np.stack([each[: length(own)] for each in own]), curves.runs[setting][:, : length(own)])
        for setting, own in found.items()
    ]


def _ours(results: StudyResults) -> Iterator[tuple[Setting, list[np.ndarray]]]:
    for record in results.runs:
        game = record.config["task"].removeprefix("ALE/").removesuffix("-v5")
        method = METHODS.get(record.config["method"])
        setting = Setting(game, record.config["buffer_size"], method or "")
        steps, period = record.config["steps"], record.config["period"]
        known = game in GAMES and method and setting.buffer_size in BUFFER_SIZES
        if not known or steps < ITERATION or ITERATION % period:
            continue
        rows = results.curves.filter(pl.col("run") == record.id)
        yield (
            setting,
            [_per_iteration(own, steps // ITERATION) for _, own in rows.group_by("seed", maintain_order=True)],
        )


def _per_iteration(rows: pl.DataFrame, iterations: int) -> np.ndarray:
    """The mean over episodes, as the authors have it, of periods of whatever length that end in an iteration."""
    number = (rows["step"].to_numpy() - 1) // ITERATION
    episodes = rows["episodes"].to_numpy().astype(float)
    returns = np.where(episodes > 0, rows["return"].to_numpy().astype(float), 0.0)
    total = lambda values: np.bincount(number, values, minlength=iterations)[:iterations]
    with np.errstate(invalid="ignore"):
        return total(returns * episodes) / total(episodes)


def table(found: list[Beside]) -> str:
    """One table per game and capacity, in Markdown."""
    groups: dict[tuple[str, int], list[Beside]] = {}
    for each in found:
        groups.setdefault((each.setting.game, each.setting.buffer_size), []).append(each)
    return "\n\n".join(_one_table(*key, group) for key, group in groups.items())


def _one_table(game: str, buffer_size: int, group: list[Beside]) -> str:
    heading = " | ".join(f"{each.setting.method} | the authors'" for each in group)
    lines = [
        f"{game}, N = {buffer_size:,}: mean return of the training episodes of {ITERATION:,} steps each; the authors': "
        "mean of five runs, and their lowest and highest.",
        "",
        f"| steps | {heading} |",
        "|---:|" + "---:|---:|" * len(group),
    ]
    for number in range(max(each.ours.shape[1] for each in group)):
        cells = " | ".join(_cells(each, number) for each in group)
        lines.append(f"| {(number + 1) * ITERATION:,} | {cells} |")
    return "\n".join(lines)


def _cells(each: Beside, number: int) -> str:
    if number >= each.ours.shape[1]:
        return " | "
    theirs = each.authors[:, number]
    return f"{each.ours[:, number].mean():.2f} | {theirs.mean():.2f} ({theirs.min():.2f} to {theirs.max():.2f})"
