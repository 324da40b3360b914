"""The compiled driver: environment, agent and statistics in one XLA program; seeds are a `vmap` axis, of images a loop.

The program is a loop of segments. A segment draws its random numbers in one block, makes its steps
in an inner loop and ends at a sync of the target, at the end of the block, or at the end of the
period. Nothing in the inner loop is conditional, grows with the buffer, or draws a key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.agent import Agent, AgentState, Losses
from iqrl.config import Run
from iqrl.measure.meter import NOTHING_MEASURED, Meter
from iqrl.parts.replay import Transition
from iqrl.tasks.base import Task
from iqrl.training.devices import platform
from iqrl.training.states import Carry, EnvState, Event, Noise, Period, Statistics, Step, TrainState, summarise

BLOCK = 500
"""steps whose random numbers are drawn at once: large enough to amortise, small enough for the cache"""


MEASURING = 2**31
"""the first source of randomness that is the measurements' alone"""


def stream(seed: jax.Array, index: jax.Array | int) -> jax.Array:
    """The key of a seed's index-th source of randomness: 0 the start, 1 the contexts' warm start, 2… the blocks, and
    from MEASURING on the blocks of the measurements, so that they do not change what the agent draws.

    Threefry takes any pair of words as its key, so a pair of numbers is one without hashing them first.
    """
    return jax.random.wrap_key_data(jnp.stack([jnp.uint32(index), jnp.uint32(seed)]))


class Loop(NamedTuple):
    stride: int
    """environment steps made by one call of `body`"""
    body: Callable[[Carry, jax.Array, jax.Array], Carry]
    """(carry, uniforms of the block, t) -> carry"""
    syncs: bool
    """whether the target follows every C steps"""


@dataclass(frozen=True)
class Driver:
    """`init()` makes the state, `advance(state, stop)` takes it to step `stop`; both are to be compiled."""

    run: Run
    task: Task
    agent: Agent
    meter: Meter = NOTHING_MEASURED

    @property
    def block(self) -> int:
        """Steps per draw of random numbers; whole updates, and no more than pass between two syncs."""
        every, period = self.run.update_every, self.run.target_period if self.agent.lags else BLOCK
        return -(-min(BLOCK, period) // every) * every

    def init(self) -> TrainState:
        seeds = jnp.uint32(self.run.seed) + jnp.arange(self.run.seeds, dtype=jnp.uint32)
        env, agent = jax.vmap(self._init_seed)(seeds)
        return TrainState(jnp.int32(0), seeds, env, agent, jax.vmap(self.meter.init)(agent))

    def _init_seed(self, seed: jax.Array) -> tuple[EnvState, AgentState]:
        agent_key, env_key = jax.random.split(stream(seed, 0))
        agent = self.agent.init(agent_key)
        return self._coded(agent, self._first(jax.random.uniform(env_key, (self.task.reset_draws,)))), agent

    def _first(self, uniforms: jax.Array) -> EnvState:
        """The start of an episode."""
        state = self.task.reset(uniforms)
        obs = self._observe(state)
        return EnvState(state, obs, obs, jnp.int32(0), jnp.float32(0))

    def _observe(self, state: Any) -> jax.Array:
        """What the agent sees: numbers in a row, of an image too."""
        return self.task.observe(state).reshape(-1)

    def _coded(self, agent: AgentState, env: EnvState) -> EnvState:
        return env._replace(code=self.agent.encoded(agent, env.situation).code)

    def _code_of_first(self, over: jax.Array, agent: AgentState, first: EnvState, otherwise: Any) -> Any:
        """The code of an episode's first state, made only where an episode has ended, of any seed; they seldom do."""
        code = self.agent.contexts.encode
        if code is None:
            return first.code

        @jax.custom_batching.custom_vmap
        def where_over(over, otherwise, *given):
            return jax.lax.cond(over, code, lambda *_: otherwise, *given)

        @where_over.def_vmap
        def of_seeds(axis_size, batched, over, otherwise, *given):
            # A branch for all seeds together: one for each would be made into both, and a choice.
            axes = jax.tree.map(lambda differs: 0 if differs else None, tuple(batched))
            of_each = partial(jax.vmap, in_axes=axes[1:], axis_size=axis_size)
            new, old = of_each(lambda otherwise, *given: code(*given)), of_each(lambda otherwise, *given: otherwise)
            return jax.lax.cond(jnp.any(over), new, old, otherwise, *given), True

        return where_over(over, otherwise, agent.contexts, agent.params, first.obs)

    def advance(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """To step `stop`, and the statistics on the way."""
        large = self.task.image is not None and self.run.seeds > 1
        in_turn = large and platform() == "cpu"
        return self._advance_in_turn(state, stop) if in_turn else self._advance_together(state, stop)

    def _advance_in_turn(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """One seed after the other: networks of images do not all fit into a processor's cache, one does."""
        # A function of its own, so that it is traced once for both uses.
        advance = jax.jit(replace(self, run=replace(self.run, seeds=1))._advance_together)
        part = lambda seed, whole: jax.lax.dynamic_slice_in_dim(whole, seed, 1)
        put = lambda seed, whole, own: jax.lax.dynamic_update_slice_in_dim(whole, own, seed, 0)
        # The step is the only thing that seeds share.
        of_seed = lambda seed, all_seeds: TrainState(state.step, *jax.tree.map(partial(part, seed), all_seeds))

        def turn(seed: jax.Array, done: tuple[tuple, Period]) -> tuple[tuple, Period]:
            own, period = advance(of_seed(seed, done[0]), stop)
            return jax.tree.map(partial(put, seed), done, (tuple(own[1:]), period))

        one = jax.eval_shape(advance, of_seed(0, tuple(state[1:])), stop)[1]
        nothing = jax.tree.map(lambda leaf: jnp.zeros((self.run.seeds, *leaf.shape[1:]), leaf.dtype), one)
        all_seeds, period = jax.lax.fori_loop(0, self.run.seeds, turn, (tuple(state[1:]), nothing))
        return TrainState(jnp.maximum(state.step, stop), *all_seeds), period

    def _advance_together(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """The seeds as an axis of every array."""
        start, every, seeds = self.run.learning_starts, self.run.update_every, state.seeds
        collecting = Loop(1, self._on_seeds(self._collect_step), syncs=False)
        learning = Loop(every, self._with_updates(), syncs=self.agent.lags)
        carry = Carry(state.env, state.agent, state.meter, self._zero_statistics())
        t, carry = self._run_loop(collecting, seeds, state.step, jnp.minimum(stop, start), carry)
        begins = (state.step < start) & (t == start)
        stay = lambda agent, meter, seeds: (agent, meter)
        agent, meter = jax.lax.cond(begins, self._begin, stay, carry.agent, carry.meter, seeds)
        t, carry = self._run_loop(learning, seeds, t, stop, carry._replace(agent=agent, meter=meter))
        updates = (jnp.maximum(t, start) - jnp.maximum(state.step, start)) // every
        meter, measured = jax.vmap(self.meter.report, in_axes=(0, 0, None))(carry.meter, carry.agent, t)
        period = summarise(carry, t - state.step, updates, measured)
        return TrainState(t, seeds, carry.env, carry.agent, meter), period

    def _begin(self, agent: AgentState, meter: Any, seeds: jax.Array) -> tuple[AgentState, Any]:
        agent = jax.vmap(lambda state, seed: self.agent.begin(state, stream(seed, 1)))(agent, seeds)
        return agent, jax.vmap(self.meter.begin)(meter, agent)

    def _zero_statistics(self) -> Statistics:
        zeros = jnp.zeros(self.run.seeds)
        losses = Losses(zeros, {term.name: zeros for term in self.agent.regularisers}, zeros)
        occupancy = jnp.zeros((self.run.seeds, self.agent.contexts.count))
        return Statistics(zeros, jnp.zeros(self.run.seeds, jnp.int32), occupancy, losses)

    # The loops

    def _run_loop(self, loop: Loop, seeds: jax.Array, t: jax.Array, stop: jax.Array, carry: Carry):
        """Run from t to `stop`, segment by segment."""
        period = self.run.target_period

        def segment(now: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
            t, carry = now
            uniforms = self._draw(seeds, t)
            next_multiple = lambda size: (t // size + 1) * size
            end = jnp.minimum(next_multiple(self.block), stop)
            end = jnp.minimum(end, next_multiple(period)) if loop.syncs else end
            body = lambda i, carry: loop.body(carry, uniforms, t + i * loop.stride)
            carry = jax.lax.fori_loop(0, (end - t) // loop.stride, body, carry)
            return end, self._sync(carry, end % period == 0) if loop.syncs else carry

        return jax.lax.while_loop(lambda now: now[0] < stop, segment, (t, carry))

    def _draw(self, seeds: jax.Array, t: jax.Array) -> jax.Array:
        """Uniform numbers [block, seed, draws] for the block that step t lies in; a function of seed and step alone."""
        block, measure = t // self.block, self._draws.measure

        def of_seed(seed: jax.Array) -> jax.Array:
            drawn = jax.random.uniform(stream(seed, 2 + block), (self.block, sum(self._draws) - measure))
            if not measure:
                return drawn
            apart = jax.random.uniform(
                stream(seed, jnp.uint32(MEASURING) + block.astype(jnp.uint32)), (self.block, measure)
            )
            return jnp.concatenate([drawn, apart], axis=1)

        return jax.vmap(of_seed, out_axes=1)(seeds)

    @property
    def _draws(self) -> Noise:
        """How many uniform numbers a step needs for each purpose."""
        return Noise(
            self.agent.act_draws, self.task.step_draws, self.task.reset_draws, self.agent.learn_draws, self.meter.draws
        )

    def _sync(self, carry: Carry, due: jax.Array) -> Carry:
        synced = jax.vmap(self.agent.sync)(carry.agent)
        choose = lambda new, old: old if new is old else jnp.where(due, new, old)
        return carry._replace(agent=jax.tree.map(choose, synced, carry.agent))

    def _on_seeds(self, step: Callable[[Carry, jax.Array, Noise], Carry]) -> Callable:
        """`step` for all seeds. They share the step count, so that no loop bound or index depends on a seed."""
        side_by_side = self._side_by_side(step)

        def body(carry: Carry, uniforms: jax.Array, t: jax.Array) -> Carry:
            row = jax.lax.dynamic_index_in_dim(uniforms, t % self.block, keepdims=False)
            return side_by_side(carry, t, row)

        return body

    def _side_by_side(self, step: Callable[[Carry, jax.Array, Noise], Carry]) -> Callable:
        """(carry, t, uniforms [seed, draws]) -> carry."""

        def of_seed(carry: Carry, t: jax.Array, uniforms: jax.Array) -> Carry:
            ends = itertools.accumulate(self._draws)
            pieces = [uniforms[end - size : end] for end, size in zip(ends, self._draws, strict=True)]
            return step(carry, t, Noise(*pieces))

        return jax.vmap(of_seed, in_axes=(0, None, 0))

    def _with_updates(self) -> Callable[[Carry, jax.Array, jax.Array], Carry]:
        """`update_every` steps, the last of them with an update."""
        observe, learn = self._on_seeds(self._observe_step), self._on_seeds(self._learn_step)
        before = self.run.update_every - 1

        def body(carry: Carry, uniforms: jax.Array, t: jax.Array) -> Carry:
            if before:
                carry = jax.lax.fori_loop(0, before, lambda i, c: observe(c, uniforms, t + i), carry)
            return learn(carry, uniforms, t + before)

        return body

    # One step of one seed

    def _collect_step(self, carry: Carry, t: jax.Array, noise: Noise) -> Carry:
        """A step before learning starts."""
        carry, step = self._interact(carry, t, noise)
        return self._noted(carry, *self.agent.collect(carry.agent, *step, t), t, noise)

    def _observe_step(self, carry: Carry, t: jax.Array, noise: Noise) -> Carry:
        """A step between two updates."""
        carry, step = self._interact(carry, t, noise)
        return self._noted(carry, *self.agent.observe(carry.agent, *step, t), t, noise)

    def _noted(self, carry: Carry, agent: AgentState, step: Transition, t: jax.Array, noise: Noise) -> Carry:
        return carry._replace(agent=agent, meter=self.meter.note(carry.meter, agent, step, t, noise.measure))

    def _learn_step(self, carry: Carry, t: jax.Array, noise: Noise) -> Carry:
        """A step with an update."""
        carry = self._observe_step(carry, t, noise)
        agent, losses = self.agent.learn(carry.agent, t, noise.learn)
        meter = self.meter.read(carry.meter, carry.agent, agent, t)
        total = jax.tree.map(jnp.add, carry.statistics.losses, losses)
        return carry._replace(agent=agent, meter=meter, statistics=carry.statistics._replace(losses=total))

    def _interact(self, carry: Carry, t: jax.Array, noise: Noise) -> tuple[Carry, Step]:
        """Act, step the environment, start the next episode if this one ends."""
        env, task = carry.env, self.task
        choice = self.agent.act(carry.agent, env.situation, t, noise.act)
        state, reward, terminated = task.step(env.state, choice.action, noise.step)
        after = EnvState(state, self._observe(state), env.first, env.length + 1, env.episode_return + reward)
        over = terminated | (after.length >= task.time_limit)
        learned = task.learned_reward(env.state, reward, state, terminated, self.run.gamma)
        return self._told(carry, Event(choice, after, learned, terminated, over), self._first(noise.reset))

    def _told(self, carry: Carry, event: Event, first: EnvState) -> tuple[Carry, Step]:
        """What the agent is told of what happened; where it was an end, the next episode begins with `first`."""
        env, run, (choice, after, learned, terminated, over) = carry.env, self.run, event
        after = self._coded(carry.agent, after)
        first = first._replace(code=self._code_of_first(over, carry.agent, first, after.code))
        final = terminated if run.bootstrap_time_limit else over
        transition = Transition(
            obs_tm1=env.obs,
            a_tm1=choice.action,
            r_t=learned,
            discount_t=jnp.where(final, 0.0, run.gamma),
            obs_t=after.obs,
            context_tm1=choice.context,
            context_t=choice.context,  # both are assigned by `observe`
            over=over,
            greedy=choice.greedy,
        )
        statistics = carry.statistics._replace(
            returns=carry.statistics.returns + jnp.where(over, after.episode_return, 0.0),
            episodes=carry.statistics.episodes + over,
            occupancy=carry.statistics.occupancy + (jnp.arange(self.agent.contexts.count) == choice.context),
        )
        following = jax.tree.map(lambda new, old: jnp.where(over, new, old), first, after)
        step = Step(transition, env.situation, after.situation)
        return carry._replace(env=following, statistics=statistics), step
