"""The transitions that a finished run's agents meet, in the form in which they learn from them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import randomness
from iqrl.core.agent import AgentState, QLearner, as_q_learner
from iqrl.core.replay.base import n_step_transition, pack, unpack
from iqrl.core.types import ContextInputs, Transition
from iqrl.core.types import Experience as Step
from iqrl.envs.base import EnvInputs, Task
from iqrl.envs.random_policy import LONGEST
from iqrl.errors import BadInput
from iqrl.training.compilation import enable_cache
from iqrl.training.compiled import Driver
from iqrl.training.results import Result
from iqrl.training.states import Carry, EnvState, StepUniforms, zero_sums

WALKS = 200
"""environments side by side, each with an ε of its own"""


class Experience(NamedTuple):
    """What the agent of each seed met; the first axis of every array is the seed, the second the transition."""

    rows: np.ndarray
    """[S, n, W]: transitions as the replay stores them, labelled by the agent's own contexts"""
    inputs: ContextInputs
    """the state, the start of the episode and the score before each transition"""

    @property
    def states(self) -> np.ndarray:
        """[S, n, d]"""
        return np.asarray(self.inputs.obs)

    @property
    def contexts(self) -> np.ndarray:
        """[S, n]: ω(s)"""
        # A row has its variables last, and `unpack` takes them first.
        return np.asarray(unpack(jnp.moveaxis(self.rows, -1, 0), self.states.shape[-1]).context_tm1)


def check_compiled(task: Task) -> None:
    """Refuse tasks that are not part of the compiled program."""
    if task.external:
        raise BadInput(f"{task.name} is played outside the compiled program, so its agent cannot play here.")


def gather(
    result: Result, count: int = 10_000, epsilon: tuple[float, float] | None = None, seed: int = 0
) -> Experience:
    """Play with the agent of each seed as it is now, without learning, and draw `count` of the transitions.

    It plays in many environments at once, with ε spread evenly over them from the run's last ε to 1 (or over the
    range given): a run passes through many policies, and the states of all its training are wanted, not only those
    of its last policy. Walks are as long as an episode may be, so that no part of it is favoured.
    """
    check_compiled(result.task)
    if count < 1:
        raise BadInput(f"count is {count}; it must be at least 1.")
    lowest, highest = epsilon or (result.run.epsilon_final, 1.0)
    if not 0 <= lowest <= highest <= 1:
        raise BadInput(f"epsilon goes from {lowest} to {highest}; it must go from low to high within 0 and 1.")
    # The driver calls the agent's schedule with the step t. Here the schedule is gone, and ε takes the place of t.
    driver = Driver(result.run, result.task, dataclasses.replace(as_q_learner(result.agent), epsilon=lambda t: t))
    length = max(min(result.task.time_limit, LONGEST), -(-count // WALKS))
    play = partial(_play_seed, driver, length, jnp.linspace(lowest, highest, WALKS))
    # Drawn by NumPy: a draw in the program would take longer to compile than all the rest of it.
    generator, seeds = np.random.default_rng(seed), result.run.seeds
    shape = (seeds, length + result.run.n_step, WALKS, randomness.count(count_uniforms(driver)))
    uniforms = generator.random(shape, dtype=np.float32)
    chosen = np.stack([generator.choice(length * WALKS, count, replace=False) for _ in range(seeds)])
    enable_cache()
    # One seed after another: together they would hold all their walks in memory.
    rows, inputs = jax.jit(partial(jax.lax.map, lambda given: play(*given)))((result.agent_state, uniforms, chosen))
    return Experience(rows=np.asarray(rows), inputs=jax.tree.map(np.asarray, inputs))


def _play_seed(
    driver: Driver, length: int, epsilons: jax.Array, state: AgentState, uniforms: jax.Array, chosen: jax.Array
) -> tuple[jax.Array, ContextInputs]:
    """The `chosen` transitions of all walks, numbered walk by walk within each step."""
    n = driver.run.n_step
    steps, before = walk(driver, state, epsilons, uniforms)
    # The n-step transitions, one for each step that has n - 1 after it.
    from_step = lambda i: jax.tree.map(lambda leaf: leaf[i : i + length], steps)
    join = jax.vmap(jax.vmap(lambda *following: n_step_transition(following)))
    rows = jax.vmap(jax.vmap(pack))(join(*map(from_step, range(n))))
    draw = lambda leaf: leaf[:length].reshape(length * WALKS, *leaf.shape[2:])[chosen]
    return draw(rows), jax.tree.map(draw, before)


def walk(
    driver: Driver, state: AgentState, epsilons: jax.Array, uniforms: jax.Array
) -> tuple[Transition, ContextInputs]:
    """The steps [T, WALKS] of all environments, and the inputs in which they were made; uniforms are T + 1 rows."""
    starts = jax.vmap(partial(_start_walk, driver, state))(uniforms[0])
    step = jax.vmap(partial(_step_walk, driver, state))
    return jax.lax.scan(lambda envs, row: step(envs, epsilons, row), starts, uniforms[1:])[1]


# What the walks take from the driver: how a step's random numbers are divided, the start of an episode, one step.


def count_uniforms(driver: Driver) -> StepUniforms:
    """How many uniform numbers a step needs for each purpose."""
    return driver.uniforms._replace(observe=0, learn=0)


def _start_walk(driver: Driver, state: AgentState, uniforms: jax.Array) -> EnvState:
    # The numbers of a reset come first in the row of a start.
    inputs = EnvInputs(uniforms=uniforms[: driver.task.num_reset_uniforms], step=jnp.int32(0))
    return driver.embed(state, driver.start_episode(inputs))


def _step_walk(
    driver: Driver, state: AgentState, env: EnvState, epsilon: jax.Array, uniforms: jax.Array
) -> tuple[EnvState, tuple[Transition, ContextInputs]]:
    random = randomness.hand_out(count_uniforms(driver), uniforms)
    sums = jax.tree.map(lambda leaf: leaf[0], zero_sums(driver.agent, 1))
    carry, step = driver.interact(Carry(env=env, agent=state, meter=(), sums=sums), epsilon, random)
    return carry.env, (_label_step(as_q_learner(driver.agent), state, step), step.before)


def _label_step(agent: QLearner, state: AgentState, step: Step) -> Transition:
    """The transition with its contexts and with its reward on the learner's scale, as the agent stores it."""
    # What the preprocessor learns from the step is dropped: the agent stays as it is.
    return agent.make_transition(state, step)[1]
