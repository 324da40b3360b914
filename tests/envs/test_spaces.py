"""Spaces of any kind become a vector or an image, and actions from 0."""

import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Tuple
from gymnasium.wrappers import TimeLimit

import iqrl
from iqrl.envs.registry import make_task
from iqrl.envs.spaces import in_known_spaces
from iqrl.errors import BadInput


class Walk(gymnasium.Env):
    """A place from 0 to 4, shown in any space; actions are kept to be looked at. `step` adds one where it can."""

    def __init__(self, observations=None, actions=None, show=lambda place: place, goal=4):
        self.observation_space = Discrete(5) if observations is None else observations
        self.action_space = actions or Discrete(2)
        self.show, self.goal = show, goal
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.show(self.place), {}

    def step(self, action):
        self.taken.append(action)
        self.place = min(self.place + int(np.sum(action) > 0), 4)
        return self.show(self.place), -1.0, self.place == self.goal, False, {}


def seen(*given):
    env = in_known_spaces("walk", Walk(*given))
    env.reset(seed=0)
    return env, env.step(1)[0]


@pytest.mark.parametrize(
    ("space", "show", "expected"),
    [
        (Discrete(5), lambda place: place, [0, 1, 0, 0, 0]),
        (Discrete(5, start=3), lambda place: place + 3, [0, 1, 0, 0, 0]),
        (MultiDiscrete([5, 2]), lambda place: np.array([place, 1]), [0, 1, 0, 0, 0, 0, 1]),
        (MultiBinary(3), lambda place: np.array([0, 1, 1]), [0, 1, 1]),
        (Tuple((Discrete(5), Box(0, 9, (2,)))), lambda place: (place, np.full(2, 7.0)), [0, 1, 0, 0, 0, 7, 7]),
        (Dict(b=Discrete(2), a=Box(0, 9, (1,))), lambda place: {"a": np.array([6.0]), "b": 1}, [0, 1, 6]),
        (Box(0, 9, (2, 2)), lambda place: np.array([[1.0, 2], [3, 4]]), [1, 2, 3, 4]),
    ],
)
def test_observations_become_a_vector(space, show, expected):
    env, obs = seen(space, Discrete(2), show)
    np.testing.assert_array_equal(obs, expected)
    assert env.observation_space.shape == (len(expected),)


def test_channels_go_last():
    image = np.zeros((3, 40, 50), np.uint8)
    image[2, 4, 5] = 9
    env, obs = seen(Box(0, 255, image.shape, np.uint8), Discrete(2), lambda place: image)
    assert obs.shape == env.observation_space.shape == (40, 50, 3)
    assert obs[4, 5, 2] == 9


def test_a_vector_and_an_image_are_left_as_they_are():
    for space in (Box(0, 9, (4,)), Box(0, 255, (40, 40), np.uint8), Box(0, 255, (40, 40, 3), np.uint8)):
        env = Walk(space)
        assert in_known_spaces("walk", env) is env


@pytest.mark.parametrize(
    ("actions", "count", "last"),
    [
        (Discrete(3, start=-1), 3, 1),
        (MultiDiscrete([2, 3]), 6, [1, 2]),
        (MultiDiscrete([2, 3], start=[5, 0]), 6, [6, 2]),
        (MultiBinary(2), 4, [1, 1]),
    ],
)
def test_actions_are_numbered_from_zero(actions, count, last):
    env = in_known_spaces("walk", Walk(actions=actions))
    assert env.action_space == Discrete(count)
    env.reset(seed=0)
    env.step(count - 1)
    np.testing.assert_array_equal(env.unwrapped.taken, [last])
    reached = [env.step(number) and env.unwrapped.taken[-1] for number in range(count)]
    assert len({str(each) for each in reached}) == count


@pytest.mark.parametrize(
    ("observations", "actions", "words"),
    [
        (Box(0, 9, (3,)), Box(-1, 1, (2,)), "only discrete actions can be learned by Q values"),
        (Box(0, 9, (3,)), MultiDiscrete([40, 40]), "1,600 combinations of actions, and at most 1,024"),
        (Tuple(()), Discrete(2), "of the kind Tuple, which cannot be flattened"),
        (Graph(Box(0, 1), None), Discrete(2), "of the kind Graph, which cannot be flattened"),
        (Dict(a=Box(0, 1, (99, 99))), Discrete(2), "flatten to 9,801 numbers, and at most 4,096"),
    ],
)
def test_what_cannot_be_done_says_what_to_write_instead(observations, actions, words):
    with pytest.raises(BadInput, match=words):
        in_known_spaces("walk", Walk(observations, actions))


@pytest.mark.parametrize(("task", "size", "actions"), [("FrozenLake-v1", 16, 4), ("Blackjack-v1", 45, 2)])
def test_environments_of_gymnasium_with_other_spaces_are_tasks(task, size, actions):
    found = make_task(iqrl.resolve(task, "local-q"))
    assert (found.obs_size, found.actions) == (size, actions)


# Environments that are not named


def corridor(goal=4):
    return TimeLimit(Walk(Box(0, 4, (1,)), Discrete(2), lambda place: np.array([place], np.float32), goal), 20)


def of(task, **settings):
    run = iqrl.resolve(task, "local-q", **settings)
    return run, make_task(run)


def length(task):
    """Steps to the goal by always walking on."""
    env = task.external(0)
    env.reset(seed=0)
    steps = 1
    while not env.step(1)[2]:
        steps += 1
    return steps


def test_arguments_reach_the_environment():
    assert length(of(corridor, env_kwargs={"goal": 2})[1]) == 2
    assert length(of(corridor, env_kwargs='{"goal": 3}')[1]) == 3
    assert of("FrozenLake-v1", env_kwargs={"map_name": "8x8"})[1].obs_size == 64


def test_a_lambda_a_partial_and_an_instance_are_tasks():
    for task in (lambda: corridor(2), functools.partial(corridor, goal=2), corridor(2)):
        run, found = of(task)
        assert length(found) == 2
        assert run.task.startswith("object:")
        assert make_task(run).actions == 2


def test_copies_of_an_instance_do_not_share_a_state():
    env = corridor()
    task = of(env)[1]
    one, other = task.external(0), task.external(1)
    for each in (one, other):
        each.reset(seed=0)
    one.step(1)
    assert (one.unwrapped.place, other.unwrapped.place) == (1, 0)
    assert not hasattr(env.unwrapped, "place")


def test_an_instance_of_a_registered_environment_is_made_again_by_its_spec():
    task = of(gymnasium.make("FrozenLake-v1", map_name="8x8"))[1]
    assert task.obs_size == 64


def test_an_object_of_another_process_is_refused():
    with pytest.raises(BadInput, match="was an object of the process that made it"):
        iqrl.resolve("object:gone_9", "dqn")


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ("[1]", "must be a JSON object"),
        ("{", "must be a JSON object"),
        ({"goal": object()}, "cannot be written as JSON"),
    ],
)
def test_bad_arguments_are_refused(kwargs, words):
    with pytest.raises(BadInput, match=words):
        iqrl.resolve(corridor, "dqn", env_kwargs=kwargs)


def test_arguments_that_the_environment_does_not_have_are_its_own_sentence():
    with pytest.raises(BadInput, match="cannot be made: TypeError"):
        iqrl.resolve(corridor, "dqn", env_kwargs={"length": 3})


def test_a_tuple_of_observations_is_learned():
    result = iqrl.train(
        lambda: Walk(Tuple((Discrete(5), Discrete(2))), Discrete(2), lambda place: (place, 1)),
        "local-q",
        steps=400,
        seeds=1,
        max_episode_steps=50,
    )
    assert result.returns[0, -1] > -10
