"""The transitions that a finished run's agents meet, in the form in which they learn from them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.agent import Agent, AgentState
from iqrl.errors import BadInput
from iqrl.parts.contexts import Situation
from iqrl.parts.replay import Transition, pack, unpack
from iqrl.parts.returns import joined
from iqrl.results import Result
from iqrl.tasks.base import Task
from iqrl.tasks.exploring import LONGEST
from iqrl.training.compilation import enable_cache
from iqrl.training.compiled import Driver
from iqrl.training.states import Carry, EnvState, Noise, Step

WALKS = 200
"""environments side by side, each with an ε of its own"""


class Experience(NamedTuple):
    """What the agent of each seed met; the first axis of every array is the seed, the second the transition."""

    rows: np.ndarray
    """[S, n, W]: transitions as the replay stores them, labelled by the agent's own contexts"""
    situations: Situation
    """the state, the start of the episode and the score before each transition"""

    @property
    def states(self) -> np.ndarray:
        """[S, n, d]"""
        return np.asarray(self.situations.obs)

    @property
    def contexts(self) -> np.ndarray:
        """[S, n]: ω(s)"""
        # A row has its variables last, and `unpack` wants them first.
        return np.asarray(unpack(jnp.moveaxis(self.rows, -1, 0), self.states.shape[-1]).context_tm1)


def check_compiled(task: Task) -> None:
    """A sentence where an agent cannot be let play."""
    if task.host:
        raise BadInput(f"{task.name} is played outside the compiled program, so its agent cannot be let play here.")


def gather(
    result: Result, count: int = 10_000, epsilon: tuple[float, float] | None = None, seed: int = 0
) -> Experience:
    """Let the agent of each seed, as it is now and learning nothing, play until `count` transitions can be drawn.

    It plays in many environments at once, with ε spread evenly over them from the run's last ε to 1 (or over the
    range given): a run passes through many policies, and the states of all its training are wanted, not only those
    of the policy it ended with. Walks are as long as an episode may be, so that no part of it is favoured.
    """
    check_compiled(result.task)
    if count < 1:
        raise BadInput(f"count is {count}; it must be at least 1.")
    lowest, highest = epsilon or (result.run.epsilon_final, 1.0)
    if not 0 <= lowest <= highest <= 1:
        raise BadInput(f"epsilon goes from {lowest} to {highest}; it must go from low to high within 0 and 1.")
    # The driver asks the agent to act at a step t; here the schedule is gone and ε itself stands in its place.
    driver = Driver(result.run, result.task, dataclasses.replace(result.agent, epsilon=lambda t: t))
    length = max(min(result.task.time_limit, LONGEST), -(-count // WALKS))
    play = partial(_of_seed, driver, length, jnp.linspace(lowest, highest, WALKS))
    # Drawn by NumPy, since a draw in the program would take longer to compile than all the rest of it.
    generator, seeds = np.random.default_rng(seed), result.run.seeds
    shape = (seeds, length + result.run.n_step, WALKS, sum(_draws(driver)))
    uniforms = generator.random(shape, dtype=np.float32)
    chosen = np.stack([generator.choice(length * WALKS, count, replace=False) for _ in range(seeds)])
    enable_cache()
    # One seed after another: together they would hold all their walks in memory.
    found = jax.jit(partial(jax.lax.map, lambda given: play(*given)))((result.agent_state, uniforms, chosen))
    return Experience(*jax.tree.map(np.asarray, found))


def _draws(driver: Driver) -> Noise:
    """Uniform numbers that a step needs, by purpose."""
    task = driver.task
    return Noise(driver.agent.act_draws, step=task.step_draws, reset=task.reset_draws, learn=0, measure=0)


def _of_seed(
    driver: Driver, length: int, epsilons: jax.Array, state: AgentState, uniforms: jax.Array, chosen: jax.Array
) -> tuple[jax.Array, Situation]:
    """The `chosen` ones of the transitions of all walks, one walk after another at each step."""
    n = driver.run.n_step
    steps, before = _walks(driver, state, epsilons, uniforms)
    # The n-step transitions, one for each step that has n - 1 after it.
    from_step = lambda i: jax.tree.map(lambda leaf: leaf[i : i + length], steps)
    join = jax.vmap(jax.vmap(lambda *following: joined(following)))
    rows = jax.vmap(jax.vmap(pack))(join(*map(from_step, range(n))))
    draw = lambda leaf: leaf[:length].reshape(length * WALKS, *leaf.shape[2:])[chosen]
    return draw(rows), jax.tree.map(draw, before)


def _walks(driver: Driver, state: AgentState, epsilons: jax.Array, uniforms: jax.Array) -> tuple[Transition, Situation]:
    """The steps [T, WALKS] of all environments, and the situations in which they were made; uniforms are T + 1 rows."""
    sizes = _draws(driver)
    begin = lambda uniforms: driver._coded(state, driver._first(uniforms))
    first = jax.vmap(begin)(uniforms[0, :, : sizes.reset])

    def one(env: EnvState, epsilon: jax.Array, uniforms: jax.Array) -> tuple[EnvState, tuple[Transition, Situation]]:
        noise = Noise(*jnp.split(uniforms, np.cumsum(sizes)[:-1]))
        nothing = jax.tree.map(lambda leaf: leaf[0], driver._zero_statistics())
        carry, step = driver._interact(Carry(env, state, (), nothing), epsilon, noise)
        return carry.env, (_as_learned(driver.agent, state, step), step.before)

    return jax.lax.scan(lambda envs, row: jax.vmap(one)(envs, epsilons, row), first, uniforms[1:])[1]


def _as_learned(agent: Agent, state: AgentState, step: Step) -> Transition:
    """The transition with its labels and with its reward on the learner's scale, as `Agent.observe` would store it."""
    omega = lambda situation: agent.context(state, situation)
    labelled = step.transition._replace(context_tm1=omega(step.before), context_t=omega(step.after))
    # What perception learns of the step is dropped: the agent stays as it is.
    return agent.perception.take(state.perception, labelled)[1]
