"""local-q: Q-learning without replay on local features.

    x    = states by their running moments, cut off at ±5; rewards by the deviation of their running sum
    p_u  = ½ (bins - 1) (tanh(½ w_u·x + b_u) + 1)                        64 learned projections
    g_ub = max(0, 1 - |p_u - b|)                                         each divided into 16 overlapping contexts
    Q(s, a) = Σ_u Σ_b g_ub(s) W_aub                                      a head for each context
    δ    = r + γ max_a' Q(s', a') - Q(s, a)                              both by the weights of now
    θ    <- θ + δ ∇Q(s, a) / (κ max(|δ|, 1) ‖∇_W Q‖₁)                    ‖∇_W Q‖₁ is the number of units
    W of every other action gets ρ times the step of the action taken
    m    <- m + τ_t (θ - m)                                              m acts
    τ_t  = max(τ min(1, T / (t + 1)), 1 / (t + 1))                       after T steps m spans a share of all steps

It is the idea of IQ taken further: not one division of the state space into k contexts with a head each, but many
learned divisions into overlapping contexts. An update touches two heads of each division; the others keep what they
know. Traces are an option (`trace_decay`). All parts are parts of the library: each can be left out by a flag, or given
to another method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from iqrl.core.agent import QLearner
from iqrl.envs.base import Task
from iqrl.methods.base import BoundedSettings, Method, Span, make_preprocessor, q_learner, q_network
from iqrl.methods.streaming import NOTHING_STORED, SparseStart, sparse_start
from iqrl.settings import Run


def build(run: Run, task: Task) -> QLearner:
    preprocessor = make_preprocessor(run, task)
    first_weights = sparse_start(run, task) if task.image else {}
    return q_learner(
        run, task, preprocessor=preprocessor, network=q_network(run, task, preprocessor, 1, **first_weights)
    )


def settle(run: Run, task: Task, given: Mapping[str, Any]) -> Run:
    """Layers above convolutions are normalised, as in Stream Q."""
    return dataclasses.replace(run, layer_norm=True) if task.image and "layer_norm" not in given else run


METHODS = (
    Method(
        name="local-q",
        summary="Q-learning without replay on local features: an update leaves the values of other states alone",
        paper="this library",
        build=build,
        settings=(BoundedSettings, SparseStart),
        defaults={
            "features": "hats", "hidden": (64,), "bins": 16, "activation": "leaky-relu", "normalise_inputs": True,
            "optimiser": "bounded", "learning_rate": 1.0, "step_bound": 1.5, "bound_over": "heads",
            "trace_decay": 0.0, "share_step": 0.9, "act_average": 0.03, "average_fall": 30_000,
            "learning_starts": 0,
        },
        fixed=NOTHING_STORED | {"n_step": 1, "own_layers": 0, "noisy": False, "dueling": False},
        settle=settle,
        search={
            "step_bound": Span(1.0, 4.0, log=True), "share_step": Span(0.0, 0.95),
            "act_average": Span(0.001, 0.1, log=True),
        },
    ),
)  # fmt: skip
