from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from untrained_runs import untrained

from iqrl.core import randomness
from iqrl.core.replay.base import pack
from iqrl.core.types import Transition
from iqrl.diagnostics.analysis.context_matrix import compute_losses, fix_target, prepare_agent, train_on


def rows_of(count, size=4):
    """Steps in the middle of an episode, all greedy."""

    def row(key):
        obs = jax.random.normal(key, (2, size))
        return pack(Transition(obs[0], 0, 1.0, 0.9, obs[1], 0, 0, done=False, greedy=True))

    return jax.vmap(row)(jax.random.split(jax.random.key(1), count))


def first_seed(result):
    return fix_target(jax.tree.map(lambda leaf: leaf[0], result.agent_state))


def training(result):
    """The compiled training of the first seed on members of rows."""
    agent = prepare_agent(result)
    uniforms = np.random.default_rng(0).random((20, randomness.count(agent.learn_uniforms)), dtype=np.float32)
    return jax.jit(lambda rows, members: train_on(agent, first_seed(result), rows, members, 999, uniforms).params)


def test_only_members_are_learned_from():
    """What the others are makes no difference."""
    members = jnp.arange(12) < 5
    train = partial(training(untrained("dqn")), members=members)
    rows = rows_of(12)
    same = jax.tree.map(np.array_equal, train(rows), train(rows.at[5:].set(7.0)))
    other = jax.tree.map(np.array_equal, train(rows), train(rows.at[4].set(7.0)))
    assert all(jax.tree.leaves(same))
    assert not any(jax.tree.leaves(other))


def test_no_trace_runs_from_one_row_to_the_next():
    everything = rows_of(12), jnp.ones(12, bool)
    short, long = (training(untrained("stream-q", trace_decay=decay))(*everything) for decay in (0.0, 0.8))
    for a, b in zip(jax.tree.leaves(short), jax.tree.leaves(long), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_target_stands_still_also_where_the_method_has_none():
    """The loss by hand: Huber of Q(s, 0) - (1 + 0.9 max Q⁻(s', ·))."""
    result, rows = untrained("stream-q"), rows_of(12)
    state, agent = first_seed(result), prepare_agent(result)
    moved = jax.tree.map(lambda leaf: leaf + 0.1, state.params)
    ask = jax.jit(
        lambda params, obs: agent.network.apply(params, agent.preprocessor.encode(state.preprocessor, obs)).q[0]
    )
    for row, loss in zip(rows, jax.jit(partial(compute_losses, agent))(moved, state, rows), strict=True):
        error = ask(moved, row[:4])[0] - 1 - 0.9 * ask(state.params, row[4:8]).max()
        np.testing.assert_allclose(loss, 0.5 * error**2 if abs(error) < 1 else abs(error) - 0.5, rtol=1e-3)
