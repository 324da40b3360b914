"""Methods on distributions of the return: their atoms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import context_inputs

from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent


@pytest.mark.parametrize("method", ["rainbow", "stream-c51"])
def test_distributions_are_on_the_atoms_asked_for(method):
    """Seven atoms from -2 to 4: a network of zeros finds them all as likely, and values everything 1."""
    run = resolve("CartPole-v0", method, value_low=-2.0, value_high=4.0, atoms=7)
    agent = build_agent(run, make_task(run))
    state = agent.init(jax.random.key(0))
    assert state.params["heads"]["b"].size == 2 * 7
    nothing = state._replace(params=jax.tree.map(jnp.zeros_like, state.params))
    np.testing.assert_allclose(agent.q_values(nothing, context_inputs(jnp.ones(4)))[0], [1.0, 1.0], rtol=1e-6)
