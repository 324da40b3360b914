"""Every task that Gymnasium has too steps beside its environment, episode after episode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import env_inputs

from iqrl.envs.registry import TASKS, make_task
from iqrl.make_run import resolve

IN_GYMNASIUM = [name for name in TASKS if make_task(resolve(name, "dqn")).gymnasium]

EPISODES = {
    "CartPole-v0": 30,
    "CartPole-v1": 20,
    "Acrobot-v1": 6,
    "Pendulum-v0": 12,
    "MountainCar": 3,
    "MountainCar-v0": 8,
}
# Acrobot amplifies a rounding error of one step over the next ones: both are set to Gymnasium's state each step.
TOLERANCE = {"Acrobot-v1": 2e-3}


def policy(task, obs, rng, episode):
    """Random in every other episode, skilled in the rest: both kinds of end are met."""
    if episode % 2 and task.name.startswith("CartPole"):
        return int(obs[2] + 0.3 * obs[3] + 0.05 * obs[1] > 0)
    if episode % 2 and task.name.startswith("MountainCar"):
        return 2 if obs[1] >= 0 else 0
    return int(rng.integers(task.actions))


def state_of(env):
    """Gymnasium's state in float32; it lets Pendulum's angle grow without bound, which float32 cannot follow."""
    state = np.array(env.unwrapped.state, np.float64)
    if env.spec.id.startswith("Pendulum"):
        state[0] = (state[0] + np.pi) % (2 * np.pi) - np.pi
    return state.astype(np.float32)


def steps_of(task, env, rng, episode, longest):
    """An episode in Gymnasium: of each step the state, what was seen, the action and what came of it."""
    obs, _ = env.reset(seed=episode)
    steps, over = [], False
    while not over and len(steps) < longest:
        state, action = state_of(env), policy(task, obs, rng, episode)
        after, reward, terminated, truncated, _ = env.step(action)
        steps.append((state, obs, action, after, reward, terminated, truncated))
        obs, over = after, terminated or truncated
    return steps


def together(steps):
    """One array for each part of the steps."""
    return [np.array(part) for part in zip(*steps, strict=True)]


@pytest.mark.parametrize("name", IN_GYMNASIUM)
def test_steps_like_gymnasium(name):
    task = make_task(resolve(name, "dqn"))
    env = task.gymnasium(task.time_limit)
    rng, steps = np.random.default_rng(0), []
    assert env.action_space.n == task.actions
    assert env.observation_space.shape == (len(task.low),)
    for episode in range(EPISODES[name]):
        played = steps_of(task, env, rng, episode, longest=np.inf)
        truncated = [step[-1] for step in played]
        assert truncated == [number >= task.time_limit for number in range(1, len(played) + 1)]
        steps += played
    states, seen, actions, seen_after, rewards, terminated, truncated = together(steps)
    observe, no_uniforms = jax.jit(jax.vmap(task.observe)), env_inputs()
    after, reward, end = jax.jit(jax.vmap(lambda *given: task.step(*given, no_uniforms)))(states, np.int32(actions))
    tolerance = TOLERANCE.get(name, 2e-6)
    np.testing.assert_allclose(observe(states), seen, atol=1e-6)
    np.testing.assert_allclose(observe(after), seen_after, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(reward, rewards, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(end, terminated)
    kinds = {"CartPole-v0": 2, "CartPole-v1": 2, "MountainCar-v0": 2}.get(name, 1)
    assert int(terminated.any()) + int(truncated.any()) >= kinds


@pytest.mark.parametrize("name", IN_GYMNASIUM)
def test_free_running_trajectory_stays_with_gymnasium(name):
    """Without correction: the first 30 steps of ten episodes of random actions."""
    task = make_task(resolve(name, "dqn"))
    env = task.gymnasium(task.time_limit)
    rng, no_uniforms = np.random.default_rng(1), env_inputs()

    def move(state, action):
        state = task.step(state, action, no_uniforms)[0]
        return state, task.observe(state)

    run = jax.jit(lambda state, actions: jax.lax.scan(move, state, actions)[1])
    for episode in range(0, 20, 2):
        states, _, actions, seen_after, *_ = together(steps_of(task, env, rng, episode, longest=30))
        found = run(states[0], np.int32(np.pad(actions, (0, 30 - len(actions)))))
        np.testing.assert_allclose(found[: len(actions)], seen_after, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", IN_GYMNASIUM)
def test_starts_cover_gymnasiums_range(name):
    """The corners of the uniform numbers are the corners of Gymnasium's starts."""
    task = make_task(resolve(name, "dqn"))
    env = task.gymnasium(task.time_limit)
    starts = []
    for seed in range(400):
        env.reset(seed=seed)
        starts.append(np.array(env.unwrapped.state))
    corner = lambda uniform: task.reset(env_inputs([uniform] * task.num_reset_uniforms))
    lowest, highest = corner(0.0), corner(1.0)
    assert (np.min(starts, axis=0) >= np.asarray(lowest) - 1e-6).all()
    assert (np.max(starts, axis=0) <= np.asarray(highest) + 1e-6).all()
    np.testing.assert_allclose(np.min(starts, axis=0), lowest, atol=0.05 * np.ptp(starts, axis=0).max() + 1e-6)
    np.testing.assert_allclose(np.max(starts, axis=0), highest, atol=0.05 * np.ptp(starts, axis=0).max() + 1e-6)


def test_pendulum_torques_are_a_setting():
    task = make_task(resolve("Pendulum-v0", "dqn", torques=3))
    state = jnp.array([0.0, 0.0])
    speeds = [float(task.step(state, jnp.int32(a), env_inputs())[0][1]) for a in range(3)]
    np.testing.assert_allclose(speeds, [-2 * 3 * 0.05, 0.0, 2 * 3 * 0.05], atol=1e-6)


def test_mountain_car_shaping_by_hand():
    """r + scale (γ|v'| - |v|), and 100 at the goal; the return counts the plain reward."""
    task = make_task(resolve("MountainCar", "dqn", shaping_scale=10.0))
    state, after = jnp.array([0.0, 0.01]), jnp.array([0.0, -0.03])
    gain = task.learned_reward(state, jnp.float32(-1.0), after, jnp.bool_(False), 0.5)
    assert float(gain) == pytest.approx(-1 + 10 * (0.5 * 0.03 - 0.01), abs=1e-6)
    goal = task.learned_reward(state, jnp.float32(-1.0), after, jnp.bool_(True), 0.5)
    assert float(goal - gain) == pytest.approx(100.0)
