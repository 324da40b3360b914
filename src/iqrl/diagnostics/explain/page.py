"""The page of `iqrl explain`: three lines, a picture, and the evidence from what was measured of the run.

Every sentence quotes a measurement, with its number and its step. Nothing here says what caused a fall: the page says
what moved, and whether before the fall or during it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

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
from iqrl.diagnostics.explain.fate import SeedFate
from iqrl.diagnostics.explain.history import Fall, SeedMetrics
from iqrl.diagnostics.explain.summary import Summary, is_single_high, summarise, write_movement
from iqrl.diagnostics.metrics import label_of
from iqrl.diagnostics.text import count, listing, number, p_value, percent, return_text
from iqrl.settings import Run
from iqrl.statistics.curves import across_iterations, mean_finite
from iqrl.training.run_directory import describe

MOVEMENTS_SHOWN = 4


def explain(run: Run, metrics: pl.DataFrame, drop: float = 0.25) -> str:
    """The page about a run; `drop` is the share of a seed's range of returns that makes a fall."""
    return write_page(diagnose(run, metrics, drop))


def write_page(diagnosis: Diagnosis, picture: str = "", path: str = "RUN") -> str:
    """`picture`: the name of the file that shows the curve; none if empty. `path`: of the run, for the commands."""
    summary = summarise(diagnosis)
    # Two spaces end a line in Markdown.
    sections = [
        "  \n".join(summary.lines),
        f"![the return over the steps; the falls are numbered as below]({picture})" if picture else "",
        write_head(diagnosis),
        write_falls(diagnosis) if diagnosis.falls else "",
        write_association(diagnosis.association, diagnosis.coincidence, diagnosis.measured),
        write_advice(summary),
        write_seeds(diagnosis),
    ]
    above = "\n\n".join(section for section in sections if section)
    return name_run(f"{above}\n\n{write_glossary(diagnosis, above)}\n", path)


def name_run(text: str, path: str) -> str:
    """The run's own path in each command that stands for RUN.

    >>> name_run("`iqrl watch RUN` shows an episode", "runs/a")
    '`iqrl watch runs/a` shows an episode'
    """
    return re.sub(r"(?<=`iqrl )(\w+) RUN\b", lambda found: f"{found[1]} {path}", text)


def write_head(diagnosis: Diagnosis) -> str:
    histories, run = diagnosis.histories, diagnosis.run
    how_far = "finished" if diagnosis.step >= run.steps else f"stopped at {diagnosis.reached}"
    returns = np.concatenate([history.seed.returns for history in histories])
    returns = returns[np.isfinite(returns)]
    text = f"{describe(run)}; {how_far}."
    if returns.size:
        text += f" Returns between {return_text(returns.min())} and {return_text(returns.max())}."
    return f"## The run\n\n{text}"


# The deepest falls: their shape, what moved, which contexts were hit


def write_falls(diagnosis: Diagnosis) -> str:
    total, shown = sum(len(history.falls) for history in diagnosis.histories), len(diagnosis.falls)
    lasted = any(judged.lasting for judged in diagnosis.fate.seeds)
    which = "those that lasted, then the deepest" if lasted else "the deepest"
    title = "## The falls" if total == shown else f"## {shown} of {total} falls: {which}"
    falls = [write_fall(i, found, diagnosis.judged(found)) for i, found in enumerate(diagnosis.falls, 1)]
    return "\n\n".join([title, *falls])


def write_fall(place: int, evidence: FallEvidence, judged: SeedFate) -> str:
    seed, fall = evidence.seed, evidence.fall
    title = (
        f"### {place}. Seed {seed.seed}, from {_write_return(seed, fall.peak)} to {_write_return(seed, fall.trough)}"
    )
    items = [" ".join(_write_shape(judged, fall)), *_write_movements(evidence), *_write_contexts(evidence)]
    return "\n\n".join([title, "\n".join(f"- {item}" for item in items)])


def _write_return(seed: SeedMetrics, index: int) -> str:
    return f"{return_text(seed.returns[index])} at step {seed.steps[index]:,}"


def _write_shape(judged: SeedFate, fall: Fall) -> list[str]:
    history, seed, sentences = judged.history, judged.seed, []
    if is_single_high(judged, fall):
        sentences.append(
            f"That high return stands alone: the best level of this seed, a median of three returns, is "
            f"{return_text(judged.best)}."
        )
    if fall.last_high > fall.peak:
        sentences.append(f"The return was still {_write_return(seed, fall.last_high)}.")
    if fall.first_low < fall.trough:
        sentences.append(f"It was down to {_write_return(seed, fall.first_low)}.")
    sentences.append(_write_end(judged, fall))
    if seed.returns[fall.trough] < history.exploring_level:
        sentences.append(f"The lowest point is below the {return_text(history.exploring_level)} of exploring.")
    return sentences


def _write_end(judged: SeedFate, fall: Fall) -> str:
    """Whether it lasted, as the rule of `fate.py` says, and what was regained."""
    half = "Half of the loss was not regained by the end"
    if fall.recovered is not None:
        half = f"Half of the loss was regained: {_write_return(judged.seed, fall.recovered)}"
    final = f"the final level is {return_text(judged.final)}"
    if fall in judged.lasting:
        return f"It lasted: {final}. {half}."
    return f"{half}." if fall.recovered is not None else f"It did not last: {final}."


def _write_movements(evidence: FallEvidence) -> list[str]:
    if not evidence.compared:
        return [
            f"What moved cannot be said: there are {count(int(evidence.past.sum()), 'period')} with measurements "
            f"between the end of ε's decay and this fall, and {PAST_NEEDED} are needed."
        ]
    before = f"Before it (up to step {evidence.seed.steps[evidence.fall.last_high]:,})"
    during = f"During it ({_write_steps(evidence)})"
    return [
        _write_moved(before, evidence.before, evidence.compared),
        _write_moved(during, evidence.during, evidence.compared),
    ]


def _write_moved(when: str, moved: Sequence[Movement], compared: int) -> str:
    if not moved:
        return f"{when}: none of {count(compared, 'measurement')} moved."
    shown = listing([f"{write_movement(it)} ({_write_spreads(it)})" for it in moved[:MOVEMENTS_SHOWN]])
    rest = f", and {len(moved) - MOVEMENTS_SHOWN} more moved" if len(moved) > MOVEMENTS_SHOWN else ""
    return f"{when}: {shown}{rest}; {len(moved)} of {count(compared, 'measurement')} moved."


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
            f"Updates raised the squared TD error most in context {rise.context}, by {number(rise.change)} an update, "
            f"{percent(rise.share)} of the rise over all contexts."
        )
    elif rise:
        parts.append("Updates raised the squared TD error of no context on average.")
    for shift in find_shifts(evidence):
        what = "emptied" if shift.now < shift.usual else "took over"
        parts.append(
            f"Context {shift.context} {what}: from {percent(shift.usual)} of the steps to {percent(shift.now)}."
        )
    if conflict := find_conflict(seed, fall.falling):
        (i, j), cosine = conflict
        how = "conflicted most" if cosine < 0 else "agreed least"
        parts.append(f"The TD gradients of contexts {i} and {j} {how}: cosine {number(round(cosine, 2) + 0.0)}.")
    return [f"Contexts ({_write_steps(evidence)}): {' '.join(parts)}"] if parts else []


def _write_steps(evidence: FallEvidence) -> str:
    steps = evidence.seed.steps
    return f"steps {steps[evidence.fall.last_high]:,} to {steps[evidence.fall.first_low]:,}"


# Over all seeds: one conclusion, then the numbers it rests on


def write_association(association: Association | None, coincidence: Coincidence | None, measured: bool) -> str:
    title = "## Do interference and falls go together?"
    if not measured:
        return f"{title}\n\nUnknown: interference was not measured. To measure it, add `--measure-every 100`."
    items = [f"At the same time: {coincidence.in_words}."] if coincidence else []
    items.append(f"One period later: {_write_correlation(association)}")
    return "\n\n".join([title, _conclude(association, coincidence), "\n".join(f"- {item}" for item in items)])


def _conclude(association: Association | None, coincidence: Coincidence | None) -> str:
    together = coincidence is not None and coincidence.stands_out
    ahead = association is not None and association.follows
    if together and ahead:
        return "Yes: interference is higher where the return falls, and ahead of it."
    if together:
        return "Yes, at the same time: interference is higher where the return falls. It is not shown to come first."
    if ahead:
        return "Yes, one after the other: the return falls after periods of high interference."
    if coincidence is None and association is None:
        return "Unknown: there is too little to compare."
    if coincidence is not None and coincidence.p < 0.05:
        return "No: interference was raised less often where the return fell than elsewhere."
    if association is not None and association.plain.p < 0.05:
        return "No: the return does not fall after interference more than it falls anyway."
    return "No: what there is could be chance."


def _write_correlation(association: Association | None) -> str:
    if association is None:
        return "unknown, there are too few periods after ε's decay."
    plain, given = association.plain, association.given_return
    return (
        f"{_read_correlation(association)} ρ = {plain.rho:.2f}, {p_value(plain.p)}, between "
        f"{label_of(association.metric)} and the next change of the return ({association.pairs:,} pairs of periods); "
        f"ρ = {given.rho:.2f}, {p_value(given.p)}, when the return itself is taken out."
    )


def _read_correlation(association: Association) -> str:
    plain, given = association.plain, association.given_return
    if plain.p >= 0.05:
        return "no sign that the return falls after interference."
    by_itself = given.p < 0.05 and (given.rho > 0) == (plain.rho > 0)
    if plain.rho > 0 and not by_itself:
        return "the return rises after more interference, as low returns rise anyway."
    if plain.rho > 0:
        return "the opposite, the return rises after more interference."
    if not by_itself:
        return "the return falls after more interference, but no more than high returns fall anyway."
    return "the return falls after more interference."


def write_advice(summary: Summary) -> str:
    if not summary.advice:
        return ""
    return "## What to try\n\n" + "\n".join(f"- {advice.in_words}" for advice in summary.advice)


# The table of seeds, and what the words of the page mean


def write_seeds(diagnosis: Diagnosis) -> str:
    columns = diagnosis.columns
    names = ["seed", "fate", "best level", "final", "falls", "deepest"]
    names += [label_of("negative_interference")] * ("negative_interference" in columns)
    names += [label_of("interference_across_iterations")] * ("update_interference" in columns)
    rows = ["| " + " | ".join(_write_row(judged)) + " |" for judged in diagnosis.fate.seeds]
    return "\n".join(["## Seeds", "", f"| {' | '.join(names)} |", "|" + "---|" * len(names), *rows])


def _write_row(judged: SeedFate) -> list[str]:
    seed, falls = judged.seed, judged.history.falls
    write = lambda value: return_text(value) if np.isfinite(value) else "none"
    deepest = max((fall.depth for fall in falls), default=np.nan)
    cells = [str(seed.seed), judged.fate, write(judged.best), write(judged.final), str(len(falls)), write(deepest)]
    if "negative_interference" in seed.columns:
        cells.append(number(float(mean_finite(seed.columns["negative_interference"]))))
    if "update_interference" in seed.columns:
        cells.append(number(across_iterations(seed.columns["update_interference"])))
    return cells


def write_glossary(diagnosis: Diagnosis, above: str) -> str:
    """What the words that occur above mean."""
    lines = [
        f"*Fall*: from the highest return so far to the lowest before half of the loss is regained, deeper than "
        f"{percent(diagnosis.drop)} of the seed's range of returns.",
        f"*Lasted*: the final level is below the level before the fall, by more than {percent(diagnosis.drop)} of the "
        "seed's range of returns, by half of what it had learned above exploring, or by half of a fall of which no "
        "return regained half.",
        "*Best level*: the highest median of three successive periods. *Final*: the mean of the last tenth.",
        "*Exploring*: the first periods, in which most actions were random.",
        f"*Moved*: further than {MOVED:g} spreads from the median of that seed's {PAST} periods before. *Spread*: "
        "the median absolute deviation × 1.48. *Raised*: moved upwards. What moved before a fall need not have caused "
        "it.",
    ]
    if "aei_contexts" in diagnosis.columns:
        whose = "the agent's own" if diagnosis.heads > 1 else "clusters of states found before training"
        lines.append(f"*Contexts*: {whose}, counted from 0.")
    if "update_interference" in diagnosis.columns:
        lines.append(
            "*0.9 tail*: the mean of the largest tenth of the periods in the last half of the run. "
            "`iqrl interference RUN` draws the curves."
        )
    return "## Words\n\n" + "\n".join(f"- {line}" for line in lines if _explains(line, above.lower()))


def _explains(line: str, above: str) -> bool:
    """Whether a word that the line explains occurs above, or a form of it: "falls" is one of "fall"."""
    return any(re.search(rf"\b{re.escape(word.lower())}", above) for word in re.findall(r"\*([^*]+)\*:", line))


# The same as data


def as_data(diagnosis: Diagnosis, path: str = "RUN") -> dict[str, Any]:
    """What `iqrl explain --json` prints."""
    summary = summarise(diagnosis)
    finite = lambda value: float(value) if value is not None and np.isfinite(value) else None
    seeds = [
        {
            "seed": judged.seed.seed, "fate": judged.fate, "best": finite(judged.best), "final": finite(judged.final),
            "falls": [
                _fall_data(judged.seed, fall) | {"lasted": fall in judged.lasting} for fall in judged.history.falls
            ],
        }
        for judged in diagnosis.fate.seeds
    ]  # fmt: skip
    coincidence, association = diagnosis.coincidence, diagnosis.association
    return {
        "task": diagnosis.run.task, "method": diagnosis.run.method, "fate": summary.fate, 
        "lines": [name_run(line, path) for line in summary.lines],
        "solved_at": finite(diagnosis.solved), "unfinished": diagnosis.fate.unfinished, "seeds": seeds,
        "interference": {
            "measured": diagnosis.measured, "goes_with_falls": diagnosis.interference_stands_out,
            "coincidence": None if coincidence is None else coincidence._asdict(),
            "correlation": None if association is None else association.plain._asdict(),
        },
        "advice": [
            {"finding": each.finding, "try": [name_run(it, path) for it in each.options]} for each in summary.advice
        ],
    }  # fmt: skip


def _fall_data(seed: SeedMetrics, fall: Fall) -> dict[str, Any]:
    at = lambda index: {"step": int(seed.steps[index]), "return": float(seed.returns[index])}
    recovered = None if fall.recovered is None else int(seed.steps[fall.recovered])
    return {"peak": at(fall.peak), "low": at(fall.trough), "depth": fall.depth, "regained_half_at": recovered}
