"""Environments side by side, here and in processes: their ends, their seeds, and what goes wrong."""

import os
import signal

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from scripted import TRANSITIONS, Scripted

from iqrl.envs.episodes import Environments, Episode
from iqrl.envs.external import task_of_environment
from iqrl.envs.processes import EnvironmentsInProcesses
from iqrl.errors import RunFailed


class Moody(gymnasium.Env):
    """Shows a number drawn at the start. Action 1 fails, action 2 ends the process, action 3 changes the number to one
    that no seed decides."""

    observation_space, action_space = Box(0.0, 1.0, (1,), np.float32), Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.drawn = np.float32([self.np_random.random()])
        return self.drawn, {}

    def step(self, action):
        if action == 1:
            raise ValueError("not today")
        if action == 2:
            os._exit(3)
        if action == 3:
            self.drawn = np.float32([np.random.default_rng().random()])
        return self.drawn, 0.0, False, False, {}


def task_of(kind):
    return task_of_environment(kind.__name__, kind(), lambda seed: kind())


def in_processes(kind, processes=2):
    """Two seeds with three environments each."""
    return EnvironmentsInProcesses(task_of(kind), 0, 2, 3, processes)


@pytest.fixture(scope="module")
def moody():
    played = in_processes(Moody)
    yield played
    played.close()


ENDS = [(after, done) for *_, after, done in TRANSITIONS]


def test_ends_are_those_of_gymnasiums_vector_environments():
    """Terminated, truncated, both, and what follows: the last observation and the first of the next episode."""
    ours = Environments(task_of(Scripted), 0, 1, 3)
    theirs = SyncVectorEnv([Scripted] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    np.testing.assert_array_equal(ours.begin(), theirs.reset()[0])
    for after, done in ENDS:
        outcome = ours.step(np.zeros(3, int))
        obs, reward, terminated, truncated, info = theirs.step(np.zeros(3, int))
        last = np.stack(info["final_obs"]) if done else obs
        np.testing.assert_array_equal(outcome.obs, last)
        np.testing.assert_array_equal(outcome.obs, [after] * 3)
        np.testing.assert_array_equal(outcome.initial_obs, obs)
        np.testing.assert_array_equal(outcome.reward, reward)
        np.testing.assert_array_equal(outcome.terminated, terminated)
        np.testing.assert_array_equal(outcome.truncated, truncated)


def test_every_environment_and_episode_has_a_seed_of_its_own():
    played = Environments(task_of(Moody), 0, 2, 3)
    first, second = played.begin(), played.begin()
    assert len(np.unique(np.concatenate([first, second]))) == 12
    alone = Episode(task_of(Moody), 1)
    np.testing.assert_array_equal([alone.begin(), alone.begin()], [first[3], second[3]])


def test_processes_do_what_is_done_here(moody):
    here = Environments(task_of(Moody), 0, 2, 3)
    np.testing.assert_array_equal(here.begin(), moody.begin())
    for worker, _ in moody._workers:
        os.kill(worker.pid, signal.SIGINT)  # Ctrl-C reaches them too, and they go on
    for x, y in zip(here.step(np.zeros(6, int)), moody.step(np.zeros(6, int)), strict=True):
        np.testing.assert_array_equal(x, y)
    assert here.snapshot().keys() == moody.snapshot().keys()
    assert len(here.snapshot()) == 12
    assert moody.masks == ()


def test_processes_are_brought_back_to_where_they_were(moody):
    moody.begin()
    seen = moody.step(np.array([0, 0, 3, 0, 3, 0])).obs
    saved = moody.snapshot()
    moody.begin()
    lost = moody.restore(saved, seen)
    assert sorted(lost) == [2, 4], "no seed decides what these show; they begin anew"
    after = moody.step(np.zeros(6, int)).obs
    np.testing.assert_array_equal(after[[2, 4]], [lost[2], lost[4]])
    np.testing.assert_array_equal(after[[0, 1, 3, 5]], seen[[0, 1, 3, 5]])


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (1, r"Moody failed in step with ValueError at test_vector.py:\d+: not today, in episode 1 of seed 1, "
            r"environment 2, after 1 steps"),
        (2, "Moody ended the process that it was in"),
    ],
)  # fmt: skip
def test_what_fails_in_a_process_is_said_in_a_sentence_and_no_process_is_left(action, said):
    played = in_processes(Moody)
    workers = [worker for worker, _ in played._workers]
    played.begin()
    played.step(np.zeros(6, int))
    with pytest.raises(RunFailed, match=said):
        played.step(np.array([0, 0, 0, 0, action, 0]))
    assert not any(worker.is_alive() for worker in workers)
    with pytest.raises(RunFailed, match="have ended"):
        played.snapshot()
