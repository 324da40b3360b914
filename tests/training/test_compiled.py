"""Identities that hold for the compiled program that trains."""

import jax
import numpy as np
import pytest
from pictures import WALK
from records import assert_same, leaves

from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training.compiled import Driver


def test_heads_and_seeds_are_pairwise_different(small_run, final_state):
    state, _ = final_state(small_run(seeds=5, seed=0, buffer_size=5000))
    heads, trunk = (np.asarray(x) for x in (state.agent.params["heads"]["w"], state.agent.params["trunk"][0]["w"]))
    observations = np.asarray(state.env.inputs.obs)
    for i in range(5):
        for j in range(i):
            assert not np.array_equal(trunk[i], trunk[j])
            assert not np.array_equal(observations[i], observations[j])
            if i < 3:
                assert np.abs(heads[:, i] - heads[:, j]).max() > 0.05


def test_a_seed_follows_the_same_trajectory_in_whatever_company(small_run, final_state):
    few, _ = final_state(small_run(seeds=2, seed=3, buffer_size=5000))
    many, _ = final_state(small_run(seeds=5, seed=0, buffer_size=5000))
    for x, y in zip(leaves((few.env, few.agent)), leaves((many.env, many.agent)), strict=True):
        np.testing.assert_array_equal(x, y[3:])


def test_a_seed_alone_follows_the_same_trajectory(small_run, final_state):
    many, _ = final_state(small_run(seeds=5, seed=0, buffer_size=5000))
    alone, _ = final_state(small_run(seeds=1, seed=2, buffer_size=5000))
    np.testing.assert_array_equal(many.seeds[2], alone.seeds[0])
    np.testing.assert_allclose(many.env.inputs.obs[2], alone.env.inputs.obs[0], rtol=1e-4, atol=1e-5)
    # One seed is compiled to other kernels than several, which round differently; learning amplifies that.
    for x, y in zip(leaves(many.agent.params), leaves(alone.agent.params), strict=True):
        np.testing.assert_allclose(x[2], y[0], atol=5e-3)


def test_updates_every_n_steps(small_run, final_state):
    count = lambda every: int(
        final_state(small_run(method="dqn", update_every=every))[0].agent.optimiser[1][0].count[0]
    )
    assert count(1) == 1800
    assert count(4) == 450


def test_no_update_before_learning_starts(small_run, final_state):
    run = small_run(method="dqn", steps=200, period=150, learning_starts=200)
    state, period = final_state(run, [150])
    task = make_task(run)
    start = jax.jit(Driver(run, task, build_agent(run, task)).init)()
    assert_same(state.agent.params, start.agent.params)
    np.testing.assert_array_equal(period.metrics["value_loss"], 0.0)


def test_period_boundaries_do_not_change_the_outcome(small_run, final_state):
    run = small_run(seeds=5, seed=0, buffer_size=5000)
    whole, _ = final_state(run, [2000])
    parts, _ = final_state(run, [130, 200, 777, 1000, 2000])
    assert_same(whole, parts)


def test_time_limit_is_an_end_only_if_asked(small_run, final_state):
    for bootstrap in (True, False):
        run = small_run("Pendulum-v0", "dqn", steps=200, period=200, buffer_size=200, bootstrap_time_limit=bootstrap)
        state, _ = final_state(run)
        discounts = np.asarray(state.agent.replay.rows[0])[:, 8]
        assert discounts[199] == pytest.approx(0.99 if bootstrap else 0.0)
        np.testing.assert_allclose(discounts[:199], 0.99)


def test_the_embedding_is_that_of_what_is_seen():
    """It is computed once per step, and anew where an episode begins."""
    run = resolve(WALK, "iq-re", hidden=(8,), learning_starts=30, steps=60, period=60, buffer_size=40, seeds=2)
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task))
    advance, state = jax.jit(driver.advance), jax.jit(driver.init)()
    embed = jax.jit(lambda agent, inputs: driver.agent.embed(driver.agent.encoder_of(agent), inputs).embedding)
    for stop in (7, 20, 45, 60):
        state, _ = advance(state, stop)
        for i in range(2):
            agent, inputs = jax.tree.map(lambda leaf, i=i: leaf[i], (state.agent, state.env.inputs))
            expected = embed(agent, inputs._replace(embedding=()))
            np.testing.assert_allclose(inputs.embedding, expected, rtol=1e-4, atol=1e-5)
