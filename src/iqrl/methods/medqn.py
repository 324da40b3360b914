"""MeDQN: DQN kept near its target network (Lan et al. 2023).

L = L_ori + w mean_a (Q(s, a; θ) - Q(s, a; θ⁻))²

medqn-r  on the replayed states
medqn-u  on states drawn uniformly from the box around all states so far
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import schedules
from iqrl.core.agent import QLearner
from iqrl.core.losses import Regulariser
from iqrl.core.masks import Mask, mean_over_legal
from iqrl.core.networks import Output
from iqrl.core.preprocessors import Preprocessor, identity
from iqrl.core.types import Transition
from iqrl.envs.base import Task
from iqrl.methods.base import BASELINES, Method, q_learner
from iqrl.methods.iq import check_target
from iqrl.settings import Run, Settings, setting

NAME = "consolidation"


class ConsolidationSettings(Settings):
    """consolidation"""

    consolidation_start: float = setting(0.01, "weight of the consolidation loss at the first step", minimum=0)
    consolidation_weight: float = setting(
        1.0, "weight of the consolidation loss after the growth; 0 is none", minimum=0
    )
    consolidation_growth: int | None = setting(None, "steps of the linear growth; steps if not given", minimum=0)

    def check(self: Any) -> None:
        if self.consolidation_weight > 0:
            check_target(self, "consolidation")


def distance(online: Output, target: Output, mask: Mask = ()) -> jax.Array:
    """Mean over heads and legal actions of (Q(s, ·; θ) - Q(s, ·; θ⁻))²."""
    return mean_over_legal(jnp.square(online.q - jax.lax.stop_gradient(target.q)), mask, axis=(0, 1))


def on_replayed_states(weight: schedules.Schedule) -> Regulariser:
    """MeDQN(R): on the states of the batch."""
    loss = lambda inputs: distance(inputs.online_tm1, inputs.target_tm1, inputs.transition.mask_tm1)
    return Regulariser(name=NAME, weight=weight, loss=loss)


def on_uniform_states(
    weight: schedules.Schedule, size: int, count: int, pixels: bool | np.ndarray = False
) -> Regulariser:
    """MeDQN(U): on states drawn uniformly from the box around all states so far.

    `pixels`: which of the numbers are whole. Nothing says which actions are legal there: all of them count.
    """

    def loss(inputs: Any) -> jax.Array:
        low, high = inputs.preprocessor.low[:, None], inputs.preprocessor.high[:, None]
        states = low + inputs.uniforms.reshape(size, count) * (high - low + pixels)
        states = jnp.where(pixels, jnp.minimum(jnp.floor(states), high), states)
        return distance(inputs.online(states), inputs.target(states))

    return Regulariser(name=NAME, weight=weight, loss=loss, num_uniforms=size * count)


class Box(NamedTuple):
    """The smallest box around all states so far."""

    low: jax.Array
    high: jax.Array


def follow_box(size: int) -> Preprocessor:
    """States as they are, and the box around those so far."""

    def init(key: jax.Array) -> Box:
        return Box(low=jnp.full(size, jnp.inf, jnp.float32), high=jnp.full(size, -jnp.inf, jnp.float32))

    def update(box: Box, step: Transition) -> tuple[Box, Transition]:
        low = jnp.minimum(box.low, jnp.minimum(step.obs_tm1, step.obs_t))
        high = jnp.maximum(box.high, jnp.maximum(step.obs_tm1, step.obs_t))
        return Box(low=low, high=high), step

    return identity(size)._replace(init=init, update=update)


def weight_of(run: Run) -> schedules.Schedule | None:
    if run.consolidation_start == run.consolidation_weight == 0:
        return None
    growth = run.steps if run.consolidation_growth is None else run.consolidation_growth
    return schedules.linear(run.consolidation_start, run.consolidation_weight, growth)


def medqn_r(run: Run, task: Task) -> QLearner:
    weight = weight_of(run)
    return q_learner(run, task, regularisers=(on_replayed_states(weight),) if weight else ())


def medqn_u(run: Run, task: Task) -> QLearner:
    weight, pixels = weight_of(run), task.image is not None and task.image.is_pixel[:, None]
    terms = (on_uniform_states(weight, task.obs_size, run.batch_size, pixels),) if weight else ()
    return q_learner(run, task, regularisers=terms, preprocessor=follow_box(task.obs_size))


ORIGINAL = {
    "hidden": (32, 32), "activation": "relu", "buffer_size": 32, "td_error": "squared", "gradient_clip": 5.0,
    "epsilon_final": 0.01, "epsilon_decay": 1000, "target_period": 100, "bootstrap_time_limit": False,
    "learning_rate": 1e-3, "steps": 100_000,
}  # fmt: skip
DEFAULTS = {"consolidation_growth": lambda steps: steps}
NOT_CONSOLIDATED = {"consolidation_start": 0.0, "consolidation_weight": 0.0}

METHODS = (
    Method(
        name="medqn-u",
        summary="DQN kept near its target on states drawn from the box of those so far",
        paper="Lan et al. 2023",
        build=medqn_u,
        settings=(ConsolidationSettings,),
        defaults=DEFAULTS,
        presets={"paper": BASELINES, "original": ORIGINAL | {"sampling": "whole"}},
        reduces_to=("dqn", NOT_CONSOLIDATED),
    ),
    Method(
        name="medqn-r",
        summary="DQN kept near its target on the replayed states",
        paper="Lan et al. 2023",
        build=medqn_r,
        settings=(ConsolidationSettings,),
        defaults=DEFAULTS,
        presets={"paper": BASELINES, "original": ORIGINAL},
        reduces_to=("dqn", NOT_CONSOLIDATED),
        covered_by=("medqn-u",),
    ),
)
