"""Where the time of a step goes, on one core: microseconds per step of all seeds, the best of several rounds.

    python benchmarks/breakdown.py [--seeds 5] [--rounds 5]

The whole step goes through the driver that trains; the others are loops around one piece of it. The pieces do not add
up to the whole exactly: XLA fuses across them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp

from iqrl.core import randomness
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods import base
from iqrl.methods.registry import build_agent
from iqrl.training.compilation import COMPILER_OPTIONS, compile_driver
from iqrl.training.compiled import Driver

STEPS = 10_000
BATCH, HIDDEN, OUTPUTS = 32, 64, 6


def best(call: Callable[[], object], rounds: int, steps: int = STEPS) -> float:
    """Microseconds per step."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - started)
    return 1e6 * min(times) / steps


def whole_step(rounds: int, **settings) -> float:
    run = resolve("CartPole-v1", "iq", epsilon_decay=1000, **settings)
    task = make_task(run)
    init, advance, *_ = compile_driver(Driver(run, task, build_agent(run, task)))
    state = init()

    def call():
        nonlocal state
        state, period = advance(state, jnp.int32(state.step) + STEPS)
        return period

    call()
    return best(call, rounds)


def looped(piece: Callable, carry, *constants) -> Callable[[], object]:
    """STEPS repetitions of carry -> carry as one compiled program."""
    loop = jax.jit(lambda carry, *rest: jax.lax.fori_loop(0, STEPS, lambda i, c: piece(c, *rest), carry))
    compiled = loop.lower(carry, *constants).compile(COMPILER_OPTIONS)
    return lambda: compiled(carry, *constants)


def update(rounds: int, seeds: int) -> float:
    """The update alone, on a full buffer."""
    run = resolve("CartPole-v1", "iq", seeds=seeds)
    agent = build_agent(run, make_task(run))
    state = jax.vmap(agent.init)(jax.random.split(jax.random.key(0), seeds))
    rows = jax.random.uniform(jax.random.key(1), state.replay.rows.shape)
    state = state._replace(replay=state.replay._replace(rows=rows))
    uniforms = jax.random.uniform(jax.random.key(2), (seeds, run.batch_size))
    needs = agent.learn_uniforms
    learn = jax.vmap(lambda state, u: agent.learn(state, jnp.int32(5000), randomness.hand_out(needs, u))[0])
    return best(looped(learn, state, uniforms), rounds)


def tanh(rounds: int, seeds: int) -> float:
    """The hidden layer's tanh of one batch."""
    return best(looped(lambda h: jnp.tanh(h) + 0.5, jnp.ones((seeds, BATCH, HIDDEN))), rounds)


def products(rounds: int, seeds: int) -> float:
    """The five matrix products of an update: two forward, three backward."""
    x, w1 = jnp.ones((seeds, BATCH, 4)), jnp.full((seeds, 4, HIDDEN), 1e-3)
    w2 = jnp.full((seeds, OUTPUTS, HIDDEN), 1e-3)

    def piece(carry, x):
        w1, w2 = carry
        hidden = x @ w1
        q = jnp.einsum("soh,sbh->sob", w2, hidden)
        back = jnp.einsum("sob,soh->sbh", q, w2)
        return jnp.einsum("sbi,sbh->sih", x, back), jnp.einsum("sob,sbh->soh", q, hidden)

    return best(looped(piece, (w1, w2), x), rounds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rounds, seeds = options.rounds, options.seeds
    rows = {
        "whole step, N = 100": whole_step(rounds, seeds=seeds, buffer_size=100),
        "  its update alone": update(rounds, seeds),
        "    its matrix products alone": products(rounds, seeds),
        "    its tanh alone": tanh(rounds, seeds),
        "whole step, N = 1: a batch of one, everything else the same": whole_step(rounds, seeds=seeds, buffer_size=1),
        "whole step, N = 50,000": whole_step(rounds, seeds=seeds, buffer_size=50_000, learning_starts=1000),
    }
    base.caches_targets = lambda run, preprocessor: False
    rows["whole step, N = 100, targets recomputed for every batch"] = whole_step(rounds, seeds=seeds, buffer_size=100)
    print(f"IQ, k = 3, batch {BATCH}, {HIDDEN} units, {seeds} seeds: microseconds per step")
    for name, value in rows.items():
        print(f"{value:8.1f}  {name}")


if __name__ == "__main__":
    main()
