"""Action masks in acting, in the target, in what is distilled and in replay, with numbers computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import act_uniforms, context_inputs, learn_uniforms, loss_inputs, output, step

from iqrl.core import losses
from iqrl.core.agent import plain_form
from iqrl.core.bounded_step import traced_q
from iqrl.core.categorical import categorical, even_support
from iqrl.core.masks import draw_action
from iqrl.core.networks import Output, expectation
from iqrl.core.randomness import count
from iqrl.core.replay import frame_replay, ring_replay, uniform
from iqrl.core.schedules import constant
from iqrl.core.sparse_hats import SparseHats
from iqrl.core.types import Choice, Experience
from iqrl.diagnostics.interference.probes import action_gap
from iqrl.diagnostics.interference.td_errors import one_step_errors
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.iq import distillation
from iqrl.methods.medqn import on_replayed_states
from iqrl.methods.registry import build_agent

# The target

ONLINE, ONLINE_NEXT, TARGET_NEXT = [[1.0, 2.0, 3.0]], [[9.0, 5.0, 7.0]], [[8.0, 2.0, 3.0]]
LEGAL_NEXT = [False, True, True]


def sample(**step_of):
    """One head of three actions: action 1, reward 0.5, γ = 0.9; action 0 is illegal in s'."""
    transition = step(**({"a_tm1": 1, "r_t": 0.5, "mask_tm1": [True, True, False], "mask_t": LEGAL_NEXT} | step_of))
    return loss_inputs(transition, output(ONLINE), output(ONLINE_NEXT), output(ONLINE), output(TARGET_NEXT))


@pytest.mark.parametrize(
    ("next_value", "expected"),
    [
        # max(2, 3) and not 8: y = 0.5 + 0.9 · 3 = 3.2
        (losses.max_value, 2 - 3.2),
        # θ prefers action 2 of the legal ones (7 > 5) and not action 0 (9); θ⁻ values it 3
        (losses.double_value, 2 - 3.2),
    ],
)
def test_the_maximum_is_over_the_legal_actions(next_value, expected):
    assert float(losses.td_error(sample(), next_value)) == pytest.approx(expected, abs=1e-6)
    assert float(losses.td_error(sample(mask_t=()), next_value)) == pytest.approx(2 - 0.5 - 0.9 * 8, abs=1e-6)


def test_streaming_and_measured_errors_have_the_same_target():
    assert float(traced_q()(sample())) == pytest.approx(1.2 - 0.5, abs=1e-6)
    assert float(one_step_errors(sample().transition, output(ONLINE), output(TARGET_NEXT))) == pytest.approx(-1.2)


def test_where_nothing_follows_no_action_need_be_legal():
    error = losses.td_error(sample(mask_t=[False] * 3, discount_t=0.0))
    assert float(error) == pytest.approx(1.5, abs=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_a_distribution_is_that_of_the_best_legal_action(double):
    support = even_support(0.0, 2.0, 3)
    of = lambda rows: Output(expectation(jnp.log(jnp.array([rows])), support), jnp.log(jnp.array([rows])), jnp.zeros(1))
    # Of s', action 0 has the value 2, action 1 the value 0.5, action 2 the value 1.
    after = of([[1e-9, 1e-9, 1.0], [0.5, 0.5, 1e-9], [1e-9, 1.0, 1e-9]])
    now = of([[0.2, 0.3, 0.5]] * 3)
    inputs = loss_inputs(step(discount_t=1.0, mask_t=LEGAL_NEXT), now, after, now, after)
    # r = 0 and γ = 1: all the probability of action 2 is at 1, where s has 0.3; that of action 0 would be at 2.
    assert float(categorical(support, double)(inputs)) == pytest.approx(-np.log(0.3), abs=1e-4)


# What is held to the target network


def test_illegal_actions_are_not_distilled():
    online, target = [[1.0, 2.0, 3.0], [3.0, 4.0, 60.0]], [[0.0, 0.0, 0.0], [3.0, 3.5, 9.0]]
    inputs = loss_inputs(step(mask_tm1=[True, True, False]), output(online), target_tm1=output(target))
    # head 1 has the errors 0 and 0.5 on legal actions: Huber 0 and 0.125
    assert float(distillation(constant(1.0), "all", "sum").loss(inputs)) == pytest.approx(0.125 / 2, abs=1e-6)
    # of both heads the errors are 1, 2, 0 and 0.5
    assert float(on_replayed_states(constant(1.0)).loss(inputs)) == pytest.approx((1 + 4 + 0.25) / 4, abs=1e-6)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], axis=-1), inputs)
    np.testing.assert_allclose(distillation(constant(1.0), "all", "sum").loss(batch), [0.0625] * 2, atol=1e-6)


# Acting


def test_random_actions_are_drawn_from_the_legal_ones_alike():
    mask = jnp.array([False, True, False, True, True])
    drawn = [int(draw_action(jnp.float32(u), 5, mask)) for u in (0.0, 0.3, 0.34, 0.66, 0.67, 0.9999999, 1.0)]
    assert drawn == [1, 1, 3, 3, 4, 4, 4]
    assert [int(draw_action(jnp.float32(u), 5, ())) for u in (0.0, 0.5, 0.99)] == [0, 2, 4]


def test_the_gap_is_between_legal_actions():
    q, mask = jnp.array([[9.0, 9.0], [2.0, 2.0], [1.0, 1.0]]), jnp.array([[False, False], [True, True], [True, False]])
    # 2 - 1, and 0 where action 1 alone is legal
    assert float(action_gap(q, mask)) == pytest.approx(0.5)
    assert float(action_gap(q)) == pytest.approx(7.0)


def masked_agent(**settings):
    """local-q for three actions and two variables, with masks."""
    plain = {"normalise_inputs": False, "act_average": 0.0, "hidden": (2,), "bins": 3}
    run = resolve("MountainCar-v0", "local-q", **plain, **settings)
    return build_agent(run, make_task(run)._replace(action_mask=lambda state: jnp.ones(3, bool)))


def with_values(agent, values):
    """The actions have these values in every state: a unit's hats sum to one, and there are two units."""
    state = jax.jit(agent.init)(jax.random.key(0))
    heads = np.broadcast_to(np.float32(values) / 2, state.params["heads"].shape)
    return state._replace(params=state.params | {"heads": heads})


def test_the_greedy_action_is_the_best_of_the_legal_ones():
    agent = masked_agent(epsilon_start=0.0, epsilon_final=0.0)
    state, random = with_values(agent, [3.0, 2.0, 1.0]), act_uniforms(agent, np.float32(0.9))
    act = lambda state, inputs, random: agent.act(state, inputs, jnp.int32(0), random)
    both = jax.jit(lambda state, inputs, random: (act(state, inputs, random), agent.policy(state, inputs)))
    for mask, best in (((), 0), (jnp.array([False, True, True]), 1), (jnp.array([False, False, True]), 2)):
        inputs = context_inputs([0.1, 0.0], mask=mask)
        chosen, policy = both(state, inputs, random)
        assert (int(chosen.action), bool(chosen.greedy), int(policy)) == (best, True, best)


def test_local_q_learns_from_the_best_legal_action():
    """Both in the sparse form and in the plain one."""
    agent = masked_agent()
    assert isinstance(agent, SparseHats)
    state = with_values(agent, [3.0, 2.0, 1.0])
    experience = Experience(
        before=context_inputs([0.1, 0.0], mask=jnp.array([False, True, True])),
        choice=Choice(jnp.int32(1), jnp.int32(0), jnp.bool_(True)),
        reward=jnp.float32(0.5), discount=jnp.float32(0.9),
        after=context_inputs([0.2, 0.0], mask=jnp.array([False, False, True])), done=jnp.bool_(False),
    )  # fmt: skip
    # δ = 0.5 + 0.9 · 1 - 2 = -0.6; Huber 0.18. The largest legal value in s is 2.
    for form, kept in ((agent, state), (plain_form(agent), agent.dense(state))):

        @jax.jit
        def learn(kept, experience, random, form=form):
            stored = form.observe(kept, experience, jnp.int32(0))[0]
            return form.learn(stored, jnp.int32(0), random)[1]

        metrics = learn(kept, experience, learn_uniforms(agent, np.zeros(count(agent.learn_uniforms))))
        assert float(metrics["value_loss"]) == pytest.approx(0.18, abs=1e-5)
        assert float(metrics["max_q"]) == pytest.approx(2.0, abs=1e-5)


# Replay


def masks_at(t):
    """Of five actions; each t has others."""
    return np.array([(t >> bit) & 1 for bit in range(5)], bool)


@pytest.mark.parametrize("kind", ["ring", "frames"])
def test_masks_come_back_with_their_states(kind):
    """The mask of an n-step transition is that of the state it leads to."""
    options = {"n_step": 3, "actions": 5}
    replay = {
        "ring": lambda: ring_replay(8, 1, uniform(64), **options),
        "frames": lambda: frame_replay(8, 1, 1, uniform(64), **options),
    }[kind]()
    number = np.uint8 if kind == "frames" else np.float32
    masks, obs = np.stack([masks_at(t) for t in range(15)]), np.arange(15, dtype=number)[:, None]
    every = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (14, *leaf.shape)), step())
    every = every._replace(obs_tm1=obs[:-1], obs_t=obs[1:], mask_tm1=masks[:-1], mask_t=masks[1:])
    every = every._replace(done=np.arange(14) == 9)

    @jax.jit
    def stored_and_drawn():
        add = lambda stored, given: (replay.add(stored, *given, np.zeros(0)), None)
        stored = jax.lax.scan(add, replay.init(), (every, jnp.arange(14)))[0]
        stored = replay.relabel(stored, lambda obs: jnp.int32(1))
        return replay.sample(stored, jnp.int32(13), jnp.linspace(0, 0.999, 64)).transitions

    steps = stored_and_drawn()
    first, last = np.asarray(steps.obs_tm1)[0].astype(int), np.asarray(steps.obs_t)[0].astype(int)
    assert len(set(first)) > 5
    np.testing.assert_array_equal(steps.mask_tm1.T, np.stack([masks_at(t) for t in first]))
    np.testing.assert_array_equal(steps.mask_t.T, np.stack([masks_at(t) for t in last]))


def test_without_masks_nothing_is_stored_of_them():
    plain = ring_replay(4, 2, uniform(2))
    stored = jax.eval_shape(plain.init)
    assert stored.rows.shape == (4, 2 * 2 + 7)
    drawn = jax.eval_shape(plain.sample, stored, jnp.int32(3), jnp.zeros(2)).transitions
    assert drawn.mask_tm1 == drawn.mask_t == ()
