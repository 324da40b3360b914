"""The page of `iqrl explain`: why the return fell, from what was measured of the run.

Every sentence quotes a measurement, with its number and its step. Nothing here says what caused a fall: the page says
what moved, and whether before the fall or during it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from iqrl.diagnostics.explain.advice import give_advice
from iqrl.diagnostics.explain.diagnosis import Diagnosis, diagnose
from iqrl.diagnostics.explain.evidence import (
    MOVED,
    PAST,
    PAST_NEEDED,
    Association,
    Coincidence,
    FallEvidence,
    Movement,
    find_conflict,
    find_shifts,
    find_steepest_rise,
)
from iqrl.diagnostics.explain.history import Fall, History, SeedMetrics, take_last
from iqrl.diagnostics.metrics import label_of
from iqrl.diagnostics.text import count, number, p_value, percent, return_text
from iqrl.errors import BadInput
from iqrl.settings import Run
from iqrl.statistics.curves import across_iterations, mean_finite
from iqrl.training.run_directory import describe

MOVEMENTS_SHOWN = 4
HOW_TO_MEASURE = "`iqrl train … --measure-every 100`"


def explain(run: Run, metrics: pl.DataFrame, drop: float = 0.25) -> str:
    """The page about a run; `drop` is the share of a seed's range of returns that makes a fall."""
    if not 0 < drop <= 1:
        raise BadInput(f"drop must be more than 0 and at most 1, got {drop}.")
    if not metrics.height:
        raise BadInput("the run has no measurements yet; train it first.")
    diagnosis = diagnose(run, metrics, drop)
    unlearned = any(history.kind == "unlearned" for history in diagnosis.histories)
    sections = [
        write_head(run, diagnosis.histories, drop),
        write_falls(diagnosis) if diagnosis.falls else "",
        write_association(diagnosis.association, diagnosis.coincidence, diagnosis.measured),
        write_advice(diagnosis) if diagnosis.falls or unlearned else "",
        write_seeds(diagnosis.histories),
        write_glossary(diagnosis, drop),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


# The head


def write_head(run: Run, histories: Sequence[History], drop: float) -> str:
    reached = max(int(history.seed.steps[-1]) for history in histories)
    how_far = "finished" if reached >= run.steps else f"stopped at step {reached:,}"
    returns = np.concatenate([history.seed.returns for history in histories])
    returns = returns[np.isfinite(returns)]
    lines = [f"# Why did it collapse? {run.method} on {run.task}", f"{describe(run)}; {how_far}."]
    if returns.size:
        lines[-1] += f" Returns between {return_text(returns.min())} and {return_text(returns.max())}."
    lines.append(f"**{write_verdict(histories, drop)}**")
    lines += [_write_unlearned(history) for history in histories if history.kind == "unlearned"]
    return "\n\n".join(lines)


def write_verdict(histories: Sequence[History], drop: float) -> str:
    """One sentence: how many falls there are, or why there is none to explain."""
    kinds = [history.kind for history in histories]
    every = count(len(histories), "seed")
    if all(kind == "empty" for kind in kinds):
        return "No episode has ended yet, so there is no return to explain."
    if all(kind in ("empty", "short") for kind in kinds):
        return "Too short to explain: a curve needs three periods with a return after the exploring ones."
    if any(history.falls for history in histories):
        return _write_worst_fall(histories, drop)
    if "learned" not in kinds:
        return f"No fall to explain: none of {every} ever rose clearly above its exploring first periods."
    return f"No fall: in none of {every} did the return fall by more than {percent(drop)} of its range."


def _write_worst_fall(histories: Sequence[History], drop: float) -> str:
    falls = [(history.seed, fall) for history in histories for fall in history.falls]
    fallen = sum(bool(history.falls) for history in histories)
    lasting = sum(fall.recovered is None for _, fall in falls)
    how_many = f"{count(len(falls), 'fall')} in all, {f'{lasting} not' if lasting else 'each'} recovered by the end"
    seed, worst = max(falls, key=lambda pair: pair[1].depth)
    return (
        f"In {fallen} of {count(len(histories), 'seed')} the return fell by more than {percent(drop)} of its range; "
        f"{how_many}. The deepest: seed {seed.seed}, {_write_span(seed, worst)}."
    )


def _write_span(seed: SeedMetrics, fall: Fall) -> str:
    return f"from {_write_return(seed, fall.peak)} to {_write_return(seed, fall.trough)}"


def _write_return(seed: SeedMetrics, index: int) -> str:
    return f"{return_text(seed.returns[index])} at step {seed.steps[index]:,}"


def _write_unlearned(history: History) -> str:
    return (
        f"Seed {history.seed.seed} did not clearly learn: after the exploring first periods, no three successive "
        f"returns have a median above {return_text(history.bar)}, which is the {return_text(history.exploring_level)} "
        f"of those periods plus three times the {return_text(history.usual_change)} by which the return usually "
        f"changes from one period to the next. Its ups and downs are not counted as falls."
    )


# The deepest falls: their shape, what moved, which contexts were hit


def write_falls(diagnosis: Diagnosis) -> str:
    histories = {history.seed.seed: history for history in diagnosis.histories}
    total, shown = sum(len(history.falls) for history in diagnosis.histories), len(diagnosis.falls)
    title = "## The falls" if total == shown else f"## The {shown} deepest of {total} falls"
    return "\n\n".join([title, *[write_fall(found, histories[found.seed.seed]) for found in diagnosis.falls]])


def write_fall(evidence: FallEvidence, history: History) -> str:
    seed, fall = evidence.seed, evidence.fall
    title = f"### Seed {seed.seed}, {_write_span(seed, fall)}"
    items = [*_write_movements(evidence), *_write_contexts(evidence)]
    return "\n\n".join([title, " ".join(_write_shape(history, fall)), "\n".join(f"- {item}" for item in items)])


def _write_shape(history: History, fall: Fall) -> list[str]:
    seed, sentences = history.seed, []
    if fall.last_high > fall.peak:
        sentences.append(f"The return was still {_write_return(seed, fall.last_high)}.")
    if fall.first_low < fall.trough:
        sentences.append(f"It was already down to {_write_return(seed, fall.first_low)}.")
    if fall.recovered is None:
        sentences.append("Half of the loss was not regained by the end.")
    else:
        sentences.append(f"Half of the loss was regained: {_write_return(seed, fall.recovered)}.")
    if seed.returns[fall.trough] < history.exploring_level:
        sentences.append(
            f"The lowest point is below the {return_text(history.exploring_level)} of its exploring first periods."
        )
    return sentences


def _write_movements(evidence: FallEvidence) -> list[str]:
    if not evidence.compared:
        return [
            f"Too little history to say what moved: {count(int(evidence.past.sum()), 'period')} with measurements "
            f"between the end of ε's decay and this fall, and {PAST_NEEDED} are needed."
        ]
    before = f"Before it, in the period up to step {evidence.seed.steps[evidence.fall.last_high]:,}"
    during = f"During it, {_write_steps(evidence)}"
    return [
        _write_moved(before, evidence.before, evidence.compared),
        _write_moved(during, evidence.during, evidence.compared),
    ]


def _write_moved(when: str, moved: Sequence[Movement], compared: int) -> str:
    if not moved:
        return f"{when}: none of {compared} measurements moved."
    shown = [f"{it.label} {number(it.usual)} → {number(it.now)} ({_write_spreads(it)})" for it in moved]
    rest = f"; and {len(moved) - MOVEMENTS_SHOWN} more" if len(moved) > MOVEMENTS_SHOWN else ""
    return f"{when}: {len(moved)} of {compared} measurements moved. {'; '.join(shown[:MOVEMENTS_SHOWN])}{rest}."


def _write_spreads(moved: Movement) -> str:
    spreads = abs(moved.spreads)
    if spreads >= 1000:
        return "more than 1,000 spreads"
    return f"{spreads:.1f} spreads" if spreads < 10 else f"{spreads:,.0f} spreads"


def _write_contexts(evidence: FallEvidence) -> list[str]:
    """One item on the contexts while the return fell, if they were measured."""
    seed, fall, parts = evidence.seed, evidence.fall, []
    rise = find_steepest_rise(seed, fall)
    if rise and rise.change > 0:
        parts.append(
            f"updates raised the squared TD error most in context {rise.context}, by {number(rise.change)} an update "
            f"on average, {percent(rise.share)} of the rise over all contexts"
        )
    elif rise:
        parts.append("updates raised the squared TD error of no context on average")
    for shift in find_shifts(evidence):
        what = "emptied" if shift.now < shift.usual else "took over"
        parts.append(f"context {shift.context} {what}, {percent(shift.usual)} of the steps → {percent(shift.now)}")
    if conflict := find_conflict(seed, fall.falling):
        (i, j), cosine = conflict
        how = "conflicted most" if cosine < 0 else "agreed least"
        parts.append(f"the TD gradients of contexts {i} and {j} {how}, cosine {number(round(cosine, 2) + 0.0)}")
    return [f"Contexts, {_write_steps(evidence)}: {'; '.join(parts)}."] if parts else []


def _write_steps(evidence: FallEvidence) -> str:
    steps = evidence.seed.steps
    return f"steps {steps[evidence.fall.last_high]:,} to {steps[evidence.fall.first_low]:,}"


# Over all seeds


def write_association(association: Association | None, coincidence: Coincidence | None, measured: bool) -> str:
    title = "## Over all periods: do interference and falls go together?"
    if not measured:
        return f"{title}\n\nUnknown: interference was not measured."
    together = f"*At the same time*: {coincidence.in_words}." if coincidence else ""
    after = f"*One after the other*: {_write_correlation(association)}"
    return "\n\n".join([title, *filter(None, [together, after])])


def _write_correlation(association: Association | None) -> str:
    if association is None:
        return "unknown, there are too few periods after ε's decay."
    plain, given = association.plain, association.given_return
    numbers = (
        f"Rank correlation of {label_of(association.metric)} with the change of the return to the next period: "
        f"ρ = {plain.rho:.2f}, {p_value(plain.p)} ({association.pairs:,} pairs of periods, ranks within seeds, "
        f"circular shifts); with the return of the period itself taken out, ρ = {given.rho:.2f}, {p_value(given.p)}."
    )
    return f"{_write_conclusion(association)} {numbers}"


def _write_conclusion(association: Association) -> str:
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


def write_advice(diagnosis: Diagnosis) -> str:
    lines = give_advice(diagnosis) or ["Nothing that was measured stands out."]
    if not diagnosis.measured:
        lines.append(f"Interference, held-out values and dormant units were not measured. To do so: {HOW_TO_MEASURE}.")
    return "## What to try\n\n" + "\n".join(f"- {text}" for text in lines)


# The table of seeds, and what the words of the page mean


def write_seeds(histories: Sequence[History]) -> str:
    columns = histories[0].seed.columns
    names = ["seed", "highest", "final", "falls", "deepest"]
    names += [label_of("negative_interference")] * ("negative_interference" in columns)
    names += [label_of("interference_across_iterations")] * ("update_interference" in columns)
    rows = ["| " + " | ".join(_write_row(history)) + " |" for history in histories]
    return "\n".join(["## Seeds", "", f"| {' | '.join(names)} |", "|" + "---|" * len(names), *rows])


def _write_row(history: History) -> list[str]:
    seed = history.seed
    write = lambda value: return_text(value) if np.isfinite(value) else "none"
    highest = float(np.nanmax(seed.returns)) if np.isfinite(seed.returns).any() else np.nan
    final = float(mean_finite(take_last(seed.returns, 0.1)))
    deepest = max((fall.depth for fall in history.falls), default=np.nan)
    cells = [str(seed.seed), write(highest), write(final), str(len(history.falls)), write(deepest)]
    if "negative_interference" in seed.columns:
        cells.append(number(float(mean_finite(seed.columns["negative_interference"]))))
    if "update_interference" in seed.columns:
        cells.append(number(across_iterations(seed.columns["update_interference"])))
    return cells


def write_glossary(diagnosis: Diagnosis, drop: float) -> str:
    lines = [
        f"*A fall*: from the highest return so far to the lowest before half of the loss is regained; deeper than "
        f"{percent(drop)} of the seed's range of returns, from a level that was learned. *Moved*: further than "
        f"{MOVED:g} spreads (median absolute deviations × 1.48) from the median of that seed's {PAST} periods before, "
        f"since learning started and ε finished decaying. *Raised*: the same, upwards. a → b: from that median to "
        f"the value at the fall. What moved before a fall need not have caused it. *final*: mean of the last tenth of "
        f"the periods."
    ]
    if "aei_contexts" in diagnosis.columns:
        whose = "the agent's own" if diagnosis.heads > 1 else "clusters of states found before training"
        lines.append(f"*Contexts*: {whose}, counted from 0.")
    if "update_interference" in diagnosis.columns:
        lines.append("*0.9 tail*: mean of the largest tenth of the iterations (periods) in the last half of the run.")
        lines.append("The curves: `iqrl interference RUN`.")
    return "## How to read this\n\n" + " ".join(lines)
