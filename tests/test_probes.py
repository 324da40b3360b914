"""Probe tasks with known values are solved by every method that has parts of its own."""

import numpy as np
import pytest
from pictures import ON_VECTORS

import iqrl
from iqrl.envs.classic.probes import GAMMA
from iqrl.methods.registry import METHODS

NEGATIVE, POSITIVE = [-1.0, 0.0], [1.0, 0.0]


def values(probe, method, **settings):
    """Q(s, ·) of each seed at the two first states."""
    defaults = {
        "gamma": GAMMA, "steps": 3000, "seeds": 2, "learning_starts": 100, "target_period": 50,
        "learning_rate": 3e-3, "buffer_size": 100,
    }  # fmt: skip
    fixed = METHODS[method].fixed
    settings = {name: value for name, value in (defaults | settings).items() if name not in fixed}
    result = iqrl.train(probe, method, **settings)
    return np.array(
        [[agent.q_values(np.array(s, np.float32)) for s in (NEGATIVE, POSITIVE)] for agent in result.agents]
    )


OTHERS = [method for method in ON_VECTORS if method not in ("dqn", "iq") and not METHODS[method].covered_by]
"""what others cover has the values that those have; `tests/test_methods.py` traces it with every common part"""


@pytest.mark.parametrize(
    ("method", "probe", "negative", "positive"),
    [
        ("dqn", "probe-constant", [1.0], [1.0]),
        ("dqn", "probe-sign", [-1.0], [1.0]),
        ("dqn", "probe-delayed", [GAMMA], [GAMMA]),
        ("iq", "probe-delayed", [GAMMA], [GAMMA]),
        ("dqn", "probe-choice", [-1.0, 1.0], [-1.0, 1.0]),
        ("dqn", "probe-matching", [1.0, -1.0], [-1.0, 1.0]),
        ("iq", "probe-matching", [1.0, -1.0], [-1.0, 1.0]),
    ],
)
def test_known_values(method, probe, negative, positive):
    found = values(probe, method)
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(negative, found[:, 0].shape), atol=0.1)
    np.testing.assert_allclose(found[:, 1], np.broadcast_to(positive, found[:, 1].shape), atol=0.1)


NARROW = {"value_low": -2.0, "value_high": 2.0, "atoms": 21}
OWN = {
    # Rewards scaled by their deviation would have other values; steps are bounded, so α need not be small.
    "stream-q": {"normalise": False, "learning_rate": 1.0, "steps": 20_000},
    "local-q": {"normalise_inputs": False, "learning_rate": 1.0, "steps": 20_000},
    # Weights that hold a value back while it is still wrong only slow this down.
    "medqn-u": {"consolidation_weight": 0.1},
    "srnn": {"srnn_weight": 0.01, "steps": 20_000},
    "rainbow-iq": NARROW,
    # The map goes on moving, and the values with it.
    "dsom": {"steps": 20_000},
}


@pytest.mark.parametrize(
    ("probe", "size", "method"),
    [("probe-matching", 100, method) for method in OTHERS]
    # What is bootstrapped from one transition: with a target network, and without one.
    + [("probe-delayed", 1, method) for method in ("medqn-u", "stream-q", "local-q")],
)
def test_known_values_by_every_other_method(request, probe, size, method):
    if OWN.get(method, {}).get("steps", 0) > 10_000:
        request.getfixturevalue("optimised")
    negative, positive = {"probe-matching": ([1.0, -1.0], [-1.0, 1.0]), "probe-delayed": ([GAMMA], [GAMMA])}[probe]
    found = values(probe, method, **({"buffer_size": size} | OWN.get(method, {})))
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(negative, found[:, 0].shape), atol=0.15)
    np.testing.assert_allclose(found[:, 1], np.broadcast_to(positive, found[:, 1].shape), atol=0.15)


@pytest.mark.parametrize("method", ["dqn", "iq"])
def test_a_time_limit_is_not_an_end(method):
    """Bootstrapped, the endless reward is worth 1 / (1 - γ) = 10; cut, it is worth less than 5."""
    endless = values("probe-endless", method, distill_weight=0.0) if method == "iq" else values("probe-endless", method)
    np.testing.assert_allclose(endless, 10.0, atol=1.0)


def test_n_step_returns_have_the_same_values():
    """Three steps reach past the end of every episode; what the next one pays must not be added."""
    np.testing.assert_allclose(values("probe-delayed", "dqn", n_step=3), GAMMA, atol=0.1)


def test_dueling_has_the_same_values():
    found = values("probe-matching", "dqn", dueling=True)
    np.testing.assert_allclose(found, [[[1.0, -1.0], [-1.0, 1.0]]] * 2, atol=0.1)


def test_double_q_solves_the_probes_too():
    """Without it, `test_known_values` has the same."""
    found = values("probe-matching", "dqn", double_q=True)
    np.testing.assert_allclose(found, [[[1.0, -1.0], [-1.0, 1.0]]] * 2, atol=0.1)
