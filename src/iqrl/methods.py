"""The methods by name, each a few lines that compose parts; and how settings become a `Run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import optax

from iqrl.agent import Agent
from iqrl.config import OPTIONS, Contexts, Distillation, Run, TaskOptions, check_names, checked, fields_of
from iqrl.errors import BadInput, unknown
from iqrl.parts import contexts, distillation, losses, networks, replay, scaling, schedules, teacher
from iqrl.plugins import in_a_sentence, load_attribute
from iqrl.tasks import find_task, refuse_unused
from iqrl.tasks.base import Task


class Method(NamedTuple):
    summary: str
    source: str
    """the paper it comes from"""
    compose: Callable[[Run, Task], Agent]
    extra_groups: tuple[type, ...] = ()
    """groups of settings it uses beside those that every method uses"""
    paper: Mapping[str, Any] = {}
    """what the preset `paper` sets for this method alone"""


def q_learner(
    run: Run,
    task: Task,
    division: contexts.ContextDivision,
    regularisers: tuple[distillation.Regulariser, ...] = (),
) -> Agent:
    """Deep Q-learning over the given contexts, with the given terms added to its loss."""
    size, heads = len(task.low), division.count
    network = networks.multi_head_mlp(size, run.hidden, run.activation, heads, task.actions)
    memory = teacher.cheaper(network, size, heads, task.actions, run.buffer_size, run.batch_size, run.target_period)
    adam = optax.adam(run.learning_rate, eps=run.adam_epsilon)
    clip = optax.clip_by_global_norm(run.gradient_clip) if run.gradient_clip else optax.identity()
    return Agent(
        obs_size=size,
        network=network,
        contexts=division,
        teacher=memory,
        replay=replay.ring(run.buffer_size, replay.row_width(size) + memory.width, run.batch_size),
        value_loss=losses.double_q_learning if run.double_q else losses.q_learning,
        regularisers=regularisers,
        optimiser=optax.chain(clip, adam),
        epsilon=exploration(run),
    )


def exploration(run: Run) -> schedules.Schedule:
    return schedules.linear(run.epsilon_start, run.epsilon_final, run.epsilon_decay)


def skm_contexts(run: Run, task: Task) -> contexts.ContextDivision:
    """Sequential K-means over the task's states."""
    size = len(task.low)
    scale = {
        "task": lambda: scaling.fixed(task.low, task.high),
        "running": lambda: scaling.running(size),
        "none": lambda: scaling.unscaled(size),
    }[run.context_scaling]()
    warm_start = run.learning_starts if run.context_init == "kmeans" else 0
    return contexts.sequential_kmeans(run.contexts, task.low, task.high, scale, warm_start)


def distil(run: Run) -> tuple[distillation.Regulariser, ...]:
    """λ L_D with the run's λ; nothing at all when λ stays 0, so that the program is the one without it."""
    if run.distill_weight == 0:
        return ()
    weight = {
        "one-minus-epsilon": lambda: schedules.one_minus(exploration(run), run.distill_weight),
        "constant": lambda: schedules.constant(run.distill_weight),
    }[run.distill_schedule]()
    return (distillation.distillation(weight, run.distill_actions, run.distill_heads),)


def dqn(run: Run, task: Task) -> Agent:
    return q_learner(run, task, contexts.single())


def iq(run: Run, task: Task) -> Agent:
    return q_learner(run, task, skm_contexts(run, task), distil(run))


METHODS: dict[str, Method] = {
    "dqn": Method(
        "deep Q-learning with replay and a target network",
        "Mnih et al. 2015",
        dqn,
        # The paper takes its baseline from OpenAI Baselines, which is double by default.
        paper={"double_q": True},
    ),
    "iq": Method(
        "a head per context of the state space, the other heads kept by distillation",
        "Zhang et al. 2022",
        iq,
        extra_groups=(Contexts, Distillation),
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


def paper_preset(method: Method, task: Task, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the paper, and the Baselines script its tables match, say for this task."""
    if not task.paper_steps:
        raise BadInput(f"the paper has no settings for {task.name}; leave out the preset.")
    length = {} if "steps" in settings else {"steps": task.paper_steps, "period": task.paper_period}
    return {"gamma": 1.0, "bootstrap_time_limit": False} | length | dict(method.paper)


PRESETS = {"paper": paper_preset}


def resolve(task: str, method: str, preset: str | None = None, **settings: Any) -> Run:
    """A complete `Run`: the library's defaults, then the preset, then the settings given."""
    if not isinstance(task, str) or not isinstance(method, str):
        raise BadInput("task and method are names; one of your own is named module:attribute.")
    check_names(settings)
    found = find_method(method)
    _refuse_unused(method, found, settings)
    refuse_unused(task, settings)
    given = {name: checked(OPTIONS[name], value) for name, value in settings.items()}
    record = find_task(task)(TaskOptions(**{name: given[name] for name in given if name in TASK_OPTIONS}))
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    values: dict[str, Any] = (PRESETS[preset](found, record, given) if preset else {}) | given
    run = Run(task=task, method=method, **(_lengths(values, record) | values))
    _check_warm_start(run, found)
    return run


TASK_OPTIONS = {field.name for field in fields_of(TaskOptions)}


def _refuse_unused(name: str, method: Method, settings: Mapping[str, Any]) -> None:
    """A setting that would change nothing is a mistake, not a wish."""
    optional = {field.name: group for group in (Contexts, Distillation) for field in fields_of(group)}
    for setting in settings:
        if setting in optional and optional[setting] not in method.extra_groups:
            raise BadInput(f"method {name!r} has no {optional[setting].__doc__}; {setting} does not apply to it.")


def _lengths(values: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """The lengths that follow from others when they are not given."""
    steps = values.get("steps", task.paper_steps or 100_000)
    every = values.get("update_every", 1)
    return {"steps": steps, "period": max(steps // 40 // every, 1) * every, "epsilon_decay": steps // 10}


def _check_warm_start(run: Run, method: Method) -> None:
    waits = Contexts in method.extra_groups and run.context_init == "kmeans"
    if waits and run.learning_starts < run.contexts:
        raise BadInput(
            f"learning_starts is {run.learning_starts}; with context_init kmeans it must be at least "
            f"the number of contexts, {run.contexts}."
        )
