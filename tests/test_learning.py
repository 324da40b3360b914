"""Learning, with fixed seeds and thresholds that a broken agent does not reach."""

import pytest
from pictures import WALK

import iqrl
from iqrl.methods.registry import METHODS

ON_CARTPOLE = ("dsom", "tcnn", "stream-q", "local-q")
"""with other inputs, or without a target network; that others learn is seen on the probes"""
pytestmark = pytest.mark.usefixtures("optimised")


def test_iq_learns_cartpole_without_replay():
    """The paper's setting at N = 1, its first fifth: IQ gets there, the double DQN beside it does not."""
    settings = {"preset": "paper", "buffer_size": 1, "steps": 80_000, "epsilon_decay": 40_000, "period": 10_000}
    settings |= {"seeds": 3}
    iq = iqrl.train("CartPole-v0", "iq", **settings).summary()
    dqn = iqrl.train("CartPole-v0", "dqn", **settings).summary()
    assert iq["highest"] > 190
    assert iq["auc"] > 2 * dqn["auc"]


def test_dqn_learns_cartpole_with_a_large_buffer():
    result = iqrl.train("CartPole-v0", "dqn", buffer_size=20_000, steps=40_000, epsilon_decay=10_000, seeds=3)
    assert result.summary()["final"] > 150
    assert iqrl.evaluate(result, episodes=3).mean() > 150


def test_iq_learns_acrobot_without_replay():
    result = iqrl.train(
        "Acrobot-v1", "iq", preset="paper", buffer_size=1, gamma=0.99, steps=150_000, epsilon_decay=100_000, seeds=2
    )
    assert result.summary()["final"] > -150


@pytest.mark.parametrize("method", ON_CARTPOLE)
def test_other_methods_learn_cartpole(method):
    """20,000 steps at most, a buffer of 5000, or none for the streams; random play gives 22, a failed learner 10."""
    fixed, defaults = METHODS[method].fixed, METHODS[method].defaults
    settings = {
        "steps": 20_000, "period": 5000, "seeds": 2, "learning_starts": 500, "target_period": 100,
        "epsilon_decay": 5000, "buffer_size": 5000,
    }  # fmt: skip
    if defaults.get("learning_rate", 0.0) < 1.0:  # one of 1 is that of bounded steps
        settings |= {"learning_rate": 1e-3}
    settings = {name: value for name, value in settings.items() if name not in fixed}
    assert iqrl.train("CartPole-v0", method, **settings).summary()["final"] > 38


def test_iq_learns_from_images():
    """Always to the right gives 6.5 in 23 steps; at random it is below 0."""
    settings = {
        "buffer_size": 1000, "steps": 3500, "period": 500, "seeds": 1, "learning_starts": 500, "activation": "relu",
        "target_period": 100, "epsilon_decay": 1500, "learning_rate": 1e-3,
    }  # fmt: skip
    result = iqrl.train(WALK, "iq-re", **settings)
    assert result.returns[:, -1].min() > 4.5
