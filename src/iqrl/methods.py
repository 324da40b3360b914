"""The methods by name, each a few lines that compose parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from iqrl import composition as agents
from iqrl.agent import Agent
from iqrl.config import (
    Clustering,
    Consolidation,
    Contexts,
    Distillation,
    Distribution,
    Encoding,
    Normalisation,
    Run,
    ScoreBins,
    SelfOrganisingMap,
    Sparsity,
    Streaming,
    TileCoding,
)
from iqrl.errors import BadInput, unknown
from iqrl.plugins import in_a_sentence, load_attribute
from iqrl.tasks.base import Task


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


# The paper takes its baseline from OpenAI Baselines, which is double by default; its rivals stand on that baseline.
BASELINES = {"double_q": True}
IQ_GROUPS = (Contexts, Clustering, Distillation)
STREAM = {
    "buffer_size": 1, "batch_size": 1, "sampling": "uniform", "update_every": 1, "gradient_steps": 1,
    "target_period": 1, "double_q": False,
}  # fmt: skip
"""nothing is stored, every step is learned from once, and there is no target network"""
STREAM_NETWORK = {"hidden": (32, 32), "activation": "leaky-relu", "layer_norm": True}
# Dopamine's; on tasks that are not images the step size of the other methods would do better.
RAINBOW = {
    "n_step": 3, "sampling": "prioritised", "optimiser": "adam", "learning_rate": 6.25e-5, "adam_epsilon": 1.5e-4,
}  # fmt: skip
CODES = {"contexts": 4, "context_scaling": "none"}
ONLY_KMEANS = {"context_init": "kmeans", "centroids": ()}
"""the codes of a random encoder are not known before they are seen"""
MEDQN_ORIGINAL = {
    "hidden": (32, 32), "activation": "relu", "buffer_size": 32, "td_error": "squared", "gradient_clip": 5.0,
    "epsilon_final": 0.01, "epsilon_decay": 1000, "target_period": 100, "bootstrap_time_limit": False,
    "learning_rate": 1e-3, "steps": 100_000,
}  # fmt: skip

METHODS: dict[str, Method] = {
    "dqn": Method("deep Q-learning with replay and a target network", "Mnih et al. 2015", agents.dqn, paper=BASELINES),
    "srnn": Method(
        "DQN with hidden units that are regularised to be active on few states",
        "Liu et al. 2019",
        agents.srnn,
        extra_groups=(Sparsity,),
        # The form of the code that the paper's authors published.
        paper=BASELINES | {"srnn_form": "samples"},
    ),
    "dsom": Method(
        "DQN whose hidden units are gated by a self-organising map of the states",
        "Lo & Ghiassian 2019",
        agents.dsom_gated,
        extra_groups=(SelfOrganisingMap,),
        paper=BASELINES,
    ),
    "tcnn": Method(
        "DQN on tile-coded states",
        "Ghiassian et al. 2020",
        agents.tcnn,
        extra_groups=(TileCoding,),
        paper=BASELINES,
    ),
    "iq": Method(
        "a head per context of the state space, the other heads kept by distillation",
        "Zhang et al. 2022",
        agents.iq,
        extra_groups=IQ_GROUPS,
    ),
    "iq-no-clustering": Method(
        "IQ with a random partition of the state space, fixed before learning",
        "Zhang et al. 2022, ablation",
        agents.iq_no_clustering,
        extra_groups=IQ_GROUPS,
        fixed={"context_init": "random", "centroids": ()},
    ),
    "iq-no-distillation": Method(
        "IQ without the distillation",
        "Zhang et al. 2022, ablation",
        agents.iq_no_distillation,
        extra_groups=(Contexts, Clustering),
    ),
    "iq-no-multi-head": Method(
        "IQ with a single head, which is distilled itself",
        "Zhang et al. 2022, ablation",
        agents.iq_no_multi_head,
        extra_groups=(Distillation,),
        fixed={"distill_heads": "sum"},
    ),
    "iq-initial-states": Method(
        "IQ whose contexts are clusters of the states that episodes begin with",
        "Ghosh et al. 2018, in Zhang et al. 2022",
        agents.iq_initial_states,
        extra_groups=IQ_GROUPS,
        fixed={"context_init": "kmeans", "centroids": ()},
    ),
    "iq-game-score": Method(
        "IQ whose contexts are ranges of the score so far",
        "Jain et al. 2020, in Zhang et al. 2022",
        agents.iq_game_score,
        extra_groups=(Contexts, ScoreBins, Distillation),
    ),
    "iq-re": Method(
        "IQ on images: contexts in the space of a random encoder",
        "Zhang et al. 2022",
        agents.iq_re,
        extra_groups=(*IQ_GROUPS, Encoding),
        defaults=CODES,
        fixed=ONLY_KMEANS,
    ),
    "iq-te": Method(
        "IQ on images: contexts in the space of the network's own convolutions",
        "Zhang et al. 2022, comparison of encoders",
        agents.iq_te,
        extra_groups=IQ_GROUPS,
        defaults=CODES,
        fixed=ONLY_KMEANS,
    ),
    "rainbow": Method(
        "the distribution of 3-step returns, prioritised replay",
        "Hessel et al. 2018, as in Dopamine",
        agents.rainbow,
        extra_groups=(Distribution,),
        defaults=RAINBOW,
    ),
    "rainbow-srnn": Method(
        "Rainbow with hidden units that are regularised to be active on few states",
        "Liu et al. 2019, in Zhang et al. 2022",
        agents.rainbow_srnn,
        extra_groups=(Distribution, Sparsity),
        defaults=RAINBOW,
        paper={"srnn_form": "samples"},
    ),
    "rainbow-iq": Method(
        "IQ on Rainbow",
        "Zhang et al. 2022",
        agents.rainbow_iq,
        extra_groups=(Distribution, *IQ_GROUPS),
        defaults=RAINBOW,
    ),
    "rainbow-iq-re": Method(
        "IQ on Rainbow for images: contexts in the space of a random encoder",
        "Zhang et al. 2022",
        agents.rainbow_iq_re,
        extra_groups=(Distribution, *IQ_GROUPS, Encoding),
        defaults=RAINBOW | CODES,
        fixed=ONLY_KMEANS,
    ),
    "rainbow-iq-te": Method(
        "IQ on Rainbow for images: contexts in the space of the network's own convolutions",
        "Zhang et al. 2022, comparison of encoders",
        agents.rainbow_iq_te,
        extra_groups=(Distribution, *IQ_GROUPS),
        defaults=RAINBOW | CODES,
        fixed=ONLY_KMEANS,
    ),
    "dqn-layernorm": Method(
        "DQN with layer normalisation",
        "Ba et al. 2016",
        agents.dqn,
        defaults={"layer_norm": True},
        paper=BASELINES,
    ),
    "medqn-u": Method(
        "DQN kept near its target on states drawn from the box of those seen",
        "Lan et al. 2023",
        agents.medqn_u,
        extra_groups=(Consolidation,),
        paper=BASELINES,
        original=MEDQN_ORIGINAL | {"sampling": "whole"},
    ),
    "medqn-r": Method(
        "DQN kept near its target on the replayed states",
        "Lan et al. 2023",
        agents.medqn_r,
        extra_groups=(Consolidation,),
        paper=BASELINES,
        original=MEDQN_ORIGINAL,
    ),
    "stream-q": Method(
        "Q(λ) from the stream alone: traces, a bounded step, no replay, no target network",
        "Elsayed et al. 2024",
        agents.stream_q,
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
        agents.stream_c51,
        extra_groups=(Normalisation, Distribution),
        defaults=STREAM_NETWORK | {"learning_starts": 0, "optimiser": "adam", "learning_rate": 5e-4},
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
