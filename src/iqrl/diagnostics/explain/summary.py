"""The three lines with which the page begins: what happened, what went with it, what to try; each with its number.

All three follow from the fate of the run (`fate.py`), so they cannot contradict each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from iqrl.diagnostics.explain.advice import Advice, give_advice
from iqrl.diagnostics.explain.diagnosis import Diagnosis
from iqrl.diagnostics.explain.evidence import Movement
from iqrl.diagnostics.explain.fate import Fate, RunFate, SeedFate
from iqrl.diagnostics.explain.history import Fall, find_exploring
from iqrl.diagnostics.metrics import label_of
from iqrl.diagnostics.text import count, listing, number, percent, return_text
from iqrl.statistics.curves import mean_finite

OPTIONS_SHOWN = 2
"""in the third line; the page has all"""
VERBS: tuple[Fate, ...] = ("diverged", "collapsed", "never learned", "declined")
"""the fates that need no "was" before them"""
SINGLE_HIGH = 0.1
"""of a fall's depth: a return so much above the best level is a single high one"""


class Summary(NamedTuple):
    fate: Fate
    happened: str
    went_with: str
    to_try: str
    advice: list[Advice]

    @property
    def lines(self) -> list[str]:
        title = self.fate[0].upper() + self.fate[1:]
        return [f"**{title}**{self.happened}", f"**With it:** {self.went_with}", f"**Try:** {self.to_try}"]


def summarise(diagnosis: Diagnosis) -> Summary:
    fate, advice = diagnosis.fate, give_advice(diagnosis)
    happened = {
        "diverged": _write_diverged, "collapsed": _write_collapsed, "declined": _write_collapsed,
        "never learned": _write_unlearned,
        "stuck": _write_level, "still learning": _write_learning, "unsteady": _write_level, "fine": _write_level,
        "uneven": _write_uneven, "too short": _write_short,
    }[fate.fate](diagnosis)  # fmt: skip
    happened += _write_others(fate) + (_write_apart(fate) if fate.fate != "uneven" else "")
    happened += f" The run stopped at {diagnosis.reached}." if fate.unfinished and fate.fate != "still learning" else ""
    return Summary(fate.fate, happened, _write_company(diagnosis, advice), _write_attempt(diagnosis, advice), advice)


# What happened; each is what follows the name of the fate


def _write_where(fate: RunFate) -> str:
    return f" in {len(fate.those)} of {count(len(fate.seeds), 'seed')}"


def _write_others(fate: RunFate) -> str:
    if not fate.others:
        return ""
    verb = lambda word, amount: "" if word in VERBS else "was " if amount == 1 else "were "
    return f" Of the others, {listing([f'{n} {verb(word, n)}{word}' for word, n in fate.others.items()])}."


def _write_diverged(diagnosis: Diagnosis) -> str:
    judged = diagnosis.fate.those[0]
    assert judged.broken is not None
    name, since = judged.broken
    value, step = judged.seed.columns[name][since], judged.seed.steps[since]
    what = "is not a finite number" if not np.isfinite(value) else f"is {number(float(value))} or more"
    return f"{_write_where(diagnosis.fate)}: {label_of(name)} {what} from step {step:,} on (seed {judged.seed.seed})."


def _write_collapsed(diagnosis: Diagnosis) -> str:
    worst = max(diagnosis.fate.those, key=lambda judged: judged.best - judged.final)
    fall, seed = max(worst.lasting, key=lambda fall: fall.depth), worst.seed
    level = f"; its best level was {return_text(worst.best)}" if is_single_high(worst, fall) else ""
    return (
        f"{_write_where(diagnosis.fate)}. Seed {seed.seed} fell from {return_text(seed.returns[fall.peak])} at step "
        f"{seed.steps[fall.peak]:,} to {return_text(seed.returns[fall.trough])} at step {seed.steps[fall.trough]:,}, "
        f"and ended at {return_text(worst.final)}{level}."
    )


def is_single_high(judged: SeedFate, fall: Fall) -> bool:
    """Whether the fall began at a return clearly above the best level."""
    return judged.seed.returns[fall.peak] - judged.best > SINGLE_HIGH * fall.depth


def _write_unlearned(diagnosis: Diagnosis) -> str:
    best = max(diagnosis.fate.those, key=lambda judged: judged.best)
    return (
        f"{_write_where(diagnosis.fate)}. The best level was {return_text(best.best)} (seed {best.seed.seed}); "
        f"exploring reached {return_text(best.history.exploring_level)}{_write_solved(diagnosis)}."
    )


def _write_learning(diagnosis: Diagnosis) -> str:
    fate = diagnosis.fate
    final = mean_finite(np.array([judged.final for judged in fate.those]))
    level = f"return {return_text(float(final))}" if np.isfinite(final) else "no episode has ended yet"
    if fate.unfinished:
        where = f": the run stopped at {diagnosis.reached}; {level}"
    else:
        where = f" at the end{_write_where(fate)}: {level}"
    return f"{where}{_write_solved(diagnosis)}."


def _write_level(diagnosis: Diagnosis) -> str:
    best, final = (
        float(mean_finite(np.array(levels)))
        for levels in zip(*[(judged.best, judged.final) for judged in diagnosis.fate.those], strict=True)
    )
    return (
        f"{_write_where(diagnosis.fate)}. The return ended at {return_text(final)}; its best level was "
        f"{return_text(best)}{_write_solved(diagnosis)}."
    )


def _write_uneven(diagnosis: Diagnosis) -> str:
    best = float(mean_finite(np.array([judged.best for judged in diagnosis.fate.those])))
    return f": {_write_finals(diagnosis.fate)}. The mean best level was {return_text(best)}{_write_solved(diagnosis)}."


def _write_apart(fate: RunFate) -> str:
    return f" Uneven: {_write_finals(fate)}." if fate.apart else ""


def _write_finals(fate: RunFate) -> str:
    """Empty where the seeds end close together."""
    if fate.apart is None:
        return ""
    low, high = ((return_text(it.final), it.seed.seed) for it in fate.apart)
    return f"finals from {low[0]} (seed {low[1]}) to {high[0]} (seed {high[1]})"


def _write_short(diagnosis: Diagnosis) -> str:
    seeds = [judged.seed for judged in diagnosis.fate.seeds]
    later = max(int((np.isfinite(seed.returns) & ~find_exploring(seed)).sum()) for seed in seeds)
    periods = max(int(np.isfinite(seed.returns).sum()) for seed in seeds)
    found = f"{later} of {count(periods, 'period')} with a return came after" if periods else "there is no return after"
    return f" to tell: {found} the exploring ones, and three are needed."


def _write_solved(diagnosis: Diagnosis) -> str:
    if not np.isfinite(diagnosis.solved):
        return ""
    return f"; the task counts as solved at {return_text(diagnosis.solved)}"


# What went with it, and what to try


def _write_company(diagnosis: Diagnosis, advice: list[Advice]) -> str:
    if diagnosis.fate.fate in ("unsteady", "fine", "uneven"):
        return _write_steadiness(diagnosis)
    fell = diagnosis.fate.fate in ("collapsed", "declined")
    moved = _write_strongest(diagnosis) if fell else ""
    specific = [each for each in advice if not each.general]
    if fell and not specific:
        unknown = "" if diagnosis.measured else "; interference was not measured"
        return f"{moved or 'nothing that was measured stands out'}{unknown}."
    found = (specific or advice)[0].finding
    return f"{found[0].lower() + found[1:] if found[1].islower() else found}."


def _write_strongest(diagnosis: Diagnosis) -> str:
    """What moved furthest in the falls of the seeds of this fate."""
    names = [judged.seed.seed for judged in diagnosis.fate.those]
    falls = [evidence for evidence in diagnosis.falls if evidence.seed.seed in names]
    moved = [(evidence, it) for evidence in falls for it in (*evidence.during, *evidence.before)]
    if not moved:
        return ""
    evidence, furthest = max(moved, key=lambda pair: abs(pair[1].spreads))
    when = "while" if furthest in evidence.during else "before"
    return f"{write_movement(furthest)} {when} the return fell (seed {evidence.seed.seed})"


def write_movement(moved: Movement) -> str:
    verb = "rose" if moved.now > moved.usual else "fell"
    return f"{moved.label} {verb} from {number(moved.usual)} to {number(moved.now)}"


def _write_steadiness(diagnosis: Diagnosis) -> str:
    falls = sum(len(history.falls) for history in diagnosis.histories)
    depth = percent(diagnosis.drop)
    if not falls:
        return f"no fall deeper than {depth} of the range of the returns."
    return f"{count(falls, 'fall')} deeper than {depth} of the range of the returns, none of which lasted."


def _write_attempt(diagnosis: Diagnosis, advice: list[Advice]) -> str:
    options = [option for each in advice for option in each.options]
    # Without options the run is fine: the rules for others end with one that always applies.
    if not options and np.isfinite(diagnosis.solved):
        return "nothing needs mending; `iqrl watch RUN` shows an episode."
    if not options:
        return "no return is known at which this task counts as solved; `iqrl watch RUN` shows how good the agent is."
    return f"{'; or '.join(list(dict.fromkeys(options))[:OPTIONS_SHOWN])}."
