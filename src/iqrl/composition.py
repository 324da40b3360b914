"""What methods are composed of: a run's settings made into parts, and parts into agents."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import optax

from iqrl.agent import Agent
from iqrl.config import Run
from iqrl.errors import BadInput
from iqrl.parts import (
    categorical,
    consolidation,
    contexts,
    distillation,
    dsom,
    encoders,
    frames,
    losses,
    networks,
    noise,
    normalisation,
    perception,
    replay,
    ring,
    sampling,
    scaling,
    schedules,
    sparsity,
    strategies,
    streaming,
    teacher,
    tiles,
)
from iqrl.parts.distillation import BETWEEN_DISTRIBUTIONS
from iqrl.parts.regularisers import Regulariser
from iqrl.tasks.base import Task

INITIAL_STATES = 10_000
"""first states of episodes that are clustered, as many as Ghosh et al. 2018 take"""


def q_learner(
    run: Run,
    task: Task,
    *,
    division: contexts.ContextDivision | None = None,
    regularisers: tuple[Regulariser, ...] = (),
    sight: perception.Perception | None = None,
    network: networks.Network | None = None,
    value_loss: losses.ValueLoss | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> Agent:
    """Deep Q-learning; what is not given is what DQN has."""
    size = len(task.low)
    division = division or contexts.single()
    sight = sight or perception.plain(size)
    network = network or q_network(run, task, sight, division.count)
    memory = target_network(run, task, sight, network, division.count)
    return Agent(
        obs_size=size,
        perception=sight,
        network=network,
        contexts=division,
        teacher=memory,
        replay=experience(run, task, memory.width),
        value_loss=value_loss or q_loss(run),
        regularisers=regularisers,
        optimiser=optimiser or gradient_steps(run),
        epsilon=exploration(run),
        gradient_steps=run.gradient_steps,
    )


def experience(run: Run, task: Task, notes: int) -> replay.Replay:
    drawing = {
        "uniform": lambda: sampling.uniform(run.batch_size),
        "prioritised": lambda: sampling.prioritised(run.batch_size, run.priority_exponent, run.priority_correction),
        "whole": lambda: sampling.whole,
    }[run.sampling]()
    if task.image:
        kept = {"n_step": run.n_step, "notes": notes, "update_every": run.update_every}
        return frames.film(run.buffer_size, task.image.frame, task.image.stack, drawing, **kept)
    return ring.ring(run.buffer_size, len(task.low), drawing, n_step=run.n_step, notes=notes)


def q_network(run: Run, task: Task, sight: perception.Perception, heads: int, **special: Any) -> networks.Network:
    options: dict[str, Any] = {"layer_norm": run.layer_norm, "dueling": run.dueling, "own_layers": run.own_layers}
    options |= {"gates": sight.gates, "binary": sight.binary, "encoder": convolutions(run, task)} | special
    network = networks.multi_head_network(sight.inputs, run.hidden, run.activation, heads, task.actions, **options)
    return noise.noisy(network) if run.noisy else network


def target_network(
    run: Run, task: Task, sight: perception.Perception, network: networks.Network, heads: int
) -> teacher.Teacher:
    answer = teacher.answers(network, sight)
    if not run.has_target:
        return teacher.the_network_itself(answer)
    batch = run.buffer_size if run.sampling == "whole" else run.batch_size * run.gradient_steps
    # What it said is worth remembering only while it would say the same again.
    stands_still = not sight.shared and not run.noisy
    if stands_still and teacher.renewing_is_cheaper(run.buffer_size, batch / run.update_every, run.target_period):
        return teacher.remembered(answer, network, heads, task.actions)
    return teacher.recomputed(answer)


def q_loss(run: Run) -> losses.ValueLoss:
    next_value = losses.double_value if run.double_q else losses.highest_value
    return losses.q_learning(next_value, {"huber": losses.huber, "squared": losses.squared}[run.td_error])


def convolutions(run: Run, task: Task, weights: encoders.Weights = encoders.glorot_uniform) -> encoders.Encoder | None:
    if task.image is None:
        return None
    return encoders.convolutional(
        task.image, task.layers, run.padding, networks.ACTIVATIONS[run.activation], run.layer_norm, weights
    )


def gradient_steps(run: Run) -> optax.GradientTransformation:
    clip = optax.clip_by_global_norm(run.gradient_clip) if run.gradient_clip else optax.identity()
    step = {
        "adam": lambda: optax.adam(run.learning_rate, eps=run.adam_epsilon),
        # As TensorFlow has it: ε under the root, and squares that start at 1.
        "rmsprop": lambda: optax.chain(
            optax.scale_by_stddev(run.rmsprop_decay, run.rmsprop_epsilon, initial_scale=1.0),
            optax.scale_by_learning_rate(run.learning_rate),
        ),
    }[run.optimiser]()
    return optax.chain(clip, step)


def exploration(run: Run) -> schedules.Schedule:
    return schedules.linear(run.epsilon_start, run.epsilon_final, run.epsilon_decay, run.epsilon_begin)


def distance_scale(run: Run, task: Task) -> scaling.Scaling:
    size = len(task.low)
    return {
        "task": lambda: scaling.fixed(task.low, task.high),
        "running": lambda: scaling.running(size),
        "none": lambda: scaling.unscaled(size),
    }[run.context_scaling]()


def fixed_weights(run: Run, task: Task) -> jax.Array:
    """Of the distance between states, where they must be known before any is seen."""
    if run.context_scaling == "running":
        raise BadInput(f"context_scaling running is for contexts that move; {run.method} takes task or none.")
    return distance_scale(run, task).weights(())


def skm_contexts(run: Run, task: Task) -> contexts.ContextDivision:
    """Sequential K-means over the task's states."""
    warm_start = run.learning_starts if run.context_init == "kmeans" else 0
    first = jnp.asarray(run.centroids, jnp.float32).reshape(run.k, -1) if run.centroids else None
    return contexts.sequential_kmeans(run.k, task.low, task.high, distance_scale(run, task), warm_start, first)


def skm_of_codes(run: Run, size: int) -> contexts.ContextDivision:
    """Sequential K-means over codes, whose range nobody knows beforehand."""
    if run.context_scaling == "task":
        raise BadInput(f"context_scaling task is for states; {run.method} takes running or none.")
    scale = {"running": scaling.running, "none": scaling.unscaled}[run.context_scaling](size)
    return contexts.sequential_kmeans(run.k, (0.0,) * size, (1.0,) * size, scale, run.learning_starts)


def distil(
    run: Run, own_head: bool = False, distance: distillation.Distance = distillation.BETWEEN_VALUES
) -> tuple[Regulariser, ...]:
    """λ L_D with the run's λ; nothing at all when λ stays 0, so that the program is the one without it."""
    if run.distill_weight == 0:
        return ()
    weight = {
        "one-minus-epsilon": lambda: schedules.one_minus(exploration(run), run.distill_weight),
        "constant": lambda: schedules.constant(run.distill_weight),
    }[run.distill_schedule]()
    return (distillation.distillation(weight, run.distill_actions, run.distill_heads, own_head, distance),)


def consolidation_weight(run: Run) -> schedules.Schedule | None:
    if run.consolidation_start == run.consolidation_weight == 0:
        return None
    return schedules.linear(run.consolidation_start, run.consolidation_weight, run.consolidation_growth or run.steps)


# The agents


def dqn(run: Run, task: Task) -> Agent:
    return q_learner(run, task)


def srnn(run: Run, task: Task) -> Agent:
    term = sparsity.sparsity(run.srnn_weight, run.srnn_beta, run.srnn_form)
    return q_learner(run, task, regularisers=(term,) if run.srnn_weight else ())


def refuse_images(run: Run, task: Task) -> None:
    if task.image:
        raise BadInput(f"{run.method} is for states in a vector, and {task.name} has images; take dqn or iq-re.")


def dsom_gated(run: Run, task: Task) -> Agent:
    refuse_images(run, task)
    units = run.hidden[-1]
    if math.isqrt(units) ** 2 != units:
        raise BadInput(f"the last of hidden is {units}; the map is a square grid, so it must be a square such as 64.")
    scaled, shared = run.dsom_scaling == "task", run.dsom_target == "live"
    sight = dsom.self_organising_gates(
        task.low, task.high, units, run.dsom_rate, run.dsom_elasticity, run.dsom_width, scaled, shared
    )
    return q_learner(run, task, sight=sight)


def tcnn(run: Run, task: Task) -> Agent:
    refuse_images(run, task)
    if 1 < run.tilings > run.tile_inputs:
        raise BadInput(f"tile_inputs is {run.tile_inputs}; each of the {run.tilings} tilings needs one at least.")
    size = len(task.low)
    low, high = {"task": (task.low, task.high), "unit": ((-1.0,) * size, (1.0,) * size)}[run.tile_range]
    sight = tiles.tile_coding(low, high, run.tile_bins, run.tilings, run.tile_inputs)
    return q_learner(run, task, sight=sight)


def iq(run: Run, task: Task) -> Agent:
    return q_learner(run, task, division=skm_contexts(run, task), regularisers=distil(run))


def iq_no_clustering(run: Run, task: Task) -> Agent:
    division = strategies.random_cells(run.k, task.low, task.high, fixed_weights(run, task))
    return q_learner(run, task, division=division, regularisers=distil(run))


def iq_no_distillation(run: Run, task: Task) -> Agent:
    return q_learner(run, task, division=skm_contexts(run, task))


def iq_no_multi_head(run: Run, task: Task) -> Agent:
    return q_learner(run, task, regularisers=distil(run, own_head=True))


def iq_initial_states(run: Run, task: Task) -> Agent:
    if task.host:
        raise BadInput(f"{run.method} draws {INITIAL_STATES:,} first states beforehand, which {task.name} cannot give.")
    first_states = jax.vmap(lambda uniforms: task.observe(task.reset(uniforms)).reshape(-1).astype(jnp.float32))
    draws = (INITIAL_STATES, task.reset_draws)
    division = strategies.initial_states(run.k, first_states, draws, fixed_weights(run, task))
    return q_learner(run, task, division=division, regularisers=distil(run))


def iq_game_score(run: Run, task: Task) -> Agent:
    division = strategies.score_bins(run.k, run.score_low, run.score_high)
    return q_learner(run, task, division=division, regularisers=distil(run))


def iq_re(run: Run, task: Task) -> Agent:
    return q_learner(run, task, division=random_codes(run, task), regularisers=distil(run))


def iq_te(run: Run, task: Task) -> Agent:
    return q_learner(run, task, division=trained_codes(run, task), regularisers=distil(run))


def rainbow(run: Run, task: Task) -> Agent:
    return distributional(run, task)


def rainbow_srnn(run: Run, task: Task) -> Agent:
    return distributional(run, task, regularisers=srnn(run, task).regularisers)


def rainbow_iq(run: Run, task: Task) -> Agent:
    return distributional(run, task, skm_contexts(run, task), distil(run, distance=BETWEEN_DISTRIBUTIONS))


def rainbow_iq_re(run: Run, task: Task) -> Agent:
    return distributional(run, task, random_codes(run, task), distil(run, distance=BETWEEN_DISTRIBUTIONS))


def rainbow_iq_te(run: Run, task: Task) -> Agent:
    return distributional(run, task, trained_codes(run, task), distil(run, distance=BETWEEN_DISTRIBUTIONS))


def distributional(
    run: Run,
    task: Task,
    division: contexts.ContextDivision | None = None,
    regularisers: tuple[Regulariser, ...] = (),
) -> Agent:
    """The same on distributions of the return (C51)."""
    support = categorical.even_support(run.value_low, run.value_high, run.atoms)
    division = division or contexts.single()
    network = q_network(run, task, perception.plain(len(task.low)), division.count, support=support)
    value_loss = categorical.categorical(support, double=run.double_q)
    return q_learner(run, task, division=division, regularisers=regularisers, network=network, value_loss=value_loss)


def random_codes(run: Run, task: Task) -> contexts.ContextDivision:
    structure = encoders.convolutional(image_of(run, task), task.layers, run.padding)
    encoder = encoders.random_encoder(structure, run.code_size)
    return contexts.of_codes(skm_of_codes(run, encoder.size), encoder)


def trained_codes(run: Run, task: Task) -> contexts.ContextDivision:
    image_of(run, task)
    features: Any = convolutions(run, task)
    return contexts.of_features(
        skm_of_codes(run, features.size), lambda params, obs: features.apply(params["encoder"], obs)
    )


def image_of(run: Run, task: Task) -> encoders.Image:
    if task.image is None:
        raise BadInput(f"{run.method} is for images, and {task.name} has none; for states in a vector take iq.")
    return task.image


def medqn_r(run: Run, task: Task) -> Agent:
    weight = consolidation_weight(run)
    return q_learner(run, task, regularisers=(consolidation.on_replayed_states(weight),) if weight else ())


def medqn_u(run: Run, task: Task) -> Agent:
    weight, size = consolidation_weight(run), len(task.low)
    pixels = task.image is not None
    terms = (consolidation.on_uniform_states(weight, size, run.batch_size, pixels),) if weight else ()
    return q_learner(run, task, regularisers=terms, sight=perception.with_box(size))


def stream_q(run: Run, task: Task) -> Agent:
    sight = stream_sight(run, task)
    optimiser = streaming.bounded_traces(run.learning_rate, run.step_bound, run.gamma * run.trace_decay)
    network = q_network(run, task, sight, 1, **sparse_start(run, task))
    return q_learner(run, task, sight=sight, network=network, value_loss=streaming.traced_q, optimiser=optimiser)


def stream_c51(run: Run, task: Task) -> Agent:
    sight = stream_sight(run, task)
    support = categorical.even_support(run.value_low, run.value_high, run.atoms)
    network = q_network(run, task, sight, 1, support=support, **sparse_start(run, task))
    return q_learner(run, task, sight=sight, network=network, value_loss=categorical.categorical(support, double=False))


def sparse_start(run: Run, task: Task) -> dict[str, Any]:
    sparsity = run.sparse_init
    of_image = lambda key, outputs, width, inputs: networks.sparse_rows(key, outputs, width**2 * inputs, sparsity)
    return {"initialiser": networks.sparse_uniform(sparsity), "encoder": convolutions(run, task, of_image)}


def stream_sight(run: Run, task: Task) -> perception.Perception:
    size = len(task.low)
    return normalisation.normalised(size, run.gamma) if run.normalise else perception.plain(size)
