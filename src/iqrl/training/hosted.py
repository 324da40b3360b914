"""The hosted driver: the environment is any Gymnasium environment, outside the program.

For each step there is one call of a compiled program: it stores what happened, clusters, learns where that is due, and
chooses the next action. It is made of the compiled driver's own steps, and gives the same metrics and checkpoints. An
environment that can be brought back to where it was is resumed bit for bit. Of several environments per seed,
`training/rounds.py` makes rounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import randomness
from iqrl.core.masks import Mask
from iqrl.core.types import ContextInputs, Experience
from iqrl.envs.episodes import Outcome
from iqrl.envs.processes import make_environments
from iqrl.training.compiled import Driver, Step, Uniforms
from iqrl.training.packing import Packing
from iqrl.training.states import Carry, EnvState, Period, StepUniforms, Sums, TrainState, end_period, zero_sums


class Pending(NamedTuple):
    """An action that was chosen, what came of it, and the sums over the period up to now."""

    choice: Any
    outcome: Outcome
    sums: Sums
    steps: jax.Array
    """of the period so far"""


class Held(NamedTuple):
    """A state as programs hand it on: in few arrays, since each costs time at every call."""

    arrays: tuple[Any, ...]
    """the state, packed"""
    choice: Any
    """what the environments need of it: the actions that were chosen"""


class Part(NamedTuple):
    """A function that is to be compiled, and what it will be given."""

    function: Callable
    given: tuple = ()
    donated: int = 0
    """how many of these, the first ones, it may write in"""


class Parts(NamedTuple):
    """What a hosted run is made of: each a `Part`, or compiled."""

    init: Any
    start: Any
    """(state, observations, first ones of the episode, masks, uniforms) -> state, with the next action chosen"""
    collect: Any
    """(state, outcome, step, its uniforms, those of the next step) -> state, with the next action chosen"""
    observe: Any
    learn: Any
    start_learning: Any
    """(state, steps done, uniforms) -> state, with the next action chosen anew"""
    sync: Any
    draw: Any
    report: Any


@dataclass(frozen=True)
class HostedDriver(Driver):
    """`parts()` are to be compiled; `HostedProgram` runs them against the environments."""

    @property
    def uniforms(self) -> StepUniforms:
        """The environment draws for itself."""
        agent = self.agent
        return StepUniforms(
            act=agent.act_uniforms, step=0, reset=0, observe=agent.observe_uniforms, learn=agent.learn_uniforms
        )

    def init_seed(self, seed: jax.Array) -> tuple[EnvState, Any]:
        agent_key, _ = jax.random.split(randomness.key_of(seed, randomness.START))
        agent, outcome = self.agent.init(agent_key), self._no_outcome()
        inputs = ContextInputs(obs=outcome.obs, initial_obs=outcome.obs, score=jnp.float32(0), mask=outcome.mask)
        inputs = self.agent.embed(self.agent.encoder_of(agent), inputs)
        pending = Pending(
            choice=self._no_choice(agent, inputs),
            outcome=outcome,
            sums=jax.tree.map(lambda each: each[0], zero_sums(self.agent, 1)),
            steps=jnp.int32(0),
        )
        return EnvState(state=pending, inputs=inputs, length=jnp.int32(0)), agent

    def _no_outcome(self) -> Outcome:
        obs = jnp.zeros(self.task.obs_size, self.task.obs_dtype)
        zero, false = jnp.float32(0), jnp.bool_(False)
        mask = jnp.ones(self.task.actions, bool) if self.task.masked_actions else ()
        return Outcome(
            obs=obs, reward=zero, learned=zero, terminated=false, truncated=false, initial_obs=obs, mask=mask,
            initial_mask=mask,
        )  # fmt: skip

    def _no_choice(self, agent: Any, inputs: ContextInputs) -> Any:
        """Of the shape of a choice; the first one is made by `start`."""
        random = randomness.hand_out(self.uniforms.act, jnp.zeros(randomness.count(self.uniforms.act)))
        like = jax.eval_shape(self.agent.act, agent, inputs, jnp.int32(0), random)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

    def interact(self, carry: Carry, t: jax.Array, random: StepUniforms) -> tuple[Carry, Experience]:
        """The environment was stepped already."""
        env, pending = carry.env, carry.env.state
        outcome = pending.outcome
        score = env.inputs.score + outcome.reward
        inputs = env.inputs._replace(obs=outcome.obs, score=score, embedding=(), mask=outcome.mask)
        after = EnvState(state=pending, inputs=inputs, length=env.length + 1)
        done = outcome.terminated | outcome.truncated
        again = ContextInputs(
            obs=outcome.initial_obs, initial_obs=outcome.initial_obs, score=jnp.float32(0), mask=outcome.initial_mask
        )
        first = EnvState(state=pending, inputs=again, length=jnp.int32(0))
        return self.record_step(carry, pending.choice, outcome.learned, after, outcome.terminated, done, first)

    def choice_of(self, state: TrainState) -> Any:
        """What the environments need to make their steps."""
        return state.env.state.choice.action

    # What is compiled

    def parts(self) -> Parts:
        seeds, t = self.run.seeds, jax.ShapeDtypeStruct((), jnp.int32)
        state = jax.eval_shape(self.init)
        outcome = jax.eval_shape(lambda: jax.tree.map(lambda leaf: jnp.stack([leaf] * seeds), self._no_outcome()))
        numbers: Any = lambda count: jax.ShapeDtypeStruct((seeds, count), jnp.float32)
        uniforms = Uniforms(run=numbers(randomness.count(self.uniforms)), meter=numbers(self.meter.num_uniforms))
        step = lambda kind: Part(self._step_program(kind), (state, outcome, t, uniforms, uniforms), donated=1)
        return Parts(
            init=Part(self.init),
            start=Part(self._start, (state, outcome.obs, outcome.obs, outcome.mask, uniforms), donated=1),
            collect=step(self.collect_step),
            observe=step(self.observe_step),
            learn=step(self.learn_step),
            start_learning=Part(self._start_learning, (state, t, uniforms), donated=1),
            sync=Part(self._sync_all, (state, t, uniforms), donated=1),
            draw=Part(self.draw, (state.seeds, t)),
            report=Part(self._report, (state, t), donated=1),
        )

    def _start(
        self, state: TrainState, obs: jax.Array, initial_obs: jax.Array, mask: Mask, uniforms: Uniforms
    ) -> TrainState:
        inputs = state.env.inputs._replace(obs=obs, initial_obs=initial_obs, embedding=(), mask=mask)
        env = jax.vmap(self.embed)(state.agent, state.env._replace(inputs=inputs))
        return self._choose_action(state._replace(env=env), state.step, uniforms)

    def _step_program(self, step: Step) -> Callable:
        of_seeds = jax.vmap(step, in_axes=(0, None, 0))

        def program(
            state: TrainState, outcome: Outcome, t: jax.Array, uniforms: Uniforms, next_uniforms: Uniforms
        ) -> TrainState:
            pending = state.env.state
            env = state.env._replace(state=pending._replace(outcome=outcome))
            carry = Carry(env=env, agent=state.agent, meter=state.meter, sums=pending.sums)
            carry = of_seeds(carry, t, uniforms)
            env = carry.env._replace(state=carry.env.state._replace(sums=carry.sums, steps=pending.steps + 1))
            after = state._replace(step=t + 1, env=env, agent=carry.agent, meter=carry.meter)
            return self._choose_action(after, t + 1, next_uniforms)

        return program

    def _choose_action(self, state: TrainState, t: jax.Array, uniforms: Uniforms) -> TrainState:
        """The state with the action that follows."""

        def act(agent: Any, inputs: ContextInputs, numbers: jax.Array) -> Any:
            return self.agent.act(agent, inputs, t, randomness.hand_out(self.uniforms, numbers).act)

        choice = jax.vmap(act)(state.agent, state.env.inputs, uniforms.run)
        return state._replace(env=state.env._replace(state=state.env.state._replace(choice=choice)))

    def _start_learning(self, state: TrainState, t: jax.Array, uniforms: Uniforms) -> TrainState:
        agent, meter = self.start_learning(state.agent, state.meter, state.seeds)
        return self._choose_action(state._replace(agent=agent, meter=meter), t, uniforms)

    def _sync_all(self, state: TrainState, t: jax.Array, uniforms: Uniforms) -> TrainState:
        return self._choose_action(state._replace(agent=jax.vmap(self.agent.sync)(state.agent)), t, uniforms)

    def _report(self, state: TrainState, updates: jax.Array) -> tuple[TrainState, Period]:
        """The end of a period: its means, and new sums."""
        meter, measured = jax.vmap(self.meter.report, in_axes=(0, 0, None))(state.meter, state.agent, state.step)
        pending = state.env.state
        carry = Carry(env=state.env, agent=state.agent, meter=meter, sums=pending.sums)
        period = end_period(self.agent, carry, pending.steps[0], updates, measured)
        sums = zero_sums(self.agent, self.run.seeds)
        env = state.env._replace(state=pending._replace(sums=sums, steps=jnp.zeros_like(pending.steps)))
        return state._replace(meter=meter, env=env), period


def compile_part(driver: HostedDriver, part: Part, states: Packing, options: Any) -> Callable:
    """The compiled part; states go into it and come out of it as `Held`, and what is given with them in few arrays."""
    if part.given and not part.donated:  # no state
        return jax.jit(part.function).lower(*part.given).compile(options)
    given = Packing(part.given[1:])
    hold = lambda state: Held(arrays=states.pack(state), choice=driver.choice_of(state))

    def packed(*arrays: Any) -> Any:
        made = part.function(states.unpack(arrays[0]), *given.unpack(arrays[1])) if arrays else part.function()
        return hold(made) if isinstance(made, TrainState) else (hold(made[0]), *made[1:])

    like = (states.like, given.like) if part.given else ()
    program = jax.jit(packed, donate_argnums=tuple(range(part.donated))).lower(*like).compile(options)
    if not part.given:
        return program
    return lambda held, *more: program(held.arrays, given.pack_on_host(more))


class HostedProgram:
    """The parts at work: `init()` and `advance(held, stop)`, as of a compiled driver."""

    def __init__(self, driver: HostedDriver, parts: Any):
        run = driver.run
        self.driver, self.parts, self.timetable = driver, parts, driver.timetable
        self.packing = Packing(jax.eval_shape(driver.init))
        self.stride = run.env_count
        """steps that are made at once"""
        processes = getattr(run, "env_processes", 0)
        self.environments = make_environments(driver.task, run.seed, run.seeds, run.env_count, processes)
        self._seeds = np.uint32(run.seed) + np.arange(run.seeds, dtype=np.uint32)
        self._blocks: dict[int, Uniforms] = {}

    def init(self) -> Held:
        held, first = self.parts.init(), self._arranged(self.environments.begin())
        return self.parts.start(held, first, first, self._arranged(self.environments.masks), self._uniforms(0))

    def whole(self, held: Held) -> TrainState:
        return self.packing.unpack_on_host(held.arrays)

    def hold(self, state: TrainState) -> Held:
        """Arrays that are on the device already are not copied: a buffer of images may take most of the memory."""
        packed = self.packing.pack_on_host(state)
        arrays = tuple(array if isinstance(array, jax.Array) else jnp.array(array) for array in packed)
        return Held(arrays=arrays, choice=self.driver.choice_of(state))

    def _arranged(self, of_environments: Any) -> Any:
        """Arrays with an entry for each environment, in the axes of the state."""
        return of_environments

    def _in_a_row(self, array: jax.Array) -> np.ndarray:
        """The inverse: a copy with an entry for each environment."""
        return np.array(array)

    def restore(self, state: TrainState, snapshot: Mapping[str, np.ndarray]) -> Held:
        """The state with the environments where they were; an episode that cannot be brought back begins anew."""
        inputs = state.env.inputs
        lost = self.environments.restore(snapshot, self._in_a_row(inputs.obs))
        if not lost:
            return self.hold(state)
        names = ", ".join(str(seed) for seed in sorted({self.driver.run.seed + i // self.stride for i in lost}))
        message = (
            f"{self.driver.task.name} cannot be brought back to where it was; the episode of seed {names} begins anew"
        )
        warnings.warn(message, stacklevel=2)
        arrays = (inputs.obs, inputs.initial_obs, inputs.score, state.env.length)
        obs, initial_obs, score, length = (self._in_a_row(each) for each in arrays)
        masks, now = jax.tree.map(self._in_a_row, inputs.mask), self.environments.masks
        for i, first in lost.items():
            obs[i] = initial_obs[i] = first
            length[i] = score[i] = 0
            if self.driver.task.masked_actions:
                masks[i] = now[i]
        obs, initial_obs, score, length, masks = self._arranged((obs, initial_obs, score, length, masks))
        env = state.env._replace(inputs=inputs._replace(score=score), length=length)
        held = self.hold(state._replace(env=env))
        return self.parts.start(held, obs, initial_obs, masks, self._uniforms(int(state.step)))

    def advance(self, held: Held, stop: int, paused: Callable[[], bool] = lambda: False) -> tuple[Held, Period | None]:
        """Advance to `stop`, the end of a period. If `paused()`, return after one step at least, without a Period."""
        for t in range(int(self.whole(held).step), int(stop), self.stride):
            held = self._step(held, t)
            if t + self.stride < stop and paused():
                return held, None
        # A run that was extended has a report within a period, and new sums since.
        began = int(stop) - int(self.whole(held).env.state.steps[0])
        return self.parts.report(held, np.int32(self.timetable.times_of_learning(began, int(stop))))

    def _step(self, held: Held, t: int) -> Held:
        times, done = self.timetable, t + 1
        outcome = self.environments.step(np.asarray(held.choice))
        following = self._uniforms(done)
        held = self._part_of(t)(held, outcome, np.int32(t), self._uniforms(t), following)
        if times.starts_learning(done):
            return self.parts.start_learning(held, np.int32(done), following)
        if times.syncs and not times.collects(t) and times.syncs_after(done):
            return self.parts.sync(held, np.int32(done), following)
        return held

    def _part_of(self, t: int) -> Callable:
        if self.timetable.collects(t):
            return self.parts.collect
        return self.parts.learn if self.timetable.learns(t) else self.parts.observe

    def _uniforms(self, t: int) -> Uniforms:
        """Of step t."""
        size = self.timetable.block
        number = t // size
        if number not in self._blocks:
            self._blocks = {key: self._blocks[key] for key in self._blocks if key == number - 1}
            self._blocks[number] = Uniforms(*map(np.asarray, self.parts.draw(self._seeds, np.int32(t))))
        block = self._blocks[number]
        return Uniforms(run=block.run[t % size], meter=block.meter[t % size])
