"""How fast an Atari game steps, by itself, in the ways there are to play it under the paper's protocol.

    pip install -e ".[atari]"
    python benchmarks/atari_environment.py [--game Pong] [--games-at-once 1 5] [--rounds 9] [--steps 200]

All are pinned to one core and take turns with random actions; nothing learns. Steps (of four frames) are summed over
the games played at once. The ratios compare CPU time with Gymnasium's wrappers in the same round, which is what to
quote: on a machine that does other things as well, the clock on the wall says less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import ale_py
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
from jax.experimental import io_callback

from iqrl.envs.atari import FRAME_SKIP, SIDE, STACK, AtariGame, rom_of

Turn = Callable[[np.ndarray], object]
"""plays actions [steps, games]"""


def with_gymnasium(task: str, games: int) -> Turn:
    """Gymnasium's own wrappers, one game after the other."""

    def make() -> gymnasium.Env:
        env = gymnasium.make(task, frameskip=1, repeat_action_probability=0.25)
        return FrameStackObservation(AtariPreprocessing(env, noop_max=0), STACK, padding_type="zero")

    return in_turn([make() for _ in range(games)])


def with_iqrl(task: str, games: int) -> Turn:
    """What iqrl plays with, one game after the other."""
    return in_turn([AtariGame(task) for _ in range(games)])


def in_turn(envs: list[gymnasium.Env]) -> Turn:
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def play(actions: np.ndarray) -> None:
        for row in actions.tolist():
            for env, action in zip(envs, row, strict=True):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

    return play


def with_iqrl_in_scan(task: str, games: int) -> Turn:
    """The same, called back from a compiled loop."""
    envs = [AtariGame(task) for _ in range(games)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def step_all(actions: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moments = [env.step(action) for env, action in zip(envs, np.asarray(actions).tolist(), strict=True)]
        pictures, rewards, ends, truncations, _ = zip(*moments, strict=True)
        over = np.array(ends) | np.array(truncations)
        for i in np.flatnonzero(over):
            envs[i].reset()
        return np.stack(pictures), np.array(rewards, np.float32), over

    shapes = (
        jax.ShapeDtypeStruct((games, STACK, SIDE, SIDE), jnp.uint8),
        jax.ShapeDtypeStruct((games,), jnp.float32),
        jax.ShapeDtypeStruct((games,), jnp.bool_),
    )

    def step(total: jax.Array, actions: jax.Array) -> tuple[jax.Array, None]:
        pictures, rewards, _ = io_callback(step_all, shapes, actions, ordered=True)
        return total + rewards + pictures[:, 0, 0, -1], None

    loop = jax.jit(lambda actions: jax.lax.scan(step, jnp.zeros(games), actions)[0])
    return lambda actions: jax.block_until_ready(loop(actions.astype(np.int32)))


def vector_env(task: str, games: int) -> ale_py.AtariVectorEnv:
    """ALE's own vector of games, in C++, with the protocol's settings."""
    return ale_py.AtariVectorEnv(
        rom_of(task),
        games,
        num_threads=1,
        max_num_frames_per_episode=27_000 * FRAME_SKIP,
        repeat_action_probability=0.25,
        noop_max=0,
        reward_clipping=False,
        use_fire_reset=False,
    )


def with_ale_vector(task: str, games: int) -> Turn:
    env = vector_env(task, games)
    env.reset(seed=0)

    def play(actions: np.ndarray) -> None:
        for row in actions:
            env.step(row)

    return play


def with_ale_vector_in_scan(task: str, games: int) -> Turn:
    """The vector's functions for XLA, inside a compiled loop: no Python between steps."""
    env = vector_env(task, games)
    handle, reset, step_all = env.xla()
    handle, _ = reset(handle, seed=0)

    def step(carry: tuple, actions: jax.Array) -> tuple[tuple, None]:
        handle, total = carry
        handle, (pictures, rewards, *_) = step_all(handle, actions)
        return (handle, total + rewards + pictures[:, -1, 0, 0]), None

    loop = jax.jit(lambda handle, actions: jax.lax.scan(step, (handle, jnp.zeros(games)), actions)[0])
    kept = [handle, env]  # the handle is a pointer: the games must outlive it

    def play(actions: np.ndarray) -> None:
        kept[0], _ = jax.block_until_ready(loop(kept[0], actions.astype(np.int32)))

    return play


WAYS: dict[str, Callable[[str, int], Turn]] = {
    "Gymnasium's wrappers": with_gymnasium,
    "iqrl's AtariGame": with_iqrl,
    "iqrl's AtariGame, from lax.scan": with_iqrl_in_scan,
    "ALE's vector": with_ale_vector,
    "ALE's vector, xla() in lax.scan": with_ale_vector_in_scan,
}
BASE = "Gymnasium's wrappers"


def timed(play: Turn, actions: np.ndarray) -> tuple[float, float]:
    """Steps per second on the wall and per second of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    play(actions)
    return actions.size / (time.perf_counter() - wall), actions.size / (time.process_time() - cpu)


def compare(task: str, games: int, rounds: int, steps: int) -> None:
    choices = AtariGame(task).action_space.n
    rng = np.random.default_rng(0)
    turns = {name: make(task, games) for name, make in WAYS.items()}
    speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for play in turns.values():
        play(rng.integers(choices, size=(steps, games)))  # compiles
    for _ in range(rounds):
        actions = rng.integers(choices, size=(steps, games))
        for name, play in turns.items():
            speeds[name].append(timed(play, actions))
    base = [cpu for _, cpu in speeds[BASE]]
    print(f"{task}, {games} at once, one core, {rounds} rounds of {steps} steps")
    print(f"{'':34}{'steps/s':>9}{'per CPU s':>11}{'ratio':>8}{'lowest':>8}{'highest':>9}")
    for name, values in speeds.items():
        wall, cpu = (statistics.median(column) for column in zip(*values, strict=True))
        ratios = [own / other for (_, own), other in zip(values, base, strict=True)]
        spread = f"{min(ratios):8.2f}{max(ratios):9.2f}"
        print(f"{name:34}{wall:9.0f}{cpu:11.0f}{statistics.median(ratios):8.2f}{spread}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--games-at-once", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    for games in options.games_at_once:
        compare(f"ALE/{options.game}-v5", games, options.rounds, options.steps)


if __name__ == "__main__":
    main()
