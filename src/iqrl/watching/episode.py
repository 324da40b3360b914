"""One greedy episode, kept moment by moment: what was seen, what the agent thought of it, what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from iqrl.errors import BadInput, RunFailed
from iqrl.plugins import in_a_sentence
from iqrl.settings import Run
from iqrl.training.evaluation import Seen, opened, play
from iqrl.training.results import Result, TrainedAgent
from iqrl.watching.pictures import Variables, draw_environment, draw_variables, prepare


class Moment(NamedTuple):
    picture: np.ndarray
    """[height, width, 3] of bytes"""
    q_values: np.ndarray
    """[actions]; empty for an agent without Q values"""
    context: int
    action: int | None
    """None at the end"""
    total: float
    """the rewards until then"""
    variables: Variables | None = None
    """what the picture is of where the environment has none of its own"""


class Episode(NamedTuple):
    run: Run
    memory: int
    """bytes that the agent keeps while it learns"""
    contexts: int
    moments: Sequence[Moment]
    over: bool
    """whether it ended by itself: not by its time limit, nor because no more is shown"""
    frames_a_second: float
    limited: bool = False
    """whether its time limit ended it"""

    @property
    def total(self) -> float:
        return self.moments[-1].total


def record(result: Result, seed: int | None = None, start: int = 0, longest: int = 1000) -> Episode:
    """An episode of one seed's agent, the first's if not given; `start` is the seed of the episode."""
    agent = choose_agent(result, seed)
    moments: list[Moment] = []
    over = limited = False
    with opened(result) as (env, limit, mask_of):
        prepare(env)

        def see(seen: Seen) -> None:
            nonlocal over, limited
            over, limited = seen.terminated, seen.truncated
            picture, variables = draw_environment(env, result.task, seen.obs)
            moments.append(Moment(picture, *thoughts(agent, seen), seen.action, seen.total, variables))

        try:
            play(agent, env, start, min(limit, longest), mask_of=mask_of, see=see)
        except BadInput:
            raise
        except Exception as error:
            raise RunFailed(
                f"an episode of {result.task.name} that began with seed {start} failed with {in_a_sentence(error)}."
            ) from error
        speed, limited = _speed(env), not over and (limited or len(moments) > limit)
    moments = in_one_range(moments)
    contexts = max(int(getattr(result.run, "k", 1)), *(moment.context + 1 for moment in moments))
    return Episode(result.run, result.memory, contexts, moments, over, speed, limited)


def in_one_range(moments: list[Moment]) -> list[Moment]:
    """Observed variables in a range that all of them are in: where nobody says how far one goes, −1 to 1 is a guess."""
    seen = [moment.variables for moment in moments if moment.variables is not None]
    if len(seen) < len(moments):
        return moments
    values = np.stack([one.values for one in seen])
    low, high = np.minimum(seen[0].low, values.min(axis=0)), np.maximum(seen[0].high, values.max(axis=0))
    widened = [one._replace(low=low, high=high) for one in seen]
    return [it._replace(picture=draw_variables(one), variables=one) for it, one in zip(moments, widened, strict=True)]


def choose_agent(result: Result, seed: int | None) -> TrainedAgent:
    agents = {agent.seed: agent for agent in result.agents}
    if seed is None:
        return next(iter(agents.values()))
    if seed not in agents:
        first, last = min(agents), max(agents)
        raise BadInput(f"the run has no seed {seed}; it has {f'seeds {first} to {last}' if last > first else first}.")
    return agents[seed]


def thoughts(agent: TrainedAgent, seen: Seen) -> tuple[np.ndarray, int]:
    """Q(s, ·) and ω(s); nothing and 0 for an agent that has no Q values."""
    episode: Any = {"first": seen.first, "score": seen.total}
    try:
        return np.ravel(agent.q_values(seen.obs, **episode)), int(agent.context(seen.obs, **episode))
    except BadInput:
        return np.zeros(0), 0


def _speed(env: gymnasium.Env) -> float:
    """Frames a second at which the environment is meant to be seen."""
    return float(env.metadata.get("render_fps") or 15)
