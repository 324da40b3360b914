"""What to try next: rules, each set off by a measurement that it quotes.

A rule gives a paragraph, or None if its measurement is absent or unremarkable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iqrl.config import Consolidation, Contexts, Normalisation, Run
from iqrl.errors import BadInput
from iqrl.explain.case import Case, follows
from iqrl.explain.movements import INTERFERENCE, strongest_conflict
from iqrl.explain.seeds import SeedMetrics, last_share
from iqrl.explain.words import listing, number, percent
from iqrl.parts.replay import row_width
from iqrl.results import mean_known
from iqrl.tasks import make_task

LARGE_BUFFER = 10_000
"""interference is measured over the last 10,000 transitions; a buffer of so many rehearses all of them"""
CONFLICT = -0.1
NEARLY_ALL, NEARLY_NONE = 0.9, 0.01
DORMANT = 0.3
TOO_HIGH = 3.0
OUTWEIGHS = 10.0
STILL_EXPLORING = 0.2
WEIGHTS = {"distillation": "distill_weight", "consolidation": "consolidation_weight", "sparsity": "srnn_weight"}
"""the setting that weighs a regulariser"""


def advice(case: Case) -> list[str]:
    return [text for rule in RULES if (text := rule(case))]


def _try(options: list[str]) -> str:
    return f"Try {listing(options, 'or')}." if options else "No setting of this method is known to help."


# The rules


def larger_memory(case: Case) -> str | None:
    if not (case.measured and case.interference_stands_out):
        return None
    options = []
    if case.run.buffer_size < LARGE_BUFFER:
        # A buffer that is sampled whole must be full when learning starts.
        most = LARGE_BUFFER if case.run.sampling == "uniform" else case.run.learning_starts
        size = max(min(max(10 * case.run.buffer_size, 100), most), case.run.buffer_size)
        options = [f"{flag}{_cost(case.run, size)}" for flag in case.offers(buffer_size=size)]
    if case.has(Contexts) and case.run.contexts == 1:
        options.append("`--contexts 3`, a head per context")
    elif case.seeds[0].heads == 1 and not case.has(Consolidation):
        options.append("`--method iq` or `--method medqn-r`, which keep what was learned without a larger buffer")
    if not options:
        return None
    return f"**Interference goes with the falls** ({_evidence(case)}). {_try(options)}"


def _evidence(case: Case) -> str:
    parts = [case.coincidence.in_words] if case.coincidence and case.coincidence.stands_out else []
    if case.association is not None and follows(case.association):
        parts.append(f"over all periods the return falls after it, ρ = {case.association.plain.rho:.2f}")
    return "; ".join(parts)


def _cost(run: Run, size: int) -> str:
    try:
        width = row_width(len(make_task(run).low))
    except BadInput:
        return ""  # a task of the user's own that cannot be found from here
    return f" (memory for {size:,} transitions: {4 * width * size:,} bytes a seed, now {4 * width * run.buffer_size:,})"


def contexts_for_conflicts(case: Case) -> str | None:
    if case.seeds[0].heads > 1:
        return None
    half = slice(len(case.seeds[0].steps) // 2, None)
    found = [(conflict, seed.seed) for seed in case.seeds if (conflict := strongest_conflict(seed, half))]
    if not found or (worst := min(found, key=lambda pair: pair[0].cosine))[0].cosine >= CONFLICT:
        return None
    (i, j), cosine = worst[0]
    flag = "--contexts 3" if case.has(Contexts) else "--method iq"
    return (
        f"**Contexts pull a single head in opposite directions**: the TD gradients of contexts {i} and {j} have "
        f"a cosine of {cosine:.2f} (seed {worst[1]}, mean over the last half). Try `{flag}`, a head per context."
    )


def other_contexts(case: Case) -> str | None:
    if case.seeds[0].heads == 1 or not case.has(Contexts):
        return None
    shares = [(mean_known(last_share(seed.columns["occupancy"], 0.5), axis=0), seed.seed) for seed in case.seeds]
    fullest, seed = max(((float(share.max()), seed) for share, seed in shares))
    empty = sum(int((share < NEARLY_NONE).sum()) for share, _ in shares)
    if fullest <= NEARLY_ALL and not empty:
        return None
    scaling = next(kind for kind in _scalings(case) if kind != case.run.context_scaling)
    options = case.offers(contexts=max(case.run.k - 1, 1), context_init="kmeans", context_scaling=scaling)
    return (
        f"**The contexts divide little**: over the last half, the fullest one held {percent(fullest)} of the steps "
        f"(seed {seed}), and {empty} of {sum(len(share) for share, _ in shares)} held less than "
        f"{percent(NEARLY_NONE)}. {_try(options)}"
    )


def _scalings(case: Case) -> tuple[str, str]:
    """Codes have no range that the task could say; contexts that do not move have no running scale."""
    if case.method and case.method.defaults.get("context_scaling") == "none":
        return "running", "none"
    return "task", "none" if "context_init" in case.fixed else "running"


def moving_centroids(case: Case) -> str | None:
    if "centroid_movement" not in case.seeds[0].columns:
        return None
    for seed in case.seeds:
        moved = seed.columns["centroid_movement"].max(axis=1)[seed.steps > case.run.learning_starts]
        if len(moved) < 8:
            continue
        first, last = float(mean_known(moved[: len(moved) // 4])), float(mean_known(last_share(moved, 0.1)))
        options = case.offers(learning_starts=_later_start(case.run))
        if last > first / 2 and options:
            return (
                f"**The centroids still move at the end** (seed {seed.seed}: {number(last)} a period in the last "
                f"tenth, {number(first)} in the first quarter). Try {listing(options)}, so that they begin nearer to "
                f"their place."
            )
    return None


def _later_start(run: Run) -> int:
    """Ten times as late, in the run's first tenth, and never earlier than now."""
    latest = min(10 * max(run.learning_starts, 100), run.steps // 10)
    return max(latest // run.update_every * run.update_every, run.learning_starts)


def overestimation(case: Case) -> str | None:
    if case.has(Normalisation) and case.run.normalise:
        return None  # values are of scaled rewards, and cannot be set against returns
    held_out = "held_out_max_q" in case.seeds[0].columns
    name, where = ("held_out_max_q", "held-out states") if held_out else ("max_q", "the batches")
    for seed in case.seeds:
        highest = plausible_value(case.run, seed)
        last = float(mean_known(last_share(seed.columns[name], 0.1)))
        if highest is None or not abs(last) > TOO_HIGH * highest:
            continue
        options = case.offers(double_q=True, learning_rate=case.run.learning_rate / 5)
        options += ["another `target_period`"] if "target_period" in case.open_settings else []
        return (
            f"**Values are beyond what the returns can give**: in seed {seed.seed}, max-Q on {where} is {number(last)} "
            f"over the last tenth, and {number(highest)} is about the most that its returns allow. "
            f"{_try(options)}"
        )
    return None


def plausible_value(run: Run, seed: SeedMetrics) -> float | None:
    """The largest value that the returns seen speak for; None if values have no bound.

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


def dormant_units(case: Case) -> str | None:
    if "dormant_units" not in case.seeds[0].columns:
        return None
    shares = [(float(mean_known(last_share(seed.columns["dormant_units"], 0.1))), seed.seed) for seed in case.seeds]
    share, seed = max(shares)
    if not share > DORMANT:
        return None
    options = case.offers(layer_norm=True, learning_rate=case.run.learning_rate / 5)
    return f"**Units fell silent**: {percent(share)} are dormant over the last tenth (seed {seed}). {_try(options)}"


def exploration(case: Case) -> str | None:
    last = float(case.seeds[0].columns["epsilon"][-1])
    if last <= STILL_EXPLORING:
        return None
    reached = int(case.seeds[0].steps[-1])
    options = case.offers(epsilon_decay=case.run.steps // 10, epsilon_final=0.02)
    options += ["`iqrl resume`: the run is not finished"] if reached < case.run.steps else []
    return f"**Many actions are still random**: ε is {number(last)} at step {reached:,}. {_try(options)}"


def lighter_regulariser(case: Case) -> str | None:
    for term, setting in WEIGHTS.items():
        options = case.offers(**{setting: getattr(case.run, setting) / 10})
        if f"{term}_loss" not in case.seeds[0].columns or not options:
            continue
        for seed in case.seeds:
            added = seed.columns[f"{term}_loss"] * seed.columns[f"{term}_weight"]
            added, value = (float(mean_known(last_share(it, 0.5))) for it in (added, seed.columns["value_loss"]))
            if added > OUTWEIGHS * value:
                return (
                    f"**The {term} outweighs the values**: times its weight it is {number(added)} over the last half, "
                    f"the value loss {number(value)} (seed {seed.seed}). {_try(options)}"
                )
    return None


def not_interference(case: Case) -> str | None:
    if case.coincidence is None or case.interference_stands_out:
        return None
    labels = dict.fromkeys(it.label for found in case.studies for it in found.before + found.during)
    moved = [label for label in labels if label not in INTERFERENCE.values()]
    rest = f"What did move: {listing(moved)}." if moved else "Nothing else that was measured moved either."
    return f"**Interference does not stand out**: {case.coincidence.in_words}. {rest}"


RULES: tuple[Callable[[Case], str | None], ...] = (
    larger_memory, contexts_for_conflicts, other_contexts, moving_centroids, overestimation, dormant_units,
    exploration, lighter_regulariser, not_interference,
)  # fmt: skip
