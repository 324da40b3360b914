"""IQ: a head per context of the state space, the other heads kept by distillation (Zhang et al. 2022).

    L = L_ori + λ L_D,  λ = 1 - ε                                              (eq. 11)
    L_D = Σ_{i ≠ ω(s)} Huber(Q(s, a, ω_i; θ) - Q(s, a, ω_i; θ⁻))               (eq. 9 and 10)

Contexts ω come from sequential K-means (`core/contexts/sequential_kmeans.py`). Here are L_D, the settings of IQ, and
the ablations that leave one element out; divisions of another kind are in `iq_divisions.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import scaling, schedules
from iqrl.core.agent import QLearner
from iqrl.core.contexts import ContextDivision
from iqrl.core.contexts.sequential_kmeans import sequential_kmeans
from iqrl.core.losses import HeldHeads, Regulariser, huber
from iqrl.core.masks import mean_over_legal
from iqrl.core.networks import Output, head_mask, select_action
from iqrl.core.types import LossInputs, Transition
from iqrl.envs.base import Task
from iqrl.envs.random_policy import random_states
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.methods.base import SEARCH, Method, exploration, q_learner
from iqrl.settings import Run, Settings, setting


class ContextSettings(Settings):
    """contexts"""

    contexts: int | Literal["auto"] = setting(
        3, "number of contexts and heads k; auto: found before training in the states of a random policy",
        minimum=1, paper="3",
    )  # fmt: skip

    @property
    def k(self) -> int:
        """The number of contexts."""
        if self.contexts == "auto":
            raise BadInput("contexts auto becomes a number in iqrl.resolve; make the run with it.")
        return self.contexts


class ClusteringSettings(Settings):
    """clustering of states"""

    context_init: Literal["kmeans", "random", "given"] = setting(
        "kmeans", "first centroids: K-means on the states before learning starts, random, or given", paper="either"
    )
    context_scaling: Literal["task", "running", "none"] = setting(
        "task",
        "scale of each variable in the distance: the task's ranges, a running deviation, or none",
        paper="advised",
    )
    context_target: Literal["synced", "live"] = setting(
        "synced", "which centroids say what a state's context is: the copy of the last sync, or the live ones",
        paper="synced",
    )  # fmt: skip
    centroids: tuple[float, ...] = setting(
        (), "the first centroids, one after the other, with context_init given; contexts auto finds them"
    )


class DistillationSettings(Settings):
    """distillation"""

    distill_schedule: Literal["one-minus-epsilon", "constant"] = setting(
        "one-minus-epsilon", "λ = weight × (1 - ε), or λ = weight", paper="1 - ε"
    )
    distill_weight: float = setting(1.0, "weight of the distillation; 0 is none", minimum=0, paper="1")
    distill_actions: Literal["taken", "all"] = setting(
        "taken", "distil the taken action or all legal actions", paper="taken"
    )
    distill_heads: Literal["sum", "mean"] = setting("sum", "sum or mean over the other heads", paper="sum")

    def check(self: Any) -> None:
        if self.distill_weight > 0:
            check_target(self, "distillation")


def check_target(run: Run, part: str) -> None:
    """A term that holds the network to its target network does nothing without one."""
    if not run.has_target:
        raise BadInput(
            f"target_period is {run.target_period}, which leaves no target network for the {part} of "
            f"{run.method}; it must be more than update_every."
        )


# L_D


class Distance(NamedTuple):
    """How far a head is from the target network's."""

    of: Callable[[Output], jax.Array]
    between: Callable[[jax.Array, jax.Array, int], jax.Array]
    """(online, target, the axis of the distribution) -> one number for each"""


def cross_entropy(logits: jax.Array, target: jax.Array, axis: int) -> jax.Array:
    """Between the probabilities of both."""
    return -jnp.sum(jax.nn.softmax(target, axis=axis) * jax.nn.log_softmax(logits, axis=axis), axis=axis)


BETWEEN_VALUES = Distance(lambda output: output.q, lambda online, target, axis: huber(online - target))
BETWEEN_DISTRIBUTIONS = Distance(lambda output: output.values, cross_entropy)


def distillation(
    weight: schedules.Schedule,
    actions: str,
    heads: str,
    own_head: bool = False,
    distance: Distance = BETWEEN_VALUES,
) -> Regulariser:
    """L_D: every head but the one in use stays where the target network has it.

    `actions`: the taken action only (the paper), or the mean over all that are legal.
    `heads`: the sum over the other heads (the paper), or their mean.
    `own_head`: the head in use is held too (the paper's ablation with a single head).
    """

    def on_taken_action(online: jax.Array, target: jax.Array, step: Transition) -> jax.Array:
        taken = lambda each: select_action(jnp.swapaxes(each, 0, 1), step.a_tm1)
        return distance.between(taken(online), taken(target), 1)

    def on_all_actions(online: jax.Array, target: jax.Array, step: Transition) -> jax.Array:
        return mean_over_legal(distance.between(online, target, 2), step.mask_tm1, axis=1)

    per_head = {"taken": on_taken_action, "all": on_all_actions}[actions]

    def loss(inputs: LossInputs) -> jax.Array:
        target = jax.lax.stop_gradient(distance.of(inputs.target_tm1))
        losses = per_head(distance.of(inputs.online_tm1), target, inputs.transition)
        if not own_head:
            losses = jnp.where(head_mask(losses, inputs.transition.context_tm1), 0.0, losses)
        count = max(losses.shape[0] - (not own_head), 1)
        return jnp.sum(losses, axis=0) / {"sum": 1, "mean": count}[heads]

    simple = actions == "taken" and heads == "sum" and distance is BETWEEN_VALUES
    form = HeldHeads(own_head=own_head, share=1.0) if simple else None
    return Regulariser(name="distillation", weight=weight, loss=loss, form=form)


# How IQ is composed


def weighted_distillation(
    run: Run, own_head: bool = False, distance: Distance = BETWEEN_VALUES
) -> tuple[Regulariser, ...]:
    """λ L_D with the run's λ; nothing at all when λ stays 0, so that the program is the one without it."""
    if run.distill_weight == 0:
        return ()
    weight = {
        "one-minus-epsilon": lambda: schedules.one_minus(exploration(run), run.distill_weight),
        "constant": lambda: schedules.constant(run.distill_weight),
    }[run.distill_schedule]()
    return (distillation(weight, run.distill_actions, run.distill_heads, own_head, distance),)


def distance_scale(run: Run, task: Task) -> scaling.Scaling:
    return {
        "task": lambda: scaling.fixed(task.low, task.high),
        "running": lambda: scaling.running(task.obs_size),
        "none": lambda: scaling.unscaled(task.obs_size),
    }[run.context_scaling]()


def skm_contexts(run: Run, task: Task) -> ContextDivision:
    """Sequential K-means over the task's states."""
    warm_start = run.learning_starts if run.context_init == "kmeans" else 0
    given = jnp.asarray(run.centroids, jnp.float32).reshape(run.k, -1) if run.centroids else None
    scale, live = distance_scale(run, task), run.context_target == "live"
    return sequential_kmeans(run.k, task.low, task.high, scale, warm_start, given, live)


def iq(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, division=skm_contexts(run, task), regularisers=weighted_distillation(run))


def without_distillation(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, division=skm_contexts(run, task))


def without_heads(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, regularisers=weighted_distillation(run, own_head=True))


# The number of contexts, and centroids, found before training

RANDOM_STATES = 10_000
"""states of a random policy in which contexts are looked for"""


def settle_contexts(run: Run, task: Task, given: Mapping[str, Any]) -> Run:
    """The run with its number of contexts and, where they are to be found, its first centroids."""
    if run.contexts == "auto" and not run.centroids:
        return _find_contexts(run, given)
    if run.contexts == "auto" or (run.context_init == "given") != bool(run.centroids):
        raise BadInput("centroids go with context_init given and a number of contexts: give all three or neither.")
    if run.centroids and len(run.centroids) != run.contexts * task.obs_size:
        raise BadInput(
            f"centroids has {len(run.centroids)} numbers; {run.contexts} contexts of {task.obs_size} variables need "
            f"{run.contexts * task.obs_size}."
        )
    if run.context_init == "kmeans" and run.learning_starts < run.contexts:
        raise BadInput(
            f"learning_starts is {run.learning_starts}; with context_init kmeans it must be at least "
            f"the number of contexts, {run.contexts}."
        )
    return run


def _find_contexts(run: Run, given: Mapping[str, Any]) -> Run:
    """k and the first centroids by density-based clustering of a random policy's states, as the paper recommends.

    The same for every seed of the run. A `context_init` that was given decides the centroids; k is still found.
    """
    from iqrl.core.contexts.density import density_centroids  # not needed, and not loaded, otherwise

    task = make_task(run)
    states = random_states(task, RANDOM_STATES)
    weights = {
        "task": lambda: 1 / np.square(np.subtract(task.high, task.low)),
        "running": lambda: 1 / np.maximum(np.var(states, axis=0), 1e-12),
        "none": lambda: np.ones(task.obs_size),
    }[run.context_scaling]()
    centroids = density_centroids(states, weights)
    found: dict[str, Any] = {"contexts": len(centroids)}
    if given.get("context_init", "given") == "given":
        found |= {"context_init": "given", "centroids": tuple(np.float32(centroids).ravel().tolist())}
    return dataclasses.replace(run, **found)


def settle_number(run: Run, task: Task, given: Mapping[str, Any]) -> Run:
    """For methods whose contexts are not clusters of states: the number must be given."""
    if run.contexts == "auto":
        raise BadInput(
            f"contexts auto is for methods that cluster the states themselves while they learn, such as iq; "
            f"{run.method} does not: give a number."
        )
    return run


IQ_SETTINGS = (ContextSettings, ClusteringSettings, DistillationSettings)
NO_DISTILLATION = {"distill_weight": 0.0}
ONE_HEAD = {"contexts": 1} | NO_DISTILLATION
"""with which IQ is DQN"""

METHODS = (
    Method(
        name="iq",
        summary="a head per context of the state space, the other heads kept by distillation",
        paper="Zhang et al. 2022",
        build=iq,
        settings=IQ_SETTINGS,
        settle=settle_contexts,
        observations="vectors",
        search={**SEARCH, "contexts": (2, 3, 4, 6)},
        reduces_to=("dqn", ONE_HEAD),
    ),
    Method(
        name="iq-no-distillation",
        summary="IQ without the distillation",
        paper="Zhang et al. 2022, ablation",
        build=without_distillation,
        settings=(ContextSettings, ClusteringSettings),
        settle=settle_contexts,
        observations="vectors",
        reduces_to=("dqn", {"contexts": 1}),
        covered_by=("iq",),
    ),
    Method(
        name="iq-no-multi-head",
        summary="IQ with a single head, which is distilled itself",
        paper="Zhang et al. 2022, ablation",
        build=without_heads,
        settings=(DistillationSettings,),
        fixed={"distill_heads": "sum"},
        observations="vectors",
        reduces_to=("dqn", NO_DISTILLATION),
        covered_by=("iq",),
    ),
)
