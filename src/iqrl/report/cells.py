"""A cell of a table: one run beside what the paper prints for it."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from iqrl.paper.printed import printed_value
from iqrl.report.values import values_of
from iqrl.report.verdicts import Verdict, verdict
from iqrl.results import mean_curve, summarise
from iqrl.statistics.bootstrap import Interval, mean_interval
from iqrl.studies.results import RunRecord, StudyResults

IN_THE_TABLE = {"task", "method", "buffer_size"}
"""what the paper's table varies; a study that varies more has runs of which it says nothing"""


class Cell(NamedTuple):
    run: RunRecord
    printed: float | None
    """highest return in the paper's table"""
    highest: float | None
    """highest point of the mean curve; None if no episode ended"""
    final: Interval | None
    """mean over seeds of the last tenth of the curve"""
    auc: Interval | None
    """mean over seeds of the whole curve"""
    seeds: tuple[int, ...]
    finals: tuple[float | None, ...]
    """final of each seed"""
    aucs: tuple[float | None, ...]
    """area under the curve of each seed"""
    verdict: Verdict | None


def cells_of(study: StudyResults) -> list[Cell]:
    """One cell per run, in the order of the runs."""
    by_run = study.curves.partition_by("run", as_dict=True)
    return [cell_of(run, by_run[(run.id,)]) for run in study.runs]


def cell_of(run: RunRecord, curves: pl.DataFrame) -> Cell:
    """`curves` has the rows of this run."""
    _, returns = values_of(curves, "return")
    per_seed = [summarise(curve) for curve in returns]
    highest, printed = summarise(mean_curve(returns))["highest"], printed_of(run)
    return Cell(
        run=run,
        printed=printed,
        highest=highest,
        final=_interval([seed["final"] for seed in per_seed]),
        auc=_interval([seed["auc"] for seed in per_seed]),
        seeds=tuple(curves["seed"].unique().sort().to_list()),
        finals=tuple(seed["final"] for seed in per_seed),
        aucs=tuple(seed["auc"] for seed in per_seed),
        verdict=verdict(run.config["task"], highest, printed) if as_the_paper(run) else None,
    )


def as_the_paper(run: RunRecord) -> bool:
    """Whether its settings and its length are the paper's, but for what a variant changes."""
    return not run.given or (run.given.get("preset") == "paper" and "steps" not in run.given)


def printed_of(run: RunRecord) -> float | None:
    if not set(run.varied) <= IN_THE_TABLE:
        return None
    printed = printed_value(run.config["task"], run.config["method"], run.config["buffer_size"])
    return printed and printed.value


def _interval(values: list[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return mean_interval(known) if known else None
