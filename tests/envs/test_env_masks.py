"""Action masks of environments: how they are read, and which are refused."""

import gymnasium
import numpy as np
import pytest
from corridor import Corridor, Shown
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete

import iqrl
from iqrl.envs.episodes import Environments
from iqrl.envs.masks import BadMask, as_mask
from iqrl.envs.random_policy import random_inputs
from iqrl.envs.registry import make_task


def task_of(env):
    return make_task(iqrl.resolve(env, "dqn"))


@pytest.mark.parametrize(
    ("space", "given", "expected"),
    [
        (Discrete(3), [True, False, True], [1, 0, 1]),
        (Discrete(3, start=7), np.int8([0, 1, 1]), [0, 1, 1]),
        (MultiDiscrete([2, 3]), [1, 0, 1, 1, 0, 1], [1, 0, 1, 1, 0, 1]),  # one for each combination
        (MultiDiscrete([2, 3]), [0, 1, 1, 0, 1], [0, 0, 0, 1, 0, 1]),  # the first must be 1, the second 0 or 2
        (MultiDiscrete([2, 3]), ([0, 1], [1, 0, 1]), [0, 0, 0, 1, 0, 1]),
        (MultiDiscrete([2, 2]), [0, 1, 1, 1], [0, 0, 1, 1]),  # by dimension
        (MultiDiscrete([2, 2]), [[0, 1], [1, 1]], [0, 1, 1, 1]),  # by combination
        (MultiDiscrete([2, 2]), ([0, 1], [1, 1]), [0, 0, 1, 1]),
        (MultiBinary(3), [1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0, 1, 0]),
    ],
)
def test_masks_are_of_combinations_or_of_dimensions(space, given, expected):
    mask = as_mask(space, given)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([True, False], r"shape \(2,\), which must have 3"),
        ([0.0, 1.0, 1.0], "of float64, which must be booleans"),
        ([0, 1, 2], "of int64, which must be booleans"),
        ([[1], [1, 0]], "that is no array"),
    ],
)
def test_what_is_no_mask_is_refused(given, words):
    with pytest.raises(BadMask, match=words):
        as_mask(Discrete(3), given)


@pytest.mark.parametrize("shown", [Shown.IN_INFO, Shown.BY_METHOD])
def test_a_task_knows_that_it_has_masks(shown):
    task = task_of(lambda: Corridor(shown))
    assert task.masked_actions == 3
    played = Environments(task, seed=0, seeds=2)
    played.begin()
    np.testing.assert_array_equal(played.masks, [[False, False, True]] * 2)
    outcome = played.step(np.array([2, 2]))
    np.testing.assert_array_equal(outcome.mask, [[False, True, True]] * 2)
    for _ in range(3):
        outcome = played.step(np.array([2, 2]))
    assert outcome.terminated.all()
    assert outcome.mask.all(), "nothing follows, and no mask is asked for"
    np.testing.assert_array_equal(outcome.initial_mask, [[False, False, True]] * 2)


def test_an_environment_without_masks_has_none():
    task = task_of(lambda: Corridor(Shown.NOWHERE))
    assert task.masked_actions == 0
    played = Environments(task, seed=0, seeds=1)
    played.begin()
    assert played.masks == played.step(np.array([2])).mask == ()


def test_a_random_policy_takes_legal_actions():
    found = random_inputs(task_of(lambda: Corridor(Shown.IN_INFO)), 50)
    assert found.mask.shape == (50, 3)
    np.testing.assert_array_equal(found.mask[:, 1], found.obs[:, 0] == 0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({0: [True, True]}, r"reset gives an action mask of shape \(2,\), which must have 3"),
        ({0: [False] * 3}, "reset gives an action mask in which no action is legal"),
        ({1: None}, "step gives no action mask, though its first reset did"),
        ({0: None}, "step gives an action mask and reset does not"),
    ],
)
def test_an_environment_with_bad_masks_is_refused_before_it_is_trained(changed, words):
    with pytest.raises(iqrl.BadInput, match=words):
        task_of(lambda: Corridor(Shown.IN_INFO, changed))


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (None, "gave no action mask"),
        ([False] * 3, "gave an action mask in which no action is legal"),
        ([0.0, 1.0, 1.0], "gave an action mask of float64"),
    ],
)
def test_a_bad_mask_later_ends_the_run_with_the_step(mask, words):
    played = Environments(task_of(lambda: Corridor(Shown.IN_INFO, {2: mask})), seed=0, seeds=1)
    played.begin()
    played.step(np.array([2]))
    with pytest.raises(iqrl.RunFailed, match=f"^object:.* {words}.*in episode 1 of seed 0 after 2 steps"):
        played.step(np.array([2]))


class Pair(gymnasium.Env):
    """Two numbers are chosen; the masks are one after the other."""

    observation_space, action_space = Discrete(2), MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        assert action.tolist() in ([1, 0], [1, 2])
        return 1, 1.0, True, False, {}

    def action_masks(self):
        return np.array([0, 1, 1, 0, 1], bool)


def test_masks_of_several_dimensions_reach_the_agent():
    task = task_of(Pair)
    played = Environments(task, seed=0, seeds=1)
    played.begin()
    np.testing.assert_array_equal(played.masks, [[0, 0, 0, 1, 0, 1]])
    assert played.step(np.array([5])).terminated


def test_taxi_of_gymnasium_has_masks():
    name = next(name for name in gymnasium.registry if name.startswith("Taxi-"))
    assert task_of(name).masked_actions == 6
