"""Runs with action masks: what is learned, resumed, saved and played."""

import numpy as np
import pytest
from corridor import LENGTH, Corridor

import iqrl
from iqrl.envs.adapter import TaskEnvironment
from iqrl.envs.registry import make_task

STATES = np.eye(LENGTH + 1, dtype=np.float32)[:LENGTH]
LEGAL = np.array([[False, place > 0, True] for place in range(LENGTH)])
GAMMA = 0.9
VALUES = -(1 - GAMMA ** np.arange(LENGTH, 0, -1)) / (1 - GAMMA)
"""of going on, at each place"""
SMALL = {
    "steps": 1000, "period": 250, "seeds": 1, "buffer_size": 100, "batch_size": 16, "hidden": (16,), "gamma": GAMMA,
    "learning_starts": 100, "target_period": 20, "learning_rate": 1e-2, "epsilon_decay": 500, "max_episode_steps": 60,
    "contexts": 2, "distill_actions": "all", "optimiser": "adam",
}  # fmt: skip
NAME = f"{Corridor.__module__}:Corridor"


@pytest.fixture(scope="module")
def hosted():
    """The environment raises if an illegal action is taken."""
    return iqrl.train(NAME, "iq", **SMALL)


def test_it_is_learned_though_the_best_action_of_all_is_illegal_everywhere(hosted):
    (agent,) = hosted.agents
    np.testing.assert_allclose(agent.q_values(STATES)[:, 2], VALUES, atol=0.25)
    assert (agent.predict(STATES) == 0).all(), "without masks it would take the illegal action"
    assert (agent.predict(STATES, action_masks=LEGAL) == 2).all()
    np.testing.assert_array_equal(iqrl.evaluate(hosted, 2), [[-LENGTH] * 2])
    assert iqrl.evaluate(hosted, 1, epsilon=1.0) <= -LENGTH


def test_a_run_with_masks_goes_on_bit_for_bit(hosted, tmp_path):
    """It is stopped in the middle of an episode, in a state whose mask is not that of the first one."""
    model = iqrl.IQ(NAME, **{name: value for name, value in SMALL.items() if name != "steps"}).learn(250)
    assert model._session.state.env.inputs.mask[0].tolist() == [False, True, True]
    resumed = iqrl.load(model.save(tmp_path / "model.iqrl", learning=True)).learn(250)
    assert hosted.metrics.head(2).equals(resumed.metrics, null_equal=True)
    assert resumed.predict(STATES[1], action_masks=[0, 1, 0])[0] == 1
    assert (resumed.predict(STATES, action_masks=[[0, 1, 0]] * LENGTH)[0] == 1).all()
    for mask, words in (([1, 1], "shape"), ([0, 0, 0], "a legal action")):
        with pytest.raises(iqrl.BadInput, match=words):
            resumed.predict(STATES[1], action_masks=mask)


def test_predictions_take_masks_and_refuse_bad_ones(hosted):
    (agent,) = hosted.agents
    assert agent.predict(STATES[1], action_masks=np.int8([0, 1, 0])) == 1
    for mask in ([True] * 2, [False] * 3, LEGAL, [0.0, 1.0, 1.0]):
        with pytest.raises(iqrl.BadInput, match="action_masks"):
            agent.predict(STATES[0], action_masks=mask)


def test_the_same_is_learned_inside_the_program_and_measured():
    result = iqrl.train(
        f"{Corridor.__module__}:compiled_corridor", "local-q", steps=2000, seeds=1, gamma=GAMMA, measure_every=50,
        hidden=(16,), normalise_inputs=False, share_step=0.0,
    )  # fmt: skip
    (agent,) = result.agents
    assert (agent.predict(STATES) == 0).all()
    assert (agent.predict(STATES, action_masks=LEGAL) == 2).all()
    np.testing.assert_array_equal(iqrl.evaluate(result, 2), [[-LENGTH] * 2])
    assert np.isfinite(result.metrics["aei"].to_numpy()[-1])
    # Legal values alone: action 0 is above all of them.
    assert result.metrics["held_out_max_q"].to_numpy()[-1] < VALUES[-1] + 0.2
    env = TaskEnvironment(make_task(result.run))
    np.testing.assert_array_equal(env.reset(seed=0)[1]["action_mask"], LEGAL[0])
    np.testing.assert_array_equal(env.step(2)[4]["action_mask"], LEGAL[1])
