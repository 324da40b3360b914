"""Records for tests by hand: what a test does not give is a plain step, a plain output, plain random numbers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.agent import QLearner
from iqrl.core.networks import Output
from iqrl.core.randomness import count, hand_out
from iqrl.core.types import ContextInputs, LossInputs, Transition
from iqrl.envs.base import EnvInputs


def step(
    obs_tm1=(0.0,), obs_t=(0.0,), *, a_tm1=0, r_t=0.0, discount_t=0.9, context_tm1=0, context_t=0, done=False,
    greedy=True, mask_tm1=(), mask_t=(),
):  # fmt: skip
    """A transition; numbers may have a batch axis."""
    whole, real = (lambda x: jnp.asarray(x, jnp.int32)), (lambda x: jnp.asarray(x, jnp.float32))
    mask = lambda given: given if isinstance(given, tuple) else jnp.asarray(given, bool)
    state = lambda obs: jnp.asarray(obs) if getattr(obs, "dtype", None) == np.uint8 else real(obs)
    return Transition(
        obs_tm1=state(obs_tm1), a_tm1=whole(a_tm1), r_t=real(r_t), discount_t=real(discount_t), obs_t=state(obs_t),
        context_tm1=whole(context_tm1), context_t=whole(context_t), done=jnp.asarray(done, bool),
        greedy=jnp.asarray(greedy, bool), mask_tm1=mask(mask_tm1), mask_t=mask(mask_t),
    )  # fmt: skip


def output(q):
    """What a network without distributions computes."""
    q = jnp.asarray(q, jnp.float32)
    return Output(q=q, values=q, features=jnp.zeros(1))


def loss_inputs(transition=None, online_tm1=None, online_t=None, target_tm1=None, target_t=None, **others):
    """Outputs that are not given are missing: a loss that reads them fails."""
    return LossInputs(
        transition=transition, online_tm1=online_tm1, online_t=online_t, target_tm1=target_tm1, target_t=target_t,
        **others,
    )  # fmt: skip


def context_inputs(obs, initial_obs=None, score=0.0, mask=()):
    obs = jnp.asarray(obs)
    initial = obs if initial_obs is None else jnp.asarray(initial_obs)
    return ContextInputs(obs=obs, initial_obs=initial, score=jnp.float32(score), mask=mask)


def env_inputs(uniforms=(), step=0, previous=None):
    return EnvInputs(uniforms=jnp.asarray(uniforms, jnp.float32), step=jnp.int32(step), previous=previous)


def act_uniforms(agent, numbers=0.9):
    """For `act`: all the same, or given one after the other."""
    return hand_out(agent.act_uniforms, jnp.broadcast_to(jnp.asarray(numbers), (count(agent.act_uniforms),)))


def learn_uniforms(agent, numbers=None):
    """For `learn`: random, or given one after the other."""
    drawn = jax.random.uniform(jax.random.key(0), (count(agent.learn_uniforms),))
    return hand_out(agent.learn_uniforms, drawn if numbers is None else jnp.asarray(numbers, jnp.float32))


def without_cache(agent):
    """The same agent in its plain form."""
    return QLearner(**{field.name: getattr(agent, field.name) for field in dataclasses.fields(QLearner)})


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
    """Bit for bit."""
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)
