"""What was seen where no two sides are compared: levels, fates of seeds, matrices, the best k, cost.

Each gives what was found, a word of `verdicts` per finding and a sentence with its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.diagnostics.text import listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import SCALES
from iqrl.reproduction.claims.contrasts import MeasuredCurves, MeasuredStudy, highest_on_scale, select
from iqrl.reproduction.claims.verdicts import NOT_SHOWN, YES
from iqrl.statistics.curves import COLLAPSED, NEVER_LEARNED, auc, fates, final, highest

NEAR = 0.95
"""of the scale, from which on a return is near the best"""
HALF_OF_THE_SEEDS = 0.5


class Observation(NamedTuple):
    found: list[str]
    text: str
    seeds: int


Part = Mapping[str, Any]


def near_optimal(study: MeasuredStudy, part: Part) -> Observation:
    """On how many tasks the highest return, and the final, are near the best."""
    runs = select(study.runs, part["own"])
    texts, found = [], []
    for run in runs:
        scale = SCALES[run.config["task"]]
        best, last = highest_on_scale(run), (float(np.nanmean(final(run.returns))) - scale.worst) / scale.range
        found.append(YES if best >= NEAR and last >= NEAR else NOT_SHOWN)
        texts.append(
            f"{run.config['task']} {return_text(highest(run.returns))} at the highest ({best:.0%} of the range), "
            f"{return_text(float(np.nanmean(final(run.returns))))} at the end ({last:.0%})"
        )
    near = sum(highest_on_scale(run) >= NEAR for run in runs)
    both = found.count(YES)
    text = (
        f"{NEAR:.0%} of the range or more: at the highest on {near} of {len(runs)} tasks, at the highest and at the "
        f"end on {both}. {'; '.join(texts)}."
    )
    return Observation(found, text, _fewest_seeds(runs))


def collapses(study: MeasuredStudy, part: Part) -> Observation:
    """In which cells most seeds collapsed, apart from those that never learned."""
    runs = select(study.runs, part["own"])
    texts, found = [], []
    for run in runs:
        scale = SCALES[run.config["task"]]
        seen = fates(run.returns, scale.random, scale.best)
        fallen = seen.count(COLLAPSED)
        found.append(YES if fallen >= HALF_OF_THE_SEEDS * len(seen) else NOT_SHOWN)
        never = f", {seen.count(NEVER_LEARNED)} never learned" if NEVER_LEARNED in seen else ""
        name = f"{run.config['method']} on {run.config['task']}, {size_name(run.config['buffer_size'])}"
        texts.append(f"{name}: {fallen} of {len(seen)} collapsed{never}")
    return Observation(found, f"Seeds. {'; '.join(texts)}.", _fewest_seeds(runs))


def context_matrix(study: MeasuredStudy, part: Part) -> Observation:
    """Whether training on a context lowers its own loss and raises that of the others: cells with that sign."""
    texts, found, seeds = [], [], []
    for run in study.results.runs:
        if run.config["task"] != part["task"] or run.config["method"] not in part["methods"]:
            continue
        analysis = run.analyses["context_matrix"]
        matrix, per_seed = np.array(analysis["matrix"], float), np.array(analysis["per_seed"], float)
        own, others = np.diag(matrix), matrix[~np.eye(len(matrix), dtype=bool)]
        lowered, raised = int((own < 0).sum()), int((others > 0).sum())
        found.append(YES if lowered == len(own) and raised == len(others) else NOT_SHOWN)
        seeds.append(len(per_seed))
        texts.append(
            f"{run.config['method']}: its own loss falls for {lowered} of {len(own)} contexts (mean "
            f"{own.mean():+.1%}), that of another rises in {raised} of {len(others)} cells (mean {others.mean():+.1%})"
        )
    return Observation(found, f"{'; '.join(texts)}.", min(seeds, default=0))


def best_contexts(study: MeasuredStudy, part: Part) -> Observation:
    """Which k is the best on a task, by highest, final and AUC."""
    runs = [run for run in select(study.runs, {"method": "iq"}) if run.config["task"] in part["best"]]
    texts, found = [], []
    for task in unique(run.config["task"] for run in runs):
        here = [run for run in runs if run.config["task"] == task]
        by: dict[str, Callable[[MeasuredCurves], float]] = {
            "highest": lambda run: highest(run.returns),
            "final": lambda run: float(np.nanmean(final(run.returns))),
            "AUC": lambda run: float(np.nanmean(auc(run.returns))),
        }
        best = {name: max(here, key=number) for name, number in by.items()}
        found += [YES if run.config["contexts"] == part["best"][task] else NOT_SHOWN for run in best.values()]
        named = [f"k = {run.config['contexts']} by {name} ({return_text(by[name](run))})" for name, run in best.items()]
        texts.append(f"{task}: the best is {listing(named)}")
    return Observation(found, f"{'; '.join(texts)}.", _fewest_seeds(runs))


def cost(study: MeasuredStudy, part: Part) -> Observation:
    """Time and operations of a method as a multiple of another's."""
    by_method = {run.config["method"]: run for run in study.results.runs}
    own, other = (by_method[part[side]].analyses["cost"] for side in ("own", "other"))
    slower = own["seconds_per_million_steps"] / other["seconds_per_million_steps"]
    more = {name: own["flops"][name] / other["flops"][name] for name in own["flops"]}
    found = [YES if ratio <= part["most"] else NOT_SHOWN for ratio in (slower, *more.values())]
    counts = listing([f"{ratio:.2f} times {name}" for name, ratio in more.items()])
    text = f"{part['own']} takes {slower:.2f} times the time of {part['other']} per step; operations: {counts}."
    return Observation(found, text, by_method[part["own"]].config["seeds"])


def last_values(study: MeasuredStudy, part: Part) -> Observation:
    """The mean of a column over the last tenth of the run, lower for the first method than for the second."""
    means = {}
    for run in study.results.runs:
        rows = study.results.curves.filter(run=run.id)
        last = rows.filter(pl.col("step") > 0.9 * pl.col("step").max())
        means[run.config["method"]] = float(last[part["column"]].drop_nans().mean() or float("nan"))
    own, other = means[part["own"]], means[part["other"]]
    text = (
        f"Mean of `{part['column']}` over the last tenth: {own:.3g} for {part['own']}, {other:.3g} for {part['other']}."
    )
    return Observation([YES if own < other else NOT_SHOWN], text, study.results.runs[0].config["seeds"])


def lower_column(study: MeasuredStudy, part: Part) -> Observation:
    """In how many cells the mean of a column is lower for a method than for each rival; almost all are nine of ten.

    P is how likely a run of the method has the lower mean, averaged over the cells.
    """
    means: dict[tuple[str, int, str], np.ndarray] = {}
    for run in study.results.runs:
        rows = study.results.curves.filter(run=run.id).drop_nans(part["column"])
        of_seeds = rows.group_by("seed").agg(pl.col(part["column"]).mean())[part["column"]].to_numpy()
        means[run.config["task"], run.config["buffer_size"], run.config["method"]] = of_seeds
    cells = unique((task, size) for task, size, method in means if method == part["own"])
    texts, found = [], []
    for rival in part["others"]:
        shared = [cell for cell in cells if (*cell, rival) in means]
        if not shared:  # not run yet
            continue
        pairs = [(means[*cell, part["own"]], means[*cell, rival]) for cell in shared]
        lower = sum(own.mean() < other.mean() for own, other in pairs)
        wins = np.mean([(own[:, None] < other).mean() + (own[:, None] == other).mean() / 2 for own, other in pairs])
        found.append(YES if lower >= 0.9 * len(shared) else NOT_SHOWN)
        texts.append(f"than {rival} in {lower} of {len(shared)} (P {wins:.2f})")
    text = (
        f"Cells (a task with a buffer size) in which `{part['column']}` of {part['own']} is lower: {', '.join(texts)}."
    )
    return Observation(found, text, study.results.runs[0].config["seeds"])


def moves_with_return(study: MeasuredStudy, part: Part) -> Observation:
    """Spearman's ρ of each seed between a column and the change of the return from the period before."""
    from scipy.stats import spearmanr

    correlations = []
    for (_,), rows in study.results.curves.sort("step").group_by("seed", maintain_order=True):
        change = np.diff(rows["return"].to_numpy().astype(float))
        column = rows[part["column"]].to_numpy().astype(float)[1:]
        known = np.isfinite(change) & np.isfinite(column)
        correlations.append(float(spearmanr(change[known], column[known]).statistic))
    values = ", ".join(f"{value:+.2f}" for value in correlations)
    found = [YES if value < 0 else NOT_SHOWN for value in correlations]
    text = f"Spearman's ρ between `{part['column']}` of a period and the change of the return in it, by seed: {values}."
    return Observation(found, text, len(correlations))


def _fewest_seeds(runs: Sequence[MeasuredCurves]) -> int:
    return min((len(run.returns) for run in runs), default=0)


KINDS: dict[str, Callable[[MeasuredStudy, Part], Observation]] = {
    "near optimal": near_optimal,
    "collapses": collapses,
    "context matrix": context_matrix,
    "best contexts": best_contexts,
    "cost": cost,
    "last values": last_values,
    "lower column": lower_column,
    "moves with return": moves_with_return,
}
