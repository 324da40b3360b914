"""Digests of what runs come to, bit by bit. They were recorded before the code was rearranged, and must stay the same.

    python tests/golden/recording.py [--optimised] [FILE]

writes the digests of all cases to FILE, or prints which of those in it differ. Rounding differs between kinds of
processors, so digests are kept per kind. `--optimised`: compiled as users compile, which takes longer than tests may.
"""

import hashlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    flags = ("backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1")
    if "--optimised" not in sys.argv:
        os.environ["XLA_FLAGS"] = " ".join(f"--xla_{flag}" for flag in flags)
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", tempfile.gettempdir() + f"/iqrl-tests-{os.getuid()}")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import numpy as np
from pictures import WALK

from iqrl.envs.random_policy import random_inputs
from iqrl.envs.registry import TASKS, make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import METHODS
from iqrl.training.compilation import compile_driver
from iqrl.training.loop import driver_of, period_rows

FILE = Path(__file__).with_name("digests.json")
LENGTHS = {"steps": 3000, "period": 1000, "learning_starts": 200, "target_period": 150, "epsilon_decay": 1000}
IMAGES = {"hidden": (16,), "update_every": 2, "optimiser": "adam", "learning_rate": 5e-4}
EVERYTHING = {
    "double_q": True, "dueling": True, "n_step": 3, "layer_norm": True, "gradient_steps": 2, "hidden": (16, 9),
    "noisy": True, "sampling": "prioritised",
}  # fmt: skip
RECORDED_WITH = {"local-q": ({"hidden": (64,), "bins": 16}, {"trunk_step": 1.0})}
"""what was the default when a method was recorded, on vectors and on images"""
OTHERS = {
    "iq every part": ("CartPole-v0", "iq", EVERYTHING),
    "iq-re every part": (WALK, "iq-re", IMAGES | EVERYTHING),
    "iq measured": ("CartPole-v0", "iq", {"measure_every": 50}),
    "dqn measured on every update": (
        "CartPole-v0", "dqn",
        {"measure_every": 1, "measure_sample": 0, "measure_recent": 500, "steps": 1000, "buffer_size": 1},
    ),
    "stream-q measured": ("CartPole-v0", "stream-q", {"measure_every": 10}),
    "iq-re measured": (WALK, "iq-re", IMAGES | {"measure_every": 20}),
    "iq hosted": ("gymnasium:CartPole-v1", "iq", {"steps": 900, "period": 300}),
    "dqn hosted": ("gymnasium:Acrobot-v1", "dqn", {"steps": 900, "period": 300, "update_every": 2, "buffer_size": 1}),
    "iq running scale": ("Acrobot-v1", "iq", {"context_scaling": "running"}),
    "iq random centroids": ("Acrobot-v1", "iq", {"context_init": "random", "distill_actions": "all"}),
    "iq auto": ("Pendulum-v0", "iq", {"contexts": "auto", "torques": 3}),
    "medqn-u whole": ("MountainCar", "medqn-u", {"sampling": "whole", "buffer_size": 32, "shaping_scale": 2.0}),
    "dqn large": ("CartPole-v1", "dqn", {"buffer_size": 2500, "bootstrap_time_limit": False, "gradient_clip": 1.0}),
    "tcnn joint": ("MountainCar-v0", "tcnn", {"tilings": 4, "tile_bins": 8}),
    "srnn samples": ("CartPole-v0", "srnn", {"srnn_form": "samples", "activation": "relu"}),
    "iq-game-score fixed": ("CartPole-v0", "iq-game-score", {"score_low": 0.0, "score_high": 50.0}),
    "dsom live": ("CartPole-v0", "dsom", {"dsom_target": "live"}),
    "dqn MinAtar": (
        "MinAtar/Breakout-v1", "dqn",
        {"steps": 800, "period": 400, "seeds": 1, "buffer_size": 200, "update_every": 1},
    ),
    "dqn rmsprop, scaled reward": ("CartPole-v0", "dqn", {"optimiser": "rmsprop", "reward_scale": 0.1}),
}  # fmt: skip


def cases() -> dict[str, tuple]:
    """Every method with 1 and with 100 transitions, on vectors and on images; and what else there is."""
    found = {}
    for method, entry in METHODS.items():
        vectors, images = RECORDED_WITH.get(method, ({}, {}))
        for size in (1, 100):
            if entry.fixed.get("buffer_size", size) != size:
                continue
            if entry.observations != "images":
                found[f"{method} N={size}"] = ("CartPole-v0", method, {"buffer_size": size} | vectors)
            if entry.observations != "vectors":
                found[f"{method} images N={size}"] = (WALK, method, IMAGES | {"buffer_size": size} | images)
    return found | OTHERS


def run_of(task: str, method: str, settings: dict):
    fixed = METHODS[method].fixed
    wanted = {"seeds": 2} | LENGTHS | settings
    if method.startswith("rainbow") or method == "stream-c51":
        wanted = {"atoms": 11} | wanted
    return resolve(task, method, **{name: value for name, value in wanted.items() if name not in fixed})


def digests(task: str, method: str, settings: dict) -> dict[str, str]:
    """Of the state at the end and of all metrics, by name."""
    run = run_of(task, method, settings)
    driver = driver_of(run)
    program = compile_driver(driver)
    state, found = program.init(), {}
    for stop in range(run.period, run.steps + 1, run.period):
        state, period = program.advance(state, np.int32(stop))
        rows = period_rows(run, [(stop, jax.device_get(period), driver.agent.report(stop))])
        for name in rows.columns:
            found[f"metrics.{name}"] = digest(found.get(f"metrics.{name}", ""), np.array(rows[name].to_list()))
    parts = parts_of(driver, program.whole(state))
    return found | {name: digest(*jax.tree.leaves(part)) for name, part in parts.items()}


def parts_of(driver, state) -> dict:
    """What a state consists of; the cache of targets is left out."""
    agent, env = state.agent, state.env
    if driver.task.image:
        replay = [agent.replay.frames, agent.replay.row, agent.replay.facts, agent.replay.next_row]
    else:
        replay = [agent.replay.window, agent.replay.rows]
    meter = [state.meter.recent, state.meter.reservoir] if state.meter else []
    return {
        "params": agent.params, "target": agent.target, "optimiser": agent.optimiser, "contexts": agent.contexts,
        "preprocessor": agent.preprocessor, "replay": replay, "sampler": agent.replay.sampler,
        "env": [env.inputs.obs, env.inputs.initial_obs, env.length, env.inputs.score], "meter": meter,
    }  # fmt: skip


def task_digest(name: str) -> str:
    inputs = random_inputs(make_task(resolve(name, "dqn")), 500)
    return digest(inputs.obs, inputs.initial_obs, inputs.score)


def digest(*parts) -> str:
    made = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        made.update(
            part.encode() if isinstance(part, str) else f"{array.shape}{array.dtype}".encode() + array.tobytes()
        )
    return made.hexdigest()[:12]


def processor() -> str:
    """Its kind, as far as rounding depends on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        text = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        text = platform.processor()
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def record() -> dict:
    found = {}
    for name, case in cases().items():
        found[name] = digests(*case)
        print(name, found[name]["params"], flush=True)
    return found | {f"task {name}": {"states": task_digest(name)} for name in TASKS}


def differences(old: dict, new: dict) -> list[str]:
    return [f"{case}: {', '.join(sorted(k for k in old[case] if old[case][k] != new.get(case, {}).get(k)))}"
            for case in old if any(new.get(case, {}).get(k) != v for k, v in old[case].items())]  # fmt: skip


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    path = Path(names[0]) if names else FILE
    found = record()
    if path.exists() and processor() in (stored := json.loads(path.read_text())):
        print(*differences(stored[processor()], found) or ["all the same"], sep="\n")
    else:
        stored = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(stored | {processor(): found}, indent=1) + "\n")
