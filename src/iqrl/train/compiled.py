"""The compiled driver: environment, agent and statistics in one XLA program; seeds are a `vmap` axis.

The program is a loop of segments. A segment draws its random numbers in one block, makes its steps
in an inner loop and ends at a sync of the target, at the end of the block, or at the end of the
period. Nothing in the inner loop is conditional, grows with the buffer, or draws a key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.agent import Agent, AgentState, Losses
from iqrl.config import Run
from iqrl.parts.replay import Transition
from iqrl.tasks.base import Task

BLOCK = 500
"""steps whose random numbers are drawn at once: large enough to amortise, small enough for the cache"""


class EnvState(NamedTuple):
    state: Any
    obs: jax.Array
    length: jax.Array
    episode_return: jax.Array


class Statistics(NamedTuple):
    """Sums over a period."""

    returns: jax.Array
    episodes: jax.Array
    occupancy: jax.Array
    """[k]: steps spent in each context"""
    losses: Losses


class TrainState(NamedTuple):
    """Everything a run is; saving it is the checkpoint. The leading axis of every array but `step` is the seed."""

    step: jax.Array
    seeds: jax.Array
    env: EnvState
    agent: AgentState


class Period(NamedTuple):
    """What the host sees of a period, per seed."""

    returns: jax.Array
    """mean over the episodes that ended (the paper's R_T); NaN if none did"""
    episodes: jax.Array
    occupancy: jax.Array
    losses: Losses
    finite: jax.Array
    """whether every parameter is a finite number"""


class Noise(NamedTuple):
    """The uniform numbers of one step."""

    act: jax.Array
    step: jax.Array
    reset: jax.Array
    replay: jax.Array


def stream(seed: jax.Array, index: jax.Array | int) -> jax.Array:
    """The key of a seed's index-th source of randomness: 0 the start, 1 the contexts' warm start, 2… the blocks.

    Threefry takes any pair of words as its key, so a pair of numbers is one without hashing them first.
    """
    return jax.random.wrap_key_data(jnp.stack([jnp.uint32(index), jnp.uint32(seed)]))


class Driver(NamedTuple):
    init: Callable[[], TrainState]
    advance: Callable[[TrainState, jax.Array], tuple[TrainState, Period]]
    """(state, stop) -> the state at step `stop` and the statistics on the way"""


class Loop(NamedTuple):
    stride: int
    """environment steps made by one call of `body`"""
    body: Callable[[tuple, jax.Array, jax.Array], tuple]
    """(carry, uniforms of the block, t) -> carry"""
    syncs: bool
    """whether the target follows every C steps"""


def build_driver(run: Run, task: Task, agent: Agent) -> Driver:
    start, every = run.learning_starts, run.update_every
    block = -(-min(BLOCK, run.target_period) // every) * every
    sizes = (2, task.step_draws, task.reset_draws, agent.parts.replay.draws)

    def init() -> TrainState:
        seeds = jnp.uint32(run.seed) + jnp.arange(run.seeds, dtype=jnp.uint32)
        env, learner = jax.vmap(init_seed)(seeds)
        return TrainState(jnp.int32(0), seeds, env, learner)

    def init_seed(seed: jax.Array) -> tuple[EnvState, AgentState]:
        agent_key, env_key = jax.random.split(stream(seed, 0))
        state = task.reset(jax.random.uniform(env_key, (task.reset_draws,)))
        return EnvState(state, task.observe(state), jnp.int32(0), jnp.float32(0)), agent.init(agent_key)

    def draw(seeds: jax.Array, t: jax.Array) -> jax.Array:
        """Uniform numbers [block, seed, draws] for the block that step t lies in; a function of seed and step alone."""
        of_seed = lambda seed: jax.random.uniform(stream(seed, 2 + t // block), (block, sum(sizes)))
        return jax.vmap(of_seed, out_axes=1)(seeds)

    def split(uniforms: jax.Array) -> Noise:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        return Noise(*[uniforms[end - size : end] for size, end in zip(sizes, ends, strict=True)])

    def interact(env: EnvState, learner: AgentState, t: jax.Array, noise: Noise):
        """One step in the environment: the transition, the environment after it, and what to count."""
        action, context = agent.act(learner, env.obs, t, noise.act)
        state, reward, terminated = task.step(env.state, action, noise.step)
        length = env.length + 1
        truncated = length >= task.time_limit
        ends = terminated | truncated
        final = terminated if run.bootstrap_time_limit else ends
        obs = task.observe(state)
        transition = Transition(
            obs_tm1=env.obs,
            a_tm1=action,
            r_t=task.learned_reward(env.state, reward, state, terminated, run.gamma),
            discount_t=jnp.where(final, 0.0, run.gamma),
            obs_t=obs,
            context_tm1=context,
            context_t=context,
        )
        episode_return = env.episode_return + reward
        first = task.reset(noise.reset)
        fresh = EnvState(first, task.observe(first), jnp.int32(0), jnp.float32(0))
        going = EnvState(state, obs, length, episode_return)
        env = jax.tree.map(lambda new, old: jnp.where(ends, new, old), fresh, going)
        counted = (jnp.where(ends, episode_return, 0.0), ends, jnp.arange(agent.parts.contexts.count) == context)
        return env, transition, counted

    def count(statistics: Statistics, counted: tuple) -> Statistics:
        returns, ends, occupancy = counted
        return statistics._replace(
            returns=statistics.returns + returns,
            episodes=statistics.episodes + ends,
            occupancy=statistics.occupancy + occupancy,
        )

    def collect_step(env, learner, statistics, t, uniforms):
        """A step before learning starts."""
        env, transition, counted = interact(env, learner, t, split(uniforms))
        return env, agent.collect(learner, transition, t), count(statistics, counted)

    def observe_step(env, learner, statistics, t, uniforms):
        """A step between two updates."""
        env, transition, counted = interact(env, learner, t, split(uniforms))
        return env, agent.observe(learner, transition, t), count(statistics, counted)

    def learn_step(env, learner, statistics, t, uniforms):
        """A step with an update."""
        env, learner, statistics = observe_step(env, learner, statistics, t, uniforms)
        learner, losses = agent.learn(learner, t, split(uniforms).replay)
        return env, learner, statistics._replace(losses=jax.tree.map(jnp.add, statistics.losses, losses))

    def on_seeds(step: Callable) -> Callable:
        """`step` at index i of a block, for all seeds; the step count is shared by them, so loops need no masks."""
        batched = jax.vmap(step, in_axes=(0, 0, 0, None, 0))

        def at(carry: tuple, uniforms: jax.Array, t: jax.Array) -> tuple:
            return batched(*carry, t, jax.lax.dynamic_index_in_dim(uniforms, t % block, keepdims=False))

        return at

    def segments(loop: Loop, seeds: jax.Array, t: jax.Array, stop: jax.Array, carry: tuple) -> tuple:
        """Run from t to `stop`, segment by segment."""

        def segment(now: tuple) -> tuple:
            t, carry = now
            uniforms = draw(seeds, t)
            next_multiple = lambda size: (t // size + 1) * size
            end = jnp.minimum(jnp.minimum(next_multiple(block), next_multiple(run.target_period)), stop)
            body = lambda i, carry: loop.body(carry, uniforms, t + i * loop.stride)
            carry = jax.lax.fori_loop(0, (end - t) // loop.stride, body, carry)
            return end, sync(carry, end % run.target_period == 0) if loop.syncs else carry

        return jax.lax.while_loop(lambda now: now[0] < stop, segment, (t, carry))

    def sync(carry: tuple, due: jax.Array) -> tuple:
        env, learner, statistics = carry
        synced = jax.vmap(agent.sync)(learner)
        chosen = jax.tree.map(lambda new, old: old if new is old else jnp.where(due, new, old), synced, learner)
        return env, chosen, statistics

    def begin(learner: AgentState, seeds: jax.Array) -> AgentState:
        return jax.vmap(lambda state, seed: agent.sync(agent.begin(state, stream(seed, 1))))(learner, seeds)

    collect_loop = Loop(1, on_seeds(collect_step), syncs=False)
    learn_loop = Loop(every, on_updates(on_seeds(observe_step), on_seeds(learn_step), every), syncs=True)

    def advance(state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        seeds = state.seeds
        carry = (state.env, state.agent, zero_statistics())
        t, (env, learner, statistics) = segments(collect_loop, seeds, state.step, jnp.minimum(stop, start), carry)
        starts_now = (state.step < start) & (t == start)
        learner = jax.lax.cond(starts_now, begin, lambda learner, seeds: learner, learner, seeds)
        t, (env, learner, statistics) = segments(learn_loop, seeds, t, stop, (env, learner, statistics))
        updates = (jnp.maximum(t, start) - jnp.maximum(state.step, start)) // every
        return TrainState(t, seeds, env, learner), summarise(learner, statistics, t - state.step, updates)

    def zero_statistics() -> Statistics:
        zeros = jnp.zeros(run.seeds)
        terms = {term.name: zeros for term in agent.parts.regularisers}
        occupancy = jnp.zeros((run.seeds, agent.parts.contexts.count))
        return Statistics(zeros, jnp.zeros(run.seeds, jnp.int32), occupancy, Losses(zeros, terms, zeros))

    return Driver(init, advance)


def on_updates(observe: Callable, learn: Callable, every: int) -> Callable:
    """`every` environment steps, the last of them with an update."""

    def body(carry: tuple, uniforms: jax.Array, t: jax.Array) -> tuple:
        if every > 1:
            carry = jax.lax.fori_loop(0, every - 1, lambda i, c: observe(c, uniforms, t + i), carry)
        return learn(carry, uniforms, t + every - 1)

    return body


def summarise(learner: AgentState, statistics: Statistics, steps: jax.Array, updates: jax.Array) -> Period:
    finite = [jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim))) for x in jax.tree.leaves(learner.params)]
    return Period(
        returns=jnp.where(statistics.episodes > 0, statistics.returns / jnp.maximum(statistics.episodes, 1), jnp.nan),
        episodes=statistics.episodes,
        occupancy=statistics.occupancy / steps,
        losses=jax.tree.map(lambda total: total / jnp.maximum(updates, 1), statistics.losses),
        finite=jnp.all(jnp.stack(finite), axis=0),
    )
