"""Our Atari runs beside the authors' curves, over the iterations that both have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from iqrl.errors import BadInput
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.authors_curves import AuthorsCurves
from iqrl.reproduction.page import Table, render_table
from iqrl.reproduction.printed import ATARI_NAMES, BUFFER_SIZES, GAMES, Setting

ITERATION_STEPS = 50_000
"""environment steps of one of the authors' iterations"""


class Match(NamedTuple):
    """A setting of the authors that a study has too."""

    setting: Setting
    ours: np.ndarray
    """[seeds, iterations]: mean return of an iteration's episodes"""
    authors: np.ndarray
    """[5, iterations]"""


def match_runs(results: StudyResults, curves: AuthorsCurves) -> list[Match]:
    """The settings of the authors that a study has, in the order of its runs."""
    ours: dict[Setting, list[np.ndarray]] = {}
    for setting, seeds in _curves_by_setting(results):
        ours.setdefault(setting, []).extend(seeds)
    if not ours:
        raise BadInput(
            f"study {results.name} has no finished run that the authors have: of {', '.join(ATARI_NAMES)} on "
            f"{', '.join(GAMES)} with a buffer of 10,000 or 1,000,000, of {ITERATION_STEPS:,} steps or more, and with "
            f"a period that divides {ITERATION_STEPS:,}."
        )
    return [_match(setting, seeds, curves) for setting, seeds in ours.items()]


def _match(setting: Setting, seeds: list[np.ndarray], curves: AuthorsCurves) -> Match:
    iterations = min(len(seed) for seed in seeds)
    return Match(
        setting=setting,
        ours=np.stack([seed[:iterations] for seed in seeds]),
        authors=curves.runs[setting][:, :iterations],
    )


def _curves_by_setting(results: StudyResults) -> Iterator[tuple[Setting, list[np.ndarray]]]:
    for record in results.runs:
        steps, period = record.config["steps"], record.config["period"]
        setting = _setting_of(record)
        if setting is None or steps < ITERATION_STEPS or ITERATION_STEPS % period:
            continue
        rows = results.curves.filter(pl.col("run") == record.id).group_by("seed", maintain_order=True)
        yield setting, [_mean_by_iteration(seed, steps // ITERATION_STEPS) for _, seed in rows]


def _setting_of(record: RunRecord) -> Setting | None:
    game = record.config["task"].removeprefix("ALE/").removesuffix("-v5")
    method, buffer_size = ATARI_NAMES.get(record.config["method"]), record.config["buffer_size"]
    if method is None or game not in GAMES or buffer_size not in BUFFER_SIZES:
        return None
    return Setting(game, buffer_size, method)


def _mean_by_iteration(rows: pl.DataFrame, iterations: int) -> np.ndarray:
    """[iterations]: the mean over an iteration's episodes, as in the authors' curves, from the means over periods."""
    iteration = (rows["step"].to_numpy() - 1) // ITERATION_STEPS
    episodes = rows["episodes"].to_numpy().astype(float)
    returns = np.where(episodes > 0, rows["return"].to_numpy().astype(float), 0.0)
    total = lambda values: np.bincount(iteration, values, minlength=iterations)[:iterations]
    with np.errstate(invalid="ignore"):
        return total(returns * episodes) / total(episodes)


def render_matches(matches: list[Match]) -> str:
    """One table per game and capacity, in Markdown."""
    groups: dict[tuple[str, int], list[Match]] = {}
    for match in matches:
        groups.setdefault((match.setting.game, match.setting.buffer_size), []).append(match)
    return "\n\n".join(f"{_caption(*place)}\n\n{render_table(beside_table(group))}" for place, group in groups.items())


def _caption(game: str, buffer_size: int) -> str:
    return (
        f"{game}, N = {buffer_size:,}: mean return of the training episodes of {ITERATION_STEPS:,} steps each; the "
        "authors': mean of five runs, and their lowest and highest."
    )


def beside_table(matches: list[Match]) -> Table:
    """A row per iteration, two columns per method."""
    columns = ["steps", *(name for match in matches for name in (match.setting.method, "the authors'"))]
    iterations = range(max(match.ours.shape[1] for match in matches))
    rows = [
        [f"{(i + 1) * ITERATION_STEPS:,}", *(cell for match in matches for cell in _cells(match, i))]
        for i in iterations
    ]
    return Table(columns=columns, rows=rows, text_columns=0)


def _cells(match: Match, iteration: int) -> tuple[str, str]:
    if iteration >= match.ours.shape[1]:
        return "", ""
    ours, authors = match.ours[:, iteration], match.authors[:, iteration]
    return f"{ours.mean():.2f}", f"{authors.mean():.2f} ({authors.min():.2f} to {authors.max():.2f})"
