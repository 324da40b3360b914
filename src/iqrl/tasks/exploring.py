"""The states that a uniformly random policy visits: what can be known of a task before anything is learned."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.parts.contexts import Situation
from iqrl.tasks.base import State, Task
from iqrl.training.environments import Episode

WALKS = 1000
"""environments side by side: many, because the states of one episode resemble each other"""
LONGEST = 2000
"""steps of a walk, where the time limit is longer or there is none to speak of"""
NUMBERS = 2**28
"""that all observations together may have: of images there are fewer walks"""


class Walk(NamedTuple):
    """An environment on its way through one episode after another."""

    state: State
    first: jax.Array
    """the observation the episode began with"""
    length: jax.Array
    """steps since the episode began"""
    score: jax.Array
    """its rewards so far"""


def random_states(task: Task, count: int, seed: int = 0) -> np.ndarray:
    """[count, d]: states in which a uniformly random policy acts."""
    return np.asarray(random_situations(task, count, seed).obs)


def random_situations(task: Task, count: int, seed: int = 0) -> Situation:
    """The same with all that a context may depend on.

    They are drawn from walks at least as long as the time limit: a small sample must not be one of the
    starts of episodes only.
    """
    if task.host:
        return hosted_situations(task, count, seed)
    longest = min(task.time_limit, LONGEST)
    beside = max(min(WALKS, NUMBERS // (2 * longest * len(task.low))), 1)
    steps = max(longest, -(-count // beside))
    visited = jax.device_get(jax.jit(partial(walks, task, steps, beside))(jax.random.key(seed)))
    chosen = np.random.default_rng(seed).choice(steps * beside, count, replace=False)
    return jax.tree.map(lambda leaf: leaf.reshape(steps * beside, *leaf.shape[2:])[chosen], visited)


def hosted_situations(task: Task, count: int, seed: int) -> Situation:
    """The same of an environment outside the program: one walk, of which some situations are kept."""
    steps, chance = max(LONGEST, count), np.random.default_rng(seed)
    chosen = set(chance.choice(steps, count, replace=False).tolist())
    episode, kept, over = Episode(task, seed), [], True
    first, score, obs = np.zeros(0), 0.0, np.zeros(0)
    for number in range(steps):
        if over:
            first = obs = episode.begin()
            score = 0.0
        if number in chosen:
            kept.append((obs, first, np.float32(score)))
        obs, reward, terminated, truncated = episode.step(int(chance.integers(task.actions)))
        score, over = score + reward, terminated or truncated
    episode.env.close()
    every: Any = [np.stack(each) for each in zip(*kept, strict=True)]
    return Situation(*every)


def walks(task: Task, steps: int, beside: int, key: jax.Array) -> Situation:
    """[steps, beside, …]: the situations one after another, from the start of an episode."""
    draws = task.reset_draws + 1 + task.step_draws
    uniforms = jax.random.uniform(key, (steps + 1, beside, draws))
    first = jax.vmap(partial(_first, task))(uniforms[0, :, : task.reset_draws])

    def advance(walk: Walk, uniforms: jax.Array) -> tuple[Walk, Situation]:
        situation = Situation(jax.vmap(partial(_observe, task))(walk.state), walk.first, walk.score)
        return jax.vmap(partial(_step, task))(walk, uniforms), situation

    return jax.lax.scan(advance, first, uniforms[1:])[1]


def _first(task: Task, uniforms: jax.Array) -> Walk:
    state = task.reset(uniforms)
    return Walk(state, _observe(task, state), jnp.int32(0), jnp.float32(0))


def _observe(task: Task, state: State) -> jax.Array:
    return task.observe(state).reshape(-1)


def _step(task: Task, walk: Walk, uniforms: jax.Array) -> Walk:
    """A random action, and a new episode where it ends one."""
    for_reset, for_action, for_step = jnp.split(uniforms, (task.reset_draws, task.reset_draws + 1))
    action = (for_action[0] * task.actions).astype(jnp.int32)
    state, reward, terminated = task.step(walk.state, action, for_step)
    after = Walk(state, walk.first, walk.length + 1, walk.score + reward)
    over = terminated | (after.length >= task.time_limit)
    return jax.tree.map(partial(jnp.where, over), _first(task, for_reset), after)
