"""The cache of targets: it holds what the target network computes, and learning with it is learning without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK
from records import learn_uniforms, leaves, step, without_cache

from iqrl.core.agent import QLearner
from iqrl.core.cached_targets import CachedTargets, cache_pays
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training.compiled import Driver


def agent_of(task, method, **settings):
    run = resolve(task, method, **settings)
    agent = build_agent(run, make_task(run))
    assert type(agent) is CachedTargets
    return agent


def steps_of_episodes(lengths, obs_size, kind):
    """Steps of random states; the next episode begins elsewhere than the last one ended."""
    rng, steps = np.random.default_rng(0), []
    draw = {np.uint8: lambda: rng.integers(0, 2, obs_size), np.float32: lambda: rng.normal(size=obs_size)}[kind]
    see = lambda: jnp.asarray(draw(), kind)
    for number, length in enumerate(lengths):
        obs = see()
        for i in range(length):
            after, done = see(), i == length - 1
            ends = done and number % 2 == 0  # every other episode ends by a time limit, and is bootstrapped
            steps.append(step(obs, after, a_tm1=i % 2, r_t=1.0, discount_t=0.0 if ends else 0.9, done=done))
            obs = after
    return steps


CASES = [
    ("CartPole-v0", "iq", {"update_every": 1}),
    ("CartPole-v0", "iq", {"update_every": 4, "n_step": 3}),
    ("CartPole-v0", "dqn", {"buffer_size": 1}),
    ("CartPole-v0", "dqn", {"sampling": "whole", "learning_starts": 12}),
    ("CartPole-v0", "rainbow", {"atoms": 5}),
    (WALK, "dqn", {"update_every": 1}),
    (WALK, "iq-re", {"update_every": 4, "n_step": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("task", "method", "settings"), CASES)
def test_what_is_cached_is_what_the_target_computes_for_these_very_states(task, method, settings):
    """Across ends of episodes, around the ring, after a sync, with the steps between two updates."""
    common = {"buffer_size": 10, "hidden": (8,), "learning_starts": 12, "target_period": 200, "steps": 1000}
    agent = agent_of(task, method, **common | settings)
    kind = np.uint8 if task == WALK else np.float32
    steps = steps_of_episodes([1, 9, 1, 1, 2, 12, 3, 1, 1, 1, 4], agent.obs_size, kind)
    every, begin = settings.get("update_every", 1), 12
    add, learn = jax.jit(agent.replay.add), jax.jit(agent.learn)
    sync, targets = jax.jit(agent.sync), jax.jit(lambda *given: both_ways(agent, *given))
    state, random = jax.jit(agent.init)(jax.random.key(0)), learn_uniforms(agent)
    for t, transition in enumerate(steps):
        state = state._replace(replay=add(state.replay, transition, jnp.int32(t)))
        if t + 1 == begin:
            state = sync(state)
        if t + 1 <= begin or (t + 1 - begin) % every:
            continue
        state, _ = learn(state, jnp.int32(t), random)
        check(targets, state, t, random)
        if t + 1 == begin + 4 * every:  # θ has moved: what is cached must follow at the sync
            synced = sync(state)
            assert np.abs(np.asarray(synced.cache - state.cache)).max() > 1e-5
            state = synced
            check(targets, state, t, random)


def both_ways(agent, state, t, random):
    batch = agent.replay.sample(state.replay, t, random.sample)
    given = (state, state.q_function, agent.target_of(state), batch)
    return agent.target_outputs(*given), without_cache(agent).target_outputs(*given)


def check(targets, state, t, random):
    cached, computed = targets(state, jnp.int32(t), random)
    for one, other in zip(cached, computed, strict=True):
        assert one.q.shape == other.q.shape
        np.testing.assert_allclose(one.q, other.q, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(one.values, other.values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("task", "method", "settings"),
    [
        ("CartPole-v0", "iq", {"n_step": 3, "update_every": 2}),
        (WALK, "dqn", {"update_every": 1, "optimiser": "adam", "learning_rate": 1e-3}),
    ],
)
def test_it_learns_what_the_agent_without_a_cache_learns(task, method, settings):
    common = {"buffer_size": 40, "target_period": 80, "learning_starts": 80, "steps": 240, "period": 240, "seeds": 1}
    run = resolve(task, method, **common | {"batch_size": 16, "hidden": (16,)} | settings)
    task = make_task(run)
    agent = build_agent(run, task)
    assert type(agent) is CachedTargets
    drivers = (Driver(run, task, agent), Driver(run, task, without_cache(agent)))
    params = [leaves(jax.jit(lambda d=d: d.advance(d.init(), 240))()[0].agent.params) for d in drivers]
    for one, other in zip(*params, strict=True):
        # They round differently, and Adam amplifies that where a gradient is nearly 0: in few weights, and a little.
        assert np.abs(one - other).mean() < 5e-5
        np.testing.assert_allclose(one, other, atol=5e-3)


def test_small_buffers_are_cached_and_large_ones_are_not():
    assert cache_pays(1, 32, 1000)
    assert cache_pays(100, 32, 1000)
    assert not cache_pays(50_000, 32, 1000)
    assert not cache_pays(1000, 32, 10)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("dqn", {"buffer_size": 50_000}),
        ("dqn", {"target_period": 1}),
        ("dqn", {"noisy": True}),
        ("dsom", {"dsom_target": "live"}),
    ],
)
def test_what_the_target_would_not_compute_again_is_not_cached(method, settings):
    run = resolve("CartPole-v0", method, **{"buffer_size": 50} | settings)
    assert type(build_agent(run, make_task(run))) is QLearner
