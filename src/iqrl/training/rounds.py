"""Rounds: the hosted driver with several environments per seed.

In a round every environment makes one step, with actions chosen by the same weights. Then the steps are learned from
one after the other, as if they had been made so: step t + i is that of environment i. It is observed and, where the
timetable says so, an update follows it. So there are as many updates per step as with one environment. A round in which
learning starts or the target is synced is cut there. It is cut nowhere else: periods are whole rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import randomness
from iqrl.core.types import ContextInputs
from iqrl.envs.episodes import Outcome
from iqrl.settings import Run
from iqrl.training.compiled import Step, Uniforms
from iqrl.training.hosted import Held, HostedDriver, HostedProgram, Part, Pending
from iqrl.training.states import Carry, EnvState, TrainState


def hosted_driver(run: Run) -> type[HostedDriver]:
    return RoundDriver if run.env_count > 1 else HostedDriver


def hosted_program(driver: HostedDriver, parts: Any) -> HostedProgram:
    return RoundProgram(driver, parts) if isinstance(driver, RoundDriver) else HostedProgram(driver, parts)


class Round(NamedTuple):
    """The steps that were made together."""

    t: Any
    """the step of the first environment"""
    choice: Any
    """[seeds, n, …]: the actions"""
    outcome: Outcome
    """[seeds, n, …]: what came of them"""
    uniforms: Uniforms
    """[n, seeds, …]: of these steps"""


class RoundParts(NamedTuple):
    """What such a run is made of: each a `Part`, or compiled."""

    init: Any
    start: Any
    """(state, observations, first ones of the episode, masks, uniforms) -> state, with the next actions chosen"""
    collect: Any
    """(state, round, begin, end, uniforms of the next round) -> state after the steps from `begin` to before `end` of
    the round, with the next actions chosen"""
    learn: Any
    """the same for steps after the start of learning"""
    start_learning: Any
    """(state, steps done, uniforms) -> state, with the next actions chosen anew"""
    sync: Any
    draw: Any
    report: Any


@dataclass(frozen=True)
class RoundDriver(HostedDriver):
    """The state of the environments has the axes [seeds, n]."""

    def init_seed(self, seed: jax.Array) -> tuple[EnvState, Any]:
        env, agent = super().init_seed(seed)
        of_each = lambda tree: jax.tree.map(lambda leaf: jnp.stack([leaf] * self.run.env_count), tree)
        # A round is learned from before the next is made: nothing that came of it need be kept.
        pending = env.state._replace(choice=of_each(env.state.choice), outcome=())
        return EnvState(state=pending, inputs=of_each(env.inputs), length=of_each(env.length)), agent

    def parts(self) -> Any:
        run, whole = self.run, jax.ShapeDtypeStruct((), jnp.int32)
        state = jax.eval_shape(self.init)
        shape = lambda leaf: jax.ShapeDtypeStruct((run.seeds, run.env_count, *leaf.shape), leaf.dtype)
        outcome = jax.tree.map(shape, jax.eval_shape(self._no_outcome))
        numbers: Any = lambda count: jax.ShapeDtypeStruct((run.env_count, run.seeds, count), jnp.float32)
        uniforms = Uniforms(run=numbers(randomness.count(self.uniforms)), meter=numbers(self.meter.num_uniforms))
        made = Round(t=whole, choice=state.env.state.choice, outcome=outcome, uniforms=uniforms)
        steps = lambda consume: Part(self._program(consume), (state, made, whole, whole, uniforms), donated=1)
        return RoundParts(
            init=Part(self.init),
            start=Part(self._start, (state, outcome.obs, outcome.obs, outcome.mask, uniforms), donated=1),
            collect=steps(self._collect),
            learn=steps(self._learn),
            start_learning=Part(self._start_learning, (state, whole, uniforms), donated=1),
            sync=Part(self._sync_all, (state, whole, uniforms), donated=1),
            draw=Part(self.draw, (state.seeds, whole)),
            report=Part(self._report, (state, whole), donated=1),
        )

    def choice_of(self, state: TrainState) -> Any:
        return state.env.state.choice

    def embed(self, agent: Any, env: EnvState) -> EnvState:
        """Of the environments of a seed, or of one of them."""
        if not env.length.ndim:
            return super().embed(agent, env)
        embed = jax.vmap(self.agent.embed, in_axes=(None, 0))
        return env._replace(inputs=embed(self.agent.encoder_of(agent), env.inputs))

    def _choose_action(self, state: TrainState, t: jax.Array, uniforms: Uniforms) -> TrainState:
        """The state with the actions of the round that begins with step t."""

        def act(agent: Any, inputs: ContextInputs, step: jax.Array, numbers: jax.Array) -> Any:
            return self.agent.act(agent, inputs, step, randomness.hand_out(self.uniforms, numbers).act)

        of_seed = jax.vmap(act, in_axes=(None, 0, 0, 0))
        steps = t + jnp.arange(self.run.env_count)
        choice = jax.vmap(of_seed, in_axes=(0, 0, None, 1))(state.agent, state.env.inputs, steps, uniforms.run)
        return state._replace(env=state.env._replace(state=state.env.state._replace(choice=choice)))

    # The steps of a round, one after the other

    def _program(self, consume: Callable) -> Callable:
        def program(
            state: TrainState, made: Round, begin: jax.Array, end: jax.Array, next_uniforms: Uniforms
        ) -> TrainState:
            pending = state.env.state
            carry = Carry(env=state.env, agent=state.agent, meter=state.meter, sums=pending.sums)
            carry = consume(carry, made, begin, end)
            pending = pending._replace(sums=carry.sums, steps=pending.steps + (end - begin))
            env = carry.env._replace(state=pending)
            after = state._replace(step=made.t + end, env=env, agent=carry.agent, meter=carry.meter)
            return self._choose_action(after, made.t + self.run.env_count, next_uniforms)

        return program

    def _collect(self, carry: Carry, made: Round, begin: jax.Array, end: jax.Array) -> Carry:
        step = self._in_round(self.collect_step, made)
        return jax.lax.fori_loop(begin, end, step, carry)

    def _learn(self, carry: Carry, made: Round, begin: jax.Array, end: jax.Array) -> Carry:
        """As in the compiled driver, there is no condition around an update: it ends a loop of steps without one."""
        observe, learn = self._in_round(self.observe_step, made), self._in_round(self.learn_step, made)
        every, since = self.timetable.update_every, made.t - self.timetable.learning_starts
        if every == 1:
            return jax.lax.fori_loop(begin, end, learn, carry)

        def to_update(_: jax.Array, now: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
            i, carry = now
            last = i + every - 1 - (since + i) % every
            return last + 1, learn(last, jax.lax.fori_loop(i, last, observe, carry))

        updates = (since + end) // every - (since + begin) // every
        i, carry = jax.lax.fori_loop(0, updates, to_update, (begin, carry))
        return jax.lax.fori_loop(i, end, observe, carry)

    def _in_round(self, step: Step, made: Round) -> Callable[[jax.Array, Carry], Carry]:
        """The step of one of the environments, for all seeds, within the state of all."""
        of_seeds = jax.vmap(step, in_axes=(0, None, 0))

        def of_environment(i: jax.Array, carry: Carry) -> Carry:
            own = lambda axis: lambda whole: jax.lax.dynamic_index_in_dim(whole, i, axis, keepdims=False)
            pending = Pending(choice=made.choice, outcome=made.outcome, sums=(), steps=())  # ty: ignore[invalid-argument-type]
            env = jax.tree.map(own(1), carry.env._replace(state=pending))
            after = of_seeds(carry._replace(env=env), made.t + i, jax.tree.map(own(0), made.uniforms))
            put = lambda whole, one: jax.lax.dynamic_update_index_in_dim(whole, one, i, 1)
            inputs, length = jax.tree.map(put, tuple(carry.env[1:]), tuple(after.env[1:]))
            return after._replace(env=carry.env._replace(inputs=inputs, length=length))

        return of_environment


class RoundProgram(HostedProgram):
    """The parts at work, a round at a time."""

    def __init__(self, driver: RoundDriver, parts: RoundParts):
        super().__init__(driver, parts)
        self._rounds: dict[int, Uniforms] = {}

    def _arranged(self, of_environments: Any) -> Any:
        axes = (self.driver.run.seeds, self.stride)
        return jax.tree.map(lambda each: each.reshape(*axes, *each.shape[1:]), of_environments)

    def _in_a_row(self, array: jax.Array) -> np.ndarray:
        return np.array(array).reshape(-1, *array.shape[2:])

    def _step(self, held: Held, t: int) -> Held:
        times, after = self.timetable, np.int32(t + self.stride)
        choice = jax.device_get(held.choice)
        outcome = self._arranged(self.environments.step(choice.action.reshape(-1)))
        following = self._uniforms(t + self.stride)
        made = Round(t=np.int32(t), choice=choice, outcome=outcome, uniforms=self._uniforms(t))
        for begin, end in times.parts_of(t, t + self.stride):
            part = self.parts.collect if times.collects(begin) else self.parts.learn
            held = part(held, made, np.int32(begin - t), np.int32(end - t), following)
            if times.starts_learning(end):
                held = self.parts.start_learning(held, after, following)
            elif times.syncs and not times.collects(begin) and times.syncs_after(end):
                held = self.parts.sync(held, after, following)
        return held

    def _uniforms(self, t: int) -> Uniforms:
        """Of the round that begins with step t."""
        if t not in self._rounds:
            each = [super(RoundProgram, self)._uniforms(t + i) for i in range(self.stride)]
            self._rounds = {at: self._rounds[at] for at in self._rounds if at == t - self.stride}
            self._rounds[t] = jax.tree.map(lambda *rows: np.stack(rows), *each)
        return self._rounds[t]
