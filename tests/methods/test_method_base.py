"""What every method is composed of, by its settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK

from iqrl.core.encoders import convolve, picture
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.base import encoder_before_layers, make_optimiser, make_replay


def test_centred_rmsprop_is_that_of_tensorflow():
    """ms starts at 1, the mean at 0; step = lr g / √(ms - mean² + ε)."""
    run = resolve("CartPole-v0", "dqn", optimiser="rmsprop", learning_rate=0.1, rmsprop_decay=0.9, rmsprop_epsilon=0.01)
    optimiser = make_optimiser(run)
    params = jnp.zeros(2)
    state = optimiser.init(params)
    ms, mean = np.ones(2), np.zeros(2)
    for gradient in (np.array([1.0, -0.5]), np.array([0.2, 3.0]), np.array([-1.0, 0.0])):
        updates, state = optimiser.update(jnp.asarray(gradient), state, params)
        ms, mean = 0.9 * ms + 0.1 * gradient**2, 0.9 * mean + 0.1 * gradient
        np.testing.assert_allclose(updates, -0.1 * gradient / np.sqrt(ms - mean**2 + 0.01), rtol=1e-5)


def test_gradient_clip_bounds_the_update():
    for clip, size in ((1e-3, 1e-3), (0.0, 5.0)):
        optimiser = make_optimiser(resolve("CartPole-v0", "dqn", gradient_clip=clip))
        gradient = jnp.array([3.0, -4.0])
        _, memory = optimiser.update(gradient, optimiser.init(gradient), gradient)
        np.testing.assert_allclose(np.linalg.norm(memory[1][0].mu), 0.1 * size, rtol=1e-4)


def test_frames_and_rings_have_the_n_steps_asked_for():
    settings = {"buffer_size": 40, "n_step": 3}
    run = resolve(WALK, "rainbow", **settings)
    assert make_replay(run, make_task(run)).init().row.size == 40 + 2
    run = resolve("CartPole-v0", "rainbow", **settings)
    assert make_replay(run, make_task(run)).init().window.shape[0] == 2


def test_a_ring_of_one_gives_one_copy_and_frames_of_one_a_batch():
    for task, drawn in (("CartPole-v0", 1), (WALK, 32)):
        run = resolve(task, "dqn", buffer_size=1)
        assert make_replay(run, make_task(run)).num_uniforms == drawn


@pytest.mark.parametrize("normalised", [False, True])
def test_convolutions_have_the_activation_and_normalisation_of_the_run(normalised):
    run = resolve(WALK, "dqn", activation="tanh", layer_norm=normalised)
    task = make_task(run)
    encoder = encoder_before_layers(run, task)
    params = encoder.init(jax.random.key(0))
    obs = jax.random.randint(jax.random.key(1), (50,), 0, 2).astype(jnp.uint8)
    sums = np.asarray(convolve(picture(obs, task.image), params[0]["w"], 3, 1))
    centred = (sums - sums.mean()) / np.sqrt(sums.var() + 1e-5)
    np.testing.assert_allclose(encoder.apply(params, obs), np.tanh(centred if normalised else sums).ravel(), atol=1e-5)
