"""Floating-point operations of a run: by the paper's formula, and as XLA counts them in the compiled program.

The formula counts passes through the layers of the network and nothing else. A multiplication and an addition are two
operations; biases and activations are not counted.

XLA counts the body of a loop once, however often it runs. So the pieces that the loops repeat are compiled by
themselves, for one seed, and each count is multiplied by how often a run executes the piece. XLA's count includes every
elementwise operation, on integers too. It includes neither tanh, exp and the like, which XLA counts apart, nor what is
done once, the warm start of the contexts. The drawing of random numbers is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from iqrl.core import randomness
from iqrl.core.agent import QLearner, as_q_learner
from iqrl.core.contexts.base import EncodedState
from iqrl.core.encoders import Image, Padding, maps
from iqrl.core.encoders import Layers as ConvolutionLayers
from iqrl.diagnostics.interference.meter import RunMeter
from iqrl.diagnostics.interference.td_errors import td_errors
from iqrl.envs.base import Task
from iqrl.methods.registry import build_agent
from iqrl.settings import Run
from iqrl.training.compilation import COMPILER_OPTIONS, enable_cache
from iqrl.training.compiled import Driver, Uniforms
from iqrl.training.states import Carry, zero_sums
from iqrl.training.timetable import timetable_of

# How often a run learns, measures and syncs. Only these functions repeat what the driver and the meter decide.


# The paper's formula


def dense(inputs: int, outputs: int) -> int:
    """Operations of one state's pass through a fully connected layer."""
    return 2 * inputs * outputs


def convolutions(image: Image, layers: ConvolutionLayers, padding: Padding = "valid") -> int:
    """Operations of one image's pass through convolutions."""
    inputs = [image.channels * image.stack, *(filters for _, _, filters in layers)]
    sizes = zip(maps(image, layers, padding), layers, inputs, strict=False)
    return sum(
        height * width * dense(channels * kernel**2, filters)
        for (height, width, filters), (kernel, _, _), channels in sizes
    )


def paper_flops(
    *, updates: int, batch: int, steps: int, heads: int, encoder: int, head: int, random_encoder: int = 0
) -> int:
    """2bI(E + kM) + 2bI(E + kM) + T(E + kM) + TR: forward, backward, acting, and a random encoder where there is one.

    I updates with batches of b, T steps, k heads; E and M are the operations of one state's pass through the
    encoder and through one head, R those of the random encoder, which in the paper is as large as the network's own.
    """
    one_pass = encoder + heads * head
    forward = backward = 2 * batch * updates * one_pass
    return forward + backward + steps * (one_pass + random_encoder)


def run_flops(run: Run, task: Task) -> int | None:
    """The formula for one seed of a run; None for a network that is not a trunk and heads.

    The batch is the one that is computed, one transition where the buffer holds one. A layer counts as dense even
    where most of its inputs are zeros, as in a tile code. Of a random encoder the convolutions count, as in the paper,
    and not the small layer after them. A network of the user's own may have layers of any kind; the shapes of its
    parameters do not show what a pass through them takes.
    """
    agent = build_agent(run, task)
    layers = None if run.network else _find_layers(agent)
    if layers is None:
        return None
    seen = convolutions(task.image, task.layers, run.padding) if task.image else 0
    contexts = jax.eval_shape(agent.contexts.init, jax.random.key(0))
    return paper_flops(
        updates=timetable_of(run, agent.syncs).count_updates(run.steps),
        batch=_find_batch_size(agent),
        steps=run.steps,
        heads=layers.heads,
        encoder=seen + sum(dense(inputs, outputs) for inputs, outputs in layers.trunk),
        head=sum(dense(inputs, outputs) for inputs, outputs in layers.head),
        random_encoder=seen if isinstance(contexts, EncodedState) and contexts.encoder else 0,
    )


class Layers(NamedTuple):
    """The fully connected layers of a network that is a trunk and heads."""

    trunk: list[tuple[int, int]]
    """[inputs, outputs] of each layer"""
    head: list[tuple[int, int]]
    """the same of one head: the layers that it has for itself, and the last one"""
    heads: int


def _find_layers(agent: QLearner) -> Layers | None:
    params = jax.eval_shape(agent.network.init, jax.random.key(0))
    try:
        trunk = [layer["w"].shape for layer in params["trunk"]]
        # Of all heads side by side: heads, outputs, inputs.
        (heads, *_), *_ = of_heads = [layer["w"].shape for layer in (*params.get("own", ()), params["heads"])]
        head = [(inputs, outputs) for _, outputs, inputs in of_heads]
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        return None
    if any(len(shape) != 2 for shape in trunk):
        return None
    return Layers(trunk=trunk, head=head, heads=heads)


def _find_batch_size(agent: QLearner) -> int:
    """States per update; each costs a pass."""
    rows = jax.eval_shape(agent.replay.init)
    t, uniforms = jax.ShapeDtypeStruct((), "int32"), _uniforms(agent.replay.num_uniforms)
    return jax.eval_shape(agent.replay.sample, rows, t, uniforms).transitions.r_t.shape[-1]


# The compiled program


class Piece(NamedTuple):
    """A part of the program, for one seed."""

    flops: float
    """of one execution"""
    times: int
    """executions in the whole run"""

    @property
    def total(self) -> float:
        return self.flops * self.times


def count_pieces(driver: Driver) -> dict[str, Piece]:
    """The operations of every piece of one seed's run."""
    times = count_executions(driver)
    return {
        name: Piece(flops=count_flops(*program), times=times[name]) for name, program in list_programs(driver).items()
    }


def count_executions(driver: Driver) -> dict[str, int]:
    """How often one seed's run executes each piece."""
    run, times = driver.run, driver.timetable
    return {
        "collecting": run.learning_starts,
        "observing": run.steps - run.learning_starts,
        "learning": times.count_updates(run.steps),
        "syncing": times.count_computed_syncs(run.steps),
    } | ({"measuring": times.count_readings(run.steps)} if run.measure_every else {})


def list_programs(driver: Driver) -> dict[str, tuple[Any, ...]]:
    """Each piece as a function of the driver and the shapes of its arguments."""
    carry, t = _carry_of_one_seed(driver), jax.ShapeDtypeStruct((), "int32")
    uniforms = Uniforms(run=_uniforms(randomness.count(driver.uniforms)), meter=_uniforms(driver.meter.num_uniforms))
    # Several gradient steps are a loop of their own.
    once = dataclasses.replace(as_q_learner(driver.agent), gradient_steps=1)
    programs: dict[str, tuple[Any, ...]] = {
        "collecting": (driver.collect_step, carry, t, uniforms),
        "observing": (driver.observe_step, carry, t, uniforms),
        "learning": (once.learn, carry.agent, t, jax.tree.map(_uniforms, once.learn_uniforms)),
        "syncing": (driver.agent.sync, carry.agent),
    }
    if isinstance(driver.meter, RunMeter):
        # All transitions at once: chunk by chunk would be a loop.
        meter = dataclasses.replace(driver.meter, errors=td_errors(once))
        programs["measuring"] = (meter.measure_now, carry.meter, carry.agent, carry.agent, t)
    return programs


def _carry_of_one_seed(driver: Driver) -> Carry:
    state, sums = jax.eval_shape(driver.init), jax.eval_shape(lambda: zero_sums(driver.agent, 1))
    drop_seeds = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)
    carry = Carry(env=state.env, agent=state.agent, meter=state.meter, sums=sums)
    return jax.tree.map(drop_seeds, carry)


def _uniforms(count: int) -> Any:
    return jax.ShapeDtypeStruct((count,), "float32")


def count_flops(function: Callable, *shapes: Any) -> float:
    """XLA's count for the function as it is compiled for training."""
    enable_cache()
    counts = jax.jit(function).lower(*shapes).compile(COMPILER_OPTIONS).cost_analysis()
    return float((counts or {}).get("flops", 0.0))
