"""Algorithm 1 of the paper as pure functions over one state, to be called in this order:

    act      line 3   an action from the head of the state's context
    observe  line 4   assign ω(s_t), ω(s_{t+1}) by the target centroids Ĉ
             line 5   store the transition with its labels
             line 6   update the live centroids, C <- SKM(s_t, C)
    learn    line 7   sample, one gradient step on L_ori + λ L_D
    sync     line 8   every C steps: θ⁻ <- θ, Ĉ <- C

DQN, IQ and everything beside them are this code with other parts: how a state looks to the network,
a network with k heads, a context label per state, a value loss, a tuple of regularisers, an optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from iqrl.errors import BadInput
from iqrl.parts.contexts import ContextDivision, Situation
from iqrl.parts.losses import Sample, ValueLoss, pick
from iqrl.parts.networks import Network, Params
from iqrl.parts.perception import Perception
from iqrl.parts.regularisers import Moment, Regulariser
from iqrl.parts.replay import Batch, Label, Note, Replay, Transition
from iqrl.parts.schedules import Schedule
from iqrl.parts.teacher import QFunction, Teacher, answers, on_batch


class AgentState(NamedTuple):
    params: Params
    """θ"""
    perception: Any
    target: Any
    """the Q-function held fast: θ⁻, and perception as it was; nothing where the network is its own target"""
    optimiser: Any
    contexts: Any
    """C, Ĉ and their counts"""
    replay: Any
    """B"""

    @property
    def q_function(self) -> QFunction:
        return QFunction(self.params, self.perception)


class Choice(NamedTuple):
    action: jax.Array
    context: jax.Array
    """ω(s)"""
    greedy: jax.Array
    """whether the action is the one with the highest value"""


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
    perception: Perception
    network: Network
    contexts: ContextDivision
    teacher: Teacher
    replay: Replay
    value_loss: ValueLoss
    regularisers: tuple[Regulariser, ...]
    optimiser: optax.GradientTransformation
    epsilon: Schedule
    gradient_steps: int = 1

    def __post_init__(self) -> None:
        names = [term.name for term in self.regularisers]
        if len(set(names)) < len(names):
            raise BadInput(f"regularisers are told apart by their names, and these are {', '.join(names)}.")

    def init(self, key: jax.Array) -> AgentState:
        network_key, context_key = jax.random.split(key)
        q = QFunction(self.network.init(network_key), self.perception.init(jax.random.fold_in(key, 2)))
        return AgentState(
            params=q.params,
            perception=q.perception,
            target=q if self.teacher.lags else (),
            optimiser=self.optimiser.init(q.params),
            contexts=self.contexts.init(context_key),
            replay=self.replay.init(),
        )

    def values(self, state: AgentState, situation: Situation) -> tuple[jax.Array, jax.Array]:
        """Q(s, ·, ω(s); θ) and ω(s)."""
        context = self.context(state, situation)
        return pick(answers(self.network, self.perception)(state.q_function, situation.obs).q, context), context

    def _values_of_one(self, state: AgentState, situation: Situation) -> tuple[jax.Array, jax.Array]:
        """The same, where only one state is asked about: reading the other heads' weights would take longest."""
        if self.network.only is None:
            return self.values(state, situation)
        context = self.context(state, situation)
        alone = state.q_function._replace(params=self.network.only(state.params, context))
        return answers(self.network, self.perception)(alone, situation.obs).q[0], context

    def context(self, state: AgentState, situation: Situation) -> jax.Array:
        """ω(s)."""
        return self.contexts.assign(state.contexts, self.encoded(state, situation))

    def encoded(self, state: AgentState, situation: Situation) -> Situation:
        """The situation with the code of its state, unless it has one or needs none."""
        if self.contexts.encode is None or not isinstance(situation.code, tuple):
            return situation
        return situation._replace(code=self.contexts.encode(state.contexts, state.params, situation.obs))

    def act(self, state: AgentState, situation: Situation, t: jax.Array, uniforms: jax.Array) -> Choice:
        """ε-greedy on the head of the state's context."""
        noisy = state._replace(params=self.network.perturb(state.params, uniforms[2:]))
        q, context = self._values_of_one(noisy, situation)
        explore = uniforms[0] < self.epsilon(t)
        random_action = (uniforms[1] * q.shape[0]).astype(jnp.int32)
        best = jnp.argmax(q).astype(jnp.int32)
        action = jnp.where(explore, random_action, best)
        return Choice(action, context, action == best)

    @property
    def act_draws(self) -> int:
        """Uniform numbers that `act` needs."""
        return 2 + self.network.draws

    def observe(
        self, state: AgentState, step: Transition, before: Situation, after: Situation, t: jax.Array
    ) -> tuple[AgentState, Transition]:
        """Lines 4 to 6: assign ω(s_t) and ω(s_{t+1}) by Ĉ, store the transition, update C.

        Also the step itself, with its labels and as the learner sees it.
        """
        before, after = (self.encoded(state, situation) for situation in (before, after))
        step = step._replace(context_tm1=self.context(state, before), context_t=self.context(state, after))
        perception, step = self.perception.take(state.perception, step)
        replay = self.replay.add(state.replay, step, self._note(state.target), t)
        contexts = self.contexts.update(state.contexts, before)
        return state._replace(perception=perception, replay=replay, contexts=contexts), step

    def _note(self, target: QFunction) -> Note:
        return lambda states: self.teacher.note(target, states)

    @property
    def learn_draws(self) -> int:
        """Uniform numbers that `learn` needs."""
        terms = sum(term.draws for term in self.regularisers)
        return self.gradient_steps * (self.replay.draws + terms + 2 * self.network.draws)

    def learn(self, state: AgentState, t: jax.Array, uniforms: jax.Array) -> tuple[AgentState, Losses]:
        """Line 7: one gradient step, or several, on L_ori + λ L_D."""
        state = state._replace(replay=self.replay.refresh(state.replay, self._note(state.target)))
        if self.gradient_steps == 1:
            return self._update(state, t, uniforms)
        draws = uniforms.reshape(self.gradient_steps, -1)
        state, losses = jax.lax.scan(lambda state, row: self._update(state, t, row), state, draws)
        return state, jax.tree.map(lambda each: jnp.mean(each, axis=0), losses)

    def _update(self, state: AgentState, t: jax.Array, uniforms: jax.Array) -> tuple[AgentState, Losses]:
        """One gradient step over a sampled batch."""
        batch = self.replay.sample(state.replay, t, uniforms[: self.replay.draws])
        joint_loss = jax.value_and_grad(self._joint_loss, has_aux=True)
        (_, (losses, samples, each)), gradient = joint_loss(
            state.params, state, batch, t, uniforms[self.replay.draws :]
        )
        optimiser = optax.with_extra_args_support(self.optimiser)
        updates, memory = optimiser.update(gradient, state.optimiser, state.params, samples=samples)
        replay = self.replay.learned(state.replay, batch.slots, each)
        params = optax.apply_updates(state.params, updates)
        return state._replace(params=params, optimiser=memory, replay=replay), losses

    def _joint_loss(
        self, params: Params, state: AgentState, batch: Batch, t: jax.Array, uniforms: jax.Array
    ) -> tuple[jax.Array, tuple[Losses, Sample, jax.Array]]:
        """L_ori + λ L_D (eq. 11) on a batch; also what it consists of, and each sample's L_ori."""
        weighted = lambda each: jnp.mean(each if batch.weights is None or each.ndim == 0 else batch.weights * each)
        noise = 2 * self.network.draws
        moment = self._moment(params, state, batch, uniforms[:noise])
        uniforms, samples = uniforms[noise:], moment.samples
        values = self.value_loss(samples)
        joint, terms, used = weighted(values), {}, 0
        for term in self.regularisers:
            own = moment._replace(uniforms=uniforms[used : used + term.draws])
            each = jnp.asarray(term.loss(own))
            if each.ndim > 1:
                raise BadInput(
                    f"regulariser {term.name} gives an array of {each.shape}; it must be one number per sample."
                )
            terms[term.name] = jnp.mean(each)
            joint, used = joint + term.weight(t) * weighted(each), used + term.draws
        max_q = jnp.max(pick(samples.online_tm1.q, samples.transition.context_tm1), axis=0)
        return joint, (Losses(jnp.mean(values), terms, jnp.mean(max_q)), samples, values)

    def _moment(self, params: Params, state: AgentState, batch: Batch, noise: jax.Array) -> Moment:
        """The batch with what both networks say of it, each with noise of its own where there is any."""
        ask = on_batch(answers(self.network, self.perception))
        now = QFunction(self.network.perturb(params, noise[: self.network.draws]), state.perception)
        target = self.target_of(state)
        target = target._replace(params=self.network.perturb(target.params, noise[self.network.draws :]))
        steps = batch.steps
        online_tm1, online_t = ask(now, steps.obs_tm1), jax.lax.stop_gradient(ask(now, steps.obs_t))
        samples = Sample(steps, online_tm1, online_t, *self.teacher.recall(now, target, batch))
        online, teacher = lambda obs: ask(now, obs), lambda obs: ask(target, obs)
        return Moment(samples, online, teacher, state.perception, uniforms=jnp.zeros(0))

    def target_of(self, state: AgentState) -> QFunction:
        if not self.teacher.lags:
            return state.q_function
        return state.target._replace(perception=state.perception) if self.perception.shared else state.target

    @property
    def lags(self) -> bool:
        """Whether `sync` does anything."""
        return self.teacher.lags or self.contexts.lags

    def sync(self, state: AgentState) -> AgentState:
        """Line 8, every C steps: θ⁻ <- θ, Ĉ <- C."""
        target = state.q_function
        replay = self.replay.renew(state.replay, self._note(target))
        target = target if self.teacher.lags else ()
        return state._replace(target=target, contexts=self.contexts.sync(state.contexts), replay=replay)

    def collect(
        self, state: AgentState, step: Transition, before: Situation, after: Situation, t: jax.Array
    ) -> tuple[AgentState, Transition]:
        """A step before learning starts: store and cluster, and keep the state for the warm start."""
        before = self.encoded(state, before)
        state, seen = self.observe(state, step, before, after, t)
        return state._replace(contexts=self.contexts.gather(state.contexts, before, t)), seen

    def begin(self, state: AgentState, key: jax.Array) -> AgentState:
        """Learning starts: warm-start the contexts, and label by them what is already stored."""
        state = state._replace(contexts=self.contexts.begin(state.contexts, key))
        label = self.label(state)
        return self.sync(state._replace(replay=self.replay.relabel(state.replay, label)) if label else state)

    def label(self, state: AgentState) -> Label | None:
        """ω(s) as the division has it now, where a state alone decides it."""
        of_state, encode = self.contexts.of_state, self.contexts.encode
        if of_state is None:
            return None
        code = (lambda obs: obs) if encode is None else lambda obs: encode(state.contexts, state.params, obs)
        return lambda obs: of_state(state.contexts, code(obs))
