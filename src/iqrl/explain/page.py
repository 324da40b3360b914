"""Why did my agent collapse? A page in Markdown about one run, from what was measured of it.

Every sentence has a measurement behind it, with its number and its step. Nothing here says what caused a fall: it
says what moved, and whether before or during it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.explain.advice import advice
from iqrl.explain.association import Association, associate
from iqrl.explain.case import Case
from iqrl.explain.coincidence import Coincidence, coincide
from iqrl.explain.fall_words import Told, falls_section, span
from iqrl.explain.falls import Course, Fall, course_of
from iqrl.explain.movements import LABELS, MOVED, PAST, study
from iqrl.explain.seeds import SeedMetrics, by_seed, last_share
from iqrl.explain.words import count, number, percent, return_text
from iqrl.measure.tails import across_iterations
from iqrl.results import mean_known
from iqrl.training.store import describe

SHOWN_PER_SEED, SHOWN = 3, 6
HOW_TO_MEASURE = "`iqrl train … --measure-every 100`"


def explain(run: Run, metrics: pl.DataFrame, drop: float = 0.25) -> str:
    """The page about a run; `drop` is the share of a seed's range of returns that makes a fall."""
    if not 0 < drop <= 1:
        raise BadInput(f"drop must be more than 0 and at most 1, got {drop}.")
    if not metrics.height:
        raise BadInput("the run has no measurements yet; train it first.")
    seeds = by_seed(run, metrics)
    told = [(seed, course_of(seed, drop)) for seed in seeds]
    studies = [study(seed, fall) for seed, fall in deepest(told)]
    case = Case(run, seeds, studies, associate(seeds), coincide(told))
    wanting = bool(studies) or any(course.kind == "unlearned" for _, course in told)
    sections = [
        head(run, told, drop),
        falls_section(told, studies) if studies else "",
        association_section(case.association, case.coincidence, case.measured),
        advice_section(case) if wanting else "",
        table(told),
        reading(seeds, drop),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def deepest(told: Sequence[Told]) -> list[tuple[SeedMetrics, Fall]]:
    """The falls to look at, the deepest first."""
    few = [
        (seed, fall)
        for seed, course in told
        for fall in sorted(course.falls, key=lambda it: -it.depth)[:SHOWN_PER_SEED]
    ]
    return sorted(few, key=lambda pair: -pair[1].depth)[:SHOWN]


# The head


def head(run: Run, told: Sequence[Told], drop: float) -> str:
    reached = max(int(seed.steps[-1]) for seed, _ in told)
    how_far = "finished" if reached >= run.steps else f"stopped at step {reached:,}"
    returns = np.concatenate([seed.returns[np.isfinite(seed.returns)] for seed, _ in told])
    lines = [f"# Why did it collapse? {run.method} on {run.task}", f"{describe(run)}; {how_far}."]
    if returns.size:
        lines[-1] += f" Returns between {return_text(returns.min())} and {return_text(returns.max())}."
    lines.append(f"**{verdict(told, drop)}**")
    lines += [text for seed, course in told if (text := unlearned(seed, course))]
    return "\n\n".join(lines)


def verdict(told: Sequence[Told], drop: float) -> str:
    kinds = [course.kind for _, course in told]
    every = count(len(told), "seed")
    if all(kind == "empty" for kind in kinds):
        return "No episode has ended yet, so there is no return to explain."
    if all(kind in ("empty", "short") for kind in kinds):
        return "Too short to explain: a curve needs three periods with a return after the exploring ones."
    falls = [(seed, fall) for seed, course in told for fall in course.falls]
    if falls:
        seeds = len({seed.seed for seed, _ in falls})
        lasting = sum(fall.recovered is None for _, fall in falls)
        how_many = f"{count(len(falls), 'fall')} in all, {f'{lasting} not' if lasting else 'each'} recovered by the end"
        seed, worst = max(falls, key=lambda pair: pair[1].depth)
        return (
            f"In {seeds} of {every} the return fell by more than {percent(drop)} of its range; "
            f"{how_many}. The deepest: seed {seed.seed}, {span(seed, worst)}."
        )
    if "learned" not in kinds:
        return f"No fall to explain: none of {every} ever rose clearly above its exploring first periods."
    return f"No fall: in none of {every} did the return fall by more than {percent(drop)} of its range."


def unlearned(seed: SeedMetrics, course: Course) -> str:
    if course.kind != "unlearned":
        return ""
    return (
        f"Seed {seed.seed} did not clearly learn: after the exploring first periods, no three successive returns have "
        f"a median above {return_text(course.bar)}, which is the {return_text(course.exploring)} of those periods and "
        f"three times the {return_text(course.usual_change)} by which it usually changes from one period to the next. "
        f"Its ups and downs are not counted as falls."
    )


# Over all seeds


def association_section(association: Association | None, coincidence: Coincidence | None, measured: bool) -> str:
    title = "## Over all periods: do interference and falls go together?"
    if not measured:
        return f"{title}\n\nNot known: interference was not measured."
    together = f"*At the same time*: {coincidence.in_words}." if coincidence else ""
    after = f"*One after the other*: {_one_after_the_other(association)}"
    return "\n\n".join([title, *filter(None, [together, after])])


def _one_after_the_other(association: Association | None) -> str:
    if association is None:
        return "not known, there are too few periods after ε's decay."
    plain, given = association.plain, association.given_return
    numbers = (
        f"Rank correlation of {LABELS[association.measure]} with the change of the return to the next period: "
        f"ρ = {plain.rho:.2f}, {_p(plain.p)} ({association.pairs:,} pairs of periods, ranks within seeds, circular "
        f"shifts); with the return of the period itself taken out, ρ = {given.rho:.2f}, {_p(given.p)}."
    )
    return f"{_in_words(association)} {numbers}"


def _p(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _in_words(association: Association) -> str:
    plain, given = association.plain, association.given_return
    if plain.p >= 0.05:
        return "no sign that the return falls after interference."
    by_itself = given.p < 0.05 and (given.rho > 0) == (plain.rho > 0)
    if plain.rho > 0 and not by_itself:
        return "no: the return rises after more interference, as low returns rise anyway."
    if plain.rho > 0:
        return "the opposite: the return rises after more interference."
    if not by_itself:
        return "the return falls after more interference, but no more than high returns fall anyway."
    return "yes, the return falls after more interference."


def advice_section(case: Case) -> str:
    lines = advice(case) or ["Nothing that was measured stands out."]
    if not case.measured:
        lines.append(f"Interference, held-out values and dormant units were not measured. To do so: {HOW_TO_MEASURE}.")
    return "## What to try\n\n" + "\n".join(f"- {text}" for text in lines)


# The table


def table(told: Sequence[Told]) -> str:
    columns = told[0][0].columns
    names = ["seed", "highest", "final", "falls", "deepest"]
    names += ["negative interference"] * ("negative_interference" in columns)
    names += ["iteration interference, 0.9 tail"] * ("update_interference" in columns)
    rows = ["| " + " | ".join(_cells(seed, course)) + " |" for seed, course in told]
    return "\n".join(["## Seeds", "", f"| {' | '.join(names)} |", "|" + "---|" * len(names), *rows])


def _cells(seed: SeedMetrics, course: Course) -> list[str]:
    known = lambda value: return_text(value) if np.isfinite(value) else "none"
    highest = float(np.nanmax(seed.returns)) if np.isfinite(seed.returns).any() else np.nan
    final = float(mean_known(last_share(seed.returns, 0.1)))
    deepest_fall = max((fall.depth for fall in course.falls), default=np.nan)
    cells = [str(seed.seed), known(highest), known(final), str(len(course.falls)), known(deepest_fall)]
    if "negative_interference" in seed.columns:
        cells.append(number(float(mean_known(seed.columns["negative_interference"]))))
    if "update_interference" in seed.columns:
        cells.append(number(across_iterations(seed.columns["update_interference"])))
    return cells


def reading(seeds: Sequence[SeedMetrics], drop: float) -> str:
    """What the words of the page mean."""
    lines = [
        f"*A fall*: from the highest return so far to the lowest before half of the loss is regained, deeper than "
        f"{percent(drop)} of the seed's range of returns; from a level that was learned. *Moved*: further than "
        f"{MOVED:g} spreads (median absolute deviations × 1.48) from the median of that seed's {PAST} periods before, "
        f"since learning started and ε finished decaying; *raised*: the same, upwards. a → b is from that median to "
        f"the value at the fall. What moved "
        f"before a fall need not have caused it. *final*: mean of the last tenth of the periods."
    ]
    if "aei_contexts" in seeds[0].columns:
        whose = "the agent's own" if seeds[0].heads > 1 else "clusters of states found before training"
        lines.append(f"*Contexts*: {whose}, counted from 0.")
    if "update_interference" in seeds[0].columns:
        lines.append("*0.9 tail*: mean of the largest tenth of the iterations (periods) in the last half of the run.")
        lines.append("The curves: `iqrl interference RUN`.")
    return "## How to read this\n\n" + " ".join(lines)
