"""What the network says of held-out states, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iqrl.diagnostics.interference.probes import action_gap, dormant_units, probe_network
from iqrl.envs.random_policy import random_inputs
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent


def test_action_gap_is_the_best_value_above_the_second_best():
    q = jnp.float32([[1.0, 5.0], [4.0, 5.0], [3.5, 2.0]])
    assert action_gap(q) == pytest.approx((0.5 + 0.0) / 2)
    assert action_gap(q[:1]) == 0.0


def test_dormant_units_do_next_to_nothing():
    """Mean activations 1, 1, 0.01 and 0; the layer's mean is 0.5025, of which 2.5% is 0.0126."""
    features = jnp.float32([[1, -1], [2, 0], [0.02, 0], [0, 0]])
    assert dormant_units(features) == 0.5
    assert dormant_units(jnp.zeros((3, 2))) == 1.0


def test_probes_of_a_network_with_heads():
    run = resolve("CartPole-v0", "iq", steps=1000)
    task = make_task(run)
    agent = build_agent(run, task)
    state = agent.init(jax.random.key(0))
    held_out = random_inputs(task, 200)
    found = probe_network(agent, state, agent.acting(state), held_out)
    each = [agent.q_values(state, jax.tree.map(lambda leaf, i=i: leaf[i], held_out)) for i in range(200)]
    q, contexts = np.stack([q for q, _ in each]), np.array([context for _, context in each])
    assert len(set(contexts)) > 1
    assert found["held_out_max_q"] == pytest.approx(q.max(axis=1).mean(), rel=1e-4)
    assert found["action_gap"] == pytest.approx(np.abs(q[:, 0] - q[:, 1]).mean(), rel=1e-4)
    outputs = [agent.network.apply(state.params, obs).q for obs in held_out.obs]
    np.testing.assert_allclose(found["held_out_max_q_heads"], np.stack(outputs).max(axis=2).mean(axis=0), rtol=1e-4)


def test_held_out_situations_know_their_episode():
    task = make_task(resolve("CartPole-v0", "dqn"))
    held_out = random_inputs(task, 500)
    assert held_out.obs.shape == held_out.initial_obs.shape == (500, 4)
    assert (np.abs(held_out.initial_obs) <= 0.05).all()
    # CartPole gives 1 per step: the score of a state at the start of its episode is 0, and it is its first.
    starts = held_out.score == 0
    assert starts.any()
    np.testing.assert_array_equal(held_out.obs[starts], held_out.initial_obs[starts])
    assert held_out.score.max() > 20
