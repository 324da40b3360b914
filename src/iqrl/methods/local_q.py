"""local-q: Q-learning without replay on local features.

    x    = states by their running moments, cut off at ±5; rewards by the deviation of their running sum
    p_u  = ½ (bins - 1) (tanh(½ w_u·x + b_u) + 1)                        128 learned projections
    g_ub = max(0, 1 - |p_u - b|)                                         each divided into overlapping contexts
    Q(s, a) = Σ_u Σ_b g_ub(s) W_aub                                      a head for each context
    δ    = r + γ max_a' Q(s', a') - Q(s, a)                              both by the weights of now
    W    <- W + δ ∇_W Q(s, a) / (κ max(|δ|, 1) ‖∇_W Q‖₁)                 ‖∇_W Q‖₁ is the number of units U
    w, b likewise, by a step that is η times as long                     η = (U / 64)²
    W of every other action gets ρ times the step of the action taken
    m    <- m + τ_t (θ - m)                                              m acts
    τ_t  = max(τ min(1, T / (t + 1)), 1 / (t + 1))                       after T steps m spans a share of all steps

It is the idea of IQ taken further: not one division of the state space into k contexts with a head each, but many
learned divisions into overlapping contexts. An update touches two heads of each division; the others keep what they
know. Traces are an option (`trace_decay`). All parts are parts of the library: each can be left out by a flag, or given
to another method.

η is `trunk_step`. With twice as many units, steps are half as long, and a unit's heads have half as large weights. The
gradient of its projection is made of these, so the projection moves a quarter as far. η makes up for it.
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

FIRST_UNITS = 64
"""units with which projections and heads take the same step"""
FINE_BINS, FEW_VARIABLES = 32, 6
"""The more variables a state has, the fewer states fall into bins of one width. So bins are narrow only where variables
are few. The border lies between Acrobot's six and LunarLander's eight (docs/no-memory.md)."""


def build(run: Run, task: Task) -> QLearner:
    preprocessor = make_preprocessor(run, task)
    first_weights = sparse_start(run, task) if task.image else {}
    return q_learner(
        run, task, preprocessor=preprocessor, network=q_network(run, task, preprocessor, 1, **first_weights)
    )


def settle(run: Run, task: Task, given: Mapping[str, Any]) -> Run:
    """η by the number of units, bins by that of variables; layers above convolutions are normalised, as in Stream Q."""
    chosen: dict[str, Any] = {"trunk_step": (run.hidden[-1] / FIRST_UNITS) ** 2} if run.hidden else {}
    chosen |= {"layer_norm": True} if task.image else {}
    chosen |= {"bins": FINE_BINS} if task.image is None and task.obs_size <= FEW_VARIABLES else {}
    return dataclasses.replace(run, **{name: value for name, value in chosen.items() if name not in given})


METHODS = (
    Method(
        name="local-q",
        summary="Q-learning without replay on local features: an update leaves the values of other states alone",
        paper="this library",
        build=build,
        settings=(BoundedSettings, SparseStart),
        defaults={
            "features": "hats", "hidden": (128,), "bins": 16, "activation": "leaky-relu", "normalise_inputs": True,
            "optimiser": "bounded", "learning_rate": 1.0, "step_bound": 1.5, "bound_over": "heads",
            "trace_decay": 0.0, "share_step": 0.9, "act_average": 0.03, "average_fall": 30_000,
            "learning_starts": 0,
        },
        fixed=NOTHING_STORED | {"n_step": 1, "own_layers": 0, "noisy": False, "dueling": False},
        settle=settle,
        settled={
            "trunk_step": f"(units / {FIRST_UNITS})²; 4 for 128 units",
            "bins": f"{FINE_BINS} for up to {FEW_VARIABLES} variables, else 16",
            "layer_norm": "no; yes for images",
        },
        search={
            "step_bound": Span(1.0, 4.0, log=True), "share_step": Span(0.0, 0.95),
            "act_average": Span(0.001, 0.1, log=True),
        },
    ),
)  # fmt: skip
