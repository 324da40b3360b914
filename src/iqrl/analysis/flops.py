"""Floating-point operations by the paper's formula: passes through the layers of the network, and nothing else.

A multiplication and an addition are two operations; biases and activations are not counted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from iqrl.agent import Agent
from iqrl.config import Run
from iqrl.methods import build_agent
from iqrl.tasks.base import Task


def paper_flops(
    *, updates: int, batch: int, steps: int, heads: int, encoder: int, head: int, random_encoder: bool = False
) -> int:
    """2bI(E + kM) + 2bI(E + kM) + T(E + kM) + TE: forward, backward, acting, and a random encoder where there is one.

    I updates with batches of b, T steps, k heads; E and M are the operations of one state's pass through the
    encoder and through one head.
    """
    one_pass = encoder + heads * head
    forward = backward = 2 * batch * updates * one_pass
    return forward + backward + steps * one_pass + (steps * encoder if random_encoder else 0)


def dense(inputs: int, outputs: int) -> int:
    """Operations of one state's pass through a fully connected layer."""
    return 2 * inputs * outputs


class Image(NamedTuple):
    """A square picture, or what a convolution made of it."""

    side: int
    channels: int


def convolved(image: Image, filters: int, kernel: int, stride: int) -> Image:
    """What comes out of a convolution without padding."""
    return Image((image.side - kernel) // stride + 1, filters)


def convolution(image: Image, filters: int, kernel: int, stride: int) -> int:
    """Operations of one picture's pass through a convolution without padding."""
    places = convolved(image, filters, kernel, stride).side ** 2
    return places * dense(image.channels * kernel**2, filters)


def run_flops(run: Run, task: Task) -> int | None:
    """The formula for one seed of a run; None for a network that is not a trunk and heads.

    The batch is the one that is computed, one transition where the buffer holds one. A layer counts as dense even
    where most of its inputs are zeros, as in a tile code. A network of the user's own may have layers of any kind,
    and what a pass through them takes cannot be told from the shapes of its parameters.
    """
    agent = build_agent(run, task)
    layers = _trunk_and_heads(agent)
    if layers is None:
        return None
    trunk, (heads, outputs, features) = layers
    return paper_flops(
        updates=updates_of(run),
        batch=_batch_of(agent),
        steps=run.steps,
        heads=heads,
        encoder=sum(dense(*shape) for shape in trunk),
        head=dense(features, outputs),
    )


def updates_of(run: Run) -> int:
    """I: gradient steps of one seed."""
    return (run.steps - run.learning_starts) // run.update_every * run.gradient_steps


def _trunk_and_heads(agent: Agent) -> tuple[list[tuple[int, int]], tuple[int, int, int]] | None:
    """The weights' shapes: [inputs, outputs] of each layer, and [k, outputs, H] of the heads."""
    params = jax.eval_shape(agent.network.init, jax.random.key(0))
    try:
        if "encoder" in params or "own" in params:
            return None
        trunk = [layer["w"].shape for layer in params["trunk"]]
        heads = params["heads"]["w"].shape
    except (KeyError, TypeError, IndexError, AttributeError):
        return None
    return (trunk, heads) if len(heads) == 3 and all(len(shape) == 2 for shape in trunk) else None


def _batch_of(agent: Agent) -> int:
    """States per update, of which each costs a pass."""
    rows = jax.eval_shape(agent.replay.init)
    t, uniforms = jax.ShapeDtypeStruct((), "int32"), jax.ShapeDtypeStruct((agent.replay.draws,), "float32")
    return jax.eval_shape(agent.replay.sample, rows, t, uniforms).steps.r_t.shape[-1]
