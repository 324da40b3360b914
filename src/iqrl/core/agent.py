"""Algorithm 1 of the paper as pure functions over one state. The driver calls them in this order:

    act      line 3   an action from the head of the state's context
    observe  line 4   assign ω(s_t), ω(s_{t+1}) by the target centroids Ĉ
             line 5   store the transition with its labels
             line 6   update the live centroids, C <- SKM(s_t, C)
    learn    line 7   sample, one gradient step on L_ori + λ L_D
    sync     line 8   when learning starts, and then every `target_period` steps: θ⁻ <- θ, Ĉ <- C

DQN, IQ and all other methods of Q-learning are this code with other parts: a preprocessor, a network with k heads, a
context label per state, a value loss, a tuple of regularisers, an optimiser.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from iqrl.core.contexts.base import ContextDivision
from iqrl.core.losses import Regulariser, ValueLoss
from iqrl.core.masks import draw_action, legal_values
from iqrl.core.networks import Network, Output, Params, select_head
from iqrl.core.preprocessors import Preprocessor
from iqrl.core.replay.base import Label, Replay
from iqrl.core.schedules import Schedule
from iqrl.core.types import Agent, Batch, Choice, ContextInputs, Experience, LossInputs, Transition
from iqrl.errors import BadInput

NO_UNIFORMS = np.zeros(0, np.float32)


class QFunction(NamedTuple):
    """All that decides Q(s, ·): θ and the state of the preprocessor. A copy held fixed is the target network."""

    params: Params
    preprocessor: Any


class AgentState(NamedTuple):
    params: Params
    """θ"""
    preprocessor: Any
    target: Any
    """the Q-function of the last sync, θ⁻; empty where there is no target network"""
    optimiser: Any
    contexts: Any
    """C, Ĉ and their counts"""
    replay: Any
    """B"""
    cache: Any = ()
    """of `core/cached_targets.py`"""
    average: Any = ()
    """the running average of θ, where it acts"""

    @property
    def q_function(self) -> QFunction:
        return QFunction(params=self.params, preprocessor=self.preprocessor)


class ActUniforms(NamedTuple):
    """Uniform numbers that `act` needs, or how many."""

    explore: Any
    action: Any
    noise: Any
    """of a noisy network"""


class LearnUniforms(NamedTuple):
    """Uniform numbers that one gradient step needs, or how many."""

    sample: Any
    online_noise: Any
    target_noise: Any
    regularisers: Any
    """one entry per regulariser"""


@dataclass(frozen=True)
class QLearner:
    """The parts a method is made of, and what they do together. `step` counts transitions from 0."""

    obs_size: int
    preprocessor: Preprocessor
    network: Network
    contexts: ContextDivision
    replay: Replay
    value_loss: ValueLoss
    regularisers: tuple[Regulariser, ...]
    optimiser: optax.GradientTransformation
    epsilon: Schedule
    has_target: bool = True
    """whether a target network θ⁻ stands beside θ; without one, θ is its own target"""
    gradient_steps: int = 1
    act_average: float = 0.0
    """τ of the average of θ that acts; 0: θ itself acts"""
    average_fall: int = 0
    """T: after T steps that τ falls as T / t; 0: it stays"""
    target_average: float = 0.0
    """τ with which θ⁻ follows θ after every update; 0: θ⁻ is copied at a sync"""
    masked_actions: int = 0
    """how many actions a mask is about; 0: there are no masks"""

    def __post_init__(self) -> None:
        names = [term.name for term in self.regularisers]
        if len(set(names)) < len(names):
            raise BadInput(f"regularisers must have different names; these are {', '.join(names)}.")

    def init(self, key: jax.Array) -> AgentState:
        network_key, context_key = jax.random.split(key)
        q = QFunction(
            params=self.network.init(network_key), preprocessor=self.preprocessor.init(jax.random.fold_in(key, 2))
        )
        return AgentState(
            params=q.params,
            preprocessor=q.preprocessor,
            target=q if self.has_target else (),
            optimiser=self.optimiser.init(q.params),
            contexts=self.contexts.init(context_key),
            replay=self.replay.init(),
            average=q.params if self.act_average else (),
        )

    # Line 3: act

    def act(self, state: AgentState, inputs: ContextInputs, step: jax.Array, random: ActUniforms) -> Choice:
        """ε-greedy on the head of the state's context, among the legal actions."""
        context = self.context(state, inputs)
        q = self.acting_values(state, inputs.obs, context, step, random.noise)
        explore = random.explore[0] < self.epsilon(step)
        random_action = draw_action(random.action[0], q.shape[0], inputs.mask)
        best = jnp.argmax(legal_values(q, inputs.mask)).astype(jnp.int32)
        action = jnp.where(explore, random_action, best)
        return Choice(action=action, context=context, greedy=action == best)

    def acting_values(
        self, state: AgentState, obs: jax.Array, context: jax.Array, step: jax.Array, noise: jax.Array
    ) -> jax.Array:
        """[A]: Q(s, ·, ω(s)) by the weights that act."""
        acting = self.acting(state)
        encoded = self.preprocessor.encode(acting.preprocessor, obs)
        return self.network.q_of_head(self.network.perturb(acting.params, noise), encoded, context)

    def live(self, state: AgentState) -> QFunction:
        """The Q-function that learns, θ."""
        return state.q_function

    def acting(self, state: AgentState) -> QFunction:
        """The Q-function that acts: θ, or its average."""
        params = state.average if self.act_average else state.params
        return QFunction(params=params, preprocessor=state.preprocessor)

    def policy(self, state: AgentState, inputs: ContextInputs) -> jax.Array:
        """The greedy action, of the legal ones."""
        return jnp.argmax(legal_values(self.q_values(state, inputs)[0], inputs.mask)).astype(jnp.int32)

    def q_values(self, state: AgentState, inputs: ContextInputs) -> tuple[jax.Array, jax.Array]:
        """Q(s, ·, ω(s)) by the weights that act, and ω(s)."""
        context = self.context(state, inputs)
        return select_head(self.outputs(self.acting(state), inputs.obs).q, context), context

    def context(self, state: AgentState, inputs: ContextInputs) -> jax.Array:
        """ω(s), by Ĉ."""
        return self.contexts.assign(state.contexts, self.embed(self.encoder_of(state), inputs))

    def encoder_of(self, state: AgentState) -> tuple[Any, Params]:
        return state.contexts, state.params

    def embed(self, encoder: tuple[Any, Params], inputs: ContextInputs) -> ContextInputs:
        return self.contexts.embed(*encoder, inputs)

    # Lines 4 to 6: observe

    def observe(
        self,
        state: AgentState,
        experience: Experience,
        step: jax.Array,
        random: jax.Array | np.ndarray = NO_UNIFORMS,
        warm_up: bool = False,
    ) -> tuple[AgentState, Transition]:
        """Assign ω(s_t) and ω(s_{t+1}) by Ĉ, store the transition, update C. Also the transition itself.

        `warm_up`: learning has not started; the state is kept for the warm start of the centroids.
        """
        before = self.embed(self.encoder_of(state), experience.before)
        preprocessor, transition = self.make_transition(state, experience._replace(before=before))
        replay = self.replay.add(state.replay, transition, step, random)
        contexts = self.contexts.update(state.contexts, before)
        if warm_up:
            contexts = self.contexts.collect(contexts, before, step)
        return state._replace(preprocessor=preprocessor, replay=replay, contexts=contexts), transition

    def make_transition(self, state: AgentState, experience: Experience) -> tuple[Any, Transition]:
        """The step with its labels and as it is learned from; also the preprocessor after it."""
        before, after = experience.before, experience.after
        transition = Transition(
            obs_tm1=before.obs,
            a_tm1=experience.choice.action,
            r_t=experience.reward,
            discount_t=experience.discount,
            obs_t=after.obs,
            context_tm1=self.context(state, before),
            context_t=self.context(state, after),
            done=experience.done,
            greedy=experience.choice.greedy,
            mask_tm1=before.mask,
            mask_t=after.mask,
        )
        return self.preprocessor.update(state.preprocessor, transition)

    def start_learning(self, state: AgentState, key: jax.Array) -> AgentState:
        """Warm-start the contexts, and label by them what is already stored."""
        state = state._replace(contexts=self.contexts.start(state.contexts, key))
        label = self.label(state)
        return self.sync(state._replace(replay=self.replay.relabel(state.replay, label)) if label else state)

    def label(self, state: AgentState) -> Label | None:
        """ω as a function of the state alone, where that is enough."""
        of_state = self.contexts.of_state
        if of_state is None:
            return None
        return lambda obs: of_state(state.contexts, self.contexts.embedding(state.contexts, state.params, obs))

    # Line 7: learn

    def learn(self, state: AgentState, step: jax.Array, random: Any) -> tuple[AgentState, dict[str, jax.Array]]:
        """One gradient step, or several, on L_ori + λ L_D."""
        if self.gradient_steps == 1:
            return self.update(state, step, random)
        together = jax.tree.map(lambda *each: jnp.stack(each), *random)
        state, metrics = jax.lax.scan(lambda state, one: self.update(state, step, one), state, together)
        return state, jax.tree.map(lambda each: jnp.mean(each, axis=0), metrics)

    def update(
        self, state: AgentState, step: jax.Array, random: LearnUniforms
    ) -> tuple[AgentState, dict[str, jax.Array]]:
        """Sample a batch, one gradient step."""
        batch = self.replay.sample(state.replay, step, random.sample)
        loss = jax.value_and_grad(self.loss, has_aux=True)
        (_, (metrics, inputs, value_losses)), gradient = loss(state.params, state, batch, step, random)
        optimiser = optax.with_extra_args_support(self.optimiser)
        updates, memory = optimiser.update(gradient, state.optimiser, state.params, inputs=inputs, step=step)
        replay = self.replay.update_priorities(state.replay, batch.slots, value_losses)
        params = optax.apply_updates(state.params, updates)
        return self.follow(state._replace(params=params, optimiser=memory, replay=replay), step), metrics

    def follow(self, state: AgentState, step: jax.Array) -> AgentState:
        """The average that acts, and a target network that is an average, move towards θ."""
        if self.act_average:
            state = state._replace(average=self.averaged(state.average, state.params, step))
        if self.target_average:
            params = move_towards(state.target.params, state.params, average_rate(self.target_average, step))
            state = state._replace(target=QFunction(params=params, preprocessor=state.preprocessor))
        return state

    def averaged(self, average: Params, params: Params, step: jax.Array) -> Params:
        """The average that acts, after θ moved."""
        return move_towards(average, params, self.act_rate(step))

    def act_rate(self, step: jax.Array) -> jax.Array:
        """τ of this step."""
        falls = jnp.minimum(1.0, self.average_fall / (step + 1.0)) if self.average_fall else 1.0
        return average_rate(self.act_average * falls, step)

    def loss(
        self, params: Params, state: AgentState, batch: Batch, step: jax.Array, random: LearnUniforms
    ) -> tuple[jax.Array, tuple[dict[str, jax.Array], LossInputs, jax.Array]]:
        """L_ori + λ L_D (eq. 11), a sum over (weight, term); also its metrics, its inputs and each sample's L_ori."""
        weighted = lambda each: jnp.mean(each if batch.weights is None or each.ndim == 0 else batch.weights * each)
        inputs = self.loss_inputs(params, state, batch, random)
        value_losses = self.value_loss(inputs)
        total, terms = weighted(value_losses), {}
        for term, uniforms in zip(self.regularisers, random.regularisers, strict=True):
            each = jnp.asarray(term.loss(inputs._replace(uniforms=uniforms)))
            if each.ndim > 1:
                raise BadInput(f"regulariser {term.name} gives shape {each.shape}; it must give one number per sample.")
            terms[f"{term.name}_loss"] = jnp.mean(each)
            total = total + term.weight(step) * weighted(each)
        of_s = select_head(inputs.online_tm1.q, inputs.transition.context_tm1)
        max_q = jnp.max(legal_values(of_s, inputs.transition.mask_tm1), axis=0)
        metrics = {"value_loss": jnp.mean(value_losses), "max_q": jnp.mean(max_q)} | terms
        return total, (metrics, inputs._replace(online=None, target=None), value_losses)

    def loss_inputs(self, params: Params, state: AgentState, batch: Batch, random: LearnUniforms) -> LossInputs:
        """The batch with what both networks compute on it, each with its own noise where there is any."""
        online = QFunction(self.network.perturb(params, random.online_noise), state.preprocessor)
        target = self.target_of(state)
        target = target._replace(params=self.network.perturb(target.params, random.target_noise))
        transition = batch.transitions
        online_tm1 = self.batch_outputs(online, transition.obs_tm1)
        online_t = jax.lax.stop_gradient(self.batch_outputs(online, transition.obs_t))
        target_tm1, target_t = self.target_outputs(state, online, target, batch)
        return LossInputs(
            transition=transition,
            online_tm1=online_tm1,
            online_t=online_t,
            target_tm1=target_tm1,
            target_t=target_t,
            online=lambda obs: self.batch_outputs(online, obs),
            target=lambda obs: self.batch_outputs(target, obs),
            preprocessor=state.preprocessor,
        )

    def target_outputs(
        self, state: AgentState, online: QFunction, target: QFunction, batch: Batch
    ) -> tuple[Output, Output]:
        """θ⁻ on s and on s'."""
        q = target if self.has_target else jax.lax.stop_gradient(online)
        return self.batch_outputs(q, batch.transitions.obs_tm1), self.batch_outputs(q, batch.transitions.obs_t)

    def outputs(self, q: QFunction, obs: jax.Array) -> Output:
        """The network on one state."""
        return self.network.apply(q.params, self.preprocessor.encode(q.preprocessor, obs))

    def batch_outputs(self, q: QFunction, obs: jax.Array) -> Output:
        """The network on a batch [d, B]: the batch is the last axis of what goes in and of what comes out."""
        # States enter the first product as rows, in the layout they are stored in; XLA cancels the transposes.
        return jax.vmap(self.outputs, in_axes=(None, 0), out_axes=-1)(q, obs.T)

    # Line 8: sync

    def sync(self, state: AgentState) -> AgentState:
        """θ⁻ <- θ, with the state of the preprocessor; Ĉ <- C, with the weights of the distance.

        Called when learning starts and then every `target_period` steps (`training/timetable.py`). Labels of stored
        transitions stay as they are. `CachedTargets.sync` then computes its cache anew.
        """
        state = state._replace(contexts=self.contexts.sync(state.contexts))
        return state._replace(target=self.live(state)) if self.copies_target else state

    @property
    def copies_target(self) -> bool:
        return self.has_target and not self.target_average

    def target_of(self, state: AgentState) -> QFunction:
        """The target network; θ itself where there is none."""
        if not self.has_target:
            return self.live(state)
        shared = self.preprocessor.shared
        return state.target._replace(preprocessor=state.preprocessor) if shared else state.target

    @property
    def syncs(self) -> bool:
        return self.copies_target or self.contexts.has_target

    def dense(self, state: AgentState) -> AgentState:
        """The state as this class has it, where a faster class keeps it in another form."""
        return state

    def acting_state(self, state: AgentState) -> AgentState:
        """What acting needs of the state, in the plain form."""
        return self.dense(state)._replace(optimiser=(), replay=(), target=(), cache=())

    # Random numbers and reports

    @property
    def act_uniforms(self) -> ActUniforms:
        return ActUniforms(explore=1, action=1, noise=self.network.num_uniforms)

    @property
    def observe_uniforms(self) -> int:
        return self.replay.num_add_uniforms

    @property
    def learn_uniforms(self) -> LearnUniforms | tuple[LearnUniforms, ...]:
        one = LearnUniforms(
            sample=self.replay.num_uniforms,
            online_noise=self.network.num_uniforms,
            target_noise=self.network.num_uniforms,
            regularisers=tuple(term.num_uniforms for term in self.regularisers),
        )
        return one if self.gradient_steps == 1 else (one,) * self.gradient_steps

    @property
    def step_metrics(self) -> dict[str, tuple[int, ...]]:
        return {"occupancy": (self.contexts.count,)}

    def step_report(self, choice: Choice) -> dict[str, jax.Array]:
        return {"occupancy": jnp.arange(self.contexts.count) == choice.context}

    @property
    def update_metrics(self) -> tuple[str, ...]:
        return ("value_loss", "max_q", *(f"{term.name}_loss" for term in self.regularisers))

    def report(self, step: int) -> dict[str, float]:
        """ε and the weights of the regularisers at the last of so many steps."""
        last = jnp.int32(step - 1)
        weights = {f"{term.name}_weight": float(term.weight(last)) for term in self.regularisers}
        return {"epsilon": float(self.epsilon(last))} | weights

    def parameters(self, state: AgentState) -> Params:
        return state.params


def move_towards(average: Params, params: Params, share: jax.Array) -> Params:
    return jax.tree.map(lambda m, theta: m + share * (theta - m), average, params)


def average_rate(rate: float | jax.Array, step: jax.Array) -> jax.Array:
    """max(τ, 1 / (t + 1)): with it, an average is the mean of all θ at first, then a running one."""
    return jnp.maximum(rate, 1.0 / (step + 1.0))


def plain_form(agent: Agent) -> Agent:
    """The agent that `dense` and `acting_state` give the state of."""
    if not isinstance(agent, QLearner):
        return agent
    return QLearner(**{field.name: getattr(agent, field.name) for field in dataclasses.fields(QLearner)})


def as_q_learner(agent: Agent) -> QLearner:
    """For what can be computed only of agents that learn Q values."""
    if not isinstance(agent, QLearner):
        raise BadInput(f"{type(agent).__name__} does not learn Q values, and only Q values can be analysed here.")
    return agent
