"""IQ with contexts of another kind than clusters of states, which the paper compares with its own:

iq-no-clustering   a random partition of the state space, fixed before learning (the paper's ablation)
iq-initial-states  clusters of the states that episodes begin with (Ghosh et al. 2018)
iq-game-score      ranges of the score so far (Jain et al. 2020)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core.agent import QLearner
from iqrl.core.contexts import ContextDivision
from iqrl.core.contexts.kmeans import kmeans
from iqrl.core.contexts.sequential_kmeans import nearest
from iqrl.core.types import ContextInputs
from iqrl.envs.base import EnvInputs, Task
from iqrl.errors import BadInput
from iqrl.methods.base import Method, q_learner
from iqrl.methods.iq import (
    IQ_SETTINGS,
    ONE_HEAD,
    ContextSettings,
    DistillationSettings,
    distance_scale,
    settle_number,
    weighted_distillation,
)
from iqrl.settings import Run, Settings, setting

INITIAL_STATES = 10_000
"""initial states that are clustered, as many as Ghosh et al. 2018 take"""


class ScoreSettings(Settings):
    """contexts by score"""

    score_low: float | None = setting(None, "lower end of the first bin; the lowest score so far if not given")
    score_high: float | None = setting(None, "upper end of the last bin; the highest score so far if not given")

    def check(self) -> None:
        if self.score_low is not None and self.score_high is not None and self.score_low >= self.score_high:
            raise BadInput(f"score_low is {self.score_low}; it must be less than score_high, {self.score_high}.")


class Cells(NamedTuple):
    """A partition that never moves: each state belongs to the nearest of these centres."""

    centres: jax.Array


def random_cells(k: int, low: Sequence[float], high: Sequence[float], weights: jax.Array) -> ContextDivision:
    """No clustering: a random partition of the state space, drawn before learning.

    The cells of k centres drawn uniformly in [low, high].
    """
    lowest, highest = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)

    def init(key: jax.Array) -> Cells:
        return Cells(jax.random.uniform(key, (k, lowest.size), minval=lowest, maxval=highest))

    def assign(state: Cells, inputs: ContextInputs) -> jax.Array:
        return nearest(inputs.obs, state.centres, weights)

    return ContextDivision(count=k, init=init, assign=assign, update=lambda state, inputs: state)


def initial_states(
    k: int, draw_states: Callable[[jax.Array], jax.Array], shape: tuple[int, int], weights: jax.Array
) -> ContextDivision:
    """K-means on the states that episodes begin with; an episode keeps the context of its first state.

    `draw_states` makes them [n, d] from uniform numbers of that shape.
    """

    def init(key: jax.Array) -> Cells:
        draw_key, seed_key = jax.random.split(key)
        states = draw_states(jax.random.uniform(draw_key, shape))
        return Cells(kmeans(seed_key, states, k, weights)[0])

    def assign(state: Cells, inputs: ContextInputs) -> jax.Array:
        return nearest(inputs.initial_obs, state.centres, weights)

    return ContextDivision(count=k, init=init, assign=assign, update=lambda state, inputs: state)


class Bins(NamedTuple):
    """Lowest and highest score: so far, and as they were at the last sync, which assign."""

    low: jax.Array
    high: jax.Array
    target_low: jax.Array
    target_high: jax.Array


def score_bins(k: int, low: float | None, high: float | None) -> ContextDivision:
    """k bins of equal width of the running score, from `low` to `high`, or as far as scores went so far."""

    def init(key: jax.Array) -> Bins:
        # An episode's score starts at 0: where nothing else is known, the bins begin with that.
        start = min(0.0, high or 0.0) if low is None else low
        end = max(start, 0.0) if high is None else high
        low_end, high_end = jnp.float32(start), jnp.float32(end)
        return Bins(low=low_end, high=high_end, target_low=low_end, target_high=high_end)

    def assign(state: Bins, inputs: ContextInputs) -> jax.Array:
        width = jnp.maximum(state.target_high - state.target_low, 1e-6) / k
        return jnp.clip(jnp.floor((inputs.score - state.target_low) / width), 0, k - 1).astype(jnp.int32)

    def update(state: Bins, inputs: ContextInputs) -> Bins:
        lowest = jnp.minimum(state.low, inputs.score) if low is None else state.low
        highest = jnp.maximum(state.high, inputs.score) if high is None else state.high
        return state._replace(low=lowest, high=highest)

    def sync(state: Bins) -> Bins:
        return state._replace(target_low=state.low, target_high=state.high)

    return ContextDivision(
        count=k,
        init=init,
        assign=assign,
        update=update,
        # What is stored before learning starts keeps its labels: until then the bins follow the scores at once.
        collect=lambda state, inputs, step: sync(state),
        start=lambda state, key: sync(state),
        sync=sync,
        has_target=True,
    )


# How they are composed


def fixed_weights(run: Run, task: Task) -> jax.Array:
    """Of the distance between states, where they must be known before any state."""
    if run.context_scaling == "running":
        raise BadInput(f"context_scaling running is for contexts that move; {run.method} takes task or none.")
    return distance_scale(run, task).weights(())


def without_clustering(run: Run, task: Task) -> QLearner:
    division = random_cells(run.k, task.low, task.high, fixed_weights(run, task))
    return q_learner(run, task, division=division, regularisers=weighted_distillation(run))


def by_initial_states(run: Run, task: Task) -> QLearner:
    if task.external:
        raise BadInput(
            f"{run.method} draws {INITIAL_STATES:,} initial states beforehand, which {task.name} cannot give."
        )
    initial_obs = lambda uniforms: task.flat_obs(task.reset(EnvInputs(uniforms=uniforms, step=jnp.int32(0))))
    draw_states = jax.vmap(lambda uniforms: initial_obs(uniforms).astype(jnp.float32))
    shape = (INITIAL_STATES, task.num_reset_uniforms)
    division = initial_states(run.k, draw_states, shape, fixed_weights(run, task))
    return q_learner(run, task, division=division, regularisers=weighted_distillation(run))


def by_score(run: Run, task: Task) -> QLearner:
    division = score_bins(run.k, run.score_low, run.score_high)
    return q_learner(run, task, division=division, regularisers=weighted_distillation(run))


METHODS = (
    Method(
        name="iq-no-clustering",
        summary="IQ with a random partition of the state space, fixed before learning",
        paper="Zhang et al. 2022, ablation",
        build=without_clustering,
        settings=IQ_SETTINGS,
        fixed={"context_init": "random", "centroids": (), "context_target": "synced"},
        settle=settle_number,
        observations="vectors",
        reduces_to=("dqn", ONE_HEAD),
        covered_by=("iq",),
    ),
    Method(
        name="iq-initial-states",
        summary="IQ whose contexts are clusters of the states that episodes begin with",
        paper="Ghosh et al. 2018, in Zhang et al. 2022",
        build=by_initial_states,
        settings=IQ_SETTINGS,
        fixed={"context_init": "kmeans", "centroids": (), "context_target": "synced"},
        settle=settle_number,
        observations="vectors",
        reduces_to=("dqn", ONE_HEAD),
        covered_by=("iq",),
    ),
    Method(
        name="iq-game-score",
        summary="IQ whose contexts are ranges of the score so far",
        paper="Jain et al. 2020, in Zhang et al. 2022",
        build=by_score,
        settings=(ContextSettings, ScoreSettings, DistillationSettings),
        settle=settle_number,
        observations="vectors",
        reduces_to=("dqn", ONE_HEAD),
        covered_by=("iq",),
    ),
)
