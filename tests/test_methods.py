"""One battery for every method: what a method must do to be one."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import ON_IMAGES, WALK

from iqrl.methods import METHODS, build_agent
from iqrl.parts import teacher
from iqrl.parts.replay import Transition, row_width
from iqrl.settings import resolve
from iqrl.tasks import make_task
from iqrl.training.checkpoint import load_state, save_state
from iqrl.training.compiled import Driver

SMALL = {"steps": 900, "period": 300, "seeds": 2, "learning_starts": 200, "target_period": 100, "epsilon_decay": 400}
LARGEST = {method: METHODS[method].fixed.get("buffer_size", 100) for method in METHODS}
LIKE_ANOTHER = (
    "iq-no-clustering", "iq-no-distillation", "iq-no-multi-head", "iq-initial-states", "iq-game-score", "iq-te",
    "rainbow", "rainbow-srnn", "rainbow-iq-re", "rainbow-iq-te", "medqn-r", "dqn-layernorm", "stream-c51",
)  # fmt: skip
"""composed of parts that others have too"""
ONE_OF_A_KIND = [method for method in METHODS if method not in LIKE_ANOTHER]
CASES = list(LARGEST.items())
CASES += [(method, 1) for method in ONE_OF_A_KIND if LARGEST[method] > 1 and method not in ON_IMAGES]


def task_of(method):
    return WALK if method in ON_IMAGES else "CartPole-v0"


def run_of(method, task=None, **settings):
    """A run of that method with those of the settings that it leaves open."""
    task = task or task_of(method)
    settings = {"atoms": 11} | settings if method.startswith("rainbow") else settings
    if task == WALK:
        settings = {"hidden": (16,), "update_every": 4, "optimiser": "adam", "learning_rate": 5e-4} | settings
    fixed = METHODS[method].fixed
    return resolve(task, method, **{name: value for name, value in settings.items() if name not in fixed})


@functools.cache
def program(method, size):
    """The compiled driver and its first state, compiled once for all tests of the battery."""
    run = run_of(method, **SMALL, buffer_size=size)
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task))
    start = jax.jit(driver.init)()
    # Compiled here and not when called: what was loaded from a file would be compiled for once more.
    return driver, start, jax.jit(driver.advance).lower(start, np.int32(0)).compile()


@functools.cache
def trained(method, size):
    _, start, advance = program(method, size)
    return advance(start, np.int32(900))


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def seed(state, index):
    """One seed of a state."""
    return jax.tree.map(lambda leaf: leaf[index], (state.env, state.agent))


@pytest.mark.parametrize(("method", "size"), CASES)
def test_trains(method, size):
    _, start, _ = program(method, size)
    state, period = trained(method, size)
    assert np.asarray(period.finite).all()
    assert np.isfinite(leaves(period.losses)).all()
    np.testing.assert_allclose(np.asarray(period.occupancy).sum(axis=1), 1.0, rtol=1e-5)
    for before, after in zip(leaves(start.agent.params), leaves(state.agent.params), strict=True):
        assert np.abs(before - after).max() > 1e-3 * METHODS[method].defaults.get("learning_rate", 1.0) ** 0.5


@pytest.mark.parametrize(("method", "size"), CASES)
def test_stopping_saving_and_going_on_is_bit_exact(method, size, tmp_path):
    _, start, advance = program(method, size)
    half, _ = advance(start, np.int32(500))
    save_state(tmp_path / "half", jax.device_get(half), "id")
    again, _ = advance(load_state(tmp_path / "half", jax.eval_shape(lambda: half), "id")[0], np.int32(900))
    assert_same(again, trained(method, size)[0])


@pytest.mark.parametrize(("method", "size"), CASES)
def test_a_seed_does_not_notice_what_happens_to_another(method, size):
    _, start, advance = program(method, size)
    disturb = lambda leaf: leaf.at[1].multiply(1.5) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
    disturbed, _ = advance(start._replace(agent=jax.tree.map(disturb, start.agent)), np.int32(900))
    assert_same(seed(disturbed, 0), seed(trained(method, size)[0], 0))
    other = seed(trained(method, size)[0], 1)
    assert any(not np.array_equal(x, y) for x, y in zip(leaves(seed(disturbed, 1)), leaves(other), strict=True))


def test_a_seed_on_images_is_what_it_would_be_alone():
    """There seeds are trained one after the other."""
    run = run_of("iq-re", **SMALL | {"seeds": 1}, seed=1, buffer_size=100)
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task))
    state, period = jax.jit(driver.advance)(jax.jit(driver.init)(), np.int32(900))
    both, periods = trained("iq-re", 100)
    assert both.step == state.step == 900
    assert_same(seed(both, 1), seed(state, 0))
    assert_same(jax.tree.map(lambda leaf: leaf[1], periods), jax.tree.map(lambda leaf: leaf[0], period))


@pytest.mark.parametrize("method", ONE_OF_A_KIND)
def test_compiled_and_uncompiled_agree(method):
    """An action, what follows from it, and an update: compiled, and operation by operation."""
    agent, env, state = one_seed(method)
    uniforms, t = jax.random.uniform(jax.random.key(0), (agent.learn_draws,)), jnp.int32(900)

    def step(state, situation):
        choice = agent.act(state, situation, t, jnp.array([0.9, 0.9]))
        moved = situation.obs + jnp.asarray(0.1, situation.obs.dtype)  # an image stays as it is
        after = situation._replace(obs=moved, score=situation.score + 1, code=())
        transition = Transition(
            situation.obs, choice.action, jnp.float32(1), jnp.float32(0.99), after.obs, choice.context, choice.context,
            jnp.bool_(False), choice.greedy,
        )  # fmt: skip
        return agent.learn(agent.observe(state, transition, situation, after, t)[0], t, uniforms)

    compiled, plain = jax.jit(step)(state, env.situation), step(state, env.situation)
    for x, y in zip(leaves(plain), leaves(compiled), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", [*ONE_OF_A_KIND, "iq-no-multi-head", "rainbow", "rainbow-iq-re", "medqn-r"])
def test_gradients_flow_into_the_network_alone(method):
    """An update moves θ and the optimiser and nothing else; what the target says is a constant to it."""
    agent, _, state = one_seed(method)
    uniforms, t = jax.random.uniform(jax.random.key(0), (agent.learn_draws,)), jnp.int32(900)
    after, _ = jax.jit(agent.learn)(state, t, uniforms)
    others = lambda state: state._replace(params=(), optimiser=(), replay=state.replay._replace(sampler=()))
    assert_same(others(after), others(state))

    def gradient(agent, state):
        batch = agent.replay.sample(state.replay, t, uniforms[: agent.replay.draws])
        rest = uniforms[agent.replay.draws :]
        return jax.grad(agent._joint_loss, has_aux=True)(state.params, state, batch, t, rest)[0]

    def with_the_target_frozen(state):
        recall = agent.teacher.recall
        frozen = agent.teacher._replace(recall=lambda *given: jax.lax.stop_gradient(recall(*given)))
        return gradient(dataclasses.replace(agent, teacher=frozen), state)

    found, expected = jax.jit(lambda state: (gradient(agent, state), with_the_target_frozen(state)))(state)
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)
    assert any(np.abs(leaf).max() > 0 for leaf in leaves(found))


def one_seed(method):
    """The agent, and environment and agent of one trained seed."""
    size = LARGEST[method]
    return program(method, size)[0].agent, *seed(trained(method, size)[0], 0)


NOTHING = {"distill_weight": 0.0}
ONE_HEAD = {"contexts": 1} | NOTHING
REDUCTIONS = {
    "srnn": ({"srnn_weight": 0.0}, "dqn"),
    "iq": (ONE_HEAD, "dqn"),
    "iq-no-clustering": (ONE_HEAD, "dqn"),
    "iq-no-distillation": ({"contexts": 1}, "dqn"),
    "iq-no-multi-head": (NOTHING, "dqn"),
    "iq-initial-states": (ONE_HEAD, "dqn"),
    "iq-game-score": (ONE_HEAD, "dqn"),
    "iq-re": (ONE_HEAD, "dqn"),
    "rainbow-srnn": ({"srnn_weight": 0.0}, "rainbow"),
    "rainbow-iq": (ONE_HEAD, "rainbow"),
    "dqn-layernorm": ({"layer_norm": False}, "dqn"),
    "medqn-u": ({"consolidation_start": 0.0, "consolidation_weight": 0.0}, "dqn"),
    "medqn-r": ({"consolidation_start": 0.0, "consolidation_weight": 0.0}, "dqn"),
}


@functools.cache
def parameters(method, task, settings=()):
    driver = driver_of(run_of(method, task, **SMALL, buffer_size=100, **dict(settings)))
    return leaves(jax.jit(driver.advance)(driver.init(), 900)[0].agent.params)


def driver_of(run):
    task = make_task(run)
    return Driver(run, task, build_agent(run, task))


def test_every_method_reduces_to_dqn_or_says_why_not():
    """TCNN has no setting that leaves the states as they are; the streams have neither replay nor target; Rainbow's
    values are distributions. With one context a trained encoder is no other than a random one, and what IQ-RE adds to
    Rainbow is what it adds to DQN and what IQ adds to Rainbow.

    DSOM's gates can be opened, but it is compiled to other kernels than DQN (below).
    """
    without = {"dqn", "rainbow", "tcnn", "dsom", "stream-q", "stream-c51", "iq-te", "rainbow-iq-re", "rainbow-iq-te"}
    assert set(METHODS) - set(REDUCTIONS) == without


@pytest.mark.parametrize("method", REDUCTIONS)
def test_without_its_own_part_it_is_its_base_bit_for_bit(method):
    off, base = REDUCTIONS[method]
    task = task_of(method)
    for x, y in zip(parameters(method, task, tuple(off.items())), parameters(base, task), strict=True):
        np.testing.assert_array_equal(x, y)


def after_one_update(agent):
    """The parameters after an update on a buffer of random rows."""
    state = agent.init(jax.random.key(0))
    width = row_width(agent.obs_size)
    steps = jax.random.normal(jax.random.key(1), (100, width)).at[:, 11:13].set(0.0)
    rows = state.replay.rows.at[:, :width].set(steps)
    state = agent.sync(state._replace(replay=state.replay._replace(rows=rows)))
    return leaves(jax.jit(agent.learn)(state, jnp.int32(99), jnp.linspace(0.0, 0.99, 32))[0].params)


def test_open_gates_are_no_gates():
    dsom = driver_of(run_of("dsom", buffer_size=100, dsom_width=1e30)).agent
    for x, y in zip(after_one_update(dsom), after_one_update(driver_of(run_of("dqn")).agent), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("kind", ["synced", "live"])
def test_the_target_keeps_the_map_of_the_last_sync_or_has_the_live_one(kind):
    agent = driver_of(run_of("dsom", dsom_target=kind)).agent
    before = agent.init(jax.random.key(0))
    moved = before._replace(perception=before.perception._replace(vectors=before.perception.vectors + 1))
    assert_same(agent.target_of(moved).perception, (moved if kind == "live" else before).perception)
    assert_same(agent.sync(moved).target.perception, moved.perception)
    # What a target said is kept beside a transition only where it would say the same again.
    assert (agent.teacher.width > 0) == (kind == "synced")


def test_a_target_that_follows_every_update_is_none():
    """With target_period 1 there is no target network; with one, kept in step, an update is the same."""
    without = driver_of(run_of("dqn", target_period=1, learning_starts=100)).agent
    recomputed = teacher.recomputed(teacher.answers(without.network, without.perception))
    kept = dataclasses.replace(without, teacher=recomputed)
    assert (without.lags, kept.lags) == (False, True)
    for x, y in zip(after_one_update(without), after_one_update(kept), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_other_tasks_with_every_common_part(method):
    """Double Q, dueling, n-step returns, layer normalisation, several updates: wherever a method leaves them open."""
    parts = {"double_q": True, "dueling": True, "n_step": 3, "layer_norm": True, "gradient_steps": 2, "hidden": (16, 9)}
    parts |= {"noisy": True, "sampling": "prioritised"}
    task = WALK if method in ON_IMAGES else "Acrobot-v1"
    driver = driver_of(run_of(method, task, **SMALL, **parts))
    state, period = jax.eval_shape(driver.advance, jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), jnp.int32))
    assert state.agent == jax.eval_shape(driver.init).agent
    assert period.returns.shape == (2,)


@pytest.mark.parametrize("method", ["iq", "medqn-u", "rainbow-iq"])
def test_common_parts_run_together(method):
    parts = {"double_q": True, "dueling": True, "n_step": 3, "gradient_steps": 2, "hidden": (16, 9), "noisy": True}
    driver = driver_of(run_of(method, **SMALL, **parts))
    _, period = jax.jit(driver.advance)(driver.init(), 900)
    assert np.asarray(period.finite).all()
    assert np.isfinite(leaves(period.losses)).all()
