"""IQ-RE on Atari: the program that trains has independent heads and a λ that moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("ale_py", reason="ale-py plays the Atari games: pip install '.[atari]'")
pytest.importorskip("cv2", reason="OpenCV shrinks the screens: pip install '.[atari]'")

from records import learn_uniforms, without_cache

import iqrl
from iqrl.core.replay.sum_tree import with_weights
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.training.loop import driver_of

SMALL = {
    "steps": 160, "period": 80, "learning_starts": 40, "target_period": 40, "epsilon_begin": 80, "epsilon_decay": 80,
    "buffer_size": 100, "hidden": (32,), "batch_size": 8, "optimiser": "adam", "learning_rate": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def trained():
    return iqrl.train("ALE/Pong-v5", "iq-re", **SMALL)


def test_heads_are_trained_apart(trained):
    """Independent at the start, and each moved in its own way."""
    run = resolve("ALE/Pong-v5", "iq-re", **SMALL)
    start, end = jax.jit(driver_of(run).init)().agent.params, trained.agent_state.params
    for before, after in (
        (start["own"][0]["w"][0], end["own"][0]["w"][0]),
        (start["heads"]["w"][0], end["heads"]["w"][0]),
    ):
        moved = np.asarray(after) - np.asarray(before)
        assert len(moved) == 4
        for i in range(4):
            for j in range(i):
                assert np.abs(before[i] - before[j]).max() > 0.01
                assert np.abs(moved[i] - moved[j]).max() > 1e-5


def test_lambda_is_one_minus_epsilon_of_the_step(trained):
    """ε is 1 until step 80, and falls from there."""
    rows = trained.metrics.sort("step")
    np.testing.assert_allclose(rows["distillation_weight"], 1 - rows["epsilon"], rtol=1e-5)
    np.testing.assert_allclose(rows["epsilon"], [1.0, 1 - 0.99 * 79 / 80], rtol=1e-4)
    assert (rows["distillation_loss"] > 0).all()


@pytest.mark.parametrize("method", ["iq-re", "rainbow-iq-re"])
def test_lambda_moves_inside_the_update(method):
    """The heads not in use are moved by distillation alone: by nothing while ε is 1, and by more the smaller it is."""
    run = resolve("ALE/Pong-v5", method, **SMALL)
    agent = without_cache(driver_of(run).agent)
    state = jax.jit(agent.init)(jax.random.key(0))
    away = jax.tree.map(lambda leaf: leaf + 0.05, state.params)
    replay, sampler = state.replay, state.replay.sampler
    noise = jax.random.randint(jax.random.key(1), replay.frames.shape, 0, 256).astype(jnp.uint8)
    if sampler:
        sampler = sampler._replace(tree=with_weights(sampler.tree, jnp.arange(40), jnp.ones(40)))
    # Fifty steps of one long episode, all in context 0, each of which ends the world.
    replay = replay._replace(
        frames=noise, row=jnp.arange(replay.row.size), age=jnp.full_like(replay.age, 9), count=jnp.int32(50),
        facts=replay.facts.at[:, 2].set(0.0), next_row=jnp.int32(50), sampler=sampler,
    )  # fmt: skip
    state = state._replace(target=state.target._replace(params=away), replay=replay)
    learn, random = jax.jit(agent.learn), learn_uniforms(agent)

    def moved(t):
        momentum = learn(state, jnp.int32(t), random)[0].optimiser[1][0].mu["heads"]["b"]
        return np.asarray(momentum)[1:].ravel()

    # The step decides ε and which transitions are the newest; nothing newer is stored, so that only λ changes.
    at_start, halfway, after = (moved(t) for t in (49, 120, 170))
    assert (at_start == 0).all()
    assert 1e-5 < np.abs(halfway).max() < np.abs(after).max()


def test_what_is_learned_from_is_clipped():
    task = make_task(resolve("ALE/FishingDerby-v5", "dqn", **SMALL))
    np.testing.assert_array_equal(task.external_reward(np.float32([-6.0, 0.0, 0.5, 200.0])), [-1.0, 0.0, 0.5, 1.0])


def test_it_goes_on_bit_for_bit(trained, tmp_path):
    iqrl.train("ALE/Pong-v5", "iq-re", **(SMALL | {"steps": 80}), out=tmp_path / "run")
    resumed = iqrl.resume(tmp_path / "run", steps=160)
    assert trained.metrics.equals(resumed.metrics, null_equal=True)
    for x, y in zip(jax.tree.leaves(trained.agent_state), jax.tree.leaves(resumed.agent_state), strict=True):
        np.testing.assert_array_equal(x, y)


def test_frames_are_written_in_place():
    """A step of the program that trains needs no second copy of the buffer."""
    run = resolve("ALE/Pong-v5", "dqn", **(SMALL | {"buffer_size": 20_000}))
    learn = driver_of(run).parts().learn
    memory = jax.jit(learn.function, donate_argnums=(0, 1)).lower(*learn.given).compile().memory_analysis()
    frames = 20_000 * 84 * 84
    assert memory.alias_size_in_bytes > frames
    assert memory.temp_size_in_bytes < frames / 2


def test_an_unknown_game_is_a_sentence():
    with pytest.raises(iqrl.BadInput, match="Breakout"):
        resolve("ALE/Brakeout-v5", "dqn")
