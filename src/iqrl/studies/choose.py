"""The best settings that a study found, as a study of their own: chosen on its seeds, to be reported on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from iqrl.errors import BadInput, unknown
from iqrl.results import mean_curve, summarise
from iqrl.studies.results import RunRecord, StudyResults

MEASURES = ("auc", "final", "highest")


def choose(results: StudyResults, over: Sequence[str], by: str = "auc") -> list[tuple[RunRecord, float]]:
    """For every combination of what else the study varies, the run that is best by this measure, and its value."""
    if by not in MEASURES:
        raise unknown("measure", by, MEASURES)
    if not results.runs:
        raise BadInput(f"study {results.name} has no finished run to choose from.")
    varied = sorted({name for record in results.runs for name in record.varied})
    for name in over:
        if name not in varied:
            raise unknown("varied setting", name, varied)
    values = {id[0]: value_of(table, by) for id, table in results.curves.group_by("run")}
    best: dict[tuple, tuple[RunRecord, float]] = {}
    for record in results.runs:
        value = values[record.id]
        cell = (record.variant, *(str(record.config[name]) for name in varied if name not in over))
        if cell not in best or value > best[cell][1]:
            best[cell] = (record, value)
    return list(best.values())


def value_of(curves: pl.DataFrame, by: str) -> float:
    """Of the mean curve; no return at all is the worst there is."""
    pivoted = curves.sort("seed", "step")["return"].to_numpy().reshape(curves["seed"].n_unique(), -1)
    value = summarise(mean_curve(pivoted))[by]
    return -np.inf if value is None else value


SEEDS = 5
NOT_KEPT = ("seed", "seeds", "steps", "period", "variant")
"""a choice may be made on shorter runs, and is reported on other seeds"""


def as_study(
    results: StudyResults, chosen: Sequence[tuple[RunRecord, float]], over: Sequence[str], by: str, variant: str
) -> str:
    """A study file: the same cells with the chosen values, on the seeds that were not chosen on, in full length."""
    spans = sorted({(record.config["seed"], record.config["seeds"]) for record, _ in chosen})
    seeds = ", ".join(f"{seed} to {seed + count - 1}" for seed, count in spans)
    lines = [
        f"# Chosen from the study {results.name} by the {by} of the mean curve, on seeds {seeds}.",
        f"title = {toml(f'{results.title}: the best')}",
        *([f"beside = {toml(results.content['beside'])}"] if "beside" in results.content else []),
        "",
        "[settings]",
        f"seeds = {SEEDS}",
        *_other_seeds(spans),
    ]
    for record, value in chosen:
        kept = {name: setting for name, setting in record.given.items() if name not in NOT_KEPT}
        kept |= {name: record.config[name] for name in over}
        lines += ["", "[[runs]]", f"# {by} {value:.1f}", f"variant = {toml(variant)}"]
        lines += [f"{name} = {toml(setting)}" for name, setting in kept.items()]
    return "\n".join(lines) + "\n"


def _other_seeds(spans: Sequence[tuple[int, int]]) -> list[str]:
    """A first seed, where the usual ones were chosen on."""
    if all(seed >= SEEDS for seed, _ in spans):
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
