"""The fused update: the numbers of the plain one to rounding, and what happens where it cannot be had."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import leaves

import iqrl
from iqrl import accelerator
from iqrl.core.cached_targets import CachedTargets
from iqrl.core.fused_update import FusedCachedUpdate, FusedUpdate
from iqrl.core.randomness import count, hand_out
from iqrl.core.replay.base import CONTEXT_T, CONTEXT_TM1
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent

SMALL = {"steps": 600, "period": 300, "seeds": 2, "learning_starts": 200, "target_period": 100, "accelerator": "fused"}
needs_compiler = pytest.mark.skipif(bool(accelerator.missing()), reason=accelerator.missing())


def agent_of(method, **settings):
    run = resolve("CartPole-v1", method, **settings)
    return build_agent(run, make_task(run))


def trained_state(agent):
    """Of two seeds: random transitions, a target network that differs from θ."""
    state = jax.vmap(agent.init)(jax.random.split(jax.random.key(0), 2))
    rows, k = jax.random.normal(jax.random.key(1), state.replay.rows.shape), agent.contexts.count
    facts, numbers = rows[..., 2 * agent.obs_size :], jnp.arange(rows.shape[1])
    facts = facts.at[..., 0].set(numbers % 2).at[..., CONTEXT_TM1].set(numbers % k)
    facts = facts.at[..., CONTEXT_T].set(numbers // 2 % k)
    rows = rows.at[..., 2 * agent.obs_size :].set(facts)
    state = jax.vmap(agent.sync)(state._replace(replay=state.replay._replace(rows=rows)))
    return state._replace(params=jax.tree.map(lambda leaf: leaf * 1.3 + 0.1, state.params))


def after_updates(agent, updates=3):
    state, needs = trained_state(agent), agent.learn_uniforms
    uniforms = jax.random.uniform(jax.random.key(2), (updates, 2, count(needs)))
    learn = jax.jit(jax.vmap(lambda state, u: agent.learn(state, jnp.int32(50_000), hand_out(needs, u))))
    for each in uniforms:
        state, metrics = learn(state, each)
    return state, metrics


CASES = [
    ("iq", {}, FusedCachedUpdate),
    ("iq", {"buffer_size": 1}, FusedCachedUpdate),
    ("iq", {"contexts": 1, "distill_weight": 0.0}, FusedCachedUpdate),
    ("iq-no-multi-head", {"hidden": (20, 9, 17), "activation": "relu"}, FusedCachedUpdate),
    ("dqn", {"activation": "leaky-relu", "batch_size": 7, "gradient_steps": 2}, FusedCachedUpdate),
    ("dqn", {"buffer_size": 2500, "target_period": 10}, FusedUpdate),
    ("iq", {"target_average": 0.1, "act_average": 0.1}, FusedUpdate),
]


@needs_compiler
@pytest.mark.parametrize(("method", "settings", "kind"), CASES)
def test_its_numbers_are_those_of_the_plain_update(method, settings, kind):
    fused = agent_of(method, **settings, accelerator="fused")
    assert type(fused) is kind
    (state, metrics), (plain, plain_metrics) = after_updates(fused), after_updates(agent_of(method, **settings))
    assert jax.tree.structure(state) == jax.tree.structure(plain)
    for found, expected in zip(leaves(state), leaves(plain), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6)
    assert metrics.keys() == plain_metrics.keys()
    for name, expected in plain_metrics.items():
        np.testing.assert_allclose(metrics[name], expected, rtol=1e-4, atol=1e-6)


@needs_compiler
def test_iq_with_one_head_and_no_distillation_is_dqn():
    one_head = agent_of("iq", contexts=1, distill_weight=0.0, accelerator="fused")
    (iq, _), (dqn, _) = after_updates(one_head), after_updates(agent_of("dqn", accelerator="fused"))
    for found, expected in zip(leaves(iq.params), leaves(dqn.params), strict=True):
        np.testing.assert_array_equal(found, expected)


OTHERS = [
    {"double_q": True}, {"dueling": True}, {"layer_norm": True}, {"gradient_clip": 1.0}, {"optimiser": "rmsprop"},
    {"td_error": "squared"}, {"sampling": "prioritised"}, {"noisy": True}, {"distill_actions": "all"},
    {"normalise_inputs": True}, {"features": "fta"},
]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("settings", OTHERS, ids=lambda settings: next(iter(settings)))
def test_what_it_does_not_know_is_computed_plainly(settings):
    assert not isinstance(agent_of("iq", **settings, accelerator="fused"), FusedUpdate)


@needs_compiler
def test_a_run_goes_on_with_the_same_bits(tmp_path):
    whole = iqrl.train("CartPole-v1", "iq", **SMALL)
    iqrl.train("CartPole-v1", "iq", **SMALL | {"steps": 300, "epsilon_decay": 60}, out=tmp_path / "run")
    continued = iqrl.resume(tmp_path / "run", steps=600)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["fused"] is True
    for found, expected in zip(leaves(continued.agent_state), leaves(whole.agent_state), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(accelerator, "missing", functools.cache(accelerator.missing.__wrapped__))


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_plain_update_is_used_and_that_is_said(tmp_path):
    assert type(agent_of("iq", accelerator="fused")) is CachedTargets
    with pytest.warns(UserWarning, match="accelerator fused is not used: there is no compiler"):
        iqrl.train("CartPole-v1", "iq", **SMALL, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["fused"] is False
