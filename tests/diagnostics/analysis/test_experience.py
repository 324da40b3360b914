import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untrained_runs import untrained

from iqrl.core.replay.base import unpack
from iqrl.core.scaling import Moments
from iqrl.diagnostics.analysis.experience import WALKS, gather
from iqrl.envs.base import Task
from iqrl.errors import BadInput


def ladder(limit, end):
    """A state is (start, steps since); a step pays 1 more than the action; it ends after `end` steps."""

    def step(state, action, inputs):
        state = state + jnp.array([0.0, 1.0])
        return state, 1.0 + action, state[1] >= end

    reset = lambda inputs: jnp.stack([inputs.uniforms[0], 0.0])
    return Task("ladder", 2, (0.0, 0.0), (1.0, 10.0), limit, reset, step, lambda state: state, num_reset_uniforms=1)


LIMITED, ENDING = ladder(limit=3, end=100), ladder(limit=100, end=4)


def steps_of(experience, seed=0):
    return jax.tree.map(np.asarray, unpack(jnp.asarray(experience.rows[seed]).T, experience.states.shape[-1]))


def test_transitions_are_as_the_driver_makes_them():
    """One after a time limit goes on, one after an end does not."""
    for task, last, discount in ((LIMITED, 2, 0.9), (ENDING, 3, 0.0)):
        met = gather(untrained("dqn", task, gamma=0.9), 500)
        assert met.rows.shape == (2, 500, 11)
        step = steps_of(met)
        np.testing.assert_array_equal(step.obs_tm1, met.states[0].T)
        np.testing.assert_array_equal(step.obs_t - step.obs_tm1, np.tile([[0], [1]], 500))
        np.testing.assert_array_equal(step.r_t, 1 + step.a_tm1)
        assert set(step.obs_tm1[1]) == set(range(last + 1))
        np.testing.assert_array_equal(step.done, step.obs_tm1[1] == last)
        np.testing.assert_allclose(step.discount_t, np.where(step.done, discount, 0.9))


def test_a_time_limit_is_an_end_where_the_run_has_it_so():
    step = steps_of(gather(untrained("dqn", LIMITED, gamma=0.9, bootstrap_time_limit=False), 300))
    np.testing.assert_allclose(step.discount_t, np.where(step.done, 0.0, 0.9))


def test_situations_have_the_start_and_the_score():
    met = gather(untrained("dqn", ENDING, gamma=0.9), 500)
    obs, first, score = met.inputs[:3]
    np.testing.assert_array_equal(first[..., 0], obs[..., 0])
    assert not first[..., 1].any()
    # Between 1 and 2 a step, and nothing at the start.
    assert (score >= obs[..., 1]).all()
    assert (score <= 2 * obs[..., 1]).all()
    assert len(np.unique(score[obs[..., 1] == 3])) > 1


def test_seeds_and_draws_differ_and_are_repeated():
    result = untrained("dqn", ENDING, gamma=0.9)
    met = gather(result, 300)
    np.testing.assert_array_equal(met.rows, gather(result, 300).rows)
    assert not np.isin(met.rows[0, :, 0], met.rows[1, :, 0]).any()
    assert not np.isin(gather(result, 300, seed=1).rows[:, :, 0], met.rows[:, :, 0]).any()
    # More than the walks of one episode each hold.
    assert len(np.unique(gather(result, 150 * WALKS).rows[0], axis=0)) > 100 * WALKS


def test_every_share_of_random_actions_is_there():
    result = untrained("dqn", ENDING, gamma=0.9)
    greedy = gather(result, 10_000).rows[..., -1]
    # Half of the random actions are greedy by chance; ε is 0.51 in the mean.
    assert abs(greedy.mean() - (1 - 0.51 / 2)) < 0.01
    met = gather(result, 500, epsilon=(0.0, 0.0))
    step = steps_of(met, seed=1)
    assert step.greedy.all()
    np.testing.assert_array_equal(step.a_tm1, result.agents[1].predict(met.states[1]))


@pytest.mark.parametrize("method", ["iq", "iq-initial-states", "iq-game-score"])
def test_contexts_are_those_of_the_agent(method):
    settings = {"score_high": 10.0} if method == "iq-game-score" else {}
    result = untrained(method, ENDING, gamma=0.9, **settings)
    met, agent = gather(result, 300), result.agents[1]
    _, first, score = (np.asarray(part[1]) for part in met.inputs[:3])
    step = steps_of(met, seed=1)
    for i in range(40):
        assert step.context_tm1[i] == agent.context(step.obs_tm1[:, i], first=first[i], score=score[i])
        assert step.context_t[i] == agent.context(step.obs_t[:, i], first=first[i], score=score[i] + step.r_t[i])
    np.testing.assert_array_equal(met.contexts[1], step.context_tm1)
    assert len(np.unique(met.contexts)) > 1


def test_n_step_transitions_are_joined_and_keep_their_first_state():
    met = gather(untrained("dqn", ENDING, gamma=0.5, n_step=2), 500)
    step = steps_of(met)
    np.testing.assert_array_equal(step.obs_tm1, met.states[0].T)
    ends, last = step.obs_tm1[1] == 2, step.obs_tm1[1] == 3
    np.testing.assert_array_equal(step.obs_t[1], np.where(last, 4, step.obs_tm1[1] + 2))
    np.testing.assert_allclose(step.discount_t, np.where(ends | last, 0.0, 0.25))
    later = np.where(last, 0.0, (step.r_t - 1 - step.a_tm1) / 0.5)
    assert set(later[~last]) == {1.0, 2.0}


def test_rewards_are_on_the_learners_scale():
    """The running return of this agent has a variance of 4."""
    result = untrained("stream-q", ENDING, gamma=0.9)
    preprocessor = result.agent_state.preprocessor
    moments = Moments(jnp.full(2, 1e5), jnp.zeros((2, 1)), jnp.full((2, 1), 4e5))
    state = result.agent_state._replace(preprocessor=preprocessor._replace(traces=moments))
    step = steps_of(gather(dataclasses.replace(result, agent_state=state), 300))
    np.testing.assert_allclose(step.r_t, (1 + step.a_tm1) / 2, rtol=1e-3)


def test_what_cannot_be_is_refused():
    result = untrained("dqn", ENDING, gamma=0.9)
    with pytest.raises(BadInput, match="count is 0"):
        gather(result, 0)
    with pytest.raises(BadInput, match="from low to high"):
        gather(result, 10, epsilon=(0.5, 0.1))
