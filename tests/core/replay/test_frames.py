"""The replay of images against a plain Python one that keeps every observation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from records import step as transition

from iqrl.core.replay.frames import frame_replay
from iqrl.core.replay.sampling import prioritised, uniform, whole

FRAME, GAMMA = 3, 0.5


def episodes(lengths, stack, truncated=(), first=0):
    """The steps of episodes of these lengths, each with its observations as the agent saw them."""
    steps, number = [], first
    for episode, length in enumerate(lengths):
        frames = [np.zeros(FRAME, np.uint8)] * (stack - 1)
        frames += [np.uint8([number + i, episode, i]) for i in range(length + 1)]
        number += length + 1
        see = lambda i, frames=frames: np.concatenate(frames[i : i + stack])
        for i in range(length):
            done = i == length - 1
            discount = 0.0 if done and episode not in truncated else GAMMA
            step = transition(
                see(i), see(i + 1), a_tm1=len(steps) % 4, r_t=len(steps), discount_t=discount, context_tm1=i % 3,
                context_t=(i + 1) % 3, done=done,
            )  # fmt: skip
            steps.append(jax.device_get(step))
    return steps


def returns_of(steps, start, n):
    """What the n-step transition from step `start` must be, by the definition."""
    reward, discount = 0.0, 1.0
    for i in range(n):
        step = steps[start + i]
        reward += discount * step.r_t
        discount *= step.discount_t
        if step.done:
            break
    return reward, discount, step


@functools.cache
def compiled(capacity, stack, n, sampling):
    sampler = {"uniform": uniform(64), "prioritised": prioritised(64, 0.5, 0.5), "whole": whole}
    replay = frame_replay(capacity, FRAME, stack, sampler[sampling], n_step=n)
    return replay, jax.jit(replay.add), jax.jit(replay.sample)


def stored(steps, capacity, stack, n, sampling="uniform"):
    replay, add, sample = compiled(capacity, stack, n, sampling)
    kept = replay.init()
    for t, step in enumerate(steps):
        kept = add(kept, step, jnp.int32(t))
    return replay, kept, sample


def check(steps, batch, n):
    """Every sampled transition is what it must be; the numbers of those that were drawn."""
    drawn = jax.device_get(batch.transitions)
    numbers = []
    for i in range(drawn.r_t.size):
        start = next(j for j, step in enumerate(steps) if np.array_equal(step.obs_tm1, drawn.obs_tm1[:, i]))
        reward, discount, last = returns_of(steps, start, n)
        assert float(drawn.r_t[i]) == pytest.approx(reward)
        assert float(drawn.discount_t[i]) == pytest.approx(discount)
        np.testing.assert_array_equal(drawn.obs_t[:, i], last.obs_t)
        assert int(drawn.a_tm1[i]) == steps[start].a_tm1
        assert (int(drawn.context_tm1[i]), int(drawn.context_t[i])) == (steps[start].context_tm1, last.context_t)
        assert bool(drawn.done[i]) == last.done
        numbers.append(start)
    return set(numbers)


KINDS = [
    (1, 4, 3, "uniform"), (1, 4, 3, "prioritised"), (2, 4, 1, "prioritised"), (7, 1, 1, "uniform"),
    (7, 4, 3, "prioritised"), (20, 4, 1, "uniform"),
]  # fmt: skip
"""capacity, stack, n and sampling: each is compiled"""


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
)
@example(lengths=[5, 1, 1], kind=(1, 4, 3, "uniform"), seed=4)
@example(lengths=[1] * 5, kind=(1, 4, 3, "prioritised"), seed=4)
def test_what_is_sampled_is_what_the_agent_saw(lengths, kind, seed):
    capacity, stack, n, sampling = kind
    steps = episodes(lengths, stack, truncated={seed % len(lengths)})
    count = min(len(steps), n + 3 + seed % 40)
    if count < n:
        return
    _, kept, sample = stored(steps[:count], capacity, stack, n, sampling)
    batch = sample(kept, jnp.int32(count - 1), jax.random.uniform(jax.random.key(seed), (64,)))
    numbers = check(steps, batch, n)
    assert min(numbers) >= max(0, count - (n - 1) - capacity)
    assert max(numbers) <= count - n


def test_holds_as_many_transitions_as_it_says_in_a_long_episode():
    steps = episodes([60], stack=4)
    _, kept, sample = stored(steps, 20, 4, 1)
    batch = sample(kept, jnp.int32(59), jnp.linspace(0.0, 0.999, 64))
    assert check(steps, batch, 1) == set(range(40, 60))


def test_the_ends_of_short_episodes_take_room_and_nothing_stale_is_drawn():
    """Episodes of one step need two frames each: of 20 transitions about half are kept."""
    steps = episodes([1] * 60, stack=4)
    for sampling in ("uniform", "prioritised"):
        _, kept, sample = stored(steps, 20, 4, 1, sampling)
        batch = sample(kept, jnp.int32(59), jnp.linspace(0.0, 0.999, 64))
        numbers = check(steps, batch, 1)
        assert max(numbers) == 59
        assert numbers == set(range(min(numbers), 60))
        assert 9 <= len(numbers) <= 20


def test_the_whole_of_it_is_a_batch():
    steps = episodes([60], stack=4)
    _, kept, sample = stored(steps, 7, 4, 1, "whole")
    assert check(steps, sample(kept, jnp.int32(59), jnp.zeros(1)), 1) == set(range(53, 60))


def test_labels_are_given_anew():
    steps = episodes([5, 70, 8], stack=4)
    replay, kept, sample = stored(steps, 200, 4, 1)
    label = lambda obs: (obs[-FRAME] % 5).astype(jnp.int32)
    kept = jax.jit(lambda kept: replay.relabel(kept, label))(kept)
    drawn = sample(kept, jnp.int32(len(steps) - 1), jnp.linspace(0.0, 0.999, 64)).transitions
    np.testing.assert_array_equal(drawn.context_tm1, np.asarray(drawn.obs_tm1)[-FRAME] % 5)
    np.testing.assert_array_equal(drawn.context_t, np.asarray(drawn.obs_t)[-FRAME] % 5)
    assert len(set(np.asarray(drawn.context_tm1).tolist())) == 5


def test_it_is_written_in_place():
    """No copy of the frames per step: the compiled step needs hardly more memory than it is given."""
    replay = frame_replay(50_000, 400, 4, uniform(32))
    like, pixels = jax.eval_shape(replay.init), np.zeros(1600, np.uint8)
    given_ = jax.eval_shape(lambda: transition(pixels, pixels))

    def add_and_sample(kept, step, t, uniforms):
        kept = replay.add(kept, step, t)
        return kept, replay.sample(kept, t, uniforms).transitions.obs_t.sum()

    number, uniforms = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((32,), jnp.float32)
    memory = jax.jit(add_and_sample, donate_argnums=0).lower(like, given_, number, uniforms).compile().memory_analysis()
    frames = 50_000 * 400
    assert memory.argument_size_in_bytes > frames
    assert memory.temp_size_in_bytes < frames / 20
    assert memory.alias_size_in_bytes > frames


@pytest.mark.parametrize(("n", "every"), [(1, 1), (1, 4), (3, 4)])
def test_states_are_known_by_their_numbers(n, every):
    """Those of a batch, and all that an update may meet for the first time: across ends and around the ring."""
    replay = frame_replay(20, FRAME, 4, uniform(64), n_step=n, update_every=every)
    steps = episodes([1, 9, 1, 1, 2, 30, 3, 1, 1, 1, 1, 1, 12], stack=4)
    add, sample, states = jax.jit(replay.add), jax.jit(replay.sample), jax.jit(replay.states.get)
    newest, kept, seen = jax.jit(replay.states.newest), replay.init(), set()
    for number, step in enumerate(steps):
        t = jnp.int32(number)
        kept = add(kept, step, t)
        if number < 11:
            continue
        if (number + 1) % every == 0:
            seen |= {state.tobytes() for state in np.asarray(states(kept, newest(kept, t).ravel()))}
            batch = sample(kept, t, jnp.linspace(0.0, 0.999, 64))
            for numbers, obs in zip(batch.states, (batch.transitions.obs_tm1, batch.transitions.obs_t), strict=True):
                np.testing.assert_array_equal(states(kept, numbers), np.asarray(obs).T)
                since = np.asarray(obs).T[:, -FRAME] >= steps[12].obs_tm1[-FRAME]  # what was stored from step 12 on
                assert {state.tobytes() for state in np.asarray(obs).T[since]} <= seen


def test_labels_are_given_to_the_stack_that_was_seen():
    """The label is of the oldest frame, which is there from the fourth observation of an episode on."""
    steps = episodes([2, 6], stack=4)
    replay, kept, sample = stored(steps, 200, 4, 1)
    label = lambda obs: (obs[0] + (obs[FRAME] > 0)).astype(jnp.int32)
    kept = jax.jit(lambda kept: replay.relabel(kept, label))(kept)
    drawn = sample(kept, jnp.int32(len(steps) - 1), jnp.linspace(0.0, 0.999, 64)).transitions
    expected = lambda obs: np.int32(obs[0]) + (obs[FRAME] > 0)
    np.testing.assert_array_equal(drawn.context_tm1, expected(np.asarray(drawn.obs_tm1)))
    np.testing.assert_array_equal(drawn.context_t, expected(np.asarray(drawn.obs_t)))
    assert set(np.asarray(drawn.context_t).tolist()) >= {0, 1}


def test_environments_that_take_turns_have_frames_of_their_own():
    """Long episodes in one; in the other also short ones, whose ends take room."""
    n, every = 3, 4
    replay = frame_replay(20, FRAME, 4, prioritised(64, 0.5, 0.5), n_step=n, update_every=every, n_envs=2)
    lengths = ([9, 30, 21], 0), ([1] * 5 + [12] + [1] * 43, 100)
    streams = [jax.device_get(episodes(each, stack=4, first=first)) for each, first in lengths]
    add, sample = jax.jit(replay.add), jax.jit(replay.sample)
    states, newest = jax.jit(replay.states.get), jax.jit(replay.states.newest)
    kept, seen = replay.init(), set()
    for t in range(120):
        kept = add(kept, streams[t % 2][t // 2], jnp.int32(t))
        if (t + 1) % every == 0:
            seen |= {state.tobytes() for state in np.asarray(states(kept, newest(kept, jnp.int32(t)).ravel()))}
        if (t + 1) % 40 == 0:
            batch = jax.device_get(sample(kept, jnp.int32(t), jnp.linspace(0.0, 0.999, 64)))
            numbers = check(streams[0] + streams[1], batch, n)
            drawn = sorted(2 * number if number < 60 else 2 * (number - 60) + 1 for number in numbers)
            assert drawn == list(range(drawn[0], t - 2 * (n - 1) + 1))
            assert 6 <= len(drawn) <= 20
            for places, obs in zip(batch.states, (batch.transitions.obs_tm1, batch.transitions.obs_t), strict=True):
                np.testing.assert_array_equal(states(kept, places), np.asarray(obs).T)
                assert {state.tobytes() for state in np.asarray(obs).T} <= seen
