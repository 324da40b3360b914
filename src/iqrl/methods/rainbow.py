"""Rainbow: the distribution of 3-step returns (C51) and prioritised replay (Hessel et al. 2018, as in Dopamine).

Beside it SRNN and IQ on Rainbow (Zhang et al. 2022): the same terms, between distributions.
"""

from __future__ import annotations

import jax

from iqrl.core.agent import QLearner
from iqrl.core.categorical import categorical, even_support
from iqrl.core.contexts import ContextDivision, single
from iqrl.core.losses import Regulariser, ValueLoss
from iqrl.core.preprocessors import identity
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.methods.base import Method, q_learner, q_network
from iqrl.methods.iq import (
    BETWEEN_DISTRIBUTIONS,
    IQ_SETTINGS,
    ONE_HEAD,
    settle_contexts,
    settle_number,
    skm_contexts,
    weighted_distillation,
)
from iqrl.methods.iq_images import (
    AS_RELEASED,
    IMAGE_DEFAULTS,
    ONLY_KMEANS,
    EncoderSettings,
    random_embeddings,
    trained_embeddings,
)
from iqrl.methods.srnn import NO_PENALTY, RELEASED_FORM, SparsitySettings, sparsity_penalty
from iqrl.settings import Run, Settings, setting


class DistributionSettings(Settings):
    """value distribution"""

    atoms: int = setting(51, "points of the support", minimum=2)
    value_low: float = setting(-10.0, "lower end of the support")
    value_high: float = setting(10.0, "upper end of the support")

    def check(self) -> None:
        if self.value_low >= self.value_high:
            raise BadInput(f"value_low is {self.value_low}; it must be less than value_high, {self.value_high}.")


def support_of(run: Run) -> jax.Array:
    return even_support(run.value_low, run.value_high, run.atoms)


def c51_loss(run: Run, support: jax.Array) -> ValueLoss:
    return categorical(support, double=run.double_q)


def distributional(
    run: Run,
    task: Task,
    division: ContextDivision | None = None,
    regularisers: tuple[Regulariser, ...] = (),
) -> QLearner:
    """Q-learning on distributions of the return."""
    support, division = support_of(run), division or single()
    network = q_network(run, task, identity(task.obs_size), division.count, support=support)
    return q_learner(
        run,
        task,
        division=division,
        regularisers=regularisers,
        network=network,
        value_loss=c51_loss(run, support),
    )


def distil_distributions(run: Run) -> tuple[Regulariser, ...]:
    return weighted_distillation(run, distance=BETWEEN_DISTRIBUTIONS)


def rainbow(run: Run, task: Task) -> QLearner:
    return distributional(run, task)


def rainbow_srnn(run: Run, task: Task) -> QLearner:
    return distributional(run, task, regularisers=sparsity_penalty(run))


def rainbow_iq(run: Run, task: Task) -> QLearner:
    return distributional(run, task, skm_contexts(run, task), distil_distributions(run))


def rainbow_iq_re(run: Run, task: Task) -> QLearner:
    return distributional(run, task, random_embeddings(run, task), distil_distributions(run))


def rainbow_iq_te(run: Run, task: Task) -> QLearner:
    return distributional(run, task, trained_embeddings(run, task), distil_distributions(run))


# Dopamine's; on tasks that are not images the step size of the other methods would do better.
DEFAULTS = {
    "n_step": 3, "sampling": "prioritised", "optimiser": "adam", "learning_rate": 6.25e-5, "adam_epsilon": 1.5e-4,
}  # fmt: skip

METHODS = (
    Method(
        name="rainbow",
        summary="the distribution of 3-step returns, prioritised replay",
        paper="Hessel et al. 2018, as in Dopamine",
        build=rainbow,
        settings=(DistributionSettings,),
        defaults=DEFAULTS,
        covered_by=("rainbow-iq",),
    ),
    Method(
        name="rainbow-srnn",
        summary="Rainbow with hidden units that are regularised to be active on few states",
        paper="Liu et al. 2019, in Zhang et al. 2022",
        build=rainbow_srnn,
        settings=(DistributionSettings, SparsitySettings),
        defaults=DEFAULTS,
        presets={"paper": RELEASED_FORM},
        reduces_to=("rainbow", NO_PENALTY),
        covered_by=("srnn", "rainbow-iq"),
    ),
    Method(
        name="rainbow-iq",
        summary="IQ on Rainbow",
        paper="Zhang et al. 2022",
        build=rainbow_iq,
        settings=(DistributionSettings, *IQ_SETTINGS),
        defaults=DEFAULTS,
        settle=settle_contexts,
        observations="vectors",
        reduces_to=("rainbow", ONE_HEAD),
    ),
    Method(
        name="rainbow-iq-re",
        summary="IQ on Rainbow for images: contexts in the space of a random encoder",
        paper="Zhang et al. 2022",
        build=rainbow_iq_re,
        settings=(DistributionSettings, *IQ_SETTINGS, EncoderSettings),
        defaults=DEFAULTS | IMAGE_DEFAULTS,
        presets={"as-released": AS_RELEASED},
        fixed=ONLY_KMEANS,
        settle=settle_number,
        observations="images",
        covered_by=("rainbow-iq", "iq-re"),
    ),
    Method(
        name="rainbow-iq-te",
        summary="IQ on Rainbow for images: contexts in the space of the network's own convolutions",
        paper="Zhang et al. 2022, comparison of encoders",
        build=rainbow_iq_te,
        settings=(DistributionSettings, *IQ_SETTINGS),
        defaults=DEFAULTS | IMAGE_DEFAULTS,
        fixed=ONLY_KMEANS,
        settle=settle_number,
        observations="images",
        covered_by=("rainbow-iq", "iq-re"),
    ),
)
