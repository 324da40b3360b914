"""Analyses of runs on images whose contexts are of codes: traced, not compiled, since shapes are what can go wrong."""

import jax
import jax.numpy as jnp
import pytest
from pictures import WALK

from iqrl.core import randomness
from iqrl.diagnostics.analysis.cost import WithoutLearning, make_random_agent
from iqrl.diagnostics.analysis.experience import count_uniforms, walk
from iqrl.make_run import resolve
from iqrl.training.loop import driver_of


@pytest.fixture(scope="module", params=["iq-re", "rainbow-iq-te"])
def driver(request):
    return driver_of(resolve(WALK, request.param, learning_starts=100, buffer_size=100, hidden=(8,), seeds=2))


def test_the_environment_alone_can_be_timed(driver):
    blind = WithoutLearning(driver.run, driver.task, make_random_agent(driver))
    state = jax.eval_shape(driver.init)
    after, _ = jax.eval_shape(blind.advance_acting, state, jax.ShapeDtypeStruct((), jnp.int32))
    assert jax.tree.map(jnp.shape, after.env) == jax.tree.map(jnp.shape, state.env)


def test_experience_is_made_and_labelled(driver):
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), jax.eval_shape(driver.init))
    uniforms = jax.ShapeDtypeStruct((6, 3, randomness.count(count_uniforms(driver))), jnp.float32)
    play = lambda agent, uniforms: walk(driver, agent, jnp.zeros(3), uniforms)
    steps, before = jax.eval_shape(play, state.agent, uniforms)
    assert steps.context_t.shape == before.embedding.shape[:2] == (5, 3)
