"""local-q against a plain numpy program, the sparse form against the dense one, and what its settings reduce to."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import context_inputs, learn_uniforms
from untrained_runs import untrained

from iqrl.core.agent import QLearner
from iqrl.core.bounded_step import share_between_actions
from iqrl.core.sparse_hats import SparseHats
from iqrl.core.types import Choice, Experience
from iqrl.diagnostics.analysis.context_matrix import context_matrix
from iqrl.diagnostics.interference.meter import build_meter
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent

SMALL = {"hidden": (2,), "bins": 3, "normalise_inputs": False, "step_bound": 1.0, "trunk_step": 1.0}


def agent_of(method="local-q", **settings):
    run = resolve("MountainCar-v0", method, **settings)
    return build_agent(run, make_task(run))


def in_dense_form(agent):
    return QLearner(**{field.name: getattr(agent, field.name) for field in dataclasses.fields(QLearner)})


def stream(length, seed=0):
    """Steps (s, a, r, s', done, greedy) of two variables and three actions."""
    random = np.random.default_rng(seed)
    states = np.cumsum(random.normal(0, 0.3, (length + 1, 2)), axis=0).astype(np.float32)
    for t in range(length):
        yield (
            states[t],
            int(random.integers(3)),
            np.float32(random.normal()),
            states[t + 1],
            bool(random.random() < 0.1),
            bool(random.random() < 0.8),
        )


def learn_all(agent, steps, state=None):
    """The state after all steps, in the form that the agent keeps it in and in the dense one."""
    kinds = (np.float32, np.int32, np.float32, np.float32, bool, bool)
    parts = [np.array(part, kind) for part, kind in zip(zip(*steps, strict=True), kinds, strict=True)]

    def learn_one(state, given):
        t, s, a, r, after, done, greedy = given
        experience = Experience(
            before=context_inputs(s),
            choice=Choice(action=a, context=jnp.int32(0), greedy=greedy),
            reward=r,
            discount=jnp.where(done, jnp.float32(0), jnp.float32(0.99)),
            after=context_inputs(after),
            done=done,
        )
        state, _ = agent.observe(state, experience, t)
        return agent.learn(state, t, learn_uniforms(agent))[0], ()

    @jax.jit
    def learn(state):
        state = agent.init(jax.random.key(0)) if state is None else state
        state, _ = jax.lax.scan(learn_one, state, (jnp.arange(len(parts[0])), *parts))
        return state, agent.dense(state)

    return learn(state)


class Plain:
    """The equations, one after the other, for every weight."""

    def __init__(self, w, b, actions, bins, kappa, decay, rho, tau, eta):
        self.theta = {"w": np.float64(w), "b": np.float64(b), "W": np.zeros((actions, len(b), bins))}
        self.traces = {name: np.zeros_like(part) for name, part in self.theta.items()}
        self.average = {name: part.copy() for name, part in self.theta.items()}
        self.bins, self.kappa, self.decay, self.rho, self.tau, self.eta, self.t = bins, kappa, decay, rho, tau, eta, 0

    def hats(self, s):
        z = np.tanh(0.5 * s @ self.theta["w"] + self.theta["b"])
        p = 0.5 * (self.bins - 1) * (z + 1)
        return z, p, np.maximum(0, 1 - np.abs(p[:, None] - np.arange(self.bins)))

    def q(self, s):
        return np.einsum("ub,aub->a", self.hats(s)[2], self.theta["W"])

    def learn(self, s, a, r, after, done, greedy):
        delta = r + (0 if done else 0.99 * self.q(after).max()) - self.q(s)[a]
        z, p, g = self.hats(s)
        low = np.clip(np.floor(p).astype(int), 0, self.bins - 2)
        units = np.arange(len(z))
        slope = self.theta["W"][a, units, low + 1] - self.theta["W"][a, units, low]
        of_sum = slope * 0.5 * (self.bins - 1) * (1 - z**2)
        gradient = {"w": 0.5 * np.outer(s, of_sum), "b": of_sum, "W": np.zeros_like(self.theta["W"])}
        gradient["W"][a] = g
        for name, trace in self.traces.items():
            self.traces[name] = self.decay * trace + gradient[name]
        step = delta / (self.kappa * max(abs(delta), 1) * max(np.abs(self.traces["W"]).sum(), 1))
        shared = (1 - self.rho) * self.traces["W"] + self.rho * self.traces["W"].sum(axis=0)
        for name, trace in (self.traces | {"W": shared}).items():
            self.theta[name] = self.theta[name] + (step if name == "W" else self.eta * step) * trace
        rate = max(self.tau, 1 / (self.t + 1))
        for name, part in self.theta.items():
            self.average[name] = self.average[name] + rate * (part - self.average[name])
        if done or not greedy:
            self.traces = {name: np.zeros_like(part) for name, part in self.traces.items()}
        self.t += 1


@pytest.mark.parametrize(("form", "decay"), [(SparseHats, 0.0), (QLearner, 0.0), (QLearner, 0.5)])
def test_it_learns_as_the_equations_say(form, decay):
    agent = agent_of(
        **SMALL | {"step_bound": 1.5, "trunk_step": 3.0}, trace_decay=decay, share_step=0.9, act_average=0.03
    )
    agent = agent if isinstance(agent, form) else in_dense_form(agent)
    layer = agent.init(jax.random.key(0)).params["trunk"][0]
    plain = Plain(layer["w"], layer["b"], 3, 3, kappa=1.5, decay=0.99 * decay, rho=0.9, tau=0.03, eta=3.0)
    steps = list(stream(80))
    for each in steps:
        plain.learn(*each)
    _, state = learn_all(agent, steps)
    for params, expected in ((state.params, plain.theta), (state.average, plain.average)):
        np.testing.assert_allclose(params["heads"]["w"][0], expected["W"].reshape(3, -1), atol=1e-5)
        np.testing.assert_allclose(params["trunk"][0]["w"], expected["w"], atol=1e-5)
        np.testing.assert_allclose(params["trunk"][0]["b"], expected["b"], atol=1e-5)


def test_one_step_by_hand():
    """Two units, three bins, weights 0: both units lie in the middle of bin 1, which alone is active.

    δ = 2 · 1; κ max(|δ|, 1) ‖e‖₁ = 1 · 2 · 2; the taken action's two heads get 2 / 4, the others 0.9 times as much.
    """
    agent = agent_of(**SMALL)
    state = agent.init(jax.random.key(0))
    at_zero = {"w": jnp.zeros((2, 2)), "b": jnp.zeros(2)}
    state.params["trunk"] = state.average["trunk"] = (at_zero,)
    _, state = learn_all(agent, [(np.zeros(2), 1, 2.0, np.ones(2), True, True)], state)
    heads = np.asarray(state.params["heads"]["w"][0]).reshape(3, 2, 3)
    np.testing.assert_allclose(heads[1], [[0, 0.5, 0], [0, 0.5, 0]])
    np.testing.assert_allclose(heads[0], 0.9 * heads[1], rtol=1e-6)
    np.testing.assert_allclose(heads[2], 0.9 * heads[1], rtol=1e-6)
    np.testing.assert_allclose(state.average["heads"]["w"], state.params["heads"]["w"])  # 1 / (t + 1) = 1


@pytest.mark.parametrize(
    "settings",
    [
        {"average_fall": 50},
        {"act_average": 0.0},
        {"target_average": 0.03, "average_fall": 0},
        {"act_average": 0.4, "bins": 40},
    ],
    ids=str,
)
def test_the_sparse_form_equals_the_dense_one(settings):
    # Short steps: with long ones, differences in rounding grow from step to step.
    agent = agent_of(hidden=(8,), step_bound=30, **settings)
    assert isinstance(agent, SparseHats)
    steps = list(stream(agent.period % 1000 + 20))  # all distances are written once on the way
    sparse, dense = (learn_all(form, steps)[1] for form in (agent, in_dense_form(agent)))
    for name in ("params", "average"):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), getattr(sparse, name), getattr(dense, name)
        )


def test_acting_reads_the_average():
    """The action values before an update are those of the average, not of θ."""
    agent = agent_of(hidden=(8,))
    state, dense = learn_all(agent, stream(50))
    obs = jnp.array([0.1, 0.2])
    found = agent.acting_values(state, obs, jnp.int32(0), jnp.int32(50), jnp.zeros(0))
    of = lambda params: agent.outputs(agent.live(state)._replace(params=params), obs).q[0]
    np.testing.assert_allclose(found, of(dense.average), atol=1e-5)
    assert np.abs(of(dense.average) - of(dense.params)).max() > 1e-3
    np.testing.assert_allclose(agent.q_values(state, context_inputs(obs))[0], found, atol=1e-5)


def test_no_average_is_tau_one():
    steps = list(stream(30))
    one, _ = learn_all(agent_of(**SMALL, act_average=1.0), steps)
    jax.tree.map(np.testing.assert_array_equal, one.average, one.params)
    _, none = learn_all(agent_of(**SMALL, act_average=0.0), steps)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), none.params, one.params)


def test_one_bin_is_a_constant():
    agent = agent_of(hidden=(4,), bins=1)
    assert not isinstance(agent, SparseHats)
    state, _ = learn_all(agent, stream(30))
    values = [agent.q_values(state, context_inputs(obs))[0] for obs in (np.zeros(2), np.ones(2), np.array([-9.0, 3.0]))]
    np.testing.assert_allclose(values[1:], [values[0]] * 2)


def test_a_shared_step_is_a_gradient_step_on_dueling_heads():
    """W_a = √ρ V + √(1 - ρ) D_a: gradient steps on V and D move W as the shared step does."""
    rho, features, target = 0.9, jnp.array([0.25, 0.75]), 1.5
    w = jax.random.normal(jax.random.key(0), (3, 2))
    # V = √ρ · mean and D with W = √ρ V + √(1 - ρ) D
    value, own = jnp.zeros(2), w / np.sqrt(1 - rho)
    heads = lambda value, own: np.sqrt(rho) * value + np.sqrt(1 - rho) * own
    loss = lambda w: 0.5 * jnp.square(target - w[1] @ features)
    of_value, of_own = jax.grad(lambda v, d: loss(heads(v, d)), argnums=(0, 1))(value, own)
    by_dueling = heads(value - 0.1 * of_value, own - 0.1 * of_own)
    step = {"heads": {"w": -0.1 * jax.grad(loss)(w)[None]}}
    shared, _ = share_between_actions(rho, 3).update(step, ())
    np.testing.assert_allclose(w + shared["heads"]["w"][0], by_dueling, rtol=1e-5)


def test_sharing_keeps_the_atoms_of_a_distribution_apart():
    step = {"heads": {"w": jnp.arange(4.0).reshape(1, 4, 1)}, "trunk": jnp.ones(1)}  # two actions, two atoms
    shared, _ = share_between_actions(0.5, 2).update(step, ())
    np.testing.assert_allclose(shared["heads"]["w"][0, :, 0], [0.5 * 0 + 0.5 * 2, 0.5 + 0.5 * 4, 1 + 1, 1.5 + 2])
    np.testing.assert_array_equal(shared["trunk"], 1)


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("dqn", {"optimiser": "bounded"}, "learns from every step once"),
        ("srnn", {"optimiser": "bounded", "buffer_size": 1}, "for a loss of TD errors alone"),
        ("dsom", {"features": "hats"}, "features must be dense"),
        ("dqn", {"features": "hats", "noisy": True}, "noisy false"),
        ("dqn", {"share_step": 0.5, "dueling": True}, "neither dueling nor noisy"),
        (
            "local-q",
            {"buffer_size": 100},
            "local-q stores nothing and has no buffer_size; leave it out, or take a method with a buffer: dqn",
        ),
        ("local-q", {"bins": 0}, "bins"),
        ("iq", {"trace_decay": 0.5}, "trace_decay does not apply"),
    ],
)
def test_what_does_not_go_together_is_refused(method, settings, says):
    with pytest.raises(BadInput, match=says):
        agent_of(method, **settings)


@pytest.mark.parametrize("features", ["hats", "elephant"])
def test_other_methods_learn_on_local_features(features, final_state):
    run = resolve(
        "CartPole-v1", "iq", features=features, hidden=(8,), steps=400, learning_starts=100, target_period=50,
        act_average=0.1, target_average=0.05, share_step=0.5, normalise_inputs=True, seeds=1,
    )  # fmt: skip
    state, period = final_state(run)
    assert np.asarray(period.finite).all()
    assert not np.array_equal(state.agent.average["heads"]["w"], state.agent.params["heads"]["w"])


@pytest.mark.parametrize("weights", ["acting", "learned"])
def test_interference_of_either_weights_is_measured(weights):
    run = resolve("MountainCar-v0", "local-q", measure_weights=weights, measure_every=20, hidden=(8,))
    agent = build_agent(run, make_task(run))
    state, dense = learn_all(agent, stream(50))
    measured = build_meter(run, make_task(run), agent).q_of(state).params
    own, other = (dense.average, dense.params) if weights == "acting" else (dense.params, dense.average)
    np.testing.assert_allclose(measured["heads"]["w"], own["heads"]["w"], atol=1e-6)
    assert np.abs(measured["heads"]["w"] - other["heads"]["w"]).max() > 1e-3


def test_a_context_matrix_is_made_of_the_plain_form():
    matrix = context_matrix(untrained("local-q", seeds=1, hidden=(8,)), updates=5, settle=5, count=200)
    assert np.isfinite(matrix.change).any()


def test_projections_learn_as_fast_with_more_units():
    """Copies of each unit: α' and a head's weights fall as 1 / copies, and η = (U / 64)² makes up for both."""
    steps = list(stream(60))

    def projections(copies):
        agent = agent_of(hidden=(2 * copies,), bins=5, normalise_inputs=False, step_bound=4.0)
        agent = dataclasses.replace(agent, trunk=float(copies) ** 2)
        layer = agent_of(hidden=(2,), bins=5).init(jax.random.key(0)).params["trunk"][0]
        state = agent.init(jax.random.key(0))
        repeated = {"w": jnp.repeat(layer["w"], copies, axis=1), "b": jnp.repeat(layer["b"], copies)}
        state.params["trunk"] = state.average["trunk"] = (repeated,)
        return learn_all(agent, steps, state)[1].params["trunk"][0]["w"][:, ::copies]

    one, many = projections(1), projections(4)
    assert np.abs(one - agent_of(hidden=(2,), bins=5).init(jax.random.key(0)).params["trunk"][0]["w"]).max() > 1e-3
    np.testing.assert_allclose(one, many, atol=1e-5)


@pytest.mark.parametrize(
    ("task", "bins"), [("Acrobot-v1", 32), ("gymnasium:CartPole-v1", 32), ("MinAtar/Breakout-v1", 16)]
)
def test_states_of_few_variables_have_narrow_bins(task, bins):
    assert resolve(task, "local-q").bins == bins
    assert resolve(task, "local-q", bins=5).bins == 5


@pytest.mark.parametrize(
    ("task", "settings", "step"),
    [
        ("CartPole-v1", {}, 4.0),
        ("CartPole-v1", {"hidden": (64,)}, 1.0),
        ("CartPole-v1", {"hidden": (64,), "trunk_step": 2.0}, 2.0),
        ("MinAtar/Breakout-v1", {}, 4.0),
    ],
)
def test_the_step_of_the_projections_follows_the_units(task, settings, step):
    assert resolve(task, "local-q", **settings).trunk_step == step
