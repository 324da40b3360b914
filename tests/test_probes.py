"""Probe tasks with known values are solved by every method."""

import numpy as np
import pytest

import iqrl
from iqrl.methods import METHODS
from iqrl.tasks.probes import GAMMA

NEGATIVE, POSITIVE = [-1.0, 0.0], [1.0, 0.0]


def values(probe, method, **settings):
    """Q(s, ·) of each seed at the two first states."""
    defaults = {
        "gamma": GAMMA, "steps": 6000, "seeds": 2, "learning_starts": 100, "target_period": 50,
        "learning_rate": 3e-3, "buffer_size": 100,
    }  # fmt: skip
    result = iqrl.train(probe, method, **(defaults | settings))
    return np.array(
        [[agent.q_values(np.array(s, np.float32)) for s in (NEGATIVE, POSITIVE)] for agent in result.agents]
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("probe", "negative", "positive"),
    [
        ("probe-constant", [1.0], [1.0]),
        ("probe-sign", [-1.0], [1.0]),
        ("probe-delayed", [GAMMA], [GAMMA]),
        ("probe-choice", [-1.0, 1.0], [-1.0, 1.0]),
        ("probe-matching", [1.0, -1.0], [-1.0, 1.0]),
    ],
)
def test_known_values(method, probe, negative, positive):
    found = values(probe, method)
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(negative, found[:, 0].shape), atol=0.1)
    np.testing.assert_allclose(found[:, 1], np.broadcast_to(positive, found[:, 1].shape), atol=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_is_not_an_end(method):
    """Bootstrapped, the endless reward is worth 1 / (1 - γ) = 10; cut, it is worth less than 5."""
    endless = values("probe-endless", method, distill_weight=0.0) if method == "iq" else values("probe-endless", method)
    np.testing.assert_allclose(endless, 10.0, atol=1.0)


@pytest.mark.parametrize("double_q", [False, True])
def test_double_q_solves_the_probes_too(double_q):
    found = values("probe-matching", "dqn", double_q=double_q)
    np.testing.assert_allclose(found, [[[1.0, -1.0], [-1.0, 1.0]]] * 2, atol=0.1)
