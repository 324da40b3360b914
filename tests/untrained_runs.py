"""Results without training: what is measured here is known beforehand."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import polars as pl

from iqrl.core.networks import multi_head_network
from iqrl.envs.base import Task
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training.results import Result


def signs():
    """Each episode is one step from x = -1 or x = 1; its reward is x."""
    reset = lambda inputs: jnp.where(inputs.uniforms < 0.5, -1.0, 1.0)
    step = lambda state, action, inputs: (state, state[0], jnp.bool_(True))
    return Task("signs", 2, (-1.0,), (1.0,), 1, reset, step, lambda state: state, num_reset_uniforms=1)


@functools.cache
def untrained(method="dqn", task=None, seeds=2, **settings):
    """The result of a run in which nothing was learned."""
    run = resolve("CartPole-v0", method, steps=1000, period=1000, seeds=seeds, **settings)
    task = task or make_task(run)
    agent = build_agent(run, task)
    return with_agent(Result(run, pl.DataFrame(), None, task, agent, {}), agent)


def with_agent(result, agent):
    """The same with another agent, at its start."""
    seeds = result.run.seeds
    state = jax.vmap(agent.init)(jax.random.split(jax.random.key(0), seeds))
    metrics = pl.DataFrame({"seed": range(seeds), "step": [1000] * seeds, "return": [0.0] * seeds})
    return dataclasses.replace(result, agent=agent, agent_state=state, metrics=metrics)


@functools.cache
def linear(encode, **settings):
    """DQN on `signs` with Q(s, ·) linear in what `encode` makes of x, and 0 at first."""
    result = untrained("dqn", signs(), gamma=0.0, learning_rate=0.02, **settings)
    agent = result.agent
    preprocessor = agent.preprocessor._replace(encode=lambda state, obs: encode(obs))
    result = with_agent(
        result, dataclasses.replace(agent, preprocessor=preprocessor, network=multi_head_network(1, (), "tanh", 1, 2))
    )
    nothing = jax.tree.map(jnp.zeros_like, result.agent_state.params)
    return dataclasses.replace(result, agent_state=result.agent_state._replace(params=nothing))
