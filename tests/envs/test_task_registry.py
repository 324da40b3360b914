"""Tasks by name, with their settings applied."""

import jax.numpy as jnp

import iqrl
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve

LENGTHS = {"steps": 600, "period": 200, "seeds": 2}


def learned(task, **settings):
    run = resolve(task, "dqn", **settings)
    state = jnp.array([0.1, 0.02])
    return float(make_task(run).learned_reward(state, jnp.float32(-3.0), state, jnp.bool_(True), 0.5))


def test_the_learned_reward_is_multiplied():
    assert learned("Pendulum-v0") == -3.0
    assert learned("Pendulum-v0", reward_scale=0.5) == -1.5
    whole, half = learned("MountainCar"), learned("MountainCar", reward_scale=0.5)
    assert whole > 90, "the bonus at the goal is learned from"
    assert half == whole / 2, "shaping and bonus are scaled too"


def test_returns_are_reported_without_the_factor():
    """Before learning starts a policy is random: the same episodes, whatever is learned from them."""
    plain = iqrl.train("Pendulum-v0", "dqn", learning_starts=600, **LENGTHS)
    scaled = iqrl.train("Pendulum-v0", "dqn", learning_starts=600, reward_scale=0.1, **LENGTHS)
    assert (plain.returns == scaled.returns).all()


def test_time_limit_can_be_set():
    assert make_task(resolve("CartPole-v1", "dqn", max_episode_steps=7)).time_limit == 7
