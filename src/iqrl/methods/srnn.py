"""SRNN: DQN with hidden units that are active on few states (Liu et al. 2019).

L = L_ori + λ_KL Σ_j SKL(mean activation of unit j over the batch),
SKL(m) = KL(Exp(β) ‖ Exp(m)) for m > β, else 0
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from iqrl.core.agent import QLearner
from iqrl.core.losses import Regulariser
from iqrl.core.schedules import constant
from iqrl.core.types import LossInputs
from iqrl.envs.base import Task
from iqrl.methods.base import BASELINES, Method, q_learner
from iqrl.settings import Run, Settings, setting


class SparsitySettings(Settings):
    """sparse representations"""

    srnn_beta: float = setting(0.1, "β: the mean activation above which a unit is penalised", minimum=1e-6, paper="0.1")
    srnn_weight: float = setting(0.1, "λ_KL, the weight of the regulariser; 0 is none", minimum=0, paper="0.1")
    srnn_form: Literal["units", "samples"] = setting(
        "units",
        "set KL of each unit's mean over the batch, or the surrogate on each sample's mean over the units",
        paper="units; samples in the released Atari code",
    )


def set_kl(mean: jax.Array, beta: float) -> jax.Array:
    """KL from the exponential distribution with mean β to the one with this mean; 0 for every mean up to β."""
    above = jnp.maximum(mean, beta)  # where it is β the value and the gradient are 0
    return jnp.log(above) + beta / above - jnp.log(beta) - 1.0


def surrogate(mean: jax.Array, beta: float) -> jax.Array:
    """What the paper's released code computes instead: about 1 - β / mean above β."""
    above = jnp.maximum(mean, beta)
    term = above * (1.0 / (above + 1e-4) - beta / (jnp.square(above) + 1e-4))
    return jnp.where(mean > beta, term, 0.0)


def sparsity(weight: float, beta: float, form: str) -> Regulariser:
    """`units`: Σ_j SKL(mean of unit j over the batch). `samples`: the surrogate on each sample's mean over units."""

    def over_units(inputs: LossInputs) -> jax.Array:
        return jnp.sum(set_kl(jnp.mean(inputs.online_tm1.features, axis=1), beta))

    def over_samples(inputs: LossInputs) -> jax.Array:
        return surrogate(jnp.mean(inputs.online_tm1.features, axis=0), beta)

    loss = {"units": over_units, "samples": over_samples}[form]
    return Regulariser(name="sparsity", weight=constant(weight), loss=loss)


def sparsity_penalty(run: Run) -> tuple[Regulariser, ...]:
    return (sparsity(run.srnn_weight, run.srnn_beta, run.srnn_form),) if run.srnn_weight else ()


def srnn(run: Run, task: Task) -> QLearner:
    return q_learner(run, task, regularisers=sparsity_penalty(run))


RELEASED_FORM = {"srnn_form": "samples"}
"""the form of the code that the IQ paper's authors published"""
ORIGINAL_FORM = {"srnn_form": "units", "activation": "relu"}
"""of Liu et al.: with it the term is not 0. The mean of a tanh layer over its units hardly ever exceeds β."""
NO_PENALTY = {"srnn_weight": 0.0}

METHODS = (
    Method(
        name="srnn",
        summary="DQN with hidden units that are regularised to be active on few states",
        paper="Liu et al. 2019",
        build=srnn,
        settings=(SparsitySettings,),
        presets={"paper": BASELINES | RELEASED_FORM, "original": ORIGINAL_FORM},
        reduces_to=("dqn", NO_PENALTY),
    ),
)
