"""DQN and IQ on CartPole-v0 in one file: Algorithm 1 of the paper from top to bottom, with JAX and optax alone.

    python examples/single_file_iq.py --method iq --buffer-size 1 --seeds 5 --steps 400000

IQ divides the states into k contexts by sequential K-means and gives each context a head of the network; while one
head learns, the others are held where the target network has them. DQN is the same with k = 1.
"""

import argparse
import math
import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

GAMMA, BATCH, HIDDEN, ACTIONS, TIME_LIMIT = 0.99, 32, 64, 2, 200
TARGET_PERIOD = 1000  # steps between two syncs; learning starts after as many
PERIOD = 10_000  # steps per point of the curve
ADAM = optax.adam(5e-4)
RANGES = np.float32([4.8, 10, math.pi / 6, 4 * math.pi])  # in which the variables of CartPole move, around 0


def draw(seed, source, shape):
    """Uniform numbers from one of a seed's sources of randomness."""
    return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), source), shape)


# CartPole: equations as in Gymnasium, in float32. Every step is rewarded with 1.
reset = lambda uniforms: 0.1 * uniforms - 0.05


def step(s, a):
    """The next state, and whether the pole or the cart has gone too far."""
    _, x_dot, angle, angle_dot = s
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    push = (jnp.where(a == 1, 10.0, -10.0) + 0.05 * angle_dot**2 * sine) / 1.1
    angle_acc = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    x_acc = push - 0.05 * angle_acc * cosine / 1.1
    s = s + 0.02 * jnp.stack([x_dot, x_acc, angle_dot, angle_acc])
    return s, (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > math.radians(12))


# The network
def init_network(seed, k):
    """θ: a trunk that all contexts share, and k heads. Weights are Glorot-uniform, biases 0."""
    weights = 2 * draw(seed, 0, (4 + k * ACTIONS, HIDDEN)) - 1
    trunk = weights[:4] * math.sqrt(6 / (4 + HIDDEN))
    heads = weights[4:].reshape(k, ACTIONS, HIDDEN) * math.sqrt(6 / (HIDDEN + ACTIONS))
    return trunk, jnp.zeros(HIDDEN), heads, jnp.zeros((k, ACTIONS))


def q_values(theta, s):
    """Q(s, a, ω_i; θ) of every head i and action a, [k, A]."""
    trunk, trunk_bias, heads, head_bias = theta
    return heads @ jnp.tanh(s @ trunk + trunk_bias) + head_bias


def pick(rows, index):
    """rows[..., index], as a sum: the gradient of an indexed read is slow on a CPU."""
    return jnp.sum(rows * (jnp.arange(rows.shape[-1]) == index), axis=-1)


# The contexts: ω(s) is the centroid nearest to s, each variable being scaled by its range.
distances = lambda s, centroids: jnp.sum(jnp.square((s - centroids) / RANGES), axis=-1)
assign = lambda s, centroids: jnp.argmin(distances(s, centroids))


def sequential_kmeans(s, centroids, counts):
    """C <- SKM(s, C): n_i <- n_i + 1 and c_i <- c_i + (s - c_i) / n_i for the nearest centroid i."""
    nearest = jax.nn.one_hot(assign(s, centroids), len(centroids))
    counts = counts + nearest
    return centroids + (nearest / jnp.maximum(counts, 1))[:, None] * (s - centroids), counts


def kmeans(uniforms, states):
    """Centroids [k, d] of the states [n, d], and how many states each has: k-means++, then Lloyd's iterations."""
    share, centroids = jnp.ones(len(states)), states[:0]
    for uniform in uniforms:  # the next centroid: a state drawn in proportion to its squared distance to the others
        total = jnp.cumsum(share)
        centroids = jnp.concatenate([centroids, states[jnp.argmax(total > uniform * total[-1])][None]])
        share = jnp.min(jax.vmap(distances, (0, None))(states, centroids), axis=1)
    members = lambda centroids: jax.nn.one_hot(jax.vmap(assign, (0, None))(states, centroids), len(uniforms))

    def iterate(_, centroids):
        belongs = members(centroids)
        counts = belongs.sum(0)[:, None]
        return jnp.where(counts > 0, belongs.T @ states / jnp.maximum(counts, 1), centroids)

    centroids = jax.lax.fori_loop(0, 50, iterate, centroids)
    return centroids, members(centroids).sum(0)


# Algorithm 1
class State(NamedTuple):
    s: jax.Array
    length: jax.Array  # of the episode so far, which is also its return
    theta: tuple  # θ
    theta_target: tuple  # θ⁻
    adam: optax.OptState
    clusters: tuple  # the live centroids C, and n
    centroids_target: jax.Array  # Ĉ
    buffer: jax.Array  # B, a ring of the last N transitions: rows {s, s', ω(s), ω(s'), a, r, γ or 0}


def init(seed, k, buffer_size):
    theta, uniforms = init_network(seed, k), draw(seed, 1, (k + 1, 4))
    s, centroids, buffer = reset(uniforms[0]), RANGES * (uniforms[1:] - 0.5), jnp.zeros((buffer_size, 13))
    return State(s, jnp.int32(0), theta, theta, ADAM.init(theta), (centroids, jnp.zeros(k)), centroids, buffer)


def interact(state, t, epsilon, uniforms):
    """Lines 3 to 5: act ε-greedily by the head of ω(s), assign ω(s) and ω(s') by Ĉ, store the transition in B."""
    s, context = state.s, assign(state.s, state.centroids_target)
    greedy = jnp.argmax(pick(q_values(state.theta, s).T, context))
    a = jnp.where(uniforms[0] < epsilon, (uniforms[1] * ACTIONS).astype(jnp.int32), greedy)
    s_next, fallen = step(s, a)
    discount = jnp.where(fallen, 0, GAMMA)  # the time limit is not an end: what follows it still has a value
    facts = jnp.stack([context, assign(s_next, state.centroids_target), a, 1.0, discount])
    buffer = state.buffer.at[t % len(state.buffer)].set(jnp.concatenate([s, s_next, facts]))
    length = state.length + 1
    over = fallen | (length >= TIME_LIMIT)
    state = state._replace(s=jnp.where(over, reset(uniforms[2:6]), s_next), length=jnp.where(over, 0, length))
    return state._replace(buffer=buffer), jnp.where(over, length, 0)


def joint_loss(theta, theta_target, lam, row):
    """L_ori + λ L_D of one transition (eq. 7 to 11)."""
    s, s_next, (context, context_next, a, r, discount) = row[:4], row[4:8], row[8:]
    student, teacher = pick(q_values(theta, s), a), pick(q_values(theta_target, s), a)  # Q_s and Q_t of every head
    q_target = r + discount * jnp.max(pick(q_values(theta_target, s_next).T, context_next))  # Q_τ
    loss_ori = optax.huber_loss(pick(student, context), q_target)
    loss_d = jnp.sum((jnp.arange(len(student)) != context) * optax.huber_loss(student, teacher))  # over ω_i ≠ ω(s)
    return loss_ori + lam * loss_d


def learn(state, t, lam, uniforms):
    """Line 7: sample a batch from B, one step of Adam on L_ori + λ L_D."""
    batch = state.buffer[(uniforms * jnp.minimum(t + 1, len(state.buffer))).astype(jnp.int32)]
    loss = lambda theta: jnp.mean(jax.vmap(partial(joint_loss, theta, state.theta_target, lam))(batch))
    updates, adam = ADAM.update(jax.grad(loss)(state.theta), state.adam)
    return state._replace(theta=optax.apply_updates(state.theta, updates), adam=adam)


def warm_start(state, states, uniforms):
    """C and Ĉ by K-means over the states before learning starts, and the labels in B by them."""
    centroids, counts = kmeans(uniforms, states)
    labels = jax.vmap(jax.vmap(lambda s: assign(s, centroids)))(state.buffer[:, :8].reshape(-1, 2, 4))
    buffer = state.buffer.at[:, 8:10].set(labels)
    return state._replace(clusters=(centroids, counts), centroids_target=centroids, buffer=buffer)


def train_seed(seed, k, buffer_size, steps):
    """For each step the return of the episode that ended there, 0 if none did."""
    draws = 2 + 4 + (BATCH if buffer_size > 1 else 1)  # to act, reset and sample; copies of one have its gradient

    def one_step(state, now, learning):
        t, uniforms = now
        epsilon = 1 - 0.98 * jnp.minimum(t / (0.1 * steps), 1)
        s, (state, ended) = state.s, interact(state, t, epsilon, uniforms)
        if not learning:
            return state, (ended, s)
        state = state._replace(clusters=sequential_kmeans(s, *state.clusters))  # line 6
        return learn(state, t, 1 - epsilon, uniforms[6:]), ended

    def target_period(state, number, learning=True):
        now = (number * TARGET_PERIOD + jnp.arange(TARGET_PERIOD), draw(seed, 3 + number, (TARGET_PERIOD, draws)))
        state, seen = jax.lax.scan(partial(one_step, learning=learning), state, now)
        return state._replace(theta_target=state.theta, centroids_target=state.clusters[0]), seen  # line 8

    state, (first, states) = target_period(init(seed, k, buffer_size), 0, learning=False)
    state = warm_start(state, states, draw(seed, 2, (k,)))
    _, rest = jax.lax.scan(target_period, state, jnp.arange(1, steps // TARGET_PERIOD))
    return jnp.append(first, rest)


def train(method="iq", buffer_size=1, seeds=5, steps=400_000, contexts=3, first_seed=0):
    """Mean return of the episodes that ended in each period, [seeds, periods]."""
    if steps % PERIOD:
        raise ValueError(f"steps must be a multiple of {PERIOD}")
    one_seed = partial(train_seed, k={"iq": contexts, "dqn": 1}[method], buffer_size=buffer_size, steps=steps)
    program = jax.jit(jax.vmap(one_seed), compiler_options={"xla_backend_optimization_level": 1})  # compiles faster
    ended = np.asarray(program(first_seed + jnp.arange(seeds))).reshape(seeds, -1, PERIOD)
    return ended.sum(axis=2) / (ended > 0).sum(axis=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", choices=["dqn", "iq"], default="iq")
    for name, default in {"buffer-size": 1, "seeds": 5, "steps": 400_000, "contexts": 3, "first-seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    started = time.perf_counter()
    curves = train(**vars(parser.parse_args()))
    for number, point in enumerate(curves.T, 1):
        print(f"step {number * PERIOD:>7}  mean {point.mean():5.1f}  seeds", *(f"{each:5.1f}" for each in point))
    final = curves[:, -max(curves.shape[1] // 10, 1) :]
    print(f"final {final.mean():.1f}  auc {curves.mean():.1f}  seconds {time.perf_counter() - started:.1f}")
