"""Where the time of a step goes: environment, acting, storing and clustering, learning, measuring.

Training is one compiled program, which no profiler takes apart. So programs that do less and less are timed beside
it, all through the driver that trains, and what one takes more than the one before it is the time of what it adds.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.measure.meter import NOTHING_MEASURED
from iqrl.parts import contexts, schedules
from iqrl.parts.networks import Output
from iqrl.training.compilation import COMPILER_OPTIONS, compile_driver
from iqrl.training.compiled import Driver, Loop
from iqrl.training.states import Carry, Noise, Period, TrainState, summarise

STEPS, SECONDS = 4000, 0.5
"""length of a timing: so many steps, or as many as fit into the seconds"""
ROUNDS = 5
"""timings of each program, of which the shortest counts"""


def wallclock_split(driver: Driver) -> dict[str, float]:
    """Microseconds of each part, per step that all seeds make side by side, once learning has started.

    The environment has the driver's own work in it, statistics and random numbers; learning has the syncs.
    """
    plain = dataclasses.replace(driver, meter=NOTHING_MEASURED)
    init, advance, *_ = compile_driver(plain)
    programs = partial_programs(plain) | {"learning": advance}
    clock = Clock(driver.run.update_every, _warmed_up(plain, init, advance, programs["storing_and_clustering"]))
    clocks = dict.fromkeys(programs, clock)
    if driver.meter is not NOTHING_MEASURED:  # its state is another, and so it has a clock of its own
        init, programs["measuring"], *_ = compile_driver(driver)
        begun, _ = programs["measuring"](init(), np.int32(driver.run.learning_starts))
        clocks["measuring"] = Clock(driver.run.update_every, begun)
    trial = clock.seconds_per_step(advance, STEPS // 20)
    steps = math.ceil(min(STEPS, SECONDS / trial))
    best = dict.fromkeys(programs, math.inf)
    # Taken in turn, so that a slow moment of the machine meets all of them.
    for _, name in itertools.product(range(ROUNDS), programs):
        best[name] = min(best[name], clocks[name].seconds_per_step(programs[name], steps))
    return differences({name: 1e6 * seconds for name, seconds in best.items()})


class Clock:
    """Times programs that all take the same state on, each from where the last one left it."""

    def __init__(self, every: int, state: TrainState):
        self.every, self.state, self.t = every, state, int(state.step)

    def seconds_per_step(self, program: Callable, steps: int) -> float:
        steps = _whole_updates(steps, self.every)
        self.t += steps
        started = time.perf_counter()
        self.state, _ = jax.block_until_ready(program(self.state, np.int32(self.t)))
        return (time.perf_counter() - started) / steps


def _whole_updates(steps: int, every: int) -> int:
    return math.ceil(steps / every) * every


def partial_programs(driver: Driver) -> dict[str, Any]:
    """Programs that take the driver's state on without learning, each doing what the one before it does and more."""
    blind = WithoutLearning(driver.run, driver.task, _acting_blindly(driver))
    sighted = WithoutLearning(driver.run, driver.task, driver.agent)
    return {
        "environment": _compiled(driver, blind.interacting),
        "acting": _compiled(driver, sighted.interacting),
        "storing_and_clustering": _compiled(driver, sighted.storing),
    }


def differences(times: dict[str, float]) -> dict[str, float]:
    """What each program adds to the one before it.

    One that does less cannot take longer; where it did, that was noise, and it counts as taking as long. So no part
    is negative, and together they are the time of the last.
    """
    ends = np.minimum.accumulate([*times.values()][::-1])[::-1]
    return dict(zip(times, np.diff(ends, prepend=0.0).tolist(), strict=True))


class WithoutLearning(Driver):
    """The driver's steps without updates. The random numbers that an update needs are not drawn: they are its cost."""

    @property
    def _draws(self) -> Noise:
        return super()._draws._replace(learn=0)

    def interacting(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        return self._steps(lambda carry, t, noise: self._interact(carry, t, noise)[0], state, stop)

    def storing(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        return self._steps(self._observe_step, state, stop)

    def _steps(self, step: Callable, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """As `advance`, state and statistics handed back: XLA removes what nobody asks for."""
        loop = Loop(1, self._on_seeds(step), syncs=False)
        carry = Carry(state.env, state.agent, state.meter, self._zero_statistics())
        t, carry = self._run_loop(loop, state.seeds, state.step, stop, carry)
        end = TrainState(t, state.seeds, carry.env, carry.agent, carry.meter)
        return end, summarise(carry, t - state.step, jnp.int32(0), {})


def _acting_blindly(driver: Driver) -> Any:
    """The agent with nothing to evaluate: one context, values that are all 0, actions at random."""
    nothing = Output(jnp.zeros((1, driver.task.actions)), jnp.zeros(0), jnp.zeros(0))
    network = driver.agent.network._replace(apply=lambda params, seen: nothing)
    division = contexts.single()
    if driver.agent.contexts.encode:
        code = jax.eval_shape(driver.init).env.code
        division = division._replace(encode=lambda state, params, obs: jnp.zeros(code.shape[1:], code.dtype))
    return dataclasses.replace(driver.agent, network=network, contexts=division, epsilon=schedules.constant(1.0))


def _compiled(driver: Driver, program: Callable) -> Any:
    like, stop = jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), "int32")
    return jax.jit(program, donate_argnums=0).lower(like, stop).compile(COMPILER_OPTIONS)


def _warmed_up(driver: Driver, init: Callable, advance: Callable, storing: Callable) -> TrainState:
    """A state as it is while learning: contexts begun, buffer full or as full as the run makes it."""
    run = driver.run
    state, _ = advance(init(), np.int32(run.learning_starts))
    full = _whole_updates(min(run.buffer_size, run.steps), run.update_every)
    state, _ = storing(state, np.int32(max(run.learning_starts, full)))
    return state
