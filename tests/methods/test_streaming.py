"""Stream Q(λ) by hand, and against a plain ObGD (Elsayed, Vasan & Mahmood 2024)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import loss_inputs, output, step

from iqrl.core.bounded_step import bounded_traces, traced_q


def sample(q, q_next, action=0, reward=0.0, discount=0.0, contexts=(0, 0), done=False, greedy=True):
    """One step as the stream gives it: a batch of one, its axis last; q is [k, A]."""
    now, after = (output(jnp.asarray(x)[..., None]) for x in (q, q_next))
    transition = step(
        jnp.zeros((1, 1)), jnp.zeros((1, 1)), a_tm1=[action], r_t=jnp.stack([reward]), discount_t=jnp.stack([discount]),
        context_tm1=[contexts[0]], context_t=[contexts[1]], done=jnp.stack([done]), greedy=jnp.stack([greedy]),
    )  # fmt: skip
    return loss_inputs(transition, now, after, now, after)


def with_error(delta, **options):
    """A sample of which δ = r + γ max Q(s') - Q(s, a) is `delta`."""
    return sample([[0.0]], [[0.0]], reward=delta, **options)


@pytest.mark.parametrize(("reward", "loss"), [(0.5, 0.245), (2.0, 1.7)])  # δ = r + 0.9 · 3 - 2.5: 0.7 and 2.2
def test_traced_q_is_a_loss_by_value_and_q_by_gradient(reward, loss):
    q, q_next = jnp.array([[9.0, 9.0], [1.0, 2.5]]), [[3.0, 2.0], [8.0, 8.0]]
    of = lambda q: traced_q()(sample(q, q_next, 1, reward, 0.9, contexts=(1, 0)))[0]
    value, gradient = jax.value_and_grad(of)(q)
    assert float(value) == pytest.approx(loss, abs=1e-5)
    np.testing.assert_array_equal(gradient, [[0, 0], [0, 1]])  # whatever δ is


def test_one_weight_by_hand():
    """α = 1, κ = 2, γλ = 0.5."""
    optimiser = bounded_traces(rate=1.0, bound=2.0, decay=0.5)
    traces = optimiser.init(jnp.float32(7))
    assert float(traces) == 0
    for delta, gradient, update, trace in (
        (0.5, 0.1, 0.05, 0.1),  # κ max(|δ|, 1) ‖z‖ = 0.2: the whole step, 0.5 · 0.1
        (-3.0, 1.0, -0.5, 1.05),  # z = 0.05 + 1; κ · 3 · 1.05 = 6.3: -3 · 1.05 / 6.3
        (0.1, 0.0, 0.05, 0.525),  # κ · 1 · 0.525 = 1.05: 0.1 · 0.525 / 1.05
        (0.2, -0.3625, -0.02, -0.1),  # z = 0.2625 - 0.3625; κ · 0.1 = 0.2: the whole step
    ):
        found, traces = optimiser.update(jnp.float32(gradient), traces, inputs=with_error(delta))
        assert (float(found), float(traces)) == (pytest.approx(update, abs=1e-6), pytest.approx(trace, abs=1e-6))


def test_the_bound_may_count_the_heads_alone():
    # ‖z‖₁ of the heads alone is 2: κ · 1 · 2 = 4, so all weights move by a quarter of their gradient
    optimiser = bounded_traces(rate=1.0, bound=2.0, decay=0.5, heads_only=True)
    gradient = {"heads": jnp.array([1.0, -1.0]), "trunk": jnp.array([8.0])}
    update, _ = optimiser.update(gradient, optimiser.init(gradient), inputs=with_error(1.0))
    np.testing.assert_allclose(update["heads"], [0.25, -0.25])
    np.testing.assert_allclose(update["trunk"], [2.0])


def test_rate_is_inside_the_bound():
    # α κ max(|δ|, 1) ‖z‖₁ over all weights: 0.1 · 2 · 4 · (1 + 2 + 2) = 4, so α' = 0.1 / 4
    optimiser = bounded_traces(rate=0.1, bound=2.0, decay=0.5)
    gradient = {"w": jnp.array([1.0, -2.0]), "b": jnp.array([2.0])}
    update, _ = optimiser.update(gradient, optimiser.init(gradient), inputs=with_error(4.0))
    np.testing.assert_allclose(update["w"], [0.1, -0.2], rtol=1e-6)
    np.testing.assert_allclose(update["b"], [0.2], rtol=1e-6)


@pytest.mark.parametrize(
    ("over", "greedy", "trace"), [(False, True, 0.3), (True, True, 0), (False, False, 0), (True, False, 0)]
)
def test_trace_ends_after_the_update_of_the_last_or_a_non_greedy_step(over, greedy, trace):
    optimiser = bounded_traces(rate=1.0, bound=2.0, decay=0.5)
    sampled = with_error(0.5, done=over, greedy=greedy)
    update, after = optimiser.update(jnp.float32(0.2), jnp.float32(0.2), inputs=sampled)
    assert float(update) == pytest.approx(0.5 * 0.3)
    assert float(after) == pytest.approx(trace)


class ObGD:
    """optim.py of mohmdelsayed/streaming-drl, over a dictionary of arrays."""

    def __init__(self, params, lr, gamma, lamda, kappa):
        self.params, self.lr, self.kappa, self.decay = params, lr, kappa, gamma * lamda
        self.e = {name: np.zeros_like(p) for name, p in params.items()}

    def step(self, delta, grad, reset):
        for name, g in grad.items():
            self.e[name] = self.decay * self.e[name] + g
        z_sum = sum(np.abs(e).sum() for e in self.e.values())
        dot_product = max(abs(delta), 1.0) * z_sum * self.lr * self.kappa
        step_size = self.lr / dot_product if dot_product > 1 else self.lr
        for name, e in self.e.items():
            self.params[name] = self.params[name] + step_size * delta * e
            self.e[name] = 0 * e if reset else e
        return dot_product > 1


def test_a_stream_of_steps_is_learned_from_as_by_obgd():
    """Q(s, ·) = W s + b; three actions; the states are small, then large, so that the bound rests, then holds."""
    random, gamma, lamda = np.random.default_rng(0), 0.99, 0.8
    theirs = ObGD({"w": random.normal(size=(3, 2)), "b": np.zeros(3)}, 0.05, gamma, lamda, kappa=2.0)
    ours = jax.tree.map(jnp.float32, theirs.params)
    optimiser = bounded_traces(0.05, 2.0, gamma * lamda)
    traces = optimiser.init(ours)
    q = lambda params, s: (params["w"] @ s + params["b"])[None]

    @jax.jit
    def learn(params, traces, s, s_next, *taken):
        seen = lambda params: sample(q(params, s), q(params, s_next), *taken)
        gradient = jax.grad(lambda params: jnp.mean(traced_q()(seen(params))))(params)
        updates, traces = optimiser.update(gradient, traces, params, inputs=seen(params))
        return jax.tree.map(jnp.add, params, updates), traces

    held = []
    for t in range(60):
        s, s_next = random.normal(size=(2, 2)) * (0.05 if t < 30 else 2.0)
        action, reward = int(random.integers(3)), random.normal() * 3
        over, greedy = t % 10 == 9, t % 7 != 3
        discount = 0.0 if over and t % 20 == 9 else gamma  # every other episode ends by a time limit
        delta = reward + discount * q(theirs.params, s_next).max() - q(theirs.params, s)[0, action]
        grad = {"w": np.eye(3)[action][:, None] * s, "b": np.eye(3)[action]}
        held.append(theirs.step(delta, grad, reset=over or not greedy))
        ours, traces = learn(
            ours, traces, *map(jnp.float32, (s, s_next)), action, reward, discount, (0, 0), over, greedy
        )
        for name in ("w", "b"):
            np.testing.assert_allclose(ours[name], theirs.params[name], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(traces[name], theirs.e[name], rtol=1e-4, atol=1e-4)
    assert 10 < sum(held) < 50
