"""What to try next: rules, each of which looks at one measurement and quotes it.

A rule returns a paragraph, or None if its measurement is absent or unremarkable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iqrl.core.replay.base import row_width
from iqrl.diagnostics.explain.diagnosis import Diagnosis
from iqrl.diagnostics.explain.evidence import find_conflict
from iqrl.diagnostics.explain.history import SeedMetrics, take_last
from iqrl.diagnostics.metrics import find_metric, label_of
from iqrl.diagnostics.text import listing, number, percent
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.methods.iq import ContextSettings
from iqrl.methods.medqn import ConsolidationSettings
from iqrl.methods.streaming import NormalisationSettings
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
WEIGHTS = {"distillation": "distill_weight", "consolidation": "consolidation_weight", "sparsity": "srnn_weight"}
"""the setting that weighs a regulariser"""


def give_advice(diagnosis: Diagnosis) -> list[str]:
    """The paragraphs of all rules that apply."""
    return [text for rule in RULES if (text := rule(diagnosis))]


def _write_options(options: list[str]) -> str:
    return f"Try {listing(options, 'or')}." if options else "No setting of this method is known to help."


def suggest_memory(diagnosis: Diagnosis) -> str | None:
    """Where interference goes with the falls: a larger buffer, or a method that keeps what was learned."""
    if not (diagnosis.measured and diagnosis.interference_stands_out):
        return None
    run, options = diagnosis.run, []
    if run.buffer_size < LARGE_BUFFER:
        # A buffer that is sampled whole must be full when learning starts.
        most = LARGE_BUFFER if run.sampling == "uniform" else run.learning_starts
        size = max(min(max(10 * run.buffer_size, 100), most), run.buffer_size)
        options = [f"{flag}{_write_memory(run, size)}" for flag in diagnosis.offer(buffer_size=size)]
    if diagnosis.has(ContextSettings) and run.contexts == 1:
        options.append("`--contexts 3`, a head per context")
    elif diagnosis.heads == 1 and run.features == "dense" and not diagnosis.has(ConsolidationSettings):
        options.append(
            "`--method local-q`, whose updates leave the values of other states alone and which stores nothing"
        )
        options.append("`--method medqn-r`, which keeps what was learned without a larger buffer")
    if not options:
        return None
    return f"**Interference goes with the falls** ({_quote_evidence(diagnosis)}). {_write_options(options)}"


def _quote_evidence(diagnosis: Diagnosis) -> str:
    coincidence, association = diagnosis.coincidence, diagnosis.association
    parts = [coincidence.in_words] if coincidence is not None and coincidence.stands_out else []
    if association is not None and association.follows:
        parts.append(f"over all periods the return falls after it, ρ = {association.plain.rho:.2f}")
    return "; ".join(parts)


def _write_memory(run: Run, size: int) -> str:
    try:
        task = make_task(run)
        width = row_width(task.obs_size, task.masked_actions)
    except BadInput:
        return ""  # a task of the user's own that cannot be found from here
    return f" (memory for {size:,} transitions: {4 * width * size:,} bytes a seed, now {4 * width * run.buffer_size:,})"


def suggest_heads(diagnosis: Diagnosis) -> str | None:
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
    flag = "--contexts 3" if diagnosis.has(ContextSettings) else "--method iq"
    return (
        f"**Contexts pull a single head in opposite directions**: the TD gradients of contexts {i} and {j} have "
        f"a cosine of {cosine:.2f} (seed {seed}, mean over the last half). Try `{flag}`, a head per context."
    )


def suggest_other_contexts(diagnosis: Diagnosis) -> str | None:
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
    return (
        f"**The contexts divide little**: over the last half, the fullest one held {percent(fullest)} of the steps "
        f"(seed {seed}), and {empty} of {sum(len(share) for share, _ in shares)} held less than "
        f"{percent(NEARLY_NONE)}. {_write_options(options)}"
    )


def _allowed_scalings(diagnosis: Diagnosis) -> tuple[str, str]:
    """Embeddings have no range that the task could give; contexts that do not move have no running scale."""
    if diagnosis.method and diagnosis.method.defaults.get("context_scaling") == "none":
        return "running", "none"
    return "task", "none" if "context_init" in diagnosis.fixed else "running"


def suggest_later_start(diagnosis: Diagnosis) -> str | None:
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
            return (
                f"**The centroids still move at the end** (seed {seed.seed}: {number(last)} a period in the last "
                f"tenth, {number(first)} in the first quarter). Try {listing(options)}, so that they start closer to "
                f"where they end."
            )
    return None


def _later_start(run: Run) -> int:
    """Ten times as late, in the run's first tenth, and never earlier than now."""
    latest = min(10 * max(run.learning_starts, 100), run.steps // 10)
    return max(latest // run.update_every * run.update_every, run.learning_starts)


def report_overestimation(diagnosis: Diagnosis) -> str | None:
    """Where values are far above what the returns allow."""
    if diagnosis.has(NormalisationSettings) and diagnosis.run.normalise:
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
        return (
            f"**Values are beyond what the returns can give**: in seed {seed.seed}, {label_of(name)} is {number(last)} "
            f"over the last tenth, and {number(highest)} is about the most that its returns allow. "
            f"{_write_options(options)}"
        )
    return None


def bound_value(run: Run, seed: SeedMetrics) -> float | None:
    """The largest value that the returns make plausible; None if values have no bound.

    An episode's return bounds it where a time limit is an end. Where it is not, the rewards go on after the limit,
    at the rate at which they came, up to rate / (1 - γ).
    """
    if not np.isfinite(seed.returns).any():
        return None
    largest = float(np.nanmax(np.abs(seed.returns)))
    if not run.bootstrap_time_limit:
        return largest
    if run.gamma == 1:
        return None
    rates = np.abs(seed.returns) * seed.columns["episodes"] / np.diff(seed.steps, prepend=0)
    return max(largest, float(np.nanmax(rates)) / (1 - run.gamma))


def report_dormant_units(diagnosis: Diagnosis) -> str | None:
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
    found = f"{percent(share)} of them over the last tenth (seed {seed})"
    return f"**Units are dormant**: {found}. {_write_options(options)}"


def report_exploration(diagnosis: Diagnosis) -> str | None:
    """Where many actions are random until the end."""
    last = float(diagnosis.columns["epsilon"][-1])
    if last <= STILL_EXPLORING:
        return None
    reached = int(diagnosis.seeds[0].steps[-1])
    options = diagnosis.offer(epsilon_decay=diagnosis.run.steps // 10, epsilon_final=0.02)
    options += ["`iqrl resume`: the run is not finished"] if reached < diagnosis.run.steps else []
    return f"**Many actions are still random**: ε is {number(last)} at step {reached:,}. {_write_options(options)}"


def suggest_lighter_regulariser(diagnosis: Diagnosis) -> str | None:
    """Where a regulariser is far larger than the loss of the values."""
    for term, setting in WEIGHTS.items():
        if f"{term}_loss" not in diagnosis.columns or setting not in diagnosis.open_settings:
            continue
        options = diagnosis.offer(**{setting: getattr(diagnosis.run, setting) / 10})
        for seed in diagnosis.seeds:
            added = seed.columns[f"{term}_loss"] * seed.columns[f"{term}_weight"]
            added, value = (float(mean_finite(take_last(it, 0.5))) for it in (added, seed.columns["value_loss"]))
            if added > OUTWEIGHS * value:
                return (
                    f"**The {term} outweighs the values**: times its weight it is {number(added)} over the last half, "
                    f"and the value loss is {number(value)} (seed {seed.seed}). {_write_options(options)}"
                )
    return None


def report_no_interference(diagnosis: Diagnosis) -> str | None:
    """Where interference does not go with the falls: what else moved."""
    if diagnosis.coincidence is None or diagnosis.interference_stands_out:
        return None
    movements = [movement for found in diagnosis.falls for movement in found.before + found.during]
    moved = dict.fromkeys(movement.label for movement in movements if not _is_interference(movement.metric))
    rest = f"What moved: {listing(list(moved))}." if moved else "Nothing else that was measured moved either."
    return f"**Interference does not stand out**: {diagnosis.coincidence.in_words}. {rest}"


def _is_interference(name: str) -> bool:
    metric = find_metric(name)
    return metric is not None and metric.group == "interference"


RULES: tuple[Callable[[Diagnosis], str | None], ...] = (
    suggest_memory, suggest_heads, suggest_other_contexts, suggest_later_start, report_overestimation,
    report_dormant_units, report_exploration, suggest_lighter_regulariser, report_no_interference,
)  # fmt: skip
