"""The deepest falls in words: their shape, what moved, which contexts were hit."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.explain.falls import Course, Fall
from iqrl.explain.movements import PAST_NEEDED, Movement, Study, shifts, steepest_rise, strongest_conflict
from iqrl.explain.seeds import SeedMetrics
from iqrl.explain.words import count, number, percent, return_text

MOVEMENTS_SHOWN = 4

Told = tuple[SeedMetrics, Course]


def span(seed: SeedMetrics, fall: Fall) -> str:
    high, low = seed.returns[fall.peak], seed.returns[fall.trough]
    at = lambda index: f"at step {seed.steps[index]:,}"
    return f"from {return_text(high)} {at(fall.peak)} to {return_text(low)} {at(fall.trough)}"


def falls_section(told: Sequence[Told], studies: Sequence[Study]) -> str:
    courses = {seed.seed: course for seed, course in told}
    total = sum(len(course.falls) for course in courses.values())
    title = "## The falls" if total == len(studies) else f"## The {len(studies)} deepest of {total} falls"
    return "\n\n".join([title, *[one_fall(found, courses[found.seed.seed]) for found in studies]])


def one_fall(found: Study, course: Course) -> str:
    seed, fall = found.seed, found.fall
    lines = [f"### Seed {seed.seed}, {span(seed, fall)}", " ".join(shape(seed, fall, course))]
    items = movements(found) + contexts(found)
    return "\n\n".join([*lines, "\n".join(f"- {item}" for item in items)])


def shape(seed: SeedMetrics, fall: Fall, course: Course) -> list[str]:
    sentences = []
    if fall.last_high > fall.peak:
        sentences.append(f"It was still at {_return_at(seed, fall.last_high)}.")
    if fall.first_low < fall.trough:
        sentences.append(f"It was down to {_return_at(seed, fall.first_low)} already.")
    if fall.recovered is None:
        sentences.append("Half of the loss was not regained by the end.")
    else:
        sentences.append(f"Half of the loss was regained: {_return_at(seed, fall.recovered)}.")
    if seed.returns[fall.trough] < course.exploring:
        sentences.append(
            f"The lowest point is below the {return_text(course.exploring)} of its exploring first periods."
        )
    return sentences


def _return_at(seed: SeedMetrics, index: int) -> str:
    return f"{return_text(seed.returns[index])} at step {seed.steps[index]:,}"


def movements(found: Study) -> list[str]:
    if not found.compared:
        return [
            f"Too little history to say what moved: {count(int(found.past.sum()), 'period')} with measurements "
            f"between the end of ε's decay and this fall, and {PAST_NEEDED} are needed."
        ]
    before = f"Before it, in the period up to step {found.seed.steps[found.fall.last_high]:,}"
    during = f"During it, {_falling_steps(found)}"
    return [_moved_text(before, found.before, found.compared), _moved_text(during, found.during, found.compared)]


def _moved_text(when: str, moved: Sequence[Movement], compared: int) -> str:
    if not moved:
        return f"{when}: none of {compared} measurements moved."
    told = [f"{it.label} {number(it.usual)} → {number(it.now)} ({_spreads(it)})" for it in moved[:MOVEMENTS_SHOWN]]
    rest = f"; and {len(moved) - MOVEMENTS_SHOWN} more" if len(moved) > MOVEMENTS_SHOWN else ""
    return f"{when}: {len(moved)} of {compared} measurements moved. {'; '.join(told)}{rest}."


def _spreads(moved: Movement) -> str:
    spreads = abs(moved.spreads)
    if spreads >= 1000:
        return "more than 1,000 spreads"
    return f"{spreads:.1f} spreads" if spreads < 10 else f"{spreads:,.0f} spreads"


def contexts(found: Study) -> list[str]:
    """One item on the contexts while the return fell, if anything is known of them."""
    seed, fall, parts = found.seed, found.fall, []
    rise = steepest_rise(seed, fall)
    if rise and rise.change > 0:
        parts.append(
            f"updates raised the squared TD error most in context {rise.context}, by {number(rise.change)} an update "
            f"on average, {percent(rise.share)} of the rise over all contexts"
        )
    elif rise:
        parts.append("updates raised the squared TD error of no context on average")
    for shift in shifts(found):
        what = "emptied" if shift.now < shift.usual else "took over"
        parts.append(f"context {shift.context} {what}, {percent(shift.usual)} of the steps → {percent(shift.now)}")
    if conflict := strongest_conflict(seed, fall.falling):
        (i, j), cosine = conflict
        how = "pulled against each other most" if cosine < 0 else "agreed least"
        parts.append(f"the TD gradients of contexts {i} and {j} {how}, cosine {number(round(cosine, 2) + 0.0)}")
    return [f"Contexts, {_falling_steps(found)}: {'; '.join(parts)}."] if parts else []


def _falling_steps(found: Study) -> str:
    steps = found.seed.steps
    return f"steps {steps[found.fall.last_high]:,} to {steps[found.fall.first_low]:,}"
