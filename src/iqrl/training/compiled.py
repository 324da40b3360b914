"""The compiled driver: environment, agent and statistics in one XLA program. Seeds are a `vmap` axis.

The program is a loop of segments. A segment draws its random numbers in one block and makes its steps in an inner
loop. It ends at a sync of the target, at the end of the block, or at the end of the period. In the inner loop there is
no condition around an update, nothing grows with the buffer, and no key is drawn. (Networks of images do not all fit
into a CPU's cache: there, seeds are trained one after the other, in a loop around all this.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.core import randomness
from iqrl.core.types import Agent, ContextInputs, Experience
from iqrl.diagnostics.interference.meter import NOTHING_MEASURED, Meter
from iqrl.envs.base import EnvInputs, Task
from iqrl.settings import Run
from iqrl.training.devices import platform
from iqrl.training.states import Carry, EnvState, Period, StepUniforms, TrainState, end_period, zero_sums
from iqrl.training.timetable import Timetable, timetable_of


class Uniforms(NamedTuple):
    """Uniform numbers of a block [block, seed, n], of a step [seed, n], or of a step of one seed [n]."""

    run: jax.Array
    meter: jax.Array


Step = Callable[[Carry, jax.Array, Uniforms], Carry]
"""(carry, step, its uniform numbers) -> carry"""


class Loop(NamedTuple):
    stride: int
    """environment steps made by one call of `body`"""
    body: Step
    """its uniform numbers are those of the block"""
    syncs: bool
    """whether the target is synced every C steps"""


@dataclass(frozen=True)
class Driver:
    """`init()` makes the state, `advance(state, stop)` takes it to step `stop`; both are to be compiled."""

    run: Run
    task: Task
    agent: Agent
    meter: Meter = NOTHING_MEASURED

    @cached_property
    def timetable(self) -> Timetable:
        return timetable_of(self.run, self.agent.syncs)

    @cached_property
    def uniforms(self) -> StepUniforms:
        """How many uniform numbers a step needs for each purpose."""
        return StepUniforms(
            act=self.agent.act_uniforms,
            step=self.task.num_step_uniforms,
            reset=self.task.num_reset_uniforms,
            observe=self.agent.observe_uniforms,
            learn=self.agent.learn_uniforms,
        )

    # The first state

    def init(self) -> TrainState:
        seeds = jnp.uint32(self.run.seed) + jnp.arange(self.run.seeds, dtype=jnp.uint32)
        env, agent = jax.vmap(self.init_seed)(seeds)
        return TrainState(step=jnp.int32(0), seeds=seeds, env=env, agent=agent, meter=jax.vmap(self.meter.init)(agent))

    def init_seed(self, seed: jax.Array) -> tuple[EnvState, Any]:
        agent_key, env_key = jax.random.split(randomness.key_of(seed, randomness.START))
        agent = self.agent.init(agent_key)
        uniforms = jax.random.uniform(env_key, (self.task.num_reset_uniforms,))
        return self.embed(agent, self.start_episode(EnvInputs(uniforms=uniforms, step=jnp.int32(0)))), agent

    def start_episode(self, inputs: EnvInputs) -> EnvState:
        state = self.task.reset(inputs)
        obs = self.task.flat_obs(state)
        first = ContextInputs(obs=obs, initial_obs=obs, score=jnp.float32(0), mask=self.task.legal(state))
        return EnvState(state=state, inputs=first, length=jnp.int32(0))

    def embed(self, agent: Any, env: EnvState) -> EnvState:
        return env._replace(inputs=self.agent.embed(self.agent.encoder_of(agent), env.inputs))

    # A period

    def advance(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """To step `stop`, and the statistics on the way."""
        large = self.task.image is not None and self.run.seeds > 1
        one_by_one = large and platform() == "cpu"
        return self._advance_one_by_one(state, stop) if one_by_one else self.advance_together(state, stop)

    def _advance_one_by_one(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """One seed after the other: networks of images do not all fit into a processor's cache, one does."""
        # A function of its own, so that it is traced once for both uses.
        advance = jax.jit(replace(self, run=replace(self.run, seeds=1)).advance_together)
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

    def advance_together(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """The seeds as an axis of every array."""
        start, seeds = self.timetable.learning_starts, state.seeds
        collecting = Loop(stride=1, body=self._in_block(self.collect_step), syncs=False)
        learning = Loop(stride=self.timetable.update_every, body=self._learning_body(), syncs=self.agent.syncs)
        carry = Carry(env=state.env, agent=state.agent, meter=state.meter, sums=zero_sums(self.agent, self.run.seeds))
        t, carry = self._run_loop(collecting, seeds, state.step, jnp.minimum(stop, start), carry)
        starts = (state.step < start) & self.timetable.starts_learning(t)
        stay = lambda agent, meter, seeds: (agent, meter)
        agent, meter = jax.lax.cond(starts, self.start_learning, stay, carry.agent, carry.meter, seeds)
        t, carry = self._run_loop(learning, seeds, t, stop, carry._replace(agent=agent, meter=meter))
        updates = (jnp.maximum(t, start) - jnp.maximum(state.step, start)) // self.timetable.update_every
        meter, measured = jax.vmap(self.meter.report, in_axes=(0, 0, None))(carry.meter, carry.agent, t)
        period = end_period(self.agent, carry, t - state.step, updates, measured)
        return TrainState(step=t, seeds=seeds, env=carry.env, agent=carry.agent, meter=meter), period

    def start_learning(self, agent: Any, meter: Any, seeds: jax.Array) -> tuple[Any, Any]:
        key_of = lambda seed: randomness.key_of(seed, randomness.WARM_START)
        agent = jax.vmap(lambda state, seed: self.agent.start_learning(state, key_of(seed)))(agent, seeds)
        return agent, jax.vmap(self.meter.start_learning)(meter, agent)

    # The loops

    def _run_loop(self, loop: Loop, seeds: jax.Array, t: jax.Array, stop: jax.Array, carry: Carry):
        """Run from t to `stop`, segment by segment."""
        times = self.timetable

        def segment(now: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
            t, carry = now
            uniforms = self.draw(seeds, t)
            next_multiple = lambda size: (t // size + 1) * size
            end = jnp.minimum(next_multiple(times.block), stop)
            end = jnp.minimum(end, next_multiple(times.target_period)) if loop.syncs else end
            body = lambda i, carry: loop.body(carry, t + i * loop.stride, uniforms)
            carry = jax.lax.fori_loop(0, (end - t) // loop.stride, body, carry)
            return end, self._sync(carry, times.syncs_after(end)) if loop.syncs else carry

        return jax.lax.while_loop(lambda now: now[0] < stop, segment, (t, carry))

    def draw(self, seeds: jax.Array, t: jax.Array) -> Uniforms:
        """Uniform numbers for the block that step t lies in; a function of seed and step alone."""
        size, block = self.timetable.block, t // self.timetable.block
        numbers = lambda source, seed, count: jax.random.uniform(randomness.key_of(seed, source), (size, count))
        measuring = jnp.uint32(randomness.MEASURING) + block.astype(jnp.uint32)

        def of_seed(seed: jax.Array) -> Uniforms:
            run = numbers(randomness.FIRST_BLOCK + block, seed, randomness.count(self.uniforms))
            needs = self.meter.num_uniforms
            return Uniforms(run=run, meter=numbers(measuring, seed, needs) if needs else jnp.zeros((size, 0)))

        return jax.vmap(of_seed, out_axes=1)(seeds)

    def _sync(self, carry: Carry, due: jax.Array) -> Carry:
        synced = jax.vmap(self.agent.sync)(carry.agent)
        choose = lambda new, old: old if new is old else jnp.where(due, new, old)
        return carry._replace(agent=jax.tree.map(choose, synced, carry.agent))

    def _in_block(self, step: Step) -> Step:
        """A step of all seeds, which finds its numbers in a block. Seeds share the step count, so that no loop bound
        or index depends on a seed."""
        of_seeds = jax.vmap(step, in_axes=(0, None, 0))

        def body(carry: Carry, t: jax.Array, block: Uniforms) -> Carry:
            row = lambda numbers: jax.lax.dynamic_index_in_dim(numbers, t % self.timetable.block, keepdims=False)
            return of_seeds(carry, t, jax.tree.map(row, block))

        return body

    def _learning_body(self) -> Step:
        """`update_every` steps, then an update. The program has the step once, as a loop if there are several."""
        observe, update = self._in_block(self.observe_step), self._in_block(self.update_step)
        last = self.timetable.update_every - 1

        def body(carry: Carry, t: jax.Array, block: Uniforms) -> Carry:
            if last:
                carry = jax.lax.fori_loop(0, last + 1, lambda i, c: observe(c, t + i, block), carry)
            else:
                carry = observe(carry, t, block)
            return update(carry, t + last, block)

        return body

    # One step of one seed

    def collect_step(self, carry: Carry, t: jax.Array, uniforms: Uniforms) -> Carry:
        """A step before learning starts."""
        return self._observe(carry, t, uniforms, warm_up=True)

    def observe_step(self, carry: Carry, t: jax.Array, uniforms: Uniforms) -> Carry:
        """A step between two updates."""
        return self._observe(carry, t, uniforms)

    def learn_step(self, carry: Carry, t: jax.Array, uniforms: Uniforms) -> Carry:
        """A step with an update."""
        return self.update_step(self._observe(carry, t, uniforms), t, uniforms)

    def update_step(self, carry: Carry, t: jax.Array, uniforms: Uniforms) -> Carry:
        """The update that follows step t."""
        random = randomness.hand_out(self.uniforms, uniforms.run)
        agent, metrics = self.agent.learn(carry.agent, t, random.learn)
        meter = self.meter.measure(carry.meter, carry.agent, agent, t)
        updates = {name: total + metrics[name] for name, total in carry.sums.updates.items()}
        return carry._replace(agent=agent, meter=meter, sums=carry.sums._replace(updates=updates))

    def _observe(self, carry: Carry, t: jax.Array, uniforms: Uniforms, warm_up: bool = False) -> Carry:
        random = randomness.hand_out(self.uniforms, uniforms.run)
        carry, experience = self.interact(carry, t, random)
        agent, transition = self.agent.observe(carry.agent, experience, t, random.observe, warm_up)
        return carry._replace(agent=agent, meter=self.meter.observe(carry.meter, agent, transition, t, uniforms.meter))

    def interact(self, carry: Carry, t: jax.Array, random: StepUniforms) -> tuple[Carry, Experience]:
        """Act, step the environment, start the next episode if this one ends."""
        env, task = carry.env, self.task
        choice = self.agent.act(carry.agent, env.inputs, t, random.act)
        state, reward, terminated = task.step(env.state, choice.action, EnvInputs(uniforms=random.step, step=t))
        obs, mask = task.flat_obs(state), task.legal(state)
        inputs = env.inputs._replace(obs=obs, score=env.inputs.score + reward, embedding=(), mask=mask)
        after = EnvState(state=state, inputs=inputs, length=env.length + 1)
        done = terminated | (after.length >= task.time_limit)
        learned = task.learned_reward(env.state, reward, state, terminated, self.run.gamma)
        first = self.start_episode(EnvInputs(uniforms=random.reset, step=t + 1, previous=state))
        return self.record_step(carry, choice, learned, after, terminated, done, first)

    def record_step(
        self,
        carry: Carry,
        choice: Any,
        reward: jax.Array,
        after: EnvState,
        terminated: jax.Array,
        done: jax.Array,
        first: EnvState,
    ) -> tuple[Carry, Experience]:
        """The step as the agent observes it; where the episode is done, the next one begins with `first`."""
        env, run = carry.env, self.run
        after = self.embed(carry.agent, after)
        first = self._embed_first(done, carry.agent, first, after)
        final = terminated if run.bootstrap_time_limit else done
        experience = Experience(
            before=env.inputs,
            choice=choice,
            reward=reward,
            discount=jnp.where(final, 0.0, run.gamma),
            after=after.inputs,
            done=done,
        )
        sums, report = carry.sums, self.agent.step_report(choice)
        sums = sums._replace(
            returns=sums.returns + jnp.where(done, after.inputs.score, 0.0),
            episodes=sums.episodes + done,
            steps={name: total + report[name] for name, total in sums.steps.items()},
        )
        following = jax.tree.map(lambda new, old: jnp.where(done, new, old), first, after)
        return carry._replace(env=following, sums=sums), experience

    def _embed_first(self, done: jax.Array, agent: Any, first: EnvState, after: EnvState) -> EnvState:
        """`first` with its embedding, which is computed only where an episode is done; that is seldom."""
        if not jax.tree.leaves(after.inputs.embedding):
            return first
        embed = lambda encoder, inputs: self.agent.embed(encoder, inputs).embedding
        encoder = self.agent.encoder_of(agent)
        embedding = compute_where_any(done, embed, after.inputs.embedding, encoder, first.inputs)
        return first._replace(inputs=first.inputs._replace(embedding=embedding))


def compute_where_any(condition: jax.Array, compute: Callable, otherwise: Any, *given: Any) -> Any:
    """compute(*given) where the condition holds, anything where it does not.

    Under `vmap` a conditional becomes both branches and a choice. This one stays a conditional: it computes for all
    seeds if the condition holds for any.
    """

    @jax.custom_batching.custom_vmap
    def choose(condition, otherwise, *given):
        return jax.lax.cond(condition, compute, lambda *_: otherwise, *given)

    @choose.def_vmap
    def of_seeds(axis_size, batched, condition, otherwise, *given):
        axes = jax.tree.map(lambda differs: 0 if differs else None, tuple(batched))
        of_each = partial(jax.vmap, in_axes=axes[1:], axis_size=axis_size)
        new, old = of_each(lambda otherwise, *given: compute(*given)), of_each(lambda otherwise, *given: otherwise)
        return jax.lax.cond(jnp.any(condition), new, old, otherwise, *given), True

    return choose(condition, otherwise, *given)
