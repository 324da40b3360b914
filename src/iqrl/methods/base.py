"""What every method starts from: the record `Method`, and `q_learner`, which composes parts into an agent.

A method is one file: its settings, the parts that are its own, how it is composed, its defaults and presets. Most
compose `q_learner`; what they do not give is what DQN has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import optax

from iqrl import accelerator
from iqrl.core import contexts, losses, networks, preprocessors, schedules
from iqrl.core.agent import QLearner
from iqrl.core.bounded_step import bounded_traces, share_between_actions, traced_q
from iqrl.core.cached_targets import CachedTargets, cache_pays
from iqrl.core.encoders import Encoder, convolutional
from iqrl.core.features import make_features
from iqrl.core.fused_update import FusedCachedUpdate, FusedUpdate
from iqrl.core.layers import ACTIVATIONS, KernelInitialiser, glorot_kernel
from iqrl.core.noisy import noisy_heads
from iqrl.core.replay import Replay, frame_replay, one_copy, prioritised, ring_replay, uniform, whole
from iqrl.core.sparse_hats import SparseHats
from iqrl.core.types import Agent
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.methods.own_network import own_encoder, own_network
from iqrl.settings import Run, Settings, setting


class BoundedSettings(Settings):
    """bounded step"""

    trace_decay: float = setting(0.8, "λ of the eligibility traces", minimum=0, maximum=1)
    step_bound: float = setting(
        2.0, "κ: larger takes shorter steps where many weights would move", minimum=0, may_change=True
    )
    bound_over: Literal["all", "heads"] = setting("all", "whose traces the bound counts: all, or those of the heads")
    trunk_step: float = setting(
        1.0, "the step of all layers below the heads, as a multiple of the heads' step", minimum=0, may_change=True
    )

    def check(self: Any) -> None:
        if self.optimiser != "bounded":
            return
        if self.buffer_size > 1 or self.n_step > 1 or self.gradient_steps > 1 or self.update_every > 1:
            raise BadInput(
                "optimiser bounded learns from every step once: buffer_size, n_step, update_every and gradient_steps "
                "must be 1."
            )


class Span(NamedTuple):
    """A range that `iqrl tune` searches."""

    low: float
    high: float
    log: bool = False
    """search its logarithm"""


Choices = tuple[Any, ...]
"""values that `iqrl tune` chooses from"""
SEARCH: Mapping[str, Span | Choices] = {
    "learning_rate": Span(1e-5, 1e-2, log=True),
    "target_period": (10, 100, 1000),
}


class Method(NamedTuple):
    name: str
    summary: str
    paper: str
    """where it comes from"""
    build: Callable[[Run, Task], Agent]
    settings: tuple[type[Settings], ...] = ()
    """groups of settings it has beside those that every run has"""
    defaults: Mapping[str, Any] = {}
    """defaults of its own; a function is given the number of steps"""
    fixed: Mapping[str, Any] = {}
    """settings that it decides itself"""
    presets: Mapping[str, Mapping[str, Any]] = {}
    """`paper`: its values in the IQ paper; `original`: those of its own paper, for tasks with vectors"""
    settle: Callable[[Run, Task, Mapping[str, Any]], Run] = lambda run, task, given: run
    """(run, task, settings given) -> the run with what depends on its task; may refuse it"""
    settled: Mapping[str, str] = {}
    """defaults that `settle` decides, in words, for the help"""
    observations: Literal["any", "vectors", "images"] = "any"
    """what it is for; other tasks are refused"""
    reduces_to: tuple[str, Mapping[str, Any]] | None = None
    """another method, and the settings with which it is that method bit for bit"""
    search: Mapping[str, Span | Choices] = SEARCH
    """what `iqrl tune` varies where it is not told"""
    covered_by: tuple[str, ...] = ()
    """methods that consist of the same parts: tests of these are tests of its parts"""


LARGEST_INPUT = 5.0
"""normalised states are cut off there"""
BASELINES = {"double_q": True}
"""the paper takes its baseline from OpenAI Baselines, which is double by default; its rivals stand on that baseline"""


def q_learner(
    run: Run,
    task: Task,
    *,
    division: contexts.ContextDivision | None = None,
    regularisers: tuple[losses.Regulariser, ...] = (),
    preprocessor: preprocessors.Preprocessor | None = None,
    network: networks.Network | None = None,
    replay: Replay | None = None,
    value_loss: losses.ValueLoss | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> QLearner:
    """Deep Q-learning; what is not given is what DQN has."""
    division = division or contexts.single()
    preprocessor = preprocessor or make_preprocessor(run, task)
    if regularisers and run.optimiser == "bounded":
        names = ", ".join(term.name for term in regularisers)
        raise BadInput(f"optimiser bounded is for a loss of TD errors alone; {run.method} also has {names}.")
    agent = QLearner(
        obs_size=task.obs_size,
        preprocessor=preprocessor,
        network=network or q_network(run, task, preprocessor, division.count),
        contexts=division,
        replay=replay or make_replay(run, task),
        value_loss=value_loss or q_loss(run),
        regularisers=regularisers,
        optimiser=share_step(run, task, optimiser or make_optimiser(run)),
        epsilon=exploration(run),
        has_target=run.has_target,
        gradient_steps=run.gradient_steps,
        act_average=run.act_average,
        average_fall=run.average_fall,
        target_average=run.target_average,
        masked_actions=task.masked_actions,
    )
    cached = caches_targets(run, preprocessor)
    own_parts = network or replay or value_loss or optimiser
    if run.accelerator == "fused" and not own_parts and has_fused_form(run, task, agent) and accelerator.found():
        return in_fused_form(run, agent, cached)
    if cached:
        return CachedTargets(**vars(agent))
    return in_sparse_form(run, agent) if has_sparse_form(run, agent) else agent


def make_preprocessor(run: Run, task: Task) -> preprocessors.Preprocessor:
    if run.normalise_inputs:
        return preprocessors.normalise(task.obs_size, run.gamma, clip=LARGEST_INPUT, shared=True, n_envs=run.env_count)
    return preprocessors.identity(task.obs_size)


def q_network(
    run: Run, task: Task, preprocessor: preprocessors.Preprocessor, heads: int, **special: Any
) -> networks.Network:
    if run.network:
        support = special.get("support")
        values_shape = (task.actions,) if support is None else (task.actions, support.size)
        if (whole := own_network(run, task, heads, values_shape)) is not None:
            return whole
    if preprocessor.gates and run.features != "dense":
        raise BadInput(f"{run.method} multiplies the last hidden layer by gates; features must be dense.")
    options: dict[str, Any] = {"normalise": run.layer_norm, "dueling": run.dueling, "own_layers": run.own_layers}
    options |= {"gates": preprocessor.gates, "binary": preprocessor.binary}
    options |= {"encoder": encoder_before_layers(run, task)}
    one_sample = run.buffer_size == 1
    options |= {"features": make_features(run.features, run.bins, run.feature_width, one_sample)}
    network = networks.multi_head_network(
        preprocessor.inputs, run.hidden, run.activation, heads, task.actions, **(options | special)
    )._replace(own=bool(run.network))
    return noisy_heads(network) if run.noisy else network


def encoder_before_layers(run: Run, task: Task, first_weights: KernelInitialiser = glorot_kernel) -> Encoder | None:
    """The user's module, or the convolutions of images."""
    if run.network:
        return own_encoder(run, task)
    if task.image is None:
        return None
    return convolutional(
        task.image, task.layers, run.padding, ACTIVATIONS[run.activation], run.layer_norm, first_weights
    )


def make_replay(run: Run, task: Task) -> Replay:
    sampling = {
        "uniform": lambda: uniform(run.batch_size),
        "prioritised": lambda: prioritised(run.batch_size, run.priority_exponent, run.priority_correction),
        "whole": lambda: whole,
    }[run.sampling]()
    kept = {
        "n_step": run.n_step,
        "update_every": run.update_every,
        "actions": task.masked_actions,
        "n_envs": run.env_count,
    }
    if task.image:
        image = task.image
        return frame_replay(run.buffer_size, image.frame, image.stack, sampling, vector=image.vector, **kept)
    return ring_replay(run.buffer_size, task.obs_size, one_copy(sampling), **kept)


def caches_targets(run: Run, preprocessor: preprocessors.Preprocessor) -> bool:
    """Whether to keep what the target network computed: only while it would compute the same again."""
    stands_still = run.has_target and not run.target_average and not preprocessor.shared and not run.noisy
    batch = run.buffer_size if run.sampling == "whole" else run.batch_size * run.gradient_steps
    return stands_still and cache_pays(run.buffer_size, batch / run.update_every, run.target_period)


def has_fused_form(run: Run, task: Task, agent: QLearner) -> bool:
    """Whether `core/fused_update.py` knows all that an update consists of."""
    plain = not (run.network or run.layer_norm or run.dueling or run.noisy or run.own_layers or task.image)
    states = not (run.normalise_inputs or agent.preprocessor.gates or agent.preprocessor.binary or task.masked_actions)
    step = run.optimiser == "adam" and not run.gradient_clip and not run.share_step
    loss = run.td_error == "huber" and not run.double_q and agent.has_target
    terms = len(agent.regularisers) <= 1 and all(term.form for term in agent.regularisers)
    batch = run.sampling != "prioritised" and run.features == "dense"
    return plain and states and step and loss and terms and batch


def in_fused_form(run: Run, agent: QLearner, cached: bool) -> FusedUpdate:
    form = FusedCachedUpdate if cached else FusedUpdate
    return form(**vars(agent), activation=run.activation, rate=run.learning_rate, adam_epsilon=run.adam_epsilon)


def has_sparse_form(run: Run, agent: QLearner) -> bool:
    """Whether an update moves only the heads of the active hats (`core/sparse_hats.py`)."""
    moves_them = run.optimiser == "bounded" and run.bound_over == "heads" and not run.trace_decay
    one_head = agent.contexts.count == 1 and not (run.dueling or run.noisy or run.double_q)
    same_average = run.target_average == run.act_average and not run.average_fall
    averages = run.act_average <= 0.5 and (not run.target_average or same_average)
    return run.features == "hats" and run.bins > 1 and moves_them and one_head and averages


def in_sparse_form(run: Run, agent: QLearner) -> SparseHats:
    return SparseHats(
        **vars(agent),
        bins=run.bins,
        rate=run.learning_rate,
        bound=run.step_bound,
        share=run.share_step,
        trunk=run.trunk_step,
    )


def q_loss(run: Run) -> losses.ValueLoss:
    next_value = losses.double_value if run.double_q else losses.max_value
    if run.optimiser == "bounded":
        return traced_q(next_value)
    return losses.q_learning(next_value, {"huber": losses.huber, "squared": losses.squared}[run.td_error])


def make_optimiser(run: Run) -> optax.GradientTransformation:
    clip = optax.clip_by_global_norm(run.gradient_clip) if run.gradient_clip else optax.identity()
    step = {
        "adam": lambda: optax.adam(run.learning_rate, eps=run.adam_epsilon),
        # As TensorFlow has it: ε under the root, and squares that start at 1.
        "rmsprop": lambda: optax.chain(
            optax.scale_by_stddev(run.rmsprop_decay, run.rmsprop_epsilon, initial_scale=1.0),
            optax.scale_by_learning_rate(run.learning_rate),
        ),
        "bounded": lambda: bounded_step(run),
    }[run.optimiser]()
    return optax.chain(clip, step)


def share_step(run: Run, task: Task, optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    if not run.share_step:
        return optimiser
    return optax.chain(optimiser, share_between_actions(run.share_step, task.actions))


def bounded_step(run: Run) -> optax.GradientTransformation:
    if run.trace_decay and run.env_count > 1:
        raise BadInput(
            f"trace_decay is {run.trace_decay:g}; traces follow one episode, so it must be 0 with n_envs above 1."
        )
    next_value = losses.double_value if run.double_q else losses.max_value
    return bounded_traces(
        run.learning_rate, run.step_bound, run.gamma * run.trace_decay, heads_only=run.bound_over == "heads",
        next_value=next_value, trunk=run.trunk_step,
    )  # fmt: skip


def exploration(run: Run) -> schedules.Schedule:
    return schedules.linear(run.epsilon_start, run.epsilon_final, run.epsilon_decay, run.epsilon_begin)


def check_observations(method: Method, task: Task) -> None:
    if method.observations == "images" and task.image is None:
        raise BadInput(f"{method.name} is for images, and {task.name} has none; for states in a vector take iq.")
    if method.observations == "vectors" and task.image is not None:
        flat = ", or make a vector of them by flatten_observations" if task.spaces else ""
        raise BadInput(f"{method.name} is for states in a vector, and {task.name} has images; take dqn or iq-re{flat}.")
