"""Interference by hand, and the carried computation against the plain one."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pictures import ON_IMAGES, WALK

from iqrl.core import randomness
from iqrl.core.contexts import single
from iqrl.core.networks import Network, Output
from iqrl.core.replay.base import pack, unpack
from iqrl.core.types import Choice, ContextInputs, Experience, Transition
from iqrl.diagnostics.interference.meter import Reading, RunMeter, add_reading, average, build_meter, zero_totals
from iqrl.diagnostics.interference.td_errors import (
    CHUNK,
    CLUSTERS,
    Grouping,
    chunk_around,
    gradient_interference,
    group_by_context,
    in_chunks,
    mean_by_group,
    td_errors,
)
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.base import q_learner
from iqrl.methods.registry import METHODS, build_agent
from iqrl.training.checkpoint import load_state, save_state
from iqrl.training.compiled import Driver
from iqrl.training.loop import driver_of

# Two states, one action, Q(s) = w · φ(s): what is learned of one changes the other through the feature they share.
S0, S1 = np.float32([1.0, 0.0]), np.float32([1.0, 1.0])
GAMMA = 0.5
LEARNING_RATE = 0.1


def linear_network():
    def apply(params, features):
        q = (params @ features)[None, None]
        return Output(q, q, features)

    return Network(lambda key: jnp.float32([0.5, -0.25]), apply, lambda values: values, (1,))


def linear_agent(learning_rate=LEARNING_RATE, **settings):
    """Learns from the last transition alone, by plain gradient descent on ½δ²."""
    fixed = {"buffer_size": 1, "sampling": "whole", "target_period": 1, "td_error": "squared", "learning_starts": 1}
    run = resolve("CartPole-v0", "dqn", steps=100, gamma=GAMMA, **fixed, **settings)
    task = make_task(run)._replace(low=(0.0, 0.0), high=(1.0, 1.0), actions=1)
    return run, q_learner(run, task, network=linear_network(), optimiser=optax.sgd(learning_rate))


def transition(obs, reward, following, discount=GAMMA):
    zero, no = jnp.int32(0), jnp.bool_(False)
    return Transition(
        jnp.asarray(obs), zero, jnp.float32(reward), jnp.float32(discount), jnp.asarray(following), zero, zero, no, no
    )


def experience_of(step):
    inputs = lambda obs: ContextInputs(obs=obs, initial_obs=step.obs_tm1, score=jnp.float32(0))
    choice = Choice(action=step.a_tm1, context=step.context_tm1, greedy=step.greedy)
    before, after = inputs(step.obs_tm1), inputs(step.obs_t)
    return Experience(before, choice, step.r_t, step.discount_t, after, step.done)


def no_noise(agent):
    needs = agent.learn_uniforms
    return randomness.hand_out(needs, jnp.zeros(randomness.count(needs)))


def linear_meter(run, agent):
    """State 0 is one context, state 1 the other."""
    held_out = ContextInputs(jnp.stack([S0, S1]), jnp.stack([S0, S1]), jnp.zeros(2))
    contexts = Grouping(2, lambda rows: unpack(rows.T, 2).obs_tm1[1].astype(jnp.int32))
    return RunMeter(run, agent, held_out, contexts, td_errors(agent))


def measured_update(**settings):
    """Both transitions are seen twice, s1 -> s0 last, and one update is made on that one: its report and θ after it."""
    run, agent = linear_agent(measure_every=1, measure_recent=4, measure_reservoir=4, **settings)
    meter = linear_meter(run, agent)
    return jax.jit(lambda: _measured_update(agent, meter))()  # at once: one by one, each operation would be compiled


def _measured_update(agent, meter):
    state = agent.init(jax.random.key(0))
    readings = meter.init(state)
    for t, step in enumerate([transition(S0, 1.0, S1)] * 2 + [transition(S1, 2.0, S0)] * 2):
        state, seen = agent.observe(state, experience_of(step), jnp.int32(t))
        readings = meter.observe(readings, state, seen, jnp.int32(t), jnp.float32([0.5]))
    after, _ = agent.learn(state, jnp.int32(3), no_noise(agent))
    return meter.report(meter.measure(readings, state, after, jnp.int32(3)), after, jnp.int32(4))[1], after.params


@pytest.mark.parametrize("settings", [{"measure_sample": 0}, {"measure_sample": 2}], ids=["all, carried", "a sample"])
def test_aei_of_two_states_is_the_hand_computed_one(settings):
    """w = (½, -¼), so Q(s0) = ½, Q(s1) = ¼.

    Before: δ_A = 1 + ½·¼ - ½ = 0.625 for A = s0 -> s1; δ_B = 2 + ½·½ - ¼ = 2 for B = s1 -> s0.
    The update on B adds 0.1 · 2 · (1, 1) to w: Q(s0) = 0.7, Q(s1) = 0.65.
    After: δ_A = 1 + 0.325 - 0.7 = 0.625; δ_B = 2 + 0.35 - 0.65 = 1.7.
    """
    columns, params = measured_update(**settings)
    np.testing.assert_allclose(params, [0.7, -0.05], rtol=1e-6)
    assert columns["aei"] == pytest.approx((0.0 + 1.7**2 - 2.0**2) / 2, rel=1e-5)
    assert columns["squared_td_error"] == pytest.approx((0.625**2 + 2.0**2) / 2, rel=1e-5)
    np.testing.assert_allclose(columns["aei_contexts"], [0.0, 1.7**2 - 2.0**2], atol=1e-5)
    assert columns["raised_share"] == 0.0
    assert np.isnan(columns["negative_interference"])


def test_update_interference_holds_the_target_fast():
    """With Q(s1) and Q(s0) of before in the target: δ_A = 1 + ½·¼ - 0.7 = 0.425, δ_B = 2 + ½·½ - 0.65 = 1.6: both
    errors fell. From a negative reward the same update goes the other way and raises A's."""
    assert measured_update(measure_sample=0)[0]["update_interference"] == 0.0
    run, agent = linear_agent(measure_every=1, measure_sample=0, measure_reservoir=2)
    columns = jax.jit(lambda: _moved_against(agent, linear_meter(run, agent)))()
    then, now = 0.625**2 + 0.0**2, 1.125**2 + 0.5**2
    assert columns["update_interference"] == pytest.approx((now - then) / 2, rel=1e-5)
    # AEI bootstraps with the network itself: δ_A = 1 + ½·(-¼) - 0 and δ_B = 0 + 0 + ¼.
    assert columns["aei"] == pytest.approx((0.875**2 + 0.25**2 - then) / 2, rel=1e-5)
    assert columns["negative_interference"] == pytest.approx(float(columns["aei"]), rel=1e-6)
    assert columns["raised_share"] == 1.0


def _moved_against(agent, meter):
    before = agent.init(jax.random.key(0))
    state = meter.init(before)
    for t, step in enumerate([transition(S0, 1.0, S1), transition(S1, 0.0, S0)]):
        state = meter.observe(state, before, step, jnp.int32(t), jnp.float32([0.5]))
    # w moves to (0, -¼): Q(s0) = 0, Q(s1) = -¼. With the old target, δ_A = 1.125 - 0 and δ_B = 0.25 + 0.25.
    after = before._replace(params=jnp.float32([0.0, -0.25]))
    return meter.report(meter.measure(state, before, after, jnp.int32(1)), after, jnp.int32(2))[1]


def test_an_end_of_an_episode_is_not_bootstrapped():
    _, agent = linear_agent()
    q = agent.init(jax.random.key(0)).q_function
    rows = jnp.stack([pack(transition(S0, 1.0, S1, discount=0.0))])
    np.testing.assert_allclose(td_errors(agent)(q, q, rows), [-0.5], rtol=1e-6)


def test_many_rows_are_evaluated_in_chunks_with_the_same_result():
    _, agent = linear_agent()
    q = agent.init(jax.random.key(0)).q_function
    rewards = np.random.default_rng(0).normal(size=3 * CHUNK)
    rows = jnp.tile(pack(transition(S0, 0.0, S1)), (len(rewards), 1)).at[:, 5].set(rewards)
    errors = td_errors(agent)
    np.testing.assert_array_equal(jax.jit(in_chunks(errors))(q, q, rows), jax.jit(errors)(q, q, rows))
    chunk, start = chunk_around(rows, jnp.int32(CHUNK + 7))
    assert start == CHUNK
    np.testing.assert_array_equal(chunk, rows[CHUNK : 2 * CHUNK])
    np.testing.assert_array_equal(chunk_around(rows[:10], jnp.int32(7))[0], rows[:10])


def reading_of(aei, contexts, present):
    return Reading(aei=aei, squared_error=10.0, by_context=contexts, present=present, update_interference=max(aei, 0.0))


def test_means_of_a_period():
    """Readings of -2, 1 and 3 on two contexts, the second absent from the last."""
    totals = zero_totals(2)
    for aei, present in [(-2.0, [True, True]), (1.0, [True, True]), (3.0, [True, False])]:
        contexts = jnp.float32([aei, 2 * aei if present[1] else 0.0])
        totals = add_reading(totals, reading_of(aei, contexts, jnp.array(present)))
    columns = average(totals)
    assert columns["aei"] == pytest.approx(2 / 3)
    assert columns["negative_interference"] == pytest.approx(2.0)
    assert columns["raised_share"] == pytest.approx(2 / 3)
    assert columns["aei_largest"] == 3.0
    np.testing.assert_allclose(columns["aei_contexts"], [2 / 3, -1.0], rtol=1e-6)
    assert columns["update_interference"] == pytest.approx(4 / 3)
    nothing = average(zero_totals(2))
    assert all(np.isnan(value).all() for value in nothing.values())


def test_mean_by_group():
    values, groups = jnp.float32([1.0, 2.0, 3.0, 100.0]), jnp.int32([0, 2, 0, 2])
    mean, present = mean_by_group(values, groups, jnp.float32([1, 1, 1, 0]), 3)
    np.testing.assert_allclose(mean, [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(present, [True, False, True])


def test_gradients_of_contexts_by_hand():
    """Targets held fast: gradient of the Huber loss is φ(s) cut to size 1: (1, 0)·(-0.625) and (1, 1)·(-1)."""
    _, agent = linear_agent()
    q = agent.init(jax.random.key(0)).q_function
    rows = jnp.stack([pack(transition(S0, 1.0, S1)), pack(transition(S1, 2.0, S0))])
    contexts = Grouping(3, lambda rows: unpack(rows.T, 2).obs_tm1[1].astype(jnp.int32))
    found = jax.jit(lambda rows: gradient_interference(agent, contexts, q, q, rows, jnp.ones(2)))(rows)
    np.testing.assert_allclose(found["gradient_inner"][:2, :2], [[0.390625, 0.625], [0.625, 2.0]], rtol=1e-5)
    cosine = 0.625 / np.sqrt(0.390625 * 2.0)
    np.testing.assert_allclose(found["gradient_cosine"][:2, :2], [[1, cosine], [cosine, 1]], rtol=1e-5)
    assert np.isnan(found["gradient_cosine"][2]).all()
    assert np.isnan(found["gradient_inner"][:, 2]).all()


def test_an_agent_without_contexts_is_measured_by_clusters_of_states():
    _, agent = linear_agent()
    assert agent.contexts.count == single().count == 1
    states = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    contexts = group_by_context(agent, (0.0, 0.0), (1.0, 1.0), states)
    assert contexts.count == CLUSTERS
    corners = [transition(state, 0.0, state) for state in np.float32([[0, 0.1], [0.9, 0], [0, 0.9], [1, 0.1]])]
    labels = np.asarray(contexts.of_rows(jnp.stack([pack(step) for step in corners])))
    assert len(set(labels[:3])) == 3
    assert labels[1] == labels[3]


# On real runs

SMALL = {"steps": 450, "period": 150, "seeds": 2, "learning_starts": 100, "target_period": 50, "epsilon_decay": 200}
MEASURED = {"measure_every": 1, "measure_sample": 0, "measure_recent": 128, "measure_reservoir": 64}


def rows_of(start, advance, stops=(150, 300, 450)):
    state, measured = start, []
    for stop in stops:
        state, period = advance(state, np.int32(stop))
        measured.append(jax.device_get(period.metrics))
    return state, measured


def program(driver):
    start = jax.jit(driver.init)()
    # Compiled here and not when called: what was loaded from a file would be compiled for once more.
    return start, jax.jit(driver.advance).lower(start, np.int32(0)).compile()


@functools.cache
def carrying_program():
    return program(with_meter(OnlyAverages, resolve("CartPole-v0", "iq", **SMALL, **MEASURED)))


@functools.cache
def carried():
    return rows_of(*carrying_program())


class OnlyAverages(RunMeter):
    """Reports what it read and leaves out what else a period ends with, which takes long to compile."""

    def report(self, state, agent, steps):
        columns = average(state.totals) | {"readings": state.totals.readings}
        return state._replace(totals=zero_totals(self.grouping.count)), columns


class Recomputing(OnlyAverages):
    """Evaluates every transition before and after every update."""

    carries_errors = False


def with_meter(kind, run):
    driver = driver_of(run)
    fields = {field.name: getattr(driver.meter, field.name) for field in dataclasses.fields(driver.meter)}
    return dataclasses.replace(driver, meter=kind(**fields))


def test_errors_carried_from_update_to_update_equal_those_computed_anew():
    """The window of 128 has gone round three times by then, and contexts have been relabelled."""
    state, measured = carried()
    run = resolve("CartPole-v0", "iq", **SMALL, **MEASURED)
    assert driver_of(run).meter.carries_errors
    plain, measured_anew = rows_of(*program(with_meter(Recomputing, run)))
    for carried_row, row in zip(measured, measured_anew, strict=True):
        for name in average(zero_totals(3)):
            np.testing.assert_allclose(carried_row[name], row[name], rtol=2e-4, atol=2e-6, err_msg=name)
    assert (np.abs(measured[-1]["aei"]) > 1e-6).all()
    assert state.meter.errors.shape == (2, 128)
    assert plain.meter.errors.shape == (2, 0)


def test_a_measured_run_goes_on_bit_for_bit_from_its_checkpoint(tmp_path):
    start, advance = carrying_program()
    state, measured = rows_of(start, advance, (150, 300))
    save_state(tmp_path / "state", jax.device_get(state), "run")
    loaded = load_state(tmp_path / "state", jax.eval_shape(lambda: state), "run")[0]
    final, rest = rows_of(loaded, advance, (450,))
    whole, rows = carried()
    for a, b in zip(jax.tree.leaves((final, measured + rest)), jax.tree.leaves((whole, rows)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_carried_is_the_error_of_the_network_as_it_is():
    state, _ = carried()
    run = resolve("CartPole-v0", "iq", **SMALL, **MEASURED)
    agent = build_agent(run, make_task(run))
    for seed in range(2):
        learner, meter = jax.tree.map(lambda leaf, seed=seed: leaf[seed], (state.agent, state.meter))
        anew = jax.jit(td_errors(agent))(learner.q_function, learner.q_function, meter.recent)
        np.testing.assert_allclose(meter.errors, anew, rtol=1e-4, atol=1e-6)


def test_measuring_changes_nothing_but_rounding():
    """The agent's random numbers, and so its steps, are the same; XLA may round a larger program differently."""
    run = resolve("CartPole-v0", "iq", **SMALL)
    driver = driver_of(run)
    plain, _ = jax.jit(driver.advance)(jax.jit(driver.init)(), 450)
    state, _ = carried()
    np.testing.assert_allclose(state.env.inputs.obs, plain.env.inputs.obs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.agent.replay.rows, plain.agent.replay.rows, rtol=1e-4, atol=1e-5)
    for a, b in zip(jax.tree.leaves(state.agent.params), jax.tree.leaves(plain.agent.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_recent_transitions_are_the_last_ones_in_the_ring_and_the_reservoir_holds_earlier_ones():
    state, _ = carried()
    newest = state.meter.recent[:, (450 - 1) % 128]
    np.testing.assert_array_equal(newest, state.agent.replay.rows[:, (450 - 1) % 100, : newest.shape[1]])
    in_recent = (state.meter.reservoir[:, :, None] == state.meter.recent[:, None]).all(-1).any(-1).mean(-1)
    assert (in_recent > 0.1).all()
    assert (in_recent < 0.5).all()  # 128 of 450


@pytest.mark.parametrize("every", [1, 3])
def test_aei_is_zero_without_a_learning_rate_and_every_mth_update_is_read(every):
    """With several chunks in the window, and in the way that carries errors on as well as in the other."""
    measuring = {"measure_every": every, "measure_sample": 0, "measure_recent": 2000}
    run = resolve("CartPole-v0", "dqn", **SMALL | {"seeds": 1}, **measuring, learning_rate=0.0)
    _, measured = rows_of(*program(with_meter(OnlyAverages, run)), stops=(120, 180))
    for row in measured[1:]:
        for name in ("aei", "aei_largest", "raised_share", "update_interference", "aei_contexts"):
            np.testing.assert_array_equal(row[name], 0.0, err_msg=name)
        assert (row["squared_td_error"] > 0).all()
        # Updates are made after every step; every m-th is read.
        np.testing.assert_array_equal(row["readings"], sum(t % every == 0 for t in range(121, 181)))


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.covered_by])
def test_every_method_can_be_measured(method):
    """Traced, not compiled: shapes and names are what can differ between methods."""
    settings = {name: value for name, value in SMALL.items() if name not in METHODS[method].fixed}
    task = WALK if method in ON_IMAGES else "CartPole-v0"
    run = resolve(task, method, **settings, measure_every=50)
    agent = build_agent(run, make_task(run))
    meter = build_meter(run, make_task(run), agent)

    def measured_period():
        state, t = agent.init(jax.random.key(0)), jnp.int32(50)
        reading = meter.start_learning(meter.init(state), state)
        return meter.report(meter.measure(reading, state, state, t), state, t)

    state, columns = jax.eval_shape(measured_period)
    assert state.totals.aei.shape == ()
    contexts = agent.contexts.count
    shown = contexts if contexts > 1 else CLUSTERS
    assert columns["aei"].shape == ()
    assert columns["aei_contexts"].shape == (shown,)
    assert columns["gradient_cosine"].shape == (shown, shown)
    assert columns["held_out_max_q_heads"].shape == (contexts,)
    assert ("centroid_movement" in columns) == (agent.contexts.centres is not None)


def test_without_measure_every_nothing_is_measured():
    run = resolve("CartPole-v0", "dqn", **SMALL)
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task), build_meter(run, task, build_agent(run, task)))
    assert driver.meter.num_uniforms == 0
    assert jax.eval_shape(driver.init).meter == ()
