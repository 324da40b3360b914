"""A regulariser that is always 0 is none: each has a value where its method is as its own authors have it."""

import jax
import jax.numpy as jnp
import pytest
from records import learn_uniforms, step, without_cache

from iqrl.core.types import Batch
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import METHODS

STATES = 16


def agent_of(method, preset):
    run = resolve("CartPole-v0", method, preset)
    agent = METHODS[method].build(run, make_task(run))
    return without_cache(agent) if hasattr(agent, "regularisers") else None


def own_preset(method):
    return "original" if "original" in METHODS[method].presets else None


REGULARISED = [
    name
    for name, method in METHODS.items()
    if method.observations != "images" and not method.covered_by and (found := agent_of(name, own_preset(name)))
    if found.regularisers
]


def losses(method, preset):
    """Of each regulariser on states of the task's range, with a target network of other weights."""
    agent = agent_of(method, preset)
    state, other = (agent.init(jax.random.key(seed)) for seed in (0, 1))
    draw = lambda seed: jax.random.uniform(jax.random.key(seed), (4, STATES), minval=-1.0)
    for seen in draw(4).T[:2]:
        moved, _ = agent.preprocessor.update(state.preprocessor, step(seen, -seen))
        state = state._replace(preprocessor=moved)
    whole = jnp.zeros(STATES, jnp.int32)
    transition = step(draw(2), draw(3), a_tm1=whole, context_tm1=whole, context_t=whole, done=whole, greedy=whole)
    transition = transition._replace(r_t=jnp.ones(STATES), discount_t=jnp.ones(STATES))
    inputs = agent.loss_inputs(
        state.params, state._replace(target=other.target), Batch(transition, None, None), learn_uniforms(agent)
    )
    random = learn_uniforms(agent).regularisers
    return {
        term.name: float(jnp.mean(term.loss(inputs._replace(uniforms=uniforms))))
        for term, uniforms in zip(agent.regularisers, random, strict=True)
    }


def test_there_are_methods_with_regularisers():
    assert {"srnn", "iq"} <= set(REGULARISED)


@pytest.mark.parametrize("method", REGULARISED)
def test_no_regulariser_is_zero_in_its_methods_own_preset(method):
    for name, value in losses(method, own_preset(method)).items():
        assert abs(value) > 1e-6, f"{name} of {method} is {value}"


def test_released_srnn_does_nothing_to_a_tanh_layer():
    """Which is why its runs resemble those of DQN."""
    assert losses("srnn", "paper") == {"sparsity": 0.0}
