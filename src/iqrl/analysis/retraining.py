"""A finished agent trained further on a choice of transitions, by its own update, towards values that stand still."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from iqrl.agent import Agent, AgentState
from iqrl.parts.losses import Sample, q_learning
from iqrl.parts.networks import Params
from iqrl.parts.replay import Batch, Replay, unpack
from iqrl.parts.teacher import answers, on_batch, recomputed
from iqrl.results import Result


def retrainable(result: Result) -> Agent:
    """The run's agent with a target for every method, one update at a time, and a replay that is yet to be chosen.

    A batch is as large as in the run: `batch_size`, or the whole buffer where the run takes that.
    """
    agent, run = result.agent, result.run
    batch = run.buffer_size if run.sampling == "whole" else run.batch_size
    teacher = recomputed(answers(agent.network, agent.perception))
    replay = agent.replay._replace(draws=batch)
    return dataclasses.replace(agent, teacher=teacher, replay=replay, gradient_steps=1)


def held_fast(state: AgentState) -> AgentState:
    """θ⁻ <- θ, and nothing stored."""
    return state._replace(target=state.q_function, replay=())


def trained_on(
    agent: Agent, state: AgentState, rows: jax.Array, members: jax.Array, t: int, uniforms: jax.Array
) -> AgentState:
    """The agent after one update for each row of `uniforms`, from batches drawn from those rows that are members.

    Schedules are where they were at step t.
    """
    agent = dataclasses.replace(agent, replay=_only(rows, agent, members))
    update = lambda state, row: (agent.learn(state, jnp.int32(t), row)[0], None)
    return jax.lax.scan(update, state, uniforms)[0]


def _only(rows: jax.Array, agent: Agent, members: jax.Array) -> Replay:
    """A replay that holds nothing but the members among the rows."""
    members_first, size = jnp.argsort(~members, stable=True), jnp.sum(members)

    def sample(stored: tuple, t: jax.Array, uniforms: jax.Array) -> Batch:
        drawn = jnp.minimum((uniforms * size).astype(jnp.int32), size - 1)
        steps = unpack(rows[members_first[drawn]].T, agent.obs_size)
        # Rows drawn at random do not follow each other: an eligibility trace must not run from one to the next.
        steps = steps._replace(over=jnp.ones_like(steps.over))
        return Batch(steps, jnp.zeros((2, 0, drawn.size)), None, None)

    unchanged = lambda stored, *rest: stored
    return Replay(tuple, unchanged, sample, unchanged, unchanged, unchanged, agent.replay.draws)


def losses(agent: Agent, params: Params, state: AgentState, rows: jax.Array) -> jax.Array:
    """[n]: L(δ), δ = r + γ max_a Q(s', a, ω(s'); θ⁻) - Q(s, a, ω(s); θ)."""
    steps, ask = unpack(rows.T, agent.obs_size), on_batch(answers(agent.network, agent.perception))
    now, target = state.q_function._replace(params=params), state.target
    online, of_next = ask(now, steps.obs_tm1), ask(target, steps.obs_t)
    return q_learning()(Sample(steps, online, of_next, online, of_next))
