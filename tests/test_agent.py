"""Identities that hold for the compiled program that trains."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import WALK

from iqrl.composition import experience
from iqrl.methods import build_agent
from iqrl.parts.contexts import Situation
from iqrl.parts.losses import pick
from iqrl.parts.teacher import answers, recomputed
from iqrl.settings import resolve
from iqrl.tasks import make_task
from iqrl.training.compiled import Driver


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def situation(obs):
    return Situation(obs, obs, jnp.float32(0))


def with_rows(state, rows):
    return state._replace(replay=state.replay._replace(rows=rows))


def assert_same(a, b):
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(("buffer_size", "double_q"), [(1, False), (100, True), (5000, False)])
def test_iq_with_one_head_and_no_distillation_is_dqn_bit_for_bit(small_run, final_state, buffer_size, double_q):
    common = {"buffer_size": buffer_size, "double_q": double_q}
    dqn, _ = final_state(small_run(method="dqn", **common))
    iq, _ = final_state(small_run(method="iq", contexts=1, distill_weight=0.0, **common))
    assert_same(dqn.agent.params, iq.agent.params)
    assert_same(dqn.agent.replay, iq.agent.replay)
    assert_same(dqn.env, iq.env)


def test_distillation_changes_the_outcome(small_run, final_state):
    with_it, _ = final_state(small_run())
    without, _ = final_state(small_run(distill_weight=0.0))
    assert not np.array_equal(leaves(with_it.agent.params)[0], leaves(without.agent.params)[0])


def test_heads_differ_in_the_program_that_trains(small_run, final_state):
    state, _ = final_state(small_run(steps=1000))
    weights = np.asarray(state.agent.params["heads"]["w"])
    for i in range(3):
        for j in range(i):
            assert np.abs(weights[:, i] - weights[:, j]).max() > 0.05


def test_lambda_moves_with_epsilon_inside_the_compiled_program(small_run):
    """The gradient that the compiled update takes grows with t as λ does."""
    run = small_run(buffer_size=50, epsilon_decay=1000)
    agent = build_agent(run, make_task(run))
    state = agent.init(jax.random.key(0))
    # One head's teacher is moved away from it, so that only distillation acts on the heads not in use.
    target = state.target._replace(params=jax.tree.map(lambda leaf: leaf + 0.3, state.params))
    rows = jax.random.normal(jax.random.key(1), state.replay.rows.shape)
    labels = slice(2 * 4 + 3, 2 * 4 + 5)
    rows = rows.at[:, labels].set(0.0).at[:, 8].set(0.0)
    replay = agent.replay.renew(state.replay._replace(rows=rows), lambda states: agent.teacher.note(target, states))
    state = state._replace(target=target, replay=replay)
    learn = jax.jit(agent.learn)
    uniforms = jax.random.uniform(jax.random.key(2), (32,))

    def other_heads_momentum(t):
        momentum = learn(state, jnp.int32(t), uniforms)[0].optimiser[1][0].mu["heads"]["b"]
        return np.asarray(momentum)[1:, 0]

    at_start, halfway, after = (other_heads_momentum(t) for t in (0, 500, 2000))
    epsilon = lambda t: float(agent.epsilon(jnp.int32(t)))
    np.testing.assert_array_equal(at_start, 0.0)
    np.testing.assert_allclose(halfway / after, (1 - epsilon(500)) / (1 - epsilon(2000)), rtol=1e-4)
    assert np.abs(after).min() > 1e-4


def test_seeds_are_pairwise_different(small_run, final_state):
    state, _ = final_state(small_run(seeds=4))
    weights = np.asarray(state.agent.params["trunk"][0]["w"])
    observations = np.asarray(state.env.obs)
    for i in range(4):
        for j in range(i):
            assert not np.array_equal(weights[i], weights[j])
            assert not np.array_equal(observations[i], observations[j])


@pytest.mark.parametrize("buffer_size", [1, 40_000])
def test_a_seed_in_a_batch_follows_the_trajectory_it_follows_alone(small_run, final_state, buffer_size):
    together, _ = final_state(small_run(seeds=3, buffer_size=buffer_size))
    alone, _ = final_state(small_run(seeds=1, seed=2, buffer_size=buffer_size))
    np.testing.assert_array_equal(together.seeds[2], alone.seeds[0])
    np.testing.assert_allclose(together.env.obs[2], alone.env.obs[0], rtol=1e-4, atol=1e-5)
    # One seed is compiled to other kernels than several, which round differently; learning amplifies that.
    for x, y in zip(leaves(together.agent.params), leaves(alone.agent.params), strict=True):
        np.testing.assert_allclose(x[2], y[0], atol=5e-3)


@pytest.mark.parametrize("buffer_size", [1, 40_000])
def test_seeds_do_not_see_each_other(small_run, final_state, buffer_size):
    """In company, a seed's outcome is the same to the bit whatever the company."""
    few, _ = final_state(small_run(seeds=2, seed=3, buffer_size=buffer_size))
    many, _ = final_state(small_run(seeds=5, seed=0, buffer_size=buffer_size))
    for x, y in zip(leaves((few.env, few.agent)), leaves((many.env, many.agent)), strict=True):
        np.testing.assert_array_equal(x, y[3:])


def test_a_buffer_of_one_learns_as_a_batch_of_copies(small_run):
    """The mean gradient over 32 copies of the one transition is the gradient of one."""
    one, many = small_run(buffer_size=1), small_run(buffer_size=2)
    agent_one, agent_many = (build_agent(run, make_task(run)) for run in (one, many))
    state = agent_one.init(jax.random.key(0))
    row = jax.random.normal(jax.random.key(1), state.replay.rows.shape).at[:, 8].set(1.0).at[:, 11:13].set(1.0)
    copies = with_rows(agent_many.init(jax.random.key(0)), jnp.concatenate([row, row]))
    after_one, losses_one = jax.jit(agent_one.learn)(with_rows(state, row), jnp.int32(5), jnp.zeros(1))
    uniforms = jax.random.uniform(jax.random.key(2), (32,))
    after_many, losses_many = jax.jit(agent_many.learn)(copies, jnp.int32(5), uniforms)
    np.testing.assert_allclose(losses_one.value, losses_many.value, rtol=1e-5)
    for x, y in zip(leaves(after_one.params), leaves(after_many.params), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-5)


def test_sync_copies_network_and_centroids(small_run):
    run = small_run()
    agent = build_agent(run, make_task(run))
    state = agent.init(jax.random.key(0))
    moved = state._replace(
        params=jax.tree.map(lambda leaf: leaf + 1, state.params),
        contexts=state.contexts._replace(live=state.contexts.live + 1),
    )
    synced = agent.sync(moved)
    assert_same(synced.target.params, moved.params)
    np.testing.assert_array_equal(synced.contexts.target, moved.contexts.live)


def test_acting_uses_the_head_of_the_states_context(small_run):
    run = small_run(epsilon_start=0.0, epsilon_final=0.0)
    agent = build_agent(run, make_task(run))
    state = agent.init(jax.random.key(0))
    # Each head prefers another action than the next; the greedy action tells which head was asked.
    bias = jnp.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    state.params["heads"]["b"] = bias
    for obs in jax.random.normal(jax.random.key(1), (20, 4)):
        choice = agent.act(state, situation(obs), jnp.int32(0), jnp.array([0.5, 0.5]))
        assert int(choice.context) == int(agent.contexts.assign(state.contexts, situation(obs)))
        assert int(choice.action) == int(jnp.argmax(pick(bias, choice.context)))
        assert bool(choice.greedy)


def test_random_actions_cover_all_actions_at_rate_epsilon(small_run):
    run = small_run("Acrobot-v1", epsilon_start=0.5, epsilon_final=0.5)
    agent = build_agent(run, make_task(run))
    state = agent.init(jax.random.key(0))
    uniforms = jax.random.uniform(jax.random.key(1), (6000, 2))
    now = situation(jnp.ones(6))
    actions = jax.vmap(lambda u: agent.act(state, now, jnp.int32(0), u).action)(uniforms)
    shares = np.sort(np.bincount(np.asarray(actions), minlength=3) / 6000)
    np.testing.assert_allclose(shares, [0.5 / 3, 0.5 / 3, 0.5 + 0.5 / 3], atol=0.02)


def test_labels_of_the_warm_start_replace_those_before_it(small_run, final_state):
    """Every stored transition carries the label that the target centroids give it, when learning starts."""
    run = small_run(steps=200, period=200, buffer_size=300)
    state, _ = final_state(run)
    agent = build_agent(run, make_task(run))
    rows = np.asarray(state.agent.replay.rows[0])[:200]
    division = jax.tree.map(lambda leaf: leaf[0], state.agent.contexts)
    labels = [int(agent.contexts.assign(division, situation(row[:4]))) for row in rows]
    np.testing.assert_array_equal(rows[:, 11], labels)
    assert len(set(labels)) == 3


def test_updates_every_n_steps(small_run, final_state):
    count = lambda every: int(final_state(small_run(update_every=every))[0].agent.optimiser[1][0].count[0])
    assert count(1) == 1800
    assert count(4) == 450


def test_no_update_before_learning_starts(small_run, final_state):
    run = small_run(steps=200, period=150, learning_starts=200)
    state, period = final_state(run, [150])
    task = make_task(run)
    start = Driver(run, task, build_agent(run, task)).init()
    assert_same(state.agent.params, start.agent.params)
    assert np.isfinite(np.asarray(period.losses.value)).all()


def test_period_boundaries_do_not_change_the_outcome(small_run, final_state):
    run = small_run(buffer_size=5000)
    whole, _ = final_state(run, [2000])
    parts, _ = final_state(run, [130, 200, 777, 1000, 2000])
    assert_same(whole, parts)


def test_time_limit_is_an_end_only_if_asked(small_run, final_state):
    for bootstrap in (True, False):
        run = small_run("Pendulum-v0", steps=200, period=200, buffer_size=200, bootstrap_time_limit=bootstrap)
        state, _ = final_state(run)
        discounts = np.asarray(state.agent.replay.rows[0])[:, 8]
        assert discounts[199] == pytest.approx(0.99 if bootstrap else 0.0)
        np.testing.assert_allclose(discounts[:199], 0.99)


def test_gradient_clip_bounds_the_update(small_run):
    run = resolve("CartPole-v0", "dqn", gradient_clip=1e-3)
    plain = dataclasses.replace(run, gradient_clip=0.0)
    for settings, bound in ((run, 1e-3), (plain, None)):
        agent = build_agent(settings, make_task(settings))
        state = agent.init(jax.random.key(0))
        rows = jax.random.normal(jax.random.key(1), state.replay.rows.shape).at[:, 11:13].set(0.0)
        after, _ = jax.jit(agent.learn)(with_rows(state, rows), jnp.int32(200), jnp.linspace(0, 0.99, 32))
        momentum = np.sqrt(sum(float(jnp.sum(m**2)) for m in jax.tree.leaves(after.optimiser[1][0].mu)))
        assert (momentum == pytest.approx(0.1 * bound, rel=1e-4)) if bound else momentum > 1e-3


def test_on_images_a_target_that_is_remembered_teaches_as_one_that_is_asked():
    """Where the buffer is small beside the target period, what the target says is noted beside the frames."""
    settings = {"buffer_size": 40, "target_period": 80, "learning_starts": 80, "steps": 400, "period": 400, "seeds": 1}
    run = resolve(WALK, "rainbow-iq-re", **settings, batch_size=16, hidden=(16,), atoms=11)
    task = make_task(run)
    agent = build_agent(run, task)
    assert agent.teacher.width > 0
    asked = dataclasses.replace(
        agent,
        teacher=recomputed(answers(agent.network, agent.perception)),
        replay=experience(run, task, 0),
    )
    states = [
        jax.jit(driver.advance)(driver.init(), jnp.int32(400))[0].agent.params
        for driver in (Driver(run, task, agent), Driver(run, task, asked))
    ]
    for one, other in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)
