"""The hosted driver: the environment is any Gymnasium environment, outside the program.

For each step there is one call of a compiled program: it stores what happened, clusters, learns where that is due, and
chooses the next action. It is made of the compiled driver's own steps, and gives the same metrics and checkpoints; an
environment that can be brought back to where it was is resumed bit for bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.agent import AgentState, Choice
from iqrl.training.compiled import Driver, stream
from iqrl.training.environments import Environments, Outcome
from iqrl.training.states import Carry, EnvState, Event, Noise, Period, Statistics, Step, TrainState, summarise


class Pending(NamedTuple):
    """An action that was chosen, what came of it, and the sums over the period up to now."""

    choice: Choice
    outcome: Outcome
    statistics: Statistics


class Part(NamedTuple):
    """A function that is to be compiled, and what it will be given."""

    function: Callable
    given: tuple = ()
    taken: int = 0
    """how many of these, the first ones, are its own to write in"""


class Parts(NamedTuple):
    """What a hosted run is made of: each a `Part`, or compiled."""

    init: Any
    start: Any
    """(state, observations, first ones of the episode, uniforms) -> state, with the next action chosen"""
    collect: Any
    """(state, outcome, t, uniforms of step t, of t + 1) -> state, with the next action chosen"""
    observe: Any
    learn: Any
    begin: Any
    """(state, t, uniforms) -> state, with the next action chosen anew"""
    sync: Any
    draw: Any
    report: Any


@dataclass(frozen=True)
class HostedDriver(Driver):
    """`parts()` are to be compiled; `Hosted` runs them against the environments."""

    @property
    def _draws(self) -> Noise:
        """The environment draws for itself."""
        return super()._draws._replace(step=0, reset=0)

    def _init_seed(self, seed: jax.Array) -> tuple[EnvState, AgentState]:
        agent_key, _ = jax.random.split(stream(seed, 0))
        agent = self.agent.init(agent_key)
        nothing = self._nothing()
        sums = jax.tree.map(lambda each: each[0], self._zero_statistics())
        pending = Pending(Choice(jnp.int32(0), jnp.int32(0), jnp.bool_(True)), nothing, sums)
        env = EnvState(pending, nothing.obs, nothing.obs, jnp.int32(0), jnp.float32(0))
        return self._coded(agent, env), agent

    def _nothing(self) -> Outcome:
        obs = jnp.zeros(self.agent.obs_size, jnp.uint8 if self.task.image else jnp.float32)
        return Outcome(obs, jnp.float32(0), jnp.float32(0), jnp.bool_(False), jnp.bool_(False), obs)

    def _interact(self, carry: Carry, t: jax.Array, noise: Noise) -> tuple[Carry, Step]:
        """What happened is known already."""
        env, (choice, outcome, _) = carry.env, carry.env.state
        after = EnvState(env.state, outcome.obs, env.first, env.length + 1, env.episode_return + outcome.reward)
        over = outcome.terminated | outcome.truncated
        first = EnvState(env.state, outcome.first, outcome.first, jnp.int32(0), jnp.float32(0))
        return self._told(carry, Event(choice, after, outcome.learned, outcome.terminated, over), first)

    # What is compiled

    def parts(self) -> Parts:
        seeds, t = self.run.seeds, jax.ShapeDtypeStruct((), jnp.int32)
        state = jax.eval_shape(self.init)
        outcome = jax.eval_shape(lambda: jax.tree.map(lambda leaf: jnp.stack([leaf] * seeds), self._nothing()))
        uniforms = jax.ShapeDtypeStruct((seeds, sum(self._draws)), jnp.float32)
        step = lambda kind: Part(self._with_next_action(kind), (state, outcome, t, uniforms, uniforms), taken=1)
        return Parts(
            init=Part(self.init),
            start=Part(self._start, (state, outcome.obs, outcome.obs, uniforms), taken=1),
            collect=step(self._collect_step),
            observe=step(self._observe_step),
            learn=step(self._learn_step),
            begin=Part(self._begun, (state, t, uniforms), taken=1),
            sync=Part(self._synced, (state, t, uniforms), taken=1),
            draw=Part(self._draw, (state.seeds, t)),
            report=Part(self._report, (state, t, t), taken=1),
        )

    def _start(self, state: TrainState, obs: jax.Array, first: jax.Array, uniforms: jax.Array) -> TrainState:
        env = jax.vmap(self._coded)(state.agent, state.env._replace(obs=obs, first=first, code=()))
        return self._chosen(state._replace(env=env), state.step, uniforms)

    def _with_next_action(self, step: Callable[[Carry, jax.Array, Noise], Carry]) -> Callable:
        side_by_side = self._side_by_side(step)

        def program(
            state: TrainState, outcome: Outcome, t: jax.Array, uniforms: jax.Array, to_act: jax.Array
        ) -> TrainState:
            pending = state.env.state
            env = state.env._replace(state=pending._replace(outcome=outcome))
            carry = side_by_side(Carry(env, state.agent, state.meter, pending.statistics), t, uniforms)
            env = carry.env._replace(state=carry.env.state._replace(statistics=carry.statistics))
            return self._chosen(TrainState(t + 1, state.seeds, env, carry.agent, carry.meter), t + 1, to_act)

        return program

    def _chosen(self, state: TrainState, t: jax.Array, uniforms: jax.Array) -> TrainState:
        """The state with the action that follows."""
        act = jax.vmap(self.agent.act, in_axes=(0, 0, None, 0))
        choice = act(state.agent, state.env.situation, t, uniforms[:, : self._draws.act])
        return state._replace(env=state.env._replace(state=state.env.state._replace(choice=choice)))

    def _begun(self, state: TrainState, t: jax.Array, uniforms: jax.Array) -> TrainState:
        agent, meter = self._begin(state.agent, state.meter, state.seeds)
        return self._chosen(state._replace(agent=agent, meter=meter), t, uniforms)

    def _synced(self, state: TrainState, t: jax.Array, uniforms: jax.Array) -> TrainState:
        return self._chosen(state._replace(agent=jax.vmap(self.agent.sync)(state.agent)), t, uniforms)

    def _report(self, state: TrainState, steps: jax.Array, updates: jax.Array) -> tuple[TrainState, Period]:
        """The end of a period: what it came to, and new sums."""
        meter, measured = jax.vmap(self.meter.report, in_axes=(0, 0, None))(state.meter, state.agent, state.step)
        pending = state.env.state
        period = summarise(Carry(state.env, state.agent, meter, pending.statistics), steps, updates, measured)
        env = state.env._replace(state=pending._replace(statistics=self._zero_statistics()))
        return state._replace(meter=meter, env=env), period


class Hosted:
    """The parts at work: `init()` and `advance(state, stop)`, as of a compiled driver."""

    def __init__(self, driver: HostedDriver, parts: Parts):
        self.driver, self.parts = driver, parts
        self.environments = Environments(driver.task, driver.run.seed, driver.run.seeds)
        self._blocks: dict[int, np.ndarray] = {}

    def init(self) -> TrainState:
        state, first = self.parts.init(), self.environments.begin()
        return self.parts.start(state, first, first, self._uniforms(state.seeds, 0))

    def restore(self, state: TrainState, outside: Mapping[str, np.ndarray]) -> TrainState:
        """The state with the environments where they were; an episode that cannot be brought back begins anew."""
        lost = self.environments.restore(outside, np.asarray(state.env.obs))
        if not lost:
            return state
        names = ", ".join(str(self.driver.run.seed + i) for i in lost)
        message = (
            f"{self.driver.task.name} cannot be brought back to where it was; the episode of seed {names} begins anew"
        )
        warnings.warn(message, stacklevel=2)
        obs, first, length, score = (
            np.array(each) for each in (state.env.obs, state.env.first, state.env.length, state.env.episode_return)
        )
        for i in lost:
            obs[i] = first[i] = self.environments.episodes[i].begin()
            length[i] = score[i] = 0
        env = state.env._replace(length=jnp.asarray(length), episode_return=jnp.asarray(score))
        return self.parts.start(state._replace(env=env), obs, first, self._uniforms(state.seeds, int(state.step)))

    def advance(
        self, state: TrainState, stop: int, paused: Callable[[], bool] = lambda: False
    ) -> tuple[TrainState, Period | None]:
        """To the end of a period; or, where `paused` says so, less far, but a step at least, and without a report."""
        for t in range(int(state.step), int(stop)):
            state = self._step(state, t)
            if t + 1 < stop and paused():
                return state, None
        # Every step is in some context; a run that was extended has a report within a period, and new sums since.
        counted = round(float(state.env.state.statistics.occupancy[0].sum()))
        run, began = self.driver.run, int(stop) - counted
        updates = (max(int(stop), run.learning_starts) - max(began, run.learning_starts)) // run.update_every
        return self.parts.report(state, np.int32(counted), np.int32(updates))

    def _step(self, state: TrainState, t: int) -> TrainState:
        run = self.driver.run
        outcome = self.environments.step(np.asarray(state.env.state.choice.action))
        now, following = self._uniforms(state.seeds, t), self._uniforms(state.seeds, t + 1)
        state = self._part_of(t)(state, outcome, np.int32(t), now, following)
        after = t + 1
        if after == run.learning_starts:
            state = self.parts.begin(state, np.int32(after), following)
        elif after > run.learning_starts and after % run.target_period == 0 and self.driver.agent.lags:
            state = self.parts.sync(state, np.int32(after), following)
        return state

    def _part_of(self, t: int) -> Callable:
        start, every = self.driver.run.learning_starts, self.driver.run.update_every
        if t < start:
            return self.parts.collect
        return self.parts.learn if (t - start + 1) % every == 0 else self.parts.observe

    def _uniforms(self, seeds: Any, t: int) -> np.ndarray:
        """[seed, draws] of step t."""
        size = self.driver.block
        number = t // size
        if number not in self._blocks:
            self._blocks = {key: self._blocks[key] for key in self._blocks if key == number - 1}
            self._blocks[number] = np.asarray(self.parts.draw(seeds, np.int32(t)))
        return self._blocks[number][t % size]
