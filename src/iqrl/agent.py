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

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Agent:
    """The parts a method is made of, and what they do together. t is the number of the transition, from 0."""

    obs_size: int
    network: Network
    contexts: ContextDivision
    teacher: Teacher
    replay: Replay
    value_loss: ValueLoss
    regularisers: tuple[Regulariser, ...]
    optimiser: optax.GradientTransformation
    epsilon: Schedule

    def init(self, key: jax.Array) -> AgentState:
        network_key, context_key = jax.random.split(key)
        params = self.network.init(network_key)
        optimiser, contexts = self.optimiser.init(params), self.contexts.init(context_key)
        return AgentState(params, params, optimiser, contexts, self.replay.init())

    def act(self, state: AgentState, obs: jax.Array, t: jax.Array, uniforms: jax.Array) -> tuple[jax.Array, jax.Array]:
        """ε-greedy on the head of the state's context: the action and ω(s_t)."""
        context = self.contexts.assign(state.contexts, obs)
        q = pick(self.network.apply(state.params, obs).q, context)
        explore = uniforms[0] < self.epsilon(t)
        random_action = (uniforms[1] * q.shape[0]).astype(jnp.int32)
        return jnp.where(explore, random_action, jnp.argmax(q).astype(jnp.int32)), context

    def observe(self, state: AgentState, step: Transition, t: jax.Array) -> AgentState:
        """Lines 4 to 6: assign ω(s_t) and ω(s_{t+1}) by Ĉ, store the transition, update C."""
        step = self._label(state.contexts, step)
        noted = self.teacher.note(state.target, jnp.stack([step.obs_tm1, step.obs_t]))
        rows = self.replay.add(state.replay, jnp.concatenate([pack(step), noted]), t)
        return state._replace(replay=rows, contexts=self.contexts.update(state.contexts, step.obs_tm1))

    def _label(self, contexts: Any, step: Transition) -> Transition:
        omega = lambda obs: self.contexts.assign(contexts, obs)
        return step._replace(context_tm1=omega(step.obs_tm1), context_t=omega(step.obs_t))

    def learn(self, state: AgentState, t: jax.Array, uniforms: jax.Array) -> tuple[AgentState, Losses]:
        """Line 7: one gradient step on L_ori + λ L_D over a sampled batch."""
        batch = self.replay.sample(state.replay, t, uniforms)
        (_, losses), gradient = jax.value_and_grad(self._joint_loss, has_aux=True)(state.params, state.target, batch, t)
        updates, optimiser = self.optimiser.update(gradient, state.optimiser, state.params)
        return state._replace(params=optax.apply_updates(state.params, updates), optimiser=optimiser), losses

    def _joint_loss(self, params: Params, target: Params, batch: jax.Array, t: jax.Array) -> tuple[jax.Array, Losses]:
        """L_ori + λ L_D (eq. 11) on a batch [W, B]."""
        forward = on_batch(self.network)
        steps = unpack(batch, self.obs_size)
        samples = Sample(
            steps,
            forward(params, steps.obs_tm1),
            jax.lax.stop_gradient(forward(params, steps.obs_t)),
            *self.teacher.recall(target, batch),
        )
        value = jnp.mean(self.value_loss(samples))
        terms = {term.name: jnp.mean(term.loss(samples)) for term in self.regularisers}
        joint = value + sum(term.weight(t) * terms[term.name] for term in self.regularisers)
        max_q = jnp.max(pick(samples.online_tm1.q, steps.context_tm1), axis=0)
        return joint, Losses(value, terms, jnp.mean(max_q))

    def sync(self, state: AgentState) -> AgentState:
        """Line 8, every C steps: θ⁻ <- θ, Ĉ <- C."""
        rows = self.teacher.renew(state.params, state.replay)
        return state._replace(target=state.params, contexts=self.contexts.sync(state.contexts), replay=rows)

    def collect(self, state: AgentState, step: Transition, t: jax.Array) -> AgentState:
        """A step before learning starts: store and cluster, and keep the state for the warm start."""
        state = self.observe(state, step, t)
        return state._replace(contexts=self.contexts.gather(state.contexts, step.obs_tm1, t))

    def begin(self, state: AgentState, key: jax.Array) -> AgentState:
        """Learning starts: warm-start the contexts, and label by them what is already stored."""
        division = self.contexts.begin(state.contexts, key)

        def relabel(row: jax.Array) -> jax.Array:
            packed = pack(self._label(division, unpack(row, self.obs_size)))
            return row.at[: packed.size].set(packed)

        return self.sync(state._replace(contexts=division, replay=jax.vmap(relabel)(state.replay)))
