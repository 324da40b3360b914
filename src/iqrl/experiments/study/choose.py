"""The best settings of a study as a study file: chosen on its seeds, to be reported on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.errors import BadInput, unknown
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.statistics.curves import mean_curve, steps_and_returns, summarise

MEASURES = ("auc", "final", "highest")


class Choice(NamedTuple):
    run: RunRecord
    value: float
    """of the measure by which it was chosen"""


def choose(results: StudyResults, over: Sequence[str], by: str = "auc") -> list[Choice]:
    """The best run by this measure, for every combination of what else the study varies."""
    if by not in MEASURES:
        raise unknown("measure", by, MEASURES)
    if not results.runs:
        raise BadInput(f"study {results.name} has no finished run to choose from.")
    varied = sorted({name for record in results.runs for name in record.varied})
    for name in over:
        if name not in varied:
            raise unknown("varied setting", name, varied)
    # Blocks may be of one task or method each, and a method may have settings that others do not have.
    apart = sorted({"task", "method", "buffer_size", *varied} - {*over})
    values = {id[0]: measure_curves(table, by) for id, table in results.curves.group_by("run")}
    best: dict[tuple[str, ...], Choice] = {}
    for run in results.runs:
        cell = (run.variant, *(str(run.config.get(name)) for name in apart))
        if cell not in best or values[run.id] > best[cell].value:
            best[cell] = Choice(run=run, value=values[run.id])
    return list(best.values())


def measure_curves(curves: pl.DataFrame, by: str) -> float:
    """The measure of the mean curve; minus infinity where no episode ended."""
    _, returns = steps_and_returns(curves)
    value = summarise(mean_curve(returns))[by]
    return -np.inf if value is None else value


NOT_KEPT = ("seed", "seeds", "steps", "period", "variant")
"""a choice may be made on shorter runs, and is reported on other seeds"""


def make_study_file(
    results: StudyResults, choices: Sequence[Choice], over: Sequence[str], by: str, variant: str, seeds: int
) -> str:
    """The text of a study file: the same cells with the chosen values, on other seeds, in full length."""
    spans = sorted({(choice.run.config["seed"], choice.run.config["seeds"]) for choice in choices})
    tried = ", ".join(f"{seed} to {seed + count - 1}" for seed, count in spans)
    lines = [
        f"# Chosen from the study {results.name} by the {by} of the mean curve, on seeds {tried}.",
        f"title = {toml(f'{results.title}: the best')}",
        *([f"beside = {toml(results.content['beside'])}"] if "beside" in results.content else []),
        "",
        "[settings]",
        f"seeds = {seeds}",
        *_other_seeds(spans, seeds),
    ]
    for run, value in choices:
        kept = {name: setting for name, setting in run.given.items() if name not in NOT_KEPT}
        kept |= {name: run.config[name] for name in over if name in run.config}
        lines += ["", "[[runs]]", f"# {by} {value:.1f}", f"variant = {toml(_join_names(variant, run.variant))}"]
        lines += [f"{name} = {toml(setting)}" for name, setting in kept.items()]
    return "\n".join(lines) + "\n"


def _join_names(*variants: str) -> str:
    return ", ".join(filter(None, variants))


def _other_seeds(spans: Sequence[tuple[int, int]], seeds: int) -> list[str]:
    """A first seed, where the choice was made on the usual ones."""
    if all(seed >= seeds for seed, _ in spans):
        return []
    return [f"seed = {max(seed + count for seed, count in spans)}"]


def toml(value: Any) -> str:
    """
    >>> toml("a"), toml(True), toml([64, 64]), toml(0.001)
    ('"a"', 'true', '[64, 64]', '0.001')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    return repr(value)
