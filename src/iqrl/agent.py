"""Algorithm 1 of the paper as pure functions over one state, to be called in this order:

    act      line 3   an action from the head of the state's context
    observe  line 4   assign ω(s_t), ω(s_{t+1}) by the target centroids Ĉ
             line 5   store the transition with its labels
             line 6   update the live centroids, C <- SKM(s_t, C)
    learn    line 7   sample, one gradient step on L_ori + λ L_D
    sync     line 8   every C steps: θ⁻ <- θ, Ĉ <- C

DQN, IQ and everything between are this code with other parts: a network with k heads, a context
label per state, a value loss, a tuple of regularisers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from iqrl.parts.contexts import ContextDivision
from iqrl.parts.distillation import Regulariser
from iqrl.parts.losses import Sample, ValueLoss, pick
from iqrl.parts.networks import Network, Params, on_batch
from iqrl.parts.replay import Replay, Transition, pack, unpack
from iqrl.parts.schedules import Schedule
from iqrl.parts.teacher import Teacher


class Parts(NamedTuple):
    """What a method is made of."""

    obs_size: int
    network: Network
    contexts: ContextDivision
    teacher: Teacher
    replay: Replay
    value_loss: ValueLoss
    regularisers: tuple[Regulariser, ...]
    optimiser: optax.GradientTransformation
    epsilon: Schedule


class AgentState(NamedTuple):
    params: Params
    """θ"""
    target: Params
    """θ⁻"""
    optimiser: Any
    contexts: Any
    """C, Ĉ and their counts"""
    replay: jax.Array
    """B"""


class Losses(NamedTuple):
    """What one update reports."""

    value: jax.Array
    """L_ori"""
    regularisers: dict[str, jax.Array]
    """each term before its weight; L_D under "distillation" """
    max_q: jax.Array
    """mean over the batch of max_a Q(s, a, ω(s))"""


class Agent(NamedTuple):
    parts: Parts
    init: Callable[[jax.Array], AgentState]
    act: Callable[[AgentState, jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    collect: Callable[[AgentState, Transition, jax.Array], AgentState]
    begin: Callable[[AgentState, jax.Array], AgentState]
    observe: Callable[[AgentState, Transition, jax.Array], AgentState]
    learn: Callable[[AgentState, jax.Array, jax.Array], tuple[AgentState, Losses]]
    sync: Callable[[AgentState], AgentState]


def build(parts: Parts) -> Agent:
    obs_size, network, contexts, teacher, replay = parts[:5]

    def init(key: jax.Array) -> AgentState:
        network_key, context_key = jax.random.split(key)
        params = network.init(network_key)
        return AgentState(params, params, parts.optimiser.init(params), contexts.init(context_key), replay.init())

    def act(state: AgentState, obs: jax.Array, t: jax.Array, uniforms: jax.Array) -> tuple[jax.Array, jax.Array]:
        """ε-greedy on the head of the state's context: the action and ω(s_t)."""
        context = contexts.assign(state.contexts, obs)
        q = pick(network.apply(state.params, obs).q, context)
        explore = uniforms[0] < parts.epsilon(t)
        random_action = (uniforms[1] * q.shape[0]).astype(jnp.int32)
        return jnp.where(explore, random_action, jnp.argmax(q).astype(jnp.int32)), context

    def observe(state: AgentState, step: Transition, t: jax.Array) -> AgentState:
        """Lines 4 to 6: assign ω(s_t) and ω(s_{t+1}) by Ĉ, store the transition, update C."""
        step = step._replace(
            context_tm1=contexts.assign(state.contexts, step.obs_tm1),
            context_t=contexts.assign(state.contexts, step.obs_t),
        )
        noted = teacher.note(state.target, jnp.stack([step.obs_tm1, step.obs_t]))
        rows = replay.add(state.replay, jnp.concatenate([pack(step), noted]), t)
        return state._replace(replay=rows, contexts=contexts.update(state.contexts, step.obs_tm1))

    def learn(state: AgentState, t: jax.Array, uniforms: jax.Array) -> tuple[AgentState, Losses]:
        """Line 7: one gradient step on L_ori + λ L_D over a sampled batch."""
        rows = replay.sample(state.replay, t, uniforms)
        (_, losses), gradient = jax.value_and_grad(joint_loss, has_aux=True)(state.params, state.target, rows, t)
        updates, optimiser = parts.optimiser.update(gradient, state.optimiser, state.params)
        return state._replace(params=optax.apply_updates(state.params, updates), optimiser=optimiser), losses

    def joint_loss(params: Params, target: Params, rows: jax.Array, t: jax.Array) -> tuple[jax.Array, Losses]:
        forward = on_batch(network)
        steps = unpack(rows, obs_size)
        samples = Sample(
            steps,
            forward(params, steps.obs_tm1),
            jax.lax.stop_gradient(forward(params, steps.obs_t)),
            *teacher.recall(target, rows),
        )
        value = jnp.mean(parts.value_loss(samples))
        terms = {term.name: jnp.mean(term.loss(samples)) for term in parts.regularisers}
        joint = value + sum(term.weight(t) * terms[term.name] for term in parts.regularisers)
        max_q = jnp.max(pick(samples.online_tm1.q, steps.context_tm1), axis=0)
        return joint, Losses(value, terms, jnp.mean(max_q))

    def collect(state: AgentState, step: Transition, t: jax.Array) -> AgentState:
        """A step before learning starts: store and cluster only."""
        state = observe(state, step, t)
        return state._replace(contexts=contexts.gather(state.contexts, step.obs_tm1, t))

    def begin(state: AgentState, key: jax.Array) -> AgentState:
        """Learning starts: warm-start the contexts, and label by them what is already stored."""
        division = contexts.begin(state.contexts, key)

        def relabel(row: jax.Array) -> jax.Array:
            step = unpack(row, obs_size)
            labels = contexts.assign(division, step.obs_tm1), contexts.assign(division, step.obs_t)
            packed = pack(step._replace(context_tm1=labels[0], context_t=labels[1]))
            return row.at[: packed.size].set(packed)

        return state._replace(contexts=division, replay=jax.vmap(relabel)(state.replay))

    def sync(state: AgentState) -> AgentState:
        """Line 8, every C steps: θ⁻ <- θ, Ĉ <- C."""
        rows = teacher.renew(state.params, state.replay)
        return state._replace(target=state.params, contexts=contexts.sync(state.contexts), replay=rows)

    return Agent(parts, init, act, collect, begin, observe, learn, sync)
