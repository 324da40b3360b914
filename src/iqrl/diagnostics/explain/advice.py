"""What to try next: rules, each of which looks at one measurement and quotes it.

A rule returns what it found and what to try, or None if its measurement is absent or unremarkable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from iqrl.core.replay.base import row_width
from iqrl.diagnostics.explain.diagnosis import Diagnosis
from iqrl.diagnostics.explain.evidence import find_conflict
from iqrl.diagnostics.explain.fate import bound_value
from iqrl.diagnostics.explain.history import take_last
from iqrl.diagnostics.metrics import label_of
from iqrl.diagnostics.text import count, listing, number, percent, return_text
from iqrl.methods.iq import ContextSettings
from iqrl.methods.medqn import ConsolidationSettings
from iqrl.methods.registry import scales_rewards, stores_nothing
from iqrl.settings import Run
from iqrl.statistics.curves import mean_finite

LARGE_BUFFER = 10_000
"""interference is measured over the last 10,000 transitions; a buffer of so many rehearses all of them"""
CONFLICT = -0.1
"""cosine of two contexts' gradients below which they conflict"""
NEARLY_ALL, NEARLY_NONE = 0.9, 0.01
"""shares of the steps in a context that is too full, and in one that is empty"""
DORMANT = 0.3
"""share of dormant units that is too high"""
TOO_HIGH = 3.0
"""times the largest plausible value at which values are overestimated"""
OUTWEIGHS = 10.0
"""times the value loss at which a regulariser is too heavy"""
STILL_EXPLORING = 0.2
"""ε at the end that is too high"""
SAME = 0.9
"""share of the periods with the same return from which on nothing tells actions apart"""
WEIGHTS = {"distillation": "distill_weight", "consolidation": "consolidation_weight", "sparsity": "srnn_weight"}
"""the setting that weighs a regulariser"""


class Advice(NamedTuple):
    finding: str
    """a sentence that quotes a measurement, without its full stop"""
    options: tuple[str, ...]
    """what to try, each a flag or a command; none where no setting of the method is known to help"""
    general: bool = False
    """whether it is tried where nothing stands out"""

    @property
    def in_words(self) -> str:
        tried = f"Try {'; or '.join(self.options)}." if self.options else "No setting of this method is known to help."
        return f"{self.finding}. {tried}"


def give_advice(diagnosis: Diagnosis) -> list[Advice]:
    """What all rules for this fate say that apply, the first of them first."""
    return [advice for rule in RULES[diagnosis.fate.fate] if (advice := rule(diagnosis))]


# Where interference goes with the falls


def suggest_memory(diagnosis: Diagnosis) -> Advice | None:
    """Where interference goes with the falls: a larger buffer, or a method that keeps what was learned."""
    if not (diagnosis.measured and diagnosis.interference_stands_out):
        return None
    options = _more_memory(diagnosis)
    if not options:
        return None
    return Advice(f"Interference goes with the falls: {_quote_evidence(diagnosis)}", tuple(options))


def suggest_measuring(diagnosis: Diagnosis) -> Advice | None:
    """Where nothing is known of interference: measure it, or take what helps against it."""
    if diagnosis.measured:
        return None
    run = diagnosis.run
    memory = f"the replay buffer holds {count(run.buffer_size, 'transition')}"
    memory = f"{run.method} stores nothing" if stores_nothing(run) else memory
    options = ["`--measure-every 100`, which shows whether interference goes with it", *_more_memory(diagnosis)]
    return Advice(f"Interference was not measured; {memory}", tuple(options), general=True)


def _more_memory(diagnosis: Diagnosis) -> list[str]:
    run, options = diagnosis.run, []
    if run.buffer_size < LARGE_BUFFER:
        # A buffer that is sampled whole must be full when learning starts.
        most = LARGE_BUFFER if run.sampling == "uniform" else run.learning_starts
        size = max(min(max(10 * run.buffer_size, 100), most), run.buffer_size)
        options = [f"{flag}{_write_memory(diagnosis, size)}" for flag in diagnosis.offer(buffer_size=size)]
    if diagnosis.has(ContextSettings) and run.contexts == 1:
        options.append("`--contexts 3`, a head per context")
    elif diagnosis.heads == 1 and run.features == "dense" and not diagnosis.has(ConsolidationSettings):
        if not diagnosis.shows_images:
            options.append("`--method local-q`, whose updates change few weights and which stores nothing")
        options.append("`--method medqn-r`, which keeps what was learned without a larger buffer")
    return options


def _quote_evidence(diagnosis: Diagnosis) -> str:
    coincidence, association = diagnosis.coincidence, diagnosis.association
    parts = [coincidence.in_words] if coincidence is not None and coincidence.stands_out else []
    if association is not None and association.follows:
        parts.append(f"over all periods the return falls after it, ρ = {association.plain.rho:.2f}")
    return "; ".join(parts)


def _write_memory(diagnosis: Diagnosis, size: int) -> str:
    """Of states in a vector, which are stored as numbers of four bytes."""
    task, run = diagnosis.task, diagnosis.run
    if task is None or task.image is not None:
        return ""
    width = row_width(task.obs_size, task.masked_actions)
    return f" (memory for {size:,} transitions: {4 * width * size:,} bytes a seed, now {4 * width * run.buffer_size:,})"


# What else stands out


def suggest_heads(diagnosis: Diagnosis) -> Advice | None:
    """Where the gradients of contexts conflict in a single head: a head per context."""
    if diagnosis.heads > 1:
        return None
    half = slice(len(diagnosis.seeds[0].steps) // 2, None)
    found = [(conflict, seed.seed) for seed in diagnosis.seeds if (conflict := find_conflict(seed, half))]
    if not found:
        return None
    ((i, j), cosine), seed = min(found, key=lambda pair: pair[0].cosine)
    if cosine >= CONFLICT:
        return None
    other = "--method iq-re" if diagnosis.shows_images else "--method iq"
    flag = "--contexts 3" if diagnosis.has(ContextSettings) else other
    return Advice(
        f"Contexts pull a single head in opposite directions: the TD gradients of contexts {i} and {j} have "
        f"a cosine of {cosine:.2f} (seed {seed}, mean over the last half)",
        (f"`{flag}`, a head per context",),
    )


def suggest_other_contexts(diagnosis: Diagnosis) -> Advice | None:
    """Where one context has nearly all states, or some have none: fewer contexts, or found in another way."""
    if diagnosis.heads == 1 or not diagnosis.has(ContextSettings):
        return None
    shares = [(mean_finite(take_last(seed.columns["occupancy"], 0.5), axis=0), seed.seed) for seed in diagnosis.seeds]
    fullest, seed = max(((float(share.max()), seed) for share, seed in shares))
    empty = sum(int((share < NEARLY_NONE).sum()) for share, _ in shares)
    if fullest <= NEARLY_ALL and not empty:
        return None
    scaling = next(
        kind for kind in _allowed_scalings(diagnosis) if kind != getattr(diagnosis.run, "context_scaling", None)
    )
    options = diagnosis.offer(contexts=max(diagnosis.run.k - 1, 1), context_init="kmeans", context_scaling=scaling)
    of_all = " of all seeds" if len(shares) > 1 else ""
    return Advice(
        f"The contexts divide little: over the last half, the fullest one held {percent(fullest)} of the steps "
        f"(seed {seed}), and {empty} of {sum(len(share) for share, _ in shares)} contexts{of_all} held less than "
        f"{percent(NEARLY_NONE)}",
        tuple(options),
    )


def _allowed_scalings(diagnosis: Diagnosis) -> tuple[str, str]:
    """Embeddings have no range that the task could give; contexts that do not move have no running scale."""
    if diagnosis.method and diagnosis.method.defaults.get("context_scaling") == "none":
        return "running", "none"
    return "task", "none" if "context_init" in diagnosis.fixed else "running"


def suggest_later_start(diagnosis: Diagnosis) -> Advice | None:
    """Where centroids still move at the end: a later start of learning."""
    if "centroid_movement" not in diagnosis.columns:
        return None
    for seed in diagnosis.seeds:
        moved = seed.columns["centroid_movement"].max(axis=1)[seed.steps > diagnosis.run.learning_starts]
        if len(moved) < 8:
            continue
        first, last = float(mean_finite(moved[: len(moved) // 4])), float(mean_finite(take_last(moved, 0.1)))
        options = diagnosis.offer(learning_starts=_later_start(diagnosis.run))
        if last > first / 2 and options:
            return Advice(
                f"The centroids still move at the end (seed {seed.seed}: {number(last)} a period in the last "
                f"tenth, {number(first)} in the first quarter)",
                tuple(f"{option}, so that they start closer to where they end" for option in options),
            )
    return None


def _later_start(run: Run) -> int:
    """Ten times as late, in the run's first tenth, and never earlier than now."""
    latest = min(10 * max(run.learning_starts, 100), run.steps // 10)
    return max(latest // run.update_every * run.update_every, run.learning_starts)


def report_overestimation(diagnosis: Diagnosis) -> Advice | None:
    """Where values are far above what the returns allow."""
    if scales_rewards(diagnosis.run):
        return None  # values are of scaled rewards, and cannot be set against returns
    held_out = "held_out_max_q" in diagnosis.columns
    name = "held_out_max_q" if held_out else "max_q"
    for seed in diagnosis.seeds:
        highest = bound_value(diagnosis.run, seed)
        last = float(mean_finite(take_last(seed.columns[name], 0.1)))
        if highest is None or not abs(last) > TOO_HIGH * highest:
            continue
        options = diagnosis.offer(double_q=True, learning_rate=diagnosis.run.learning_rate / 5)
        options += ["another `target_period`"] if "target_period" in diagnosis.open_settings else []
        return Advice(
            f"Values are beyond what the returns can give: in seed {seed.seed}, {label_of(name)} is {number(last)} "
            f"over the last tenth, and {number(highest)} is about the most that its returns allow",
            tuple(options),
        )
    return None


def report_dormant_units(diagnosis: Diagnosis) -> Advice | None:
    """Where many units are dormant."""
    if "dormant_units" not in diagnosis.columns:
        return None
    shares = [
        (float(mean_finite(take_last(seed.columns["dormant_units"], 0.1))), seed.seed) for seed in diagnosis.seeds
    ]
    share, seed = max(shares)
    if not share > DORMANT:
        return None
    options = diagnosis.offer(layer_norm=True, learning_rate=diagnosis.run.learning_rate / 5)
    return Advice(f"Units are dormant: {percent(share)} of them over the last tenth (seed {seed})", tuple(options))


def report_exploration(diagnosis: Diagnosis) -> Advice | None:
    """Where many actions are random until the end."""
    last = float(diagnosis.columns["epsilon"][-1])
    if last <= STILL_EXPLORING:
        return None
    reached = int(diagnosis.seeds[0].steps[-1])
    options = diagnosis.offer(epsilon_decay=diagnosis.run.steps // 10, epsilon_final=0.02)
    options = ["`iqrl resume RUN`", *options] if reached < diagnosis.run.steps else options
    return Advice(f"Many actions are still random: ε is {number(last)} at step {reached:,}", tuple(options))


def suggest_lighter_regulariser(diagnosis: Diagnosis) -> Advice | None:
    """Where a regulariser is far larger than the loss of the values."""
    for term, setting in WEIGHTS.items():
        if f"{term}_loss" not in diagnosis.columns or setting not in diagnosis.open_settings:
            continue
        options = diagnosis.offer(**{setting: getattr(diagnosis.run, setting) / 10})
        for seed in diagnosis.seeds:
            added = seed.columns[f"{term}_loss"] * seed.columns[f"{term}_weight"]
            added, value = (float(mean_finite(take_last(it, 0.5))) for it in (added, seed.columns["value_loss"]))
            if added > OUTWEIGHS * value:
                return Advice(
                    f"The {term} outweighs the values: times its weight it is {number(added)} over the last half, "
                    f"and the value loss is {number(value)} (seed {seed.seed})",
                    tuple(options),
                )
    return None


# Where it never learned, diverged, or goes on


def report_sameness(diagnosis: Diagnosis) -> Advice | None:
    """Where nearly every period has the same return, nothing tells actions apart."""
    shares = []
    for seed in diagnosis.seeds:
        points = seed.returns[np.isfinite(seed.returns)]
        values, counts = np.unique(points.round(6), return_counts=True)
        if len(values):
            shares.append(
                (counts.max() / len(points), int(counts.max()), len(points), values[counts.argmax()], seed.seed)
            )
    share, same, of, value, name = max(shares, default=(0.0, 0, 0, 0.0, 0))
    if share < SAME:
        return None
    run = diagnosis.run
    options = diagnosis.offer(epsilon_decay=max(run.steps // 2, run.epsilon_decay), n_step=max(run.n_step, 3))
    found = f"in {same} of {of} periods the return was {return_text(value)} (seed {name})"
    return Advice(f"Nearly every episode ended alike: {found}, so no episode was better than another", tuple(options))


def suggest_search(diagnosis: Diagnosis) -> Advice | None:
    """What is left: other settings, or another method."""
    run, ends = diagnosis.run, []
    for name in ("max_q", "value_loss"):
        if name in diagnosis.columns:
            last = [float(mean_finite(take_last(seed.columns[name], 0.1))) for seed in diagnosis.seeds]
            ends.append(f"{label_of(name)} {number(float(mean_finite(np.array(last))))}")
    recommended = "dqn" if diagnosis.shows_images else "local-q"
    options = [] if run.method == recommended else [f"`--method {recommended}`"]
    options.append(f"`iqrl tune {run.task} --method {run.method}`, which searches its settings")
    return Advice(f"Over the last tenth: {listing(ends)}", tuple(options), general=True) if ends else None


def suggest_smaller_steps(diagnosis: Diagnosis) -> Advice | None:
    """Where values or losses left all bounds."""
    judged = diagnosis.fate.those[0]
    assert judged.broken is not None
    name, since = judged.broken
    values, steps = judged.seed.columns[name], judged.seed.steps
    before = np.flatnonzero(np.isfinite(values[:since]))
    last = f"{label_of(name)} was {number(values[before[-1]])} at step {steps[before[-1]]:,}" if len(before) else ""
    rate = diagnosis.run.learning_rate
    options = diagnosis.offer(learning_rate=rate / 10, gradient_clip=10.0, double_q=True)
    return Advice(last or f"The learning rate was {rate:g}", tuple(options))


def suggest_going_on(diagnosis: Diagnosis) -> Advice | None:
    """Where the run was not at its end."""
    run, seeds = diagnosis.run, diagnosis.fate.those
    reached, decayed = int(seeds[0].seed.steps[-1]), run.epsilon_begin + run.epsilon_decay
    last = float(diagnosis.columns["epsilon"][-1]) if "epsilon" in diagnosis.columns else None
    epsilon = "" if last is None else f"ε was {number(last)} at step {reached:,}"
    epsilon += f", and decays up to step {decayed:,}" if epsilon and decayed > reached else ""
    if diagnosis.fate.unfinished:
        return Advice(epsilon or "The run is not finished", ("`iqrl resume RUN`, which goes on where it stopped",))
    final, earlier = (float(mean_finite(np.array([getattr(it, at) for it in seeds]))) for at in ("final", "earlier"))
    rose = f"the return rose from {return_text(earlier)} to {return_text(final)} in the last fifth of the run"
    found = "; ".join(filter(None, [epsilon, rose if final > earlier else ""]))
    return Advice(found or "The run is short", (f"`iqrl resume RUN --steps {2 * max(run.steps, decayed)}`",))


Rule = Callable[[Diagnosis], Advice | None]
STANDING_OUT: tuple[Rule, ...] = (
    suggest_heads, suggest_other_contexts, suggest_later_start, report_overestimation, report_dormant_units,
    report_exploration, suggest_lighter_regulariser,
)  # fmt: skip
RULES: dict[str, tuple[Rule, ...]] = {
    "diverged": (suggest_smaller_steps,),
    "collapsed": (suggest_memory, *STANDING_OUT, suggest_measuring, suggest_search),
    "declined": (suggest_memory, *STANDING_OUT, suggest_measuring, suggest_search),
    "never learned": (report_sameness, *STANDING_OUT, suggest_search),
    "stuck": (suggest_memory, *STANDING_OUT, suggest_search),
    "still learning": (suggest_going_on,),
    "unsteady": (suggest_memory, *STANDING_OUT, suggest_measuring, suggest_search),
    "fine": (suggest_memory,),
    "uneven": (suggest_memory, *STANDING_OUT, suggest_search),
    "too short": (suggest_going_on,),
}
"""which rules are asked, by what became of the run"""
