"""The states that a uniformly random policy visits: what can be known of a task before anything is learned."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.masks import draw_action
from iqrl.core.randomness import count as count_uniforms
from iqrl.core.randomness import hand_out
from iqrl.core.types import ContextInputs
from iqrl.envs.base import EnvInputs, State, Task
from iqrl.envs.episodes import Episode

WALKS = 1000
"""environments side by side: many, because the states of one episode resemble each other"""
LONGEST = 2000
"""steps of a walk, where the time limit is longer or there is none to speak of"""
NUMBERS = 2**28
"""that all observations together may have: of images there are fewer walks"""


class Walk(NamedTuple):
    """An environment on its way through one episode after another."""

    state: State
    initial_obs: jax.Array
    """the observation with which the episode began"""
    length: jax.Array
    """steps since the episode began"""
    score: jax.Array
    """its rewards so far"""


def random_states(task: Task, count: int, seed: int = 0) -> np.ndarray:
    """[count, d]: states in which a uniformly random policy acts."""
    return np.asarray(random_inputs(task, count, seed).obs)


def random_inputs(task: Task, count: int, seed: int = 0) -> ContextInputs:
    """The same with all that a context may depend on.

    They are drawn from walks at least as long as the time limit: a small sample must not be one of the
    starts of episodes only.
    """
    if task.external:
        return external_inputs(task, count, seed)
    longest = min(task.time_limit, LONGEST)
    beside = max(min(WALKS, NUMBERS // (2 * longest * len(task.low))), 1)
    steps = max(longest, -(-count // beside))
    visited = jax.device_get(jax.jit(partial(walks, task, steps, beside))(jax.random.key(seed)))
    chosen = np.random.default_rng(seed).choice(steps * beside, count, replace=False)
    return jax.tree.map(lambda leaf: leaf.reshape(steps * beside, *leaf.shape[2:])[chosen], visited)


def external_inputs(task: Task, count: int, seed: int) -> ContextInputs:
    """The same of an environment outside the program: one walk, of which some inputs are kept."""
    steps, chance = max(LONGEST, count), np.random.default_rng(seed)
    chosen = set(chance.choice(steps, count, replace=False).tolist())
    episode, kept, done = Episode(task, seed), [], True
    first, score, obs = np.zeros(0), 0.0, np.zeros(0)
    for number in range(steps):
        if done:
            first = obs = episode.begin()
            score = 0.0
        if number in chosen:
            inputs: Any = {"obs": obs, "initial_obs": first, "score": np.float32(score), "mask": episode.mask}
            kept.append(ContextInputs(**inputs))
        legal = np.flatnonzero(episode.mask) if task.masked_actions else np.arange(task.actions)
        obs, reward, terminated, truncated = episode.step(int(legal[chance.integers(len(legal))]))
        score, done = score + reward, terminated or truncated
    episode.env.close()
    return jax.tree.map(lambda *each: np.stack(each), *kept)


def walks(task: Task, steps: int, beside: int, key: jax.Array) -> ContextInputs:
    """[steps, beside, …]: the inputs one after another, from the start of an episode."""
    needs = WalkUniforms(reset=task.num_reset_uniforms, action=1, step=task.num_step_uniforms)
    uniforms = jax.random.uniform(key, (steps + 1, beside, count_uniforms(needs)))
    begin = lambda row: _first(task, EnvInputs(uniforms=hand_out(needs, row).reset, step=jnp.int32(0)))
    start = jax.vmap(begin)(uniforms[0])

    def advance(walk: Walk, drawn: tuple[jax.Array, jax.Array]) -> tuple[Walk, ContextInputs]:
        step, rows = drawn
        obs, mask = jax.vmap(task.flat_obs)(walk.state), jax.vmap(task.legal)(walk.state)
        inputs = ContextInputs(obs=obs, initial_obs=walk.initial_obs, score=walk.score, mask=mask)
        return jax.vmap(lambda walk, row: _step(task, walk, step, hand_out(needs, row)))(walk, rows), inputs

    return jax.lax.scan(advance, start, (jnp.arange(steps), uniforms[1:]))[1]


class WalkUniforms(NamedTuple):
    """Uniform numbers of a step, or how many."""

    reset: Any
    action: Any
    step: Any


def _first(task: Task, inputs: EnvInputs) -> Walk:
    state = task.reset(inputs)
    return Walk(state=state, initial_obs=task.flat_obs(state), length=jnp.int32(0), score=jnp.float32(0))


def _step(task: Task, walk: Walk, step: jax.Array, random: WalkUniforms) -> Walk:
    """A random action, and a new episode where it ends one."""
    action = draw_action(random.action[0], task.actions, task.legal(walk.state))
    state, reward, terminated = task.step(walk.state, action, EnvInputs(uniforms=random.step, step=step))
    after = Walk(state=state, initial_obs=walk.initial_obs, length=walk.length + 1, score=walk.score + reward)
    done = terminated | (after.length >= task.time_limit)
    first = _first(task, EnvInputs(uniforms=random.reset, step=step + 1, previous=state))
    return jax.tree.map(partial(jnp.where, done), first, after)
