"""Runs that differ in their seeds only are one run of more seeds: where a seed takes hours, a study runs them apart."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from iqrl.report.arrangement import unique
from iqrl.studies.results import RunRecord, StudyResults

OF_SEEDS = ("seed", "seeds")


def pooled(study: StudyResults) -> StudyResults:
    """The study with such runs joined under the first one's name."""
    first: dict[str, RunRecord] = {}
    joined = {run.id: first.setdefault(_but_for_seeds(run), run).id for run in study.runs}
    if len(first) == len(study.runs):
        return study
    seeds = {id: sum(run.config["seeds"] for run in study.runs if joined[run.id] == id) for id in set(joined.values())}
    curves = study.curves.with_columns(pl.col("run").replace(joined)).sort("run", "seed", "step")
    plan = unique((variant, joined.get(id, id)) for variant, id in study.plan)
    return study._replace(runs=[_whole(run, seeds[run.id]) for run in first.values()], curves=curves, plan=tuple(plan))


def _but_for_seeds(run: RunRecord) -> str:
    config = {name: value for name, value in run.config.items() if name not in OF_SEEDS}
    return json.dumps([run.variant, config], sort_keys=True)


def _whole(run: RunRecord, seeds: int) -> RunRecord:
    config: dict[str, Any] = run.config | {"seeds": seeds}
    return run._replace(config=config, varied=tuple(name for name in run.varied if name not in OF_SEEDS))
