"""A method of your own: parts of the library, and one that is yours.

    iqrl train CartPole-v0 --method own_method:leaning --steps 40000

run in this folder, trains it. IQ finds its contexts by clustering; here they are two that you know of, a pole that
leans to the left and one that leans to the right. The rest is IQ: a head per context, the other head distilled.
"""

import jax.numpy as jnp

from iqrl import Method
from iqrl.composition import distil, q_learner
from iqrl.config import Distillation
from iqrl.parts.contexts import ContextDivision

side = ContextDivision(
    count=2,
    init=lambda key: (),  # nothing to remember
    assign=lambda state, now: jnp.int32(now.obs[2] > 0),  # the pole's angle
    update=lambda state, now: state,
)


def compose(run, task):
    """Settings and task in, agent out."""
    return q_learner(run, task, division=side, regularisers=distil(run))


leaning = Method(
    summary="IQ with two contexts, the sides to which the pole leans",
    source="this file",
    compose=compose,
    extra_groups=(Distillation,),  # --distill-weight and the like apply to it
)
