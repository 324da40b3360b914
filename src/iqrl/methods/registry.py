"""The methods by name. A method of your own is named `module:attribute`."""

from __future__ import annotations

from typing import Any

from iqrl.core.types import Agent
from iqrl.envs.base import Task
from iqrl.errors import BadInput, unknown
from iqrl.methods import dqn, dsom, iq, iq_divisions, iq_images, local_q, medqn, rainbow, srnn, streaming, tcnn
from iqrl.methods.base import Method, check_observations
from iqrl.plugins import in_a_sentence, load_attribute
from iqrl.settings import Run

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        dqn.DQN,
        *srnn.METHODS,
        *dsom.METHODS,
        *tcnn.METHODS,
        *iq.METHODS,
        *iq_divisions.METHODS,
        *iq_images.METHODS,
        *rainbow.METHODS,
        dqn.DQN_LAYERNORM,
        *medqn.METHODS,
        *streaming.METHODS,
        *local_q.METHODS,
    )
}

RECOMMENDED = {"vectors": "local-q", "images": "dqn"}
"""by what a task shows; `docs/which-method.md` says why"""


def find_method(name: str) -> Method:
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise unknown("method", name, METHODS)
    found = load_attribute(name)
    if not isinstance(found, Method):
        raise BadInput(f"{name} is {type(found).__name__}, not an iqrl.Method.")
    return found


def stores_nothing(run: Run) -> bool:
    """Whether its method learns from every step once and keeps none."""
    return run.method in METHODS and METHODS[run.method].fixed.get("buffer_size") == 1


def memory_text(run: Run) -> str:
    """How many transitions it keeps, as people are told."""
    return "stores nothing" if stores_nothing(run) else f"N={run.buffer_size:,}"


METHOD_NAMES = {
    "dqn": "DQN", "iq": "IQ", "srnn": "SRNN", "dsom": "DSOM", "tcnn": "TCNN", "iq-re": "IQ-RE", "iq-te": "IQ-TE",
    "rainbow": "Rainbow", "rainbow-iq-re": "Rainbow, IQ-RE", "rainbow-srnn": "Rainbow, SRNN", "medqn-u": "MeDQN(U)",
    "medqn-r": "MeDQN(R)", "stream-q": "Stream Q", "stream-c51": "Stream C51",
}  # fmt: skip
"""as papers write them; other methods have the name by which they are called"""


def in_words(run: Run, on_task: bool = True) -> str:
    """For a picture: "DQN on CartPole-v0, N = 100"."""
    name = METHOD_NAMES.get(run.method, run.method) + (f" on {run.task}" if on_task else "")
    return f"{name}, {memory_text(run).replace('=', ' = ')}"


def scales_rewards(run: Run) -> bool:
    """Whether Q values and TD errors are of scaled rewards, and not of the task's own."""
    return run.normalise_inputs or getattr(run, "normalise", False) or run.reward_scale != 1


def build_agent(run: Run, task: Task) -> Any:
    """The agent of a run; an agent of the user's own is checked."""
    method = find_method(run.method)
    check_observations(method, task)
    if ":" not in run.method:
        return method.build(run, task)
    try:
        agent = method.build(run, task)
    except Exception as error:
        raise BadInput(f"{run.method}: build failed with {in_a_sentence(error)}.") from error
    if run.network and not getattr(getattr(agent, "network", None), "own", False):
        raise BadInput(f"{run.method} needs its own network; leave out network.")
    missing = [name for name in AGENT_NAMES if not hasattr(agent, name)]
    if missing:
        raise BadInput(f"{run.method}: build gave {type(agent).__name__}, which is no agent: it has no {missing[0]}.")
    return agent


AGENT_NAMES = tuple(name for name in vars(Agent) if not name.startswith("_"))
