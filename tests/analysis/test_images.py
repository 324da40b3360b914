"""Analyses of runs on images whose contexts are of codes: traced, not compiled, since shapes are what can go wrong."""

import jax
import jax.numpy as jnp
import pytest
from pictures import WALK

from iqrl.analysis.experience import _draws, _walks
from iqrl.analysis.wallclock import WithoutLearning, _acting_blindly
from iqrl.settings import resolve
from iqrl.training.loop import driver_of


@pytest.fixture(scope="module", params=["iq-re", "rainbow-iq-te"])
def driver(request):
    return driver_of(resolve(WALK, request.param, learning_starts=100, buffer_size=100, hidden=(8,), seeds=2))


def test_the_environment_alone_can_be_timed(driver):
    blind = WithoutLearning(driver.run, driver.task, _acting_blindly(driver))
    state = jax.eval_shape(driver.init)
    after, _ = jax.eval_shape(blind.interacting, state, jax.ShapeDtypeStruct((), jnp.int32))
    assert jax.tree.map(jnp.shape, after.env) == jax.tree.map(jnp.shape, state.env)


def test_experience_is_made_and_labelled(driver):
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), jax.eval_shape(driver.init))
    uniforms = jax.ShapeDtypeStruct((6, 3, sum(_draws(driver))), jnp.float32)
    walk = lambda agent, uniforms: _walks(driver, agent, jnp.zeros(3), uniforms)
    steps, before = jax.eval_shape(walk, state.agent, uniforms)
    assert steps.context_t.shape == before.code.shape[:2] == (5, 3)
