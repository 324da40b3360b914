"""What was seen where no two sides are compared: levels, fates of seeds, matrices, the best k, cost.

Each gives what was found, a word of `verdicts` per finding and a sentence with its numbers. Words follow from 95%
intervals over seeds, which are not corrected for their number. What can confirm a sentence can contradict it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import beta, chi2, spearmanr

from iqrl.diagnostics.text import listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import SCALES, interval_text
from iqrl.experiments.report.comparison_tables import p_text, percent_text
from iqrl.reproduction.claims.contrasts import (
    LESS_IS_BETTER,
    PER_SEED,
    MeasuredCurves,
    MeasuredStudy,
    highest_on_scale,
    match,
    on_scale,
    select,
)
from iqrl.reproduction.claims.verdicts import (
    ALIKE,
    LEVEL,
    NOT_SHOWN,
    OPPOSITE,
    OPPOSITE_SUGGESTED,
    SUGGESTED,
    YES,
)
from iqrl.statistics.curves import COLLAPSED, LOST_SHARE, NEVER_LEARNED, auc, fates, final, highest
from iqrl.statistics.highest import highest_difference
from iqrl.statistics.intervals import Interval, difference_interval, mean_interval
from iqrl.statistics.significance import holm

NEAR = 0.95
"""of the scale, from which on a return is near the best"""
HALF_OF_THE_SEEDS = 0.5
QUARTER = 0.25
SOLVED = {"CartPole-v0": 195.0, "CartPole-v1": 475.0, "Acrobot-v1": -100.0}
"""the return at which a task counts as solved, where its makers name one"""
MEASURE_NAMES = {"highest": "highest", "final": "final", "auc": "AUC", "fall": "deterioration"}


class Observation(NamedTuple):
    found: list[str]
    text: str
    seeds: int


Part = Mapping[str, Any]


def above(limit: float, interval: Interval) -> str:
    """Whether a number is at least this: yes or the opposite, where its whole interval says so."""
    return YES if interval.low >= limit else OPPOSITE if interval.high < limit else NOT_SHOWN


def below(limit: float, interval: Interval) -> str:
    return {YES: OPPOSITE, OPPOSITE: YES}.get(above(limit, interval), NOT_SHOWN)


def share_interval(count: int, of: int, level: float = 0.95) -> Interval:
    """A share of seeds, with its exact interval (Clopper and Pearson 1934).

    >>> [round(end, 2) for end in share_interval(0, 10)], [round(end, 2) for end in share_interval(5, 10)]
    ([0.0, 0.0, 0.31], [0.5, 0.19, 0.81])
    """
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, count, of - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, of - count)) if count < of else 1.0
    return Interval(count / of, low, high)


def final_share(run: MeasuredCurves) -> Interval:
    """The final return as a share of the task's range."""
    scale = SCALES[run.config["task"]]
    return mean_interval((final(run.returns) - scale.worst) / scale.range)


def near_optimal(study: MeasuredStudy, part: Part) -> Observation:
    """On how many tasks the final return is near the best; the highest is shown beside it."""
    runs = select(study.runs, part["own"])
    texts, found = [], []
    for run in runs:
        best, last = highest_on_scale(run), final_share(run)
        found.append(above(NEAR, last))
        texts.append(
            f"{_named(run, runs)} {return_text(highest(run.returns))} at the highest ({best:.0%} of the range), "
            f"{return_text(float(np.nanmean(final(run.returns))))} at the end ({interval_text(last, '{:.0%}'.format)})"
        )
    near = sum(highest_on_scale(run) >= NEAR for run in runs)
    cells = "tasks" if _one_method(runs) else "cells"
    text = (
        f"{NEAR:.0%} of the range or more: at the highest on {near} of {len(runs)} {cells}, at the end, with the whole "
        f"interval, on {found.count(YES)}. {'; '.join(texts)}.{_solved_text(runs)}"
    )
    return Observation(found, text, _fewest_seeds(runs))


def _solved_text(runs: Sequence[MeasuredCurves]) -> str:
    """On how many tasks of those that have one the threshold is reached."""
    with_one = [run for run in runs if run.config["task"] in SOLVED]
    if not with_one or not _one_method(runs):
        return ""
    numbers = {"highest": highest, "end": lambda returns: float(np.nanmean(final(returns)))}
    reached = {
        name: [run.config["task"] for run in with_one if of(run.returns) >= SOLVED[run.config["task"]]]
        for name, of in numbers.items()
    }
    where = [f"at the {name} on {listing(tasks) if tasks else 'none'}" for name, tasks in reached.items()]
    limits = listing([f"{return_text(SOLVED[run.config['task']])} on {run.config['task']}" for run in with_one])
    return f" The return at which a task counts as solved ({limits}) is reached {' and '.join(where)}."


def _one_method(runs: Sequence[MeasuredCurves]) -> bool:
    return len({run.config["method"] for run in runs}) == 1


def _named(run: MeasuredCurves, runs: Sequence[MeasuredCurves]) -> str:
    return run.config["task"] if _one_method(runs) else f"{run.config['method']} on {run.config['task']}"


def far_from_optimal(study: MeasuredStudy, part: Part) -> Observation:
    """Whether the final return stays away from the best, for each number of contexts."""
    runs = select(study.runs, part["own"])
    found = [below(NEAR, final_share(run)) for run in runs]
    texts = [
        f"k = {run.config['contexts']}: {return_text(highest(run.returns))} at the highest "
        f"({highest_on_scale(run):.0%} of the range), {return_text(float(np.nanmean(final(run.returns))))} at the end"
        for run in runs
    ]
    text = f"Below {NEAR:.0%} of the range at the end: {found.count(YES)} of {len(runs)}. {'; '.join(texts)}."
    return Observation(found, text, _fewest_seeds(runs))


def collapses(study: MeasuredStudy, part: Part) -> Observation:
    """In which cells most seeds lost half of what they had gained; how many lost a quarter is shown beside it."""
    runs = select(study.runs, part["own"])
    texts, found = [], []
    for run in runs:
        lost = {share: _seen(run, share).count(COLLAPSED) for share in (LOST_SHARE, QUARTER)}
        seeds, never = len(run.returns), _seen(run).count(NEVER_LEARNED)
        found.append(above(HALF_OF_THE_SEEDS, share_interval(lost[LOST_SHARE], seeds)))
        name = f"{run.config['method']} on {run.config['task']}, {size_name(run.config['buffer_size'])}"
        more = f", {never} never learned" if never else ""
        texts.append(f"{name}: {lost[LOST_SHARE]} of {seeds} lost half, {lost[QUARTER]} a quarter{more}")
    text = f"Seeds that lost a share of what their best point had gained. {'; '.join(texts)}."
    return Observation(found, text, _fewest_seeds(runs))


def never_collapses(study: MeasuredStudy, part: Part) -> Observation:
    """Whether no seed of a method collapsed, beside the others; a claim that something is eliminated is one claim."""
    texts, fallen = [], {}
    for method in (part["own"], *part["others"]):
        runs = select(study.runs, {"method": method})
        seen = [fate for run in runs for fate in _seen(run)]
        fallen[method] = seen.count(COLLAPSED)
        worst = max(runs, key=lambda run: _seen(run).count(COLLAPSED))
        most = _seen(worst).count(COLLAPSED)
        where = f", most of them on {worst.config['task']} with {size_name(worst.config['buffer_size'])} ({most} of "
        where = f"{where}{len(worst.returns)})" if most else ""
        never = seen.count(NEVER_LEARNED)
        texts.append(f"{method}: {fallen[method]} of {len(seen)} seeds collapsed{where}, {never} never learned")
    found = YES if fallen[part["own"]] == 0 else OPPOSITE
    return Observation([found], f"{'; '.join(texts)}.", _fewest_seeds(select(study.runs, {"method": part["own"]})))


def _seen(run: MeasuredCurves, lost: float = LOST_SHARE) -> list[str | None]:
    scale = SCALES[run.config["task"]]
    return fates(run.returns, scale.random, scale.best, lost)


def larger_advantage(study: MeasuredStudy, part: Part) -> Observation:
    """Is a method further ahead of each rival with one buffer size than with another: a difference of differences.

    Its interval is a bootstrap over seeds. It has no test, so at best it is suggested. Less deterioration is an
    advantage, so there the sign is turned.
    """
    texts, found, sizes = [], [], (part["at"], part["beside"])
    for rival in part["others"]:
        sides = [[{"method": method, "buffer_size": size} for method in (part["own"], rival)] for size in sizes]
        pairs = [on_scale(match(study.runs, *side, study.runs)) for side in sides]
        gaps = {name: _gap(name, *pairs) for name in part["measures"]}
        found += [
            SUGGESTED if gap.low > 0 else OPPOSITE_SUGGESTED if gap.high < 0 else NOT_SHOWN for gap in gaps.values()
        ]
        numbers = listing([f"{MEASURE_NAMES[name]} {_percent_interval(gap)}" for name, gap in gaps.items()])
        texts.append(f"over {rival}: {numbers}")
    text = (
        f"Advantage with {size_name(part['at'])} minus that with {size_name(part['beside'])}, in percent of the range: "
        f"{'; '.join(texts)}. 95% bootstrap intervals, without a test."
    )
    own = select(study.runs, {"method": part["own"]})
    return Observation(found, text, _fewest_seeds(own))


Cells = Sequence[tuple[np.ndarray, np.ndarray]]


def _gap(measure: str, first: Cells, second: Cells) -> Interval:
    """The mean difference in the first cells minus that in the second, which have as many."""
    # Half of it is the mean difference over the first cells and the second with their sides exchanged.
    crossed = [*first, *[(other, own) for own, other in second]]
    if measure == "highest":
        half = highest_difference(crossed)
    else:
        own, other = ([PER_SEED[measure](pair[side]) for pair in crossed] for side in (0, 1))
        half = difference_interval(own, other, resamples=2000)
    more = Interval(*[2 * number for number in half])
    return Interval(-more.value, -more.high, -more.low) if measure in LESS_IS_BETTER else more


def _percent_interval(share: Interval) -> str:
    return "{} [{}, {}]".format(*map(percent_text, share)).replace("-", "−")


def varies_by_task(study: MeasuredStudy, part: Part) -> Observation:
    """For each rival, whether the difference is another in other cells, by more than seeds explain."""
    texts, p_values, seeds = [], [], []
    for rival in part["others"]:
        pairs = match(study.runs, {"method": part["own"]}, {"method": rival}, study.runs)
        apart = {
            f"{own.config['task']} with {size_name(own.config['buffer_size'])}": _auc_difference(own, other)
            for own, other in pairs
        }
        least, most = (choose(apart, key=lambda cell: apart[cell][0]) for choose in (min, max))
        p_values.append(heterogeneity(list(apart.values())))
        seeds.append(_fewest_seeds([run for pair in pairs for run in pair]))
        ends = [f"{apart[cell][0]:+.0%} ({cell})".replace("-0%", "0%") for cell in (least, most)]
        texts.append(f"{rival}: from {ends[0]} to {ends[1]}, p {p_text(p_values[-1])}")
    text = (
        f"AUC of {part['own']} minus that of an ablation, in percent of the range, by cell; p: Cochran's Q, whether "
        f"the cells differ by more than their seeds explain. {'; '.join(texts)}."
    )
    found = [YES if p < LEVEL else NOT_SHOWN for p in holm(p_values)]
    return Observation(found, text.replace(" -", " −"), min(seeds, default=0))


def _auc_difference(own: MeasuredCurves, other: MeasuredCurves) -> tuple[float, float]:
    """As a share of the range, and its squared standard error."""
    scores = [auc(run.returns) / SCALES[run.config["task"]].range for run in (own, other)]
    return float(scores[0].mean() - scores[1].mean()), sum(float(np.var(x, ddof=1)) / len(x) for x in scores)


def heterogeneity(effects: Sequence[tuple[float, float]]) -> float:
    """p of Cochran's Q: effects with their squared standard errors are as far apart as chance would have them.

    >>> round(heterogeneity([(1.0, 1.0), (3.0, 1.0)]), 3)  # Q = 2, one degree of freedom
    0.157
    """
    apart, squared = np.array(effects).T
    weights = 1 / np.maximum(squared, np.finfo(float).tiny)
    mean = (weights * apart).sum() / weights.sum()
    return float(chi2.sf((weights * (apart - mean) ** 2).sum(), len(apart) - 1))


def task_by_task(study: MeasuredStudy, part: Part) -> Observation:
    """One side minus the other by final return in each cell: what an average over cells may hide."""
    pairs = match(study.runs, part["own"], part["others"], study.runs)
    texts = []
    for own, other in pairs:
        shares = [final(run.returns) / SCALES[run.config["task"]].range for run in (own, other)]
        texts.append(f"{own.config['task']} {_percent_interval(difference_interval([shares[0]], [shares[1]]))}")
    text = f"Final difference by task, in percent of the range, not tested: {', '.join(texts)}."
    return Observation([], text, _fewest_seeds([run for pair in pairs for run in pair]))


def identical_runs(study: MeasuredStudy, part: Part) -> Observation:
    """How many seeds of one method have the curve of another, number by number."""
    pairs = match(study.runs, {"method": part["own"]}, {"method": part["other"]}, study.runs)
    same = [
        sum(np.array_equal(x, y, equal_nan=True) for x, y in zip(own.returns, other.returns, strict=False))
        for own, other in pairs
    ]
    of = sum(min(len(own.returns), len(other.returns)) for own, other in pairs)
    text = f"{sum(same)} of {of} runs of {part['own']} are the run of {part['other']} with the same seed, bit for bit."
    return Observation([], text, _fewest_seeds([own for own, _ in pairs]))


def context_matrix(study: MeasuredStudy, part: Part) -> Observation:
    """Whether training on a context lowers its own loss and raises that of the others, in the median cell of a seed."""
    texts, found, seeds = [], [], []
    for run in study.results.runs:
        if run.variant or run.config["task"] != part["task"] or run.config["method"] not in part["methods"]:
            continue
        analysis = run.analyses["context_matrix"]
        matrix, per_seed = np.array(analysis["matrix"], float), np.array(analysis["per_seed"], float)
        diagonal = np.eye(len(matrix), dtype=bool)
        medians = [mean_interval(np.nanmedian(per_seed[:, cells], axis=1)) for cells in (diagonal, ~diagonal)]
        found += [below(0.0, medians[0]), above(0.0, medians[1])]
        own, others = matrix[diagonal], matrix[~diagonal]
        seeds.append(len(per_seed))
        middle = [interval_text(it, "{:+.1%}".format).replace("-", "−") for it in medians]
        texts.append(
            f"{run.config['method']}: its own loss changes by {middle[0]} and that of another by {middle[1]} in the "
            f"median cell of a seed. In the means over seeds it falls for {(own < 0).sum()} of {len(own)} contexts "
            f"(mean {own.mean():+.1%}), and rises in {(others > 0).sum()} of {len(others)} other cells (mean "
            f"{others.mean():+.1%}, {_smallest_text(others)}). By seed: {_signs_text(per_seed)}"
        )
    return Observation(found, f"{'; '.join(texts)}.", min(seeds, default=0))


def _smallest_text(changes: np.ndarray) -> str:
    raised = changes[changes > 0]
    return f"the smallest rise {raised.min():+.2%}" if len(raised) else "no rise"


def _signs_text(per_seed: np.ndarray) -> str:
    """[seeds, trained, measured]: in how many cells of single seeds the loss falls, and rises."""
    own = np.eye(per_seed.shape[-1], dtype=bool)
    fallen, others = (per_seed[:, own] < 0), per_seed[:, ~own]
    return (
        f"it falls in {fallen.sum()} of {fallen.size} own cells and rises in {(others > 0).sum()} of {others.size} "
        f"others, in {(others > 0.01).sum()} of them by more than 1%"
    )


def best_contexts(study: MeasuredStudy, part: Part) -> Observation:
    """Whether a k is within a tenth of the range of the best on its task, by final return and by AUC."""
    runs = [run for run in select(study.runs, {"method": "iq"}) if run.config["task"] in part["best"]]
    texts, found = [], []
    for task in unique(run.config["task"] for run in runs):
        here = {run.config["contexts"]: run for run in runs if run.config["task"] == task}
        named = here[part["best"][task]]
        for name, score in (("final return", final), ("AUC", auc)):
            best = max(here.values(), key=lambda run, score=score: np.nanmean(score(run.returns)))
            apart = difference_interval([score(best.returns)], [score(named.returns)])
            short = Interval(*[end / SCALES[task].range for end in apart])
            found.append(below(ALIKE, short))
            ks = ", ".join(f"{k}: {return_text(float(np.nanmean(score(run.returns))))}" for k, run in here.items())
            texts.append(
                f"{task} by {name} ({ks}): the best is k = {best.config['contexts']}, and k = "
                f"{named.config['contexts']} is short of it by {short.value:.0%} [{short.low:.0%}, {short.high:.0%}] "
                f"of the range".replace("-", "−")
            )
    text = f"Within {ALIKE:.0%} of the best. {'; '.join(texts)}."
    return Observation(found, text, _fewest_seeds(runs))


def cost(study: MeasuredStudy, part: Part) -> Observation:
    """Time and operations of a method as a multiple of another's."""
    by_method = {run.config["method"]: run for run in study.results.runs}
    own, other = (by_method[part[side]].analyses["cost"] for side in ("own", "other"))
    slower = own["seconds_per_million_steps"] / other["seconds_per_million_steps"]
    more = {name: own["flops"][name] / other["flops"][name] for name in own["flops"]}
    found = [YES if ratio <= part["most"] else OPPOSITE for ratio in (slower, *more.values())]
    counts = listing([f"{ratio:.2f} times {name}" for name, ratio in more.items()])
    text = f"{part['own']} takes {slower:.2f} times the time of {part['other']} per step; operations: {counts}."
    return Observation(found, text, by_method[part["own"]].config["seeds"])


def last_values(study: MeasuredStudy, part: Part) -> Observation:
    """The mean of a column over the last tenth of the run: is it lower for the first method than for the second?"""
    means = {}
    for run in study.results.runs:
        last = _last_tenth(study, run.id)
        of_seeds = last.group_by("seed", maintain_order=True).agg(pl.col(part["column"]).drop_nans().mean())
        means[run.config["method"]] = of_seeds[part["column"]].to_numpy()
    own, other = means[part["own"]], means[part["other"]]
    of_each = [
        f"{np.nanmean(values):.3g} for {part[side]} (by seed {', '.join(f'{value:.2g}' for value in values)})"
        for side, values in (("own", own), ("other", other))
    ]
    apart = difference_interval([own], [other])
    text = f"Mean of `{part['column']}` over the last tenth: {'; '.join(of_each)}."
    return Observation([below(0.0, apart)], text, len(own))


def _last_tenth(study: MeasuredStudy, run: str) -> pl.DataFrame:
    rows = study.results.curves.filter(run=run).sort("seed", "step")
    return rows.filter(pl.col("step") > 0.9 * pl.col("step").max())


def heads_apart(study: MeasuredStudy, part: Part) -> Observation:
    """The heads' mean values over the last tenth, by seed, and whether none is above what can be reached."""
    (run,) = [run for run in study.results.runs if run.config["method"] == part["own"]]
    texts, highest_of = [], []
    for _, rows in _last_tenth(study, run.id).group_by("seed", maintain_order=True):
        heads = np.nanmean(np.array(rows[part["column"]].to_list(), float), axis=0)
        highest_of.append(heads.max())
        texts.append(", ".join(f"{value:.1f}" for value in heads))
    found = below(HALF_OF_THE_SEEDS, share_interval(int((np.array(highest_of) > part["most"]).sum()), len(highest_of)))
    text = f"Mean of `{part['column']}` over the last tenth, the heads of each seed: {'; '.join(texts)}."
    return Observation([found], text.replace("-", "−"), len(texts))


def moves_with_return(study: MeasuredStudy, part: Part) -> Observation:
    """Spearman's ρ of each seed between a column in a period and how far the return moves into it, and into the next.

    The means over seeds have intervals and no test, so at best a claim is suggested.
    """
    seeds = study.results.curves.sort("seed", "step").partition_by("seed", maintain_order=True)
    of = {
        where: mean_interval([_rank_correlation(rows, part["column"], later) for rows in seeds])
        for where, later in (("in it", 0), ("in the next", 1))
    }
    low, high = of["in it"].low, of["in it"].high
    found = [SUGGESTED if high < 0 else OPPOSITE_SUGGESTED if low > 0 else NOT_SHOWN]
    numbers = listing([f"{where} {interval_text(rho, '{:+.2f}'.format)}" for where, rho in of.items()])
    text = (
        f"Spearman's ρ between `{part['column']}` of a period and the change of the return, mean over seeds with its "
        f"95% interval: {numbers}."
    )
    return Observation(found, text.replace("-", "−"), len(seeds))


def _rank_correlation(rows: pl.DataFrame, name: str, later: int) -> float:
    change = np.diff(rows["return"].to_numpy().astype(float))[later:]
    column = rows[name].to_numpy().astype(float)[1 : len(change) + 1]
    known = np.isfinite(change) & np.isfinite(column)
    return float(spearmanr(change[known], column[known]).statistic)


def _fewest_seeds(runs: Sequence[MeasuredCurves]) -> int:
    return min((len(run.returns) for run in runs), default=0)


KINDS: dict[str, Callable[[MeasuredStudy, Part], Observation]] = {
    "near optimal": near_optimal,
    "far from optimal": far_from_optimal,
    "collapses": collapses,
    "never collapses": never_collapses,
    "larger advantage": larger_advantage,
    "varies by task": varies_by_task,
    "task by task": task_by_task,
    "identical runs": identical_runs,
    "heads apart": heads_apart,
    "context matrix": context_matrix,
    "best contexts": best_contexts,
    "cost": cost,
    "last values": last_values,
    "moves with return": moves_with_return,
}
