"""What a run reports."""

import numpy as np
import pytest

import iqrl
from iqrl.envs.registry import make_task
from iqrl.methods.registry import build_agent
from iqrl.statistics.curves import mean_curve

SETTINGS = {"steps": 4000, "period": 1000, "seeds": 3, "learning_starts": 500, "buffer_size": 50}


@pytest.fixture(scope="module")
def result():
    return iqrl.train("CartPole-v0", "iq", **SETTINGS)


def test_metrics_have_a_row_per_seed_and_period(result):
    assert result.metrics.height == 12
    assert result.metrics["seed"].to_list() == [0, 1, 2] * 4
    np.testing.assert_array_equal(result.steps, [1000, 2000, 3000, 4000])
    assert result.returns.shape == (3, 4)


def test_returns_are_the_mean_over_the_episodes_that_ended(result):
    """CartPole pays 1 per step, so the returns of the ended episodes add up to nearly all steps."""
    totals = (result.metrics["return"] * result.metrics["episodes"]).to_numpy().reshape(4, 3)
    assert (np.abs(totals - 1000) <= 200).all()
    per_run = totals.sum(axis=0)
    assert (per_run <= 4000).all()
    assert (per_run > 3800).all()


def test_schedules_and_occupancy_are_reported(result):
    agent = build_agent(result.run, make_task(result.run))
    for step, epsilon, weight in result.metrics.select("step", "epsilon", "distillation_weight").iter_rows():
        assert epsilon == pytest.approx(float(agent.epsilon(step - 1)))
        assert weight == pytest.approx(1 - epsilon, abs=1e-6)
    for shares in result.metrics["occupancy"]:
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(1.0, abs=1e-5)


def test_losses_are_means_per_update(result):
    assert np.isfinite(result.metrics["value_loss"].to_numpy()).all()
    assert (result.metrics["value_loss"].to_numpy() > 0).all()
    assert (result.metrics["distillation_loss"].to_numpy() >= 0).all()
    assert result.metrics["max_q"].to_numpy()[-3:].min() > 0.1


def test_predict_takes_one_or_many(result):
    agent = result.agents[1]
    many = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    actions = agent.predict(many)
    assert actions.shape == (7,)
    assert [int(agent.predict(obs)) for obs in many] == actions.tolist()
    np.testing.assert_array_equal(actions, agent.q_values(many).argmax(axis=1))
    assert set(agent.context(many)) <= {0, 1, 2}


def test_an_observation_of_the_wrong_shape_is_refused(result):
    with pytest.raises(iqrl.BadInput, match=r"shape \(4,\) is expected, or \(n, 4\) for several; got shape \(3,\)"):
        result.agents[0].predict(np.zeros(3))


def test_summary_is_the_three_numbers(result):
    summary = result.summary()
    curve = result.returns.mean(axis=0)
    assert summary["highest"] == pytest.approx(curve.max())
    assert summary["auc"] == pytest.approx(curve.mean())
    assert summary["final"] == pytest.approx(curve[-1])
    assert [seed["seed"] for seed in summary["seeds"]] == [0, 1, 2]
    assert summary["seeds"][2]["highest"] == pytest.approx(result.returns[2].max())
    assert summary["steps_per_second"] > 0
    assert summary["compile_seconds"] > 0


def test_evaluation_in_gymnasium_repeats_and_is_greedy(result):
    first = iqrl.evaluate(result, episodes=3, seed=5)
    np.testing.assert_array_equal(first, iqrl.evaluate(result, episodes=3, seed=5))
    assert first.shape == (3, 3)
    assert (first >= 8).all()
    assert (first <= 200).all()


def test_a_task_that_gymnasium_does_not_have_is_evaluated_as_it_is():
    result = iqrl.train("probe-choice", "dqn", steps=1000, seeds=1, learning_starts=50, epsilon_decay=200)
    returns = iqrl.evaluate(result, episodes=8)
    np.testing.assert_array_equal(returns, np.ones((1, 8)))
    at_random = iqrl.evaluate(result, episodes=40, epsilon=1.0)
    np.testing.assert_array_equal(at_random, iqrl.evaluate(result, episodes=40, epsilon=1.0))
    assert 10 <= (at_random == 1).sum() <= 30  # of two actions one is right; 0.1% of fair coins do otherwise
    with pytest.raises(iqrl.BadInput, match=r"epsilon is 1.5; it must be from 0 to 1"):
        iqrl.evaluate(result, epsilon=1.5)
    with pytest.raises(iqrl.BadInput, match="episodes must be at least 1"):
        iqrl.evaluate(result, episodes=0)


def test_a_period_that_does_not_divide_the_steps():
    result = iqrl.train("CartPole-v0", "dqn", steps=1100, period=500, seeds=1, learning_starts=100)
    np.testing.assert_array_equal(result.steps, [500, 1000, 1100])


def test_no_episode_in_a_period_is_nan():
    result = iqrl.train("Pendulum-v0", "dqn", steps=400, period=100, seeds=2, learning_starts=100)
    np.testing.assert_array_equal(np.isnan(result.returns), [[True, False, True, False]] * 2)
    assert result.summary()["highest"] == pytest.approx(np.nanmax(mean_curve(result.returns)))
