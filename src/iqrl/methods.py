"""The methods by name, each a few lines that compose parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from iqrl.agent import Agent
from iqrl.config import (
    Clustering,
    Consolidation,
    Contexts,
    Distillation,
    Distribution,
    Normalisation,
    Run,
    ScoreBins,
    SelfOrganisingMap,
    Sparsity,
    Streaming,
    TileCoding,
)
from iqrl.errors import BadInput, unknown
from iqrl.parts import (
    categorical,
    consolidation,
    contexts,
    distillation,
    dsom,
    losses,
    networks,
    normalisation,
    perception,
    replay,
    scaling,
    schedules,
    sparsity,
    strategies,
    streaming,
    teacher,
    tiles,
)
from iqrl.parts.regularisers import Regulariser
from iqrl.plugins import in_a_sentence, load_attribute
from iqrl.tasks.base import Task

INITIAL_STATES = 10_000
"""first states of episodes that are clustered, as many as Ghosh et al. 2018 take"""


class Method(NamedTuple):
    summary: str
    source: str
    """the paper it comes from"""
    compose: Callable[[Run, Task], Agent]
    extra_groups: tuple[type, ...] = ()
    """groups of settings it uses beside those that every method uses"""
    defaults: Mapping[str, Any] = {}
    """defaults of its own; a function is given the number of steps"""
    fixed: Mapping[str, Any] = {}
    """settings that it decides itself"""
    paper: Mapping[str, Any] = {}
    """what the preset `paper` sets for this method alone"""
    original: Mapping[str, Any] = {}
    """what the preset `original` sets: the values of the paper it comes from, where those are for such tasks"""


# What methods are composed of


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
    network = network or mlp(run, task, sight, division.count)
    memory = target_network(run, task, sight, network, division.count)
    width = replay.row_width(size) + memory.width
    ring = replay.ring(run.buffer_size, width, run.batch_size)
    return Agent(
        obs_size=size,
        perception=sight,
        network=network,
        contexts=division,
        teacher=memory,
        replay=ring if run.sampling == "uniform" else replay.whole(run.buffer_size, width),
        value_loss=value_loss or q_loss(run),
        regularisers=regularisers,
        optimiser=optimiser or adam(run),
        epsilon=exploration(run),
        n_step=run.n_step,
        gradient_steps=run.gradient_steps,
    )


def mlp(run: Run, task: Task, sight: perception.Perception, heads: int, **special: Any) -> networks.Network:
    options: dict[str, Any] = {"layer_norm": run.layer_norm, "dueling": run.dueling}
    options |= {"gates": sight.gates, "binary": sight.binary} | special
    return networks.multi_head_mlp(sight.inputs, run.hidden, run.activation, heads, task.actions, **options)


def target_network(
    run: Run, task: Task, sight: perception.Perception, network: networks.Network, heads: int
) -> teacher.Teacher:
    answer, size = teacher.answers(network, sight), len(task.low)
    if not run.has_target:
        return teacher.the_network_itself(answer, size)
    batch = run.batch_size * run.gradient_steps if run.sampling == "uniform" else run.buffer_size
    # What it said is worth remembering only while it would say the same again.
    if not sight.shared and teacher.renewing_is_cheaper(run.buffer_size, batch, run.target_period):
        return teacher.remembered(answer, network, size, heads, task.actions)
    return teacher.recomputed(answer, size)


def q_loss(run: Run) -> losses.ValueLoss:
    next_value = losses.double_value if run.double_q else losses.highest_value
    return losses.q_learning(next_value, {"huber": losses.huber, "squared": losses.squared}[run.td_error])


def adam(run: Run) -> optax.GradientTransformation:
    clip = optax.clip_by_global_norm(run.gradient_clip) if run.gradient_clip else optax.identity()
    return optax.chain(clip, optax.adam(run.learning_rate, eps=run.adam_epsilon))


def exploration(run: Run) -> schedules.Schedule:
    return schedules.linear(run.epsilon_start, run.epsilon_final, run.epsilon_decay)


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


def distil(run: Run, own_head: bool = False) -> tuple[Regulariser, ...]:
    """λ L_D with the run's λ; nothing at all when λ stays 0, so that the program is the one without it."""
    if run.distill_weight == 0:
        return ()
    weight = {
        "one-minus-epsilon": lambda: schedules.one_minus(exploration(run), run.distill_weight),
        "constant": lambda: schedules.constant(run.distill_weight),
    }[run.distill_schedule]()
    return (distillation.distillation(weight, run.distill_actions, run.distill_heads, own_head),)


def consolidation_weight(run: Run) -> schedules.Schedule | None:
    if run.consolidation_start == run.consolidation_weight == 0:
        return None
    return schedules.linear(run.consolidation_start, run.consolidation_weight, run.consolidation_growth or run.steps)


# The methods


def dqn(run: Run, task: Task) -> Agent:
    return q_learner(run, task)


def srnn(run: Run, task: Task) -> Agent:
    term = sparsity.sparsity(run.srnn_weight, run.srnn_beta, run.srnn_form)
    return q_learner(run, task, regularisers=(term,) if run.srnn_weight else ())


def dsom_gated(run: Run, task: Task) -> Agent:
    units = run.hidden[-1]
    if math.isqrt(units) ** 2 != units:
        raise BadInput(f"the last of hidden is {units}; the map is a square grid, so it must be a square such as 64.")
    scaled, shared = run.dsom_scaling == "task", run.dsom_target == "live"
    sight = dsom.self_organising_gates(
        task.low, task.high, units, run.dsom_rate, run.dsom_elasticity, run.dsom_width, scaled, shared
    )
    return q_learner(run, task, sight=sight)


def tcnn(run: Run, task: Task) -> Agent:
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
    first_states = jax.vmap(lambda uniforms: task.observe(task.reset(uniforms)))
    draws = (INITIAL_STATES, task.reset_draws)
    division = strategies.initial_states(run.k, first_states, draws, fixed_weights(run, task))
    return q_learner(run, task, division=division, regularisers=distil(run))


def iq_game_score(run: Run, task: Task) -> Agent:
    division = strategies.score_bins(run.k, run.score_low, run.score_high)
    return q_learner(run, task, division=division, regularisers=distil(run))


def medqn_r(run: Run, task: Task) -> Agent:
    weight = consolidation_weight(run)
    return q_learner(run, task, regularisers=(consolidation.on_replayed_states(weight),) if weight else ())


def medqn_u(run: Run, task: Task) -> Agent:
    weight, size = consolidation_weight(run), len(task.low)
    terms = (consolidation.on_uniform_states(weight, size, run.batch_size),) if weight else ()
    return q_learner(run, task, regularisers=terms, sight=perception.with_box(size))


def stream_q(run: Run, task: Task) -> Agent:
    sight = stream_sight(run, task)
    optimiser = streaming.bounded_traces(run.learning_rate, run.step_bound, run.gamma * run.trace_decay)
    network = mlp(run, task, sight, 1, initialiser=networks.sparse_uniform(run.sparse_init))
    return q_learner(run, task, sight=sight, network=network, value_loss=streaming.traced_q, optimiser=optimiser)


def stream_c51(run: Run, task: Task) -> Agent:
    sight = stream_sight(run, task)
    support = categorical.even_support(run.value_low, run.value_high, run.atoms)
    initialiser = networks.sparse_uniform(run.sparse_init)
    network = mlp(run, task, sight, 1, support=support, initialiser=initialiser)
    return q_learner(run, task, sight=sight, network=network, value_loss=categorical.categorical(support, double=False))


def stream_sight(run: Run, task: Task) -> perception.Perception:
    size = len(task.low)
    return normalisation.normalised(size, run.gamma) if run.normalise else perception.plain(size)


# The paper takes its baseline from OpenAI Baselines, which is double by default; its rivals stand on that baseline.
BASELINES = {"double_q": True}
IQ_GROUPS = (Contexts, Clustering, Distillation)
STREAM = {
    "buffer_size": 1, "batch_size": 1, "sampling": "uniform", "update_every": 1, "gradient_steps": 1,
    "target_period": 1, "double_q": False,
}  # fmt: skip
"""nothing is stored, every step is learned from once, and there is no target network"""
STREAM_NETWORK = {"hidden": (32, 32), "activation": "leaky-relu", "layer_norm": True}
MEDQN_ORIGINAL = {
    "hidden": (32, 32), "activation": "relu", "buffer_size": 32, "td_error": "squared", "gradient_clip": 5.0,
    "epsilon_final": 0.01, "epsilon_decay": 1000, "target_period": 100, "bootstrap_time_limit": False,
    "learning_rate": 1e-3, "steps": 100_000,
}  # fmt: skip

METHODS: dict[str, Method] = {
    "dqn": Method("deep Q-learning with replay and a target network", "Mnih et al. 2015", dqn, paper=BASELINES),
    "srnn": Method(
        "DQN with hidden units that are regularised to be active on few states",
        "Liu et al. 2019",
        srnn,
        extra_groups=(Sparsity,),
        # The form of the released code, which comes nearer to the paper's table.
        paper=BASELINES | {"srnn_form": "samples"},
    ),
    "dsom": Method(
        "DQN whose hidden units are gated by a self-organising map of the states",
        "Lo & Ghiassian 2019",
        dsom_gated,
        extra_groups=(SelfOrganisingMap,),
        paper=BASELINES,
    ),
    "tcnn": Method(
        "DQN on tile-coded states",
        "Ghiassian et al. 2020",
        tcnn,
        extra_groups=(TileCoding,),
        paper=BASELINES,
    ),
    "iq": Method(
        "a head per context of the state space, the other heads kept by distillation",
        "Zhang et al. 2022",
        iq,
        extra_groups=IQ_GROUPS,
    ),
    "iq-no-clustering": Method(
        "IQ with a random partition of the state space, fixed before learning",
        "Zhang et al. 2022, ablation",
        iq_no_clustering,
        extra_groups=IQ_GROUPS,
        fixed={"context_init": "random", "centroids": ()},
    ),
    "iq-no-distillation": Method(
        "IQ without the distillation",
        "Zhang et al. 2022, ablation",
        iq_no_distillation,
        extra_groups=(Contexts, Clustering),
    ),
    "iq-no-multi-head": Method(
        "IQ with a single head, which is distilled itself",
        "Zhang et al. 2022, ablation",
        iq_no_multi_head,
        extra_groups=(Distillation,),
        fixed={"distill_heads": "sum"},
    ),
    "iq-initial-states": Method(
        "IQ whose contexts are clusters of the states that episodes begin with",
        "Ghosh et al. 2018, in Zhang et al. 2022",
        iq_initial_states,
        extra_groups=IQ_GROUPS,
        fixed={"context_init": "kmeans", "centroids": ()},
    ),
    "iq-game-score": Method(
        "IQ whose contexts are ranges of the score so far",
        "Jain et al. 2020, in Zhang et al. 2022",
        iq_game_score,
        extra_groups=(Contexts, ScoreBins, Distillation),
    ),
    "dqn-layernorm": Method(
        "DQN with layer normalisation",
        "Ba et al. 2016",
        dqn,
        defaults={"layer_norm": True},
        paper=BASELINES,
    ),
    "medqn-u": Method(
        "DQN kept near its target on states drawn from the box of those seen",
        "Lan et al. 2023",
        medqn_u,
        extra_groups=(Consolidation,),
        paper=BASELINES,
        original=MEDQN_ORIGINAL | {"sampling": "whole"},
    ),
    "medqn-r": Method(
        "DQN kept near its target on the replayed states",
        "Lan et al. 2023",
        medqn_r,
        extra_groups=(Consolidation,),
        paper=BASELINES,
        original=MEDQN_ORIGINAL,
    ),
    "stream-q": Method(
        "Q(λ) from the stream alone: traces, a bounded step, no replay, no target network",
        "Elsayed et al. 2024",
        stream_q,
        extra_groups=(Streaming, Normalisation),
        defaults=STREAM_NETWORK | {"learning_rate": 1.0},
        fixed=STREAM
        | {"learning_starts": 0, "n_step": 1, "gradient_clip": 0.0, "adam_epsilon": 1e-8, "td_error": "huber"},
        original={
            "epsilon_final": 0.01,
            "epsilon_decay": lambda steps: steps // 20,
            "bootstrap_time_limit": False,
            "steps": 500_000,
        },
    ),
    "stream-c51": Method(
        "the distribution of the return from the stream alone, with Adam",
        "Gogianu et al. 2026; Bellemare et al. 2017",
        stream_c51,
        extra_groups=(Normalisation, Distribution),
        defaults=STREAM_NETWORK | {"learning_starts": 0},
        fixed=STREAM | {"td_error": "huber"},
    ),
}


def find_method(name: str) -> Method:
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise unknown("method", name, METHODS)
    found = load_attribute(name)
    if not isinstance(found, Method):
        raise BadInput(f"{name} is {type(found).__name__}, not an iqrl.Method.")
    return found


def build_agent(run: Run, task: Task) -> Agent:
    method = find_method(run.method)
    if ":" not in run.method:
        return method.compose(run, task)
    try:
        agent = method.compose(run, task)
    except Exception as error:
        raise BadInput(f"{run.method}: compose failed with {in_a_sentence(error)}.") from error
    if not isinstance(agent, Agent):
        raise BadInput(f"{run.method}: compose gave {type(agent).__name__}, not an iqrl.agent.Agent.")
    return agent
