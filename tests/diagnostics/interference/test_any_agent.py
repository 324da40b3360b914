"""The meter for agents that are not ours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iqrl
from iqrl import BadInput, InterferenceMeter
from iqrl.diagnostics.interference import any_agent as outside


def linear_meter(**options):
    """Q(s, a) = W[s, a] of two states and two actions; returns the meter and W to be updated in place."""
    weights = np.array([[0.5, 0.0], [0.25, 1.5]])
    return InterferenceMeter(lambda obs: obs @ weights, gamma=0.5, **options), weights


def add_two_transitions(meter):
    """State 0 to state 1 by action 0 for 1, state 1 to the end by action 1 for 2."""
    meter.add([1.0, 0.0], 0, 1.0, [0.0, 1.0], False)
    meter.add([0.0, 1.0], 1, 2.0, [1.0, 0.0], True)


def test_a_linear_problem_by_hand():
    """δ of the transitions: 1 + 0.5·1.5 - 0.5 = 1.25 and 2 - 1.5 = 0.5.

    The update takes Q(s1, a1) from 1.5 to 1.7, towards the 2 it should be: the second δ is now 0.3. But the first
    transition bootstraps on it: 1 + 0.5·1.7 - 0.5 = 1.35. Mean change of δ²:
    (1.35² - 1.25² + 0.3² - 0.5²) / 2 = (1.8225 - 1.5625 + 0.09 - 0.25) / 2 = 0.05.
    """
    meter, weights = linear_meter()
    add_two_transitions(meter)
    meter.before()
    weights[1, 1] = 1.7
    assert meter.after() == pytest.approx(0.05)
    assert meter.squared_td_error == pytest.approx([(1.5625 + 0.25) / 2])
    assert meter.steps.tolist() == [2]


def test_the_window_forgets_the_oldest():
    """With room for one, only the second transition counts: 0.3² - 0.5²."""
    meter, weights = linear_meter(capacity=1)
    add_two_transitions(meter)
    meter.before()
    weights[1, 1] = 1.7
    assert meter.after() == pytest.approx(0.09 - 0.25)


def test_transitions_of_several_environments_at_once():
    one, weights = linear_meter()
    add_two_transitions(one)
    several = InterferenceMeter(lambda obs: obs @ weights, gamma=0.5)
    several.add(np.eye(2), [0, 1], [1.0, 2.0], np.eye(2)[::-1], [False, True])
    for meter in (one, several):
        meter.before()
    weights[1, 1] = 1.7
    assert one.after() == several.after() != 0


def test_no_interference_where_nothing_changes():
    meter, _ = linear_meter()
    add_two_transitions(meter)
    for consecutive in (False, True, True):
        meter.before(consecutive=consecutive)
        assert meter.after() == 0.0


def random_network(rng):
    """Layers of float32, as frameworks have them."""
    return [rng.normal(size=shape).astype(np.float32) for shape in ((3, 8), (8, 2))]


def values_of(network):
    return lambda obs: np.maximum(obs @ network[0], 0) @ network[1]


@given(seed=st.integers(0, 10**6), capacity=st.integers(1, 40), block=st.integers(1, 12), most=st.integers(0, 15))
@settings(max_examples=30, deadline=None)
def test_consecutive_readings_are_the_same_to_the_last_bit(seed, capacity, block, most):
    """Over a random sequence that goes around the ring several times, with 0 to `most` new transitions an update."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside, "BLOCK", block)
        quick, naive = (InterferenceMeter(values_of(network), 0.9, capacity=capacity) for _ in range(2))
    for update in range(12):
        count = rng.integers(0 if update else 1, max(most, 1) + 1)
        obs, next_obs = rng.normal(size=(2, count, 3)).astype(np.float32)
        action, reward, terminated = rng.integers(0, 2, count), rng.normal(size=count), rng.random(count) < 0.2
        for meter, consecutive in ((quick, True), (naive, False)):
            meter.add(obs, action, reward, next_obs, terminated)
            meter.before(consecutive=consecutive)
        for layer in network:
            layer += 0.1 * rng.normal(size=layer.shape).astype(np.float32)
        assert quick.after() == naive.after()
    assert quick.squared_td_error.tolist() == naive.squared_td_error.tolist()


def test_consecutive_readings_evaluate_less():
    evaluated = []
    meter = InterferenceMeter(lambda obs: evaluated.append(len(obs)) or obs, gamma=0.9, capacity=5000)
    meter.add(np.ones((5000, 2)), np.zeros(5000, int), np.zeros(5000), np.ones((5000, 2)), np.zeros(5000, bool))
    meter.before(consecutive=True)  # there is nothing yet to go on from
    assert sum(evaluated) == 10_000
    meter.after()
    meter.add(np.ones(2), 0, 0.0, np.ones(2), False)
    evaluated.clear()
    meter.before(consecutive=True)
    assert sum(evaluated) == 1000


def test_a_change_between_consecutive_readings_is_noticed():
    meter, weights = linear_meter()
    add_two_transitions(meter)
    meter.before()
    meter.after()
    weights += 0.01
    with pytest.raises(BadInput, match=r"q_values changed since the last after\(\)"):
        meter.before(consecutive=True)
    meter.before()
    assert meter.after() == 0.0


def test_a_sample_is_spread_over_the_window_and_never_goes_on_from_the_last():
    """Rewards 0, 1, …, 9 and Q = 0: δ² of the sample of 4 is 0, 9, 36, 81, whichever slots of the ring they are in."""
    weights = np.zeros((1, 1))
    meter = InterferenceMeter(lambda obs: obs @ weights, gamma=0.5, capacity=10, sample=4)
    for reward in (*range(100, 107), *range(10)):
        meter.add([1.0], 0, reward, [1.0], True)
    meter.before()
    meter.after()
    assert meter.squared_td_error.tolist() == [(0 + 9 + 36 + 81) / 4]
    weights += 1.0
    meter.before(consecutive=True)  # a broken promise, and yet no harm
    assert meter.after() == 0.0
    assert meter.squared_td_error[-1] == (1 + 4 + 25 + 64) / 4


def test_frame_by_period():
    meter, weights = linear_meter()
    add_two_transitions(meter)
    for step, value in ((100, 1.7), (200, 1.5), (250, 1.7), (601, 1.5)):
        meter.before()
        weights[1, 1] = value
        meter.after(step)
    for step, episode_return in ((10, 4.0), (200, 6.0), (399, 9.0)):
        meter.episode(step, episode_return)
    table = meter.frame(200)
    assert table["step"].to_list() == [200, 400, 600, 601]
    assert table["return"].to_list() == [5.0, 9.0, None, None]
    assert table["aei"].to_list() == [pytest.approx(0.0), pytest.approx(0.05), None, pytest.approx(-0.05)]
    assert table["negative_interference"].to_list()[:3] == [pytest.approx(0.05), pytest.approx(0.05), None]
    assert np.isnan(table["negative_interference"][3])
    assert table["raised_share"].to_list() == [0.5, 1.0, None, 0.0]
    assert table["aei_largest"].to_list() == [pytest.approx(0.05), pytest.approx(0.05), None, pytest.approx(-0.05)]
    before, after = (1.5625 + 0.25) / 2, (1.8225 + 0.09) / 2
    expected = [pytest.approx((before + after) / 2), pytest.approx(before), None, pytest.approx(after)]
    assert table["squared_td_error"].to_list() == expected


def test_frame_of_nothing_has_the_columns():
    assert InterferenceMeter(lambda obs: obs, 0.9).frame(100).columns == [
        "step", "return", "aei", "negative_interference", "raised_share", "aei_largest", "squared_td_error",
    ]  # fmt: skip


def test_an_update_that_did_not_happen_is_taken_back():
    meter, weights = linear_meter()
    add_two_transitions(meter)
    meter.before()
    meter.cancel()
    weights += 1.0
    meter.before()
    assert meter.after() == 0.0
    assert len(meter.aei) == 1
    meter.cancel()  # what the last reading knew is forgotten too
    weights += 1.0
    meter.before(consecutive=True)
    assert meter.after() == 0.0


def test_transitions_that_do_not_fit():
    meter, _ = linear_meter()
    with pytest.raises(BadInput, match="must have one entry per transition"):
        meter.add(np.eye(2), [0, 1], [1.0], np.eye(2), [False, True])
    meter.add([1.0, 0.0], 0, 1.0, [0.0, 1.0], False)
    for obs, next_obs in (([1.0], [1.0]), ([1.0, 0.0], [1.0])):
        with pytest.raises(BadInput, match=r"observations must have shape \(2,\)"):
            meter.add(obs, 0, 1.0, next_obs, False)
    for action in (-1, 0.5):
        with pytest.raises(BadInput, match="an action must be an integer"):
            meter.add([1.0, 0.0], action, 1.0, [0.0, 1.0], False)
    with pytest.raises(BadInput, match="a reward must be a finite number"):
        meter.add([1.0, 0.0], 0, np.nan, [0.0, 1.0], False)


def test_before_and_after_out_of_order():
    meter, _ = linear_meter()
    with pytest.raises(BadInput, match="no transition to measure on"):
        meter.before()
    with pytest.raises(BadInput, match=r"after\(\) came without a before\(\)"):
        meter.after()
    add_two_transitions(meter)
    meter.before()
    with pytest.raises(BadInput, match=r"before\(\) came twice"):
        meter.before()
    with pytest.raises(BadInput, match=r"add\(\) came between"):
        add_two_transitions(meter)


@pytest.mark.parametrize(
    ("q_values", "complaint"),
    [
        (lambda obs: obs * np.nan, "q_values gave NaN or infinity"),
        (lambda obs: obs[:1], "q_values must give an array of shape"),
        (lambda obs: obs[:, 0], "q_values must give an array of shape"),
        (lambda obs: obs[:, :1], "with more than 1 actions"),
    ],
)
def test_values_that_do_not_fit(q_values, complaint):
    meter = InterferenceMeter(q_values, gamma=0.9)
    add_two_transitions(meter)
    with pytest.raises(BadInput, match=complaint):
        meter.before()


def test_settings_that_do_not_fit():
    for options in ({"gamma": 1.5}, {"gamma": 0.9, "capacity": 0}, {"gamma": 0.9, "sample": 0}):
        with pytest.raises(BadInput, match="must be"):
            iqrl.InterferenceMeter(lambda obs: obs, **options)
    with pytest.raises(BadInput, match="a period is a whole number"):
        InterferenceMeter(lambda obs: obs, 0.9).frame(0)
