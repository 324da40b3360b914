"""Environments of Gymnasium as tasks: what is taken, and what is refused in one sentence."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

import iqrl
from iqrl.cli import main
from iqrl.tasks.exploring import random_situations
from iqrl.tasks.hosted import hosted_task


class Line(gymnasium.Env):
    """A number that actions move up and down; after ten steps it is over."""

    observation_space = Box(-10.0, 10.0, (2,), np.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(-2, 3)), 0
        return self._seen(), {}

    def step(self, action):
        self.place, self.steps = self.place + (1 if action else -1), self.steps + 1
        return self._seen(), float(self.place), self.steps == 10, False, {}

    def _seen(self):
        return np.array([self.place, self.steps], np.float32)


class Broken(Line):
    """After four steps what is seen is no number."""

    def _seen(self):
        return np.array([self.place, np.nan if self.steps == 4 else 0.0], np.float32)


class Continuous(Line):
    action_space = Box(-1.0, 1.0, (1,), np.float32)


class FromOne(Line):
    action_space = Discrete(2, start=1)


class Named(Line):
    observation_space = Dict({"place": Discrete(5)})


class Paired(Line):
    observation_space = Tuple((Discrete(5), Discrete(2)))


class Table(Line):
    observation_space = Box(0.0, 1.0, (3, 3), np.float32)


class FloatPictures(Line):
    observation_space = Box(0.0, 1.0, (40, 40, 3), np.float32)


class Failing(Line):
    def __init__(self):
        raise OSError("no such device\nat all")


HERE = __name__


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (f"{HERE}:Continuous", "has actions Box(-1.0, 1.0, (1,), float32); only discrete actions can be learned"),
        (f"{HERE}:FromOne", "numbers its actions from 1; they must start at 0."),
        (f"{HERE}:Named", "has observations of the kind Dict; they must be a Box"),
        (f"{HERE}:Paired", "has observations of the kind Tuple; they must be a Box"),
        (f"{HERE}:Table", "has observations of shape (3, 3); they must be a vector or an image."),
        (f"{HERE}:FloatPictures", "has images of float32; they must be bytes (uint8)."),
        (f"{HERE}:Failing", "no such device"),
        ("Pendulum-v1", "only discrete actions can be learned by Q values."),
        ("ALE/Pnog-v5", "did you mean"),
        ("MinAtar/Brekout-v1", "did you mean MinAtar/Breakout-v1?"),
    ],
)
def test_what_cannot_be_learned_is_said_in_a_sentence(tmp_path, monkeypatch, capsys, task, words):
    monkeypatch.chdir(tmp_path)
    assert main(["train", task, "--method", "dqn", "--steps", "100"]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "task", "words"),
    [
        ("dsom", "MinAtar/Breakout-v1", "dsom is for states in a vector, and MinAtar/Breakout-v1 has images"),
        ("tcnn", "MinAtar/Breakout-v1", "tcnn is for states in a vector"),
        ("iq-re", "CartPole-v1", "iq-re is for images, and CartPole-v1 has none; for states in a vector take iq."),
        ("iq-te", f"{HERE}:Line", "iq-te is for images"),
        ("iq-initial-states", f"{HERE}:Line", "draws 10,000 first states beforehand"),
    ],
)
def test_methods_say_what_they_are_not_for(method, task, words):
    with pytest.raises(iqrl.BadInput, match=words):
        iqrl.train(task, method, steps=10_000)


def test_an_observation_that_is_no_number_ends_the_run_with_where(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", f"{HERE}:Broken", "--method", "dqn", "--steps", "2000", "--seeds", "1"]) == 1
    said = capsys.readouterr().err
    assert "gave an observation that is not finite, in episode 1 of seed 0 after 4 steps" in said
    assert "Traceback" not in said


def test_an_environment_of_ones_own_trains_and_is_evaluated():
    result = iqrl.train(f"{HERE}:Line", "iq", steps=400, seeds=2, learning_starts=100)
    assert result.returns.shape[0] == 2
    assert np.isfinite(result.returns).any()
    assert iqrl.evaluate(result, episodes=2).shape == (2, 2)


def test_a_hosted_run_can_be_measured():
    settings = {"steps": 600, "seeds": 2, "learning_starts": 100, "period": 200, "measure_every": 10}
    result = iqrl.train(f"{HERE}:Line", "iq", **settings, measure_recent=1000)
    assert result.metrics["aei"].is_not_null().any()
    plain = iqrl.train(f"{HERE}:Line", "iq", **settings | {"measure_every": 0})
    np.testing.assert_array_equal(result.returns, plain.returns)


def test_situations_of_a_hosted_task_are_those_of_whole_episodes():
    task = hosted_task("line", Line(), lambda seed: Line())
    found = random_situations(task, 500, seed=3)
    obs, first = np.asarray(found.obs), np.asarray(found.first)
    assert obs.shape == (500, 2)
    assert set(obs[:, 1]) == set(range(10))
    assert set(first[:, 0]) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert (first[:, 1] == 0).all()
    np.testing.assert_array_equal(obs, np.asarray(random_situations(task, 500, seed=3).obs))
