"""Atari beside Gymnasium's own wrappers, frame by frame; exact snapshots; the paper's protocol."""

import sys

import gymnasium
import numpy as np
import pytest
import safetensors.numpy

ale_py = pytest.importorskip("ale_py", reason="ale-py plays the Atari games: pip install '.[atari]'")
pytest.importorskip("cv2", reason="OpenCV shrinks the screens: pip install '.[atari]'")

from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from iqrl.envs.atari import AtariGame, game_names, rom_of
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import resolve

# The smallest action set of each game.
ACTIONS = {"Pong": 6, "Breakout": 4, "Carnival": 6, "Freeway": 3, "Tennis": 18, "FishingDerby": 18}


def gymnasiums(task, sticky):
    env = gymnasium.make(task, frameskip=1, repeat_action_probability=sticky, disable_env_checker=True)
    return FrameStackObservation(AtariPreprocessing(env, noop_max=0), 4, padding_type="zero")


def assert_same_picture(ours, theirs):
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("game", "sticky", "steps"),
    [(game, 0.0, 260) for game in ACTIONS] + [("Breakout", 0.25, 120), ("Tennis", 0.25, 120)],
)
def test_plays_like_gymnasium(game, sticky, steps):
    """Sticky frames too: the same seed makes the same episodes, also after resets in the middle and without a seed."""
    task = f"ALE/{game}-v5"
    ours, theirs = AtariGame(task, sticky=sticky), gymnasiums(task, sticky)
    assert ours.action_space.n == theirs.action_space.n == ACTIONS[game]
    assert_same_picture(ours.reset(seed=7)[0], theirs.reset(seed=7)[0])
    rng, ends = np.random.default_rng(0), 0
    for step in range(1, steps + 1):
        action = int(rng.integers(ACTIONS[game]))
        observation, *outcome, info = ours.step(action)
        expected, *expected_outcome, expected_info = theirs.step(action)
        assert_same_picture(observation, expected)
        assert outcome == expected_outcome
        assert info["lives"] == expected_info["lives"]
        ends += outcome[1]
        if outcome[1] or step == 40:
            assert_same_picture(ours.reset()[0], theirs.reset()[0])
    assert ends > 0 or game != "Breakout" or steps < 200


@pytest.mark.parametrize("game", ["Pong", "Breakout", "FishingDerby", "Qbert"])
def test_goes_on_from_a_snapshot_as_if_never_broken(game):
    """Into a game in its first episode and into one that was played on; across ends, after ends, right after resets.

    ALE's own saved state would not do: it forgets the action that may stick and, in Qbert, more.
    """
    steps, limit = 110, 23
    game_played, restored = (AtariGame(f"ALE/{game}-v5", time_limit=limit) for _ in range(2))
    rng = np.random.default_rng(0)
    actions = rng.integers(game_played.action_space.n, size=steps).tolist()
    game_played.reset(seed=3)
    history, saved = [], {}
    for step, action in enumerate(actions):
        if step in {0, 2, limit - 1, limit} or rng.random() < 0.06:
            saved[step] = safetensors.numpy.save(game_played.snapshot())
        history.append(moment(game_played, action))
    assert sum(over for *_, over in history) >= 4
    assert len(saved) >= 7
    for step, snapshot in saved.items():
        restored.restore(safetensors.numpy.load(snapshot))
        for then, action in enumerate(actions[step : step + 2 * limit], step):
            assert moment(restored, action) == history[then], f"saved before step {step}, differs in step {then}"


def moment(env, action):
    """All that is seen of a step; an episode that is over is followed by the next one first."""
    fresh = env.reset()[0].tobytes() if env._over else None
    observation, reward, terminated, truncated, info = env.step(action)
    return fresh, observation.tobytes(), reward, terminated, info["lives"], terminated or truncated


def test_snapshots_are_small_and_only_of_their_game():
    pong = AtariGame("ALE/Pong-v5")
    with pytest.raises(ResetNeeded):
        pong.snapshot()
    pong.reset(seed=0)
    for _ in range(10):
        pong.step(0)
    snapshot = pong.snapshot()
    assert all(type(array) is np.ndarray and array.dtype == np.uint8 for array in snapshot.values())
    assert sum(array.nbytes for array in snapshot.values()) < 30_000
    for other in (AtariGame("ALE/Breakout-v5"), AtariGame("ALE/Pong-v5", sticky=0.0)):
        with pytest.raises(BadInput, match=r"a snapshot of .*Pong.*0\.25.* cannot be restored into AtariGame"):
            other.restore(snapshot)


def test_an_old_snapshot_does_not_change_as_the_game_goes_on():
    pong = AtariGame("ALE/Pong-v5")
    pong.reset(seed=0)
    snapshot = pong.snapshot()
    copies = {name: array.copy() for name, array in snapshot.items()}
    pong.step(0)
    pong.reset()
    assert all(np.array_equal(snapshot[name], copies[name]) for name in copies)


def test_truncates_exactly_at_the_limit():
    env = AtariGame("ALE/Pong-v5", time_limit=30)
    env.reset(seed=0)
    for _ in range(2):
        ends = [env.step(0)[2:4] for _ in range(30)]
        assert ends == [(False, False)] * 29 + [(False, True)]
        with pytest.raises(ResetNeeded):
            env.step(0)
        env.reset()
    assert AtariGame("ALE/Pong-v5").time_limit == 27_000


def test_a_lost_life_does_not_end_the_episode():
    env = AtariGame("ALE/Breakout-v5")
    lives, terminated = [env.reset(seed=0)[1]["lives"]], False
    while not terminated:
        _, _, terminated, truncated, info = env.step(1)  # FIRE: serves, and misses
        lives.append(info["lives"])
        assert terminated == (info["lives"] == 0)
        assert not truncated
    assert sorted(set(lives)) == [0, 1, 2, 3, 4, 5]


def test_stack_starts_empty_and_the_newest_is_last():
    env = AtariGame("ALE/Breakout-v5")
    first, _ = env.reset(seed=0)
    second = env.step(1)[0]
    third = env.step(2)[0]
    assert first.shape == (4, 84, 84)
    assert first.dtype == np.uint8
    assert not first[:3].any()
    assert first[3].any()
    np.testing.assert_array_equal(second[:3], first[1:])
    np.testing.assert_array_equal(third[:3], second[1:])
    assert (third[3] != third[1]).any()
    np.testing.assert_array_equal(env.reset()[0][:3], 0)


def test_observations_already_given_stay_as_they_were():
    env = AtariGame("ALE/Breakout-v5")
    given = [env.reset(seed=0)[0]] + [env.step(action)[0] for action in (1, 2, 2)]
    copies = [observation.copy() for observation in given]
    env.step(3)
    np.testing.assert_array_equal(given, copies)


def test_rewards_are_the_games_own():
    env = AtariGame("ALE/Carnival-v5")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    rewards = [env.step(int(rng.integers(6)))[1] for _ in range(120)]
    assert max(rewards) >= 20


PADDLE_PER_FRAME = 23_000


def paddle(env):
    """Where ALE holds the paddle: the first number of its state."""
    return int(np.frombuffer(env._console.cloneState().serialize()[:4], "<i4")[0])


@pytest.mark.parametrize("sticky", [0.0, 0.25, 0.6])
def test_actions_stick_as_often_as_asked(sticky):
    """Left and right in turn: each frame moves Breakout's paddle by a fixed amount in the direction in force."""
    env = AtariGame("ALE/Breakout-v5", sticky=sticky)
    env.reset(seed=1)
    right, left, turns = 2, 3, 300
    env.step(left)
    stuck = []
    for turn in range(turns):
        before = paddle(env)
        env.step(left if turn % 2 else right)
        stuck.append(abs(paddle(env) - before) < 4 * PADDLE_PER_FRAME)
    assert np.mean(stuck) == pytest.approx(sticky, abs=3 * np.sqrt(sticky * (1 - sticky) / turns))


def test_sticky_by_default_as_in_the_paper():
    """No setting is read back from ALE: the default makes the episode that 0.25 makes, and not the one 0 makes."""
    played = []
    for settings in ({}, {"sticky": 0.25}, {"sticky": 0.0}):
        env = AtariGame("ALE/Breakout-v5", **settings)
        env.reset(seed=1)
        played.append([env.step(action)[0].tobytes() for action in [1, 2, 3, 3, 2, 2] * 5])
    assert played[0] == played[1] != played[2]


def test_keeps_to_gymnasiums_rules():
    check_env(AtariGame("ALE/Pong-v5", time_limit=50), skip_render_check=True)


def test_names_of_games():
    names = game_names()
    assert {"Pong", "Breakout", "FishingDerby", "MontezumaRevenge"} <= set(names)
    assert len(names) == len(set(names)) >= 100
    assert "Combat" not in names
    assert rom_of("ALE/FishingDerby-v5") == "fishing_derby"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ALE/Brekout-v5", "unknown Atari game 'Brekout'; did you mean Breakout?"),
        ("ALE/fishing_derby-v5", "unknown Atari game 'fishing_derby'; did you mean FishingDerby?"),
        ("Pong", "an Atari task is named like ALE/Pong-v5, got 'Pong'."),
        ("ALE/Pong-v50", "an Atari task is named like ALE/Pong-v5, got 'ALE/Pong-v50'."),
        ("ALE/Pong-v4", "an Atari task is named like ALE/Pong-v5, got 'ALE/Pong-v4'."),
    ],
)
def test_unknown_names(name, sentence):
    with pytest.raises(BadInput) as refused:
        AtariGame(name)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("package", ["ale_py", "cv2"])
def test_missing_packages(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput, match=rf'Atari games need more packages \(.*{package}.*\): pip install "\.\[atari\]"'):
        AtariGame("ALE/Pong-v5")


@pytest.mark.parametrize("settings", [{"sticky": -0.1}, {"sticky": 1.0}, {"time_limit": 0}])
def test_settings_out_of_range(settings):
    with pytest.raises(BadInput, match=f"{next(iter(settings))} must be"):
        AtariGame("ALE/Pong-v5", **settings)


def test_how_often_actions_stick_is_a_setting():
    for given, sticky in (({}, 0.25), ({"sticky": 0.0}, 0.0)):
        assert make_task(resolve("ALE/Breakout-v5", "dqn", **given)).external(0).sticky == sticky
