"""One battery for every method: what a method must do to be one.

Which tests a method gets follows from what it declares: `observations`, `covered_by`, `reduces_to`.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pictures import ON_IMAGES, WALK
from records import act_uniforms, assert_same, learn_uniforms, leaves, without_cache

from iqrl.core.sparse_hats import SparseHats
from iqrl.core.types import Experience
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import METHODS, build_agent
from iqrl.settings import settings_of
from iqrl.training.checkpoint import load_state, save_state
from iqrl.training.compiled import Driver
from iqrl.training.states import TrainState

SMALL = {"steps": 900, "period": 300, "seeds": 2, "learning_starts": 200, "target_period": 100, "epsilon_decay": 400}
"""The tests of the battery share the program of each method."""
LARGEST = {name: method.fixed.get("buffer_size", 100) for name, method in METHODS.items()}
OF_ITS_OWN = [name for name, method in METHODS.items() if not method.covered_by]
"""those with parts that no other method has"""
REDUCED = [name for name, method in METHODS.items() if method.reduces_to]
CASES = [(name, LARGEST[name]) for name in OF_ITS_OWN]
CASES += [(name, 1) for name in ("iq", "srnn", "medqn-u")]  # whose own losses are of the batch: here, of one sample
BY_OPERATION = [name for name in OF_ITS_OWN if name not in ON_IMAGES and name not in ("rainbow-iq", "local-q")]
"""Convolutions and distributions take long one operation at a time, and are computed by hand in tests of their own;
local-q is compared with a program in numpy."""


def task_of(method):
    return WALK if method in ON_IMAGES else "CartPole-v0"


def run_of(method, task=None, **settings):
    """A run of that method with those of the settings that it has and leaves open."""
    task = task or task_of(method)
    if task == WALK:
        settings = {"hidden": (16,), "update_every": 4, "optimiser": "adam", "learning_rate": 5e-4} | settings
    if "atoms" in settings_of(METHODS[method].settings):
        settings = {"atoms": 11} | settings
    fixed = METHODS[method].fixed
    return resolve(task, method, **{name: value for name, value in settings.items() if name not in fixed})


def driver_of(run):
    task = make_task(run)
    return Driver(run, task, build_agent(run, task))


@functools.cache
def program(method, size):
    """The compiled driver and its first state, compiled once for all tests of the battery."""
    driver = driver_of(run_of(method, **SMALL, buffer_size=size))
    start = jax.jit(driver.init)()
    # Compiled here and not when called: what was loaded from a file would be compiled for once more.
    return driver, start, jax.jit(driver.advance).lower(start, np.int32(0)).compile()


@functools.cache
def trained(method, size):
    _, start, advance = program(method, size)
    return advance(start, np.int32(900))


def seed(state, index):
    """One seed of a state."""
    return jax.tree.map(lambda leaf: leaf[index], (state.env, state.agent))


def one_seed(method):
    """The agent, and environment and agent of one trained seed."""
    size = LARGEST[method]
    return program(method, size)[0].agent, *seed(trained(method, size)[0], 0)


# What methods declare


def test_what_a_method_declares_is_there():
    """What covers a method is tested itself, and what it reduces to can see the same observations."""
    for name, method in METHODS.items():
        assert method.name == name
        assert set(method.covered_by) <= set(OF_ITS_OWN)
        fields = {field.name for field in dataclasses.fields(run_of(name))}
        assert method.defaults.keys() | method.fixed.keys() <= fields
        if method.reduces_to:
            base, off = method.reduces_to
            assert METHODS[base].observations in ("any", method.observations)
            assert not METHODS[base].reduces_to, "reductions are direct"
            assert off.keys() <= fields - method.fixed.keys()


def test_a_method_reduces_to_another_unless_there_is_nothing_to_switch_off():
    """Heads and regularisers can be switched off, so their methods reduce to a base, or others with these parts do.
    What remains has another input than its base (DSOM, TCNN) or no target network (streams), or is a base."""
    bases = {METHODS[name].reduces_to[0] for name in REDUCED}
    for name, method in METHODS.items():
        agent = driver_of(run_of(name)).agent
        shown = bool(method.reduces_to or method.covered_by)
        if agent.regularisers or agent.contexts.count > 1:
            assert shown, name
        other_input = agent.preprocessor.gates or agent.preprocessor.binary
        assert shown or name in bases or other_input or not agent.has_target, name


# Training


@pytest.mark.parametrize(("method", "size"), CASES)
def test_trains(method, size):
    _, start, _ = program(method, size)
    state, period = trained(method, size)
    assert np.asarray(period.finite).all()
    assert np.isfinite(leaves(period.metrics["value_loss"])).all()
    np.testing.assert_allclose(np.asarray(period.metrics["occupancy"]).sum(axis=1), 1.0, rtol=1e-5)
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
    """There seeds are trained one after the other. (First states are made together, which may round in another way.)"""
    driver = driver_of(run_of("iq-re", **SMALL | {"seeds": 1}, seed=1, buffer_size=100))
    _, start, _ = program("iq-re", 100)
    alone = TrainState(start.step, *jax.tree.map(lambda leaf: leaf[1:], tuple(start[1:])))
    state, period = jax.jit(driver.advance)(alone, np.int32(900))
    both, periods = trained("iq-re", 100)
    assert both.step == state.step == 900
    assert_same(seed(both, 1), seed(state, 0))
    assert_same(jax.tree.map(lambda leaf: leaf[1], periods), jax.tree.map(lambda leaf: leaf[0], period))


# One step


@pytest.mark.parametrize("method", BY_OPERATION)
def test_compiled_and_uncompiled_agree(method):
    """An action, what follows from it, and an update: compiled, and operation by operation."""
    agent, env, state = one_seed(method)
    random, t = learn_uniforms(agent), jnp.int32(900)

    def step(state, inputs):
        choice = agent.act(state, inputs, t, act_uniforms(agent))
        moved = inputs.obs + jnp.asarray(0.1, inputs.obs.dtype)  # an image stays as it is
        after = inputs._replace(obs=moved, score=inputs.score + 1, embedding=())
        experience = Experience(
            before=inputs, choice=choice, reward=jnp.float32(1), discount=jnp.float32(0.99), after=after,
            done=jnp.bool_(False),
        )  # fmt: skip
        return agent.learn(agent.observe(state, experience, t)[0], t, random)

    compiled, plain = jax.jit(step)(state, env.inputs), step(state, env.inputs)
    for x, y in zip(leaves(plain), leaves(compiled), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", OF_ITS_OWN)
def test_gradients_flow_into_the_network_alone(method):
    """An update moves θ and the optimiser and nothing else; what the target computes is a constant to it."""
    agent, _, state = one_seed(method)
    random, t = learn_uniforms(agent), jnp.int32(900)
    after, _ = jax.jit(agent.learn)(state, t, random)
    moved = {"params": (), "optimiser": (), "cache": (), "average": ()}
    others = lambda state: state._replace(**moved, replay=state.replay._replace(sampler=()))
    assert_same(others(after), others(state))
    if isinstance(agent, SparseHats):
        agent, after = without_cache(agent), agent.dense(after)

    def gradient(agent, state):
        batch = agent.replay.sample(state.replay, t, random.sample)
        return jax.grad(agent.loss, has_aux=True)(state.params, state, batch, t, random)[0]

    found, expected = jax.jit(lambda state: (gradient(agent, state), gradient(with_frozen_target(agent), state)))(after)
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)
    assert any(np.abs(leaf).max() > 0 for leaf in leaves(found))


def with_frozen_target(agent):
    """The agent with no gradient through what the target network computes."""

    class Frozen(type(agent)):
        def target_outputs(self, *given):
            return jax.lax.stop_gradient(super().target_outputs(*given))

    return Frozen(**{field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)})


# Reductions


@functools.cache
def parameters(method, task, settings=(), size=100):
    if (method, size) in CASES and (task or task_of(method), settings) == (task_of(method), ()):
        return leaves(trained(method, size)[0].agent.params)
    driver = driver_of(run_of(method, task, **SMALL, buffer_size=size, **dict(settings)))
    return leaves(jax.jit(driver.advance)(jax.jit(driver.init)(), 900)[0].agent.params)


@pytest.mark.parametrize("method", REDUCED)
def test_without_its_own_part_it_is_its_base_bit_for_bit(method):
    base, off = METHODS[method].reduces_to
    task = task_of(method)
    assert_same(parameters(method, task, tuple(off.items())), parameters(base, task))


def test_iq_with_one_head_is_dqn_without_replay_too():
    base, off = METHODS["iq"].reduces_to
    both = (("double_q", True),)
    assert_same(parameters("iq", None, (*off.items(), *both), 1), parameters(base, None, both, 1))


def after_one_update(agent):
    """The parameters after an update on a buffer of random rows."""

    @jax.jit
    def update():
        state = agent.init(jax.random.key(0))
        rows = jax.random.normal(jax.random.key(1), state.replay.rows.shape).at[:, 11:13].set(0.0)
        state = agent.sync(state._replace(replay=state.replay._replace(rows=rows)))
        return agent.learn(state, jnp.int32(99), learn_uniforms(agent))[0].params

    return leaves(update())


def test_open_gates_are_no_gates():
    """DSOM's gates can be opened, but it is compiled to other kernels than DQN."""
    dsom = driver_of(run_of("dsom", buffer_size=100, dsom_width=1e30)).agent
    for x, y in zip(after_one_update(dsom), after_one_update(driver_of(run_of("dqn")).agent), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_a_target_that_follows_every_update_is_none():
    """With target_period 1 there is no target network; with one, kept in step, an update is the same."""
    without = driver_of(run_of("dqn", target_period=1, learning_starts=100)).agent
    kept = dataclasses.replace(without_cache(without), has_target=True)
    assert (without.has_target, kept.has_target) == (False, True)
    for x, y in zip(after_one_update(without), after_one_update(kept), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


# Common parts

EVERY_PART = {
    "double_q": True, "dueling": True, "n_step": 3, "layer_norm": True, "gradient_steps": 2, "hidden": (16, 9),
    "noisy": True, "sampling": "prioritised",
}  # fmt: skip


OTHER_TASKS = [(name, WALK if name in ON_IMAGES else "Acrobot-v1") for name in METHODS]


@pytest.mark.parametrize(("method", "task"), [*OTHER_TASKS, ("medqn-u", WALK), ("medqn-r", WALK)])
def test_every_method_fits_other_tasks_with_every_common_part(method, task):
    """Double Q, dueling, n-step returns, layer normalisation, several updates: wherever a method leaves them open."""
    driver = driver_of(run_of(method, task, **SMALL, **EVERY_PART))
    state, period = jax.eval_shape(driver.advance, jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), jnp.int32))
    assert state.agent == jax.eval_shape(driver.init).agent
    assert period.returns.shape == (2,)


def test_common_parts_run_together():
    """Rainbow has them by default."""
    driver = driver_of(run_of("medqn-u", **SMALL, **EVERY_PART | {"sampling": "uniform", "layer_norm": False}))
    _, period = jax.jit(lambda: driver.advance(driver.init(), 900))()
    assert np.asarray(period.finite).all()
    assert np.isfinite(leaves(period.metrics["value_loss"])).all()
