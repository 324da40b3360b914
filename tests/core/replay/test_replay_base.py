"""Packed rows; n-step returns by hand, and against the full list of steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import step as transition

from iqrl.core.replay.base import (
    empty_window,
    n_step_transition,
    pack,
    push_window,
    relabel_rows,
    row_width,
    unpack,
)

GAMMA = 0.5


def step(t, reward, end=""):
    """Everything about step t says t; it leads to t + 0.5. It may end its episode: for good, or by a time limit."""
    return transition(
        (t, 1.0), (t + 0.5, 2.0), a_tm1=t % 4, r_t=reward, discount_t=0 if end == "terminal" else GAMMA,
        context_tm1=t % 3, context_t=t % 5, done=end != "", greedy=t % 2 == 0,
    )  # fmt: skip


@pytest.mark.parametrize(("actions", "numbers"), [(0, 0), (1, 1), (12, 1), (13, 2), (100, 9)])
def test_pack_and_unpack_are_inverse(actions, numbers):
    """The bits of both masks are in so many numbers."""
    masks = np.random.default_rng(actions).random((2, actions)) < 0.5 if actions else ((), ())
    given_ = transition(
        (1.0, 2.0), (4.0, 5.0), a_tm1=3, r_t=-0.5, context_tm1=2, context_t=1, done=True, greedy=False,
        mask_tm1=masks[0], mask_t=masks[1],
    )  # fmt: skip
    row = pack(given_)
    assert row.shape == (row_width(2, actions),) == (2 * 2 + 7 + numbers,)
    for one, other in zip(jax.tree.leaves(given_), jax.tree.leaves(unpack(row, 2, actions)), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_relabelled_rows_differ_in_their_labels_alone():
    rows = jnp.stack([pack(step(t, 1.0)) for t in range(4)])
    after = [unpack(row, 2) for row in relabel_rows(rows, 2, lambda obs: (10 * obs[0]).astype(jnp.int32))]
    assert [(int(one.context_tm1), int(one.context_t)) for one in after] == [(10 * t, 10 * t + 5) for t in range(4)]
    for t, one in enumerate(after):
        for x, y in zip(
            one._replace(context_tm1=0, context_t=0), step(t, 1.0)._replace(context_tm1=0, context_t=0), strict=True
        ):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("ends", "total", "discount", "last"),
    [
        (("", "", ""), 1 + 0.5 * 2 + 0.25 * 4, 0.125, 12),
        (("", "", "terminal"), 1 + 0.5 * 2 + 0.25 * 4, 0, 12),
        (("", "", "limit"), 1 + 0.5 * 2 + 0.25 * 4, 0.125, 12),
        (("", "terminal", ""), 1 + 0.5 * 2, 0, 11),
        (("", "limit", ""), 1 + 0.5 * 2, 0.25, 11),
        (("terminal", "", ""), 1, 0, 10),
        (("limit", "", "terminal"), 1, 0.5, 10),
        (("terminal", "terminal", ""), 1, 0, 10),
    ],
)
def test_three_steps_by_hand(ends, total, discount, last):
    """Rewards 1, 2 and 4 in steps 10, 11 and 12."""
    found = n_step_transition([step(10 + i, 2**i, end) for i, end in enumerate(ends)])
    assert (float(found.r_t), float(found.discount_t)) == (total, discount)
    # begins as step 10 does, leads to where the last step that counts does
    np.testing.assert_array_equal(found.obs_tm1, [10, 1])
    assert (int(found.a_tm1), int(found.context_tm1), bool(found.greedy)) == (10 % 4, 10 % 3, True)
    np.testing.assert_array_equal(found.obs_t, [last + 0.5, 2])
    assert int(found.context_t) == last % 5
    assert bool(found.done) == (ends[last - 10] != "")


def test_one_step_is_the_step_itself():
    window = empty_window(1, 2)
    for t in range(3):
        given_ = step(t, t, "terminal" if t == 1 else "")
        window, found = push_window(window, given_)
        assert found is given_
    assert window.shape[0] == 0


def naive(steps, i, n):
    """From the full list: rewards and discounts from step i to the end of its episode, n at most."""
    total, discount = 0.0, 1.0
    for end in range(i, i + n):
        total += discount * float(steps[end].r_t)
        discount *= float(steps[end].discount_t)
        if steps[end].done:
            break
    return steps[i]._replace(
        r_t=total, discount_t=discount, obs_t=steps[end].obs_t, context_t=steps[end].context_t, done=steps[end].done
    )


@pytest.mark.parametrize("n", [2, 3, 5])
@settings(deadline=None, max_examples=15)
@given(stream=st.lists(st.tuples(st.integers(-9, 9), st.sampled_from(["", "", "", "terminal", "limit"])), max_size=20))
def test_every_step_comes_out_n_minus_one_steps_later(n, stream):
    steps = [step(t, reward, end) for t, (reward, end) in enumerate(stream)]
    through, window = jax.jit(push_window), empty_window(n, 2)
    for t, given_ in enumerate(steps):
        window, found = through(window, given_)
        assert window.shape[0] == n - 1
        if t >= n - 1:
            for part, expected in zip(found, naive(steps, t - (n - 1), n), strict=True):
                np.testing.assert_allclose(part, expected, rtol=1e-6)
