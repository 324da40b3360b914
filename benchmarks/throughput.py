"""Environment steps per second on CartPole-v1, one core, an update on every step: iqrl and its peers.

    python benchmarks/throughput.py [--quick] [--core N] [--json FILE]
    python benchmarks/throughput.py --all [--cleanrl DIR]   more of iqrl and more peers, in one table
    python benchmarks/throughput.py --methods          every method of iqrl beside its DQN

Every contestant is a process of its own, compiled and warmed up before anything is timed. Then they
take turns, one at a time, for several rounds. A machine is never quite idle: trust the ratios, which
compare turns of the same round, more than the steps per second.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import os
import platform
import runpy
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TextIO

ENVIRONMENT = "CartPole-v1"
BATCH_SIZE, HIDDEN, GAMMA, LEARNING_RATE = 32, 64, 0.99, 5e-4
TARGET_PERIOD, LEARNING_STARTS = 1000, 1000
EPSILON_START, EPSILON_FINAL, EPSILON_DECAY = 1.0, 0.02, 1000
CHUNK = 5000
"""steps per seed and call of a compiled program: a call costs the host little beside it"""
PYTHON_CHUNK = 500
"""the same where each step is a pass through Python anyway"""


@dataclass(frozen=True)
class Contestant:
    library: str
    method: str
    buffer_size: int
    seeds: int
    how: str = ""
    """of iqrl: `fused`, or `all cores`"""

    @property
    def name(self) -> str:
        return f"{self.library} {self.method}, N={self.buffer_size:,}{', ' * bool(self.how)}{self.how}"


REFERENCE = Contestant("iqrl", "iq", 100, 5)

CONTESTANTS = (
    Contestant("iqrl", "iq", 100, 1),
    REFERENCE,
    Contestant("iqrl", "iq", 100, 20),
    Contestant("iqrl", "iq", 1, 5),
    Contestant("iqrl", "iq", 50_000, 5),
    Contestant("iqrl", "dqn", 100, 5),
    Contestant("stable-baselines3", "dqn", 100, 1),
    Contestant("stable-baselines3", "dqn", 50_000, 1),
    Contestant("rejax", "dqn", 100, 1),
    Contestant("rejax", "dqn", 100, 5),
)

QUICK = tuple(c for c in CONTESTANTS if c.buffer_size == 100 and c.seeds <= 5)

ALL = (
    *(Contestant("iqrl", "iq", size, seeds) for size in (1, 100, 50_000) for seeds in (1, 5, 20)),
    *(Contestant("iqrl", "iq", size, 5, "fused") for size in (1, 100, 50_000)),
    *(Contestant("iqrl", "iq", size, 20, "all cores") for size in (1, 100, 50_000)),
    Contestant("iqrl", "iq", 100, 1, "fused"),
    Contestant("iqrl", "dqn", 100, 5),
    Contestant("iqrl", "dqn", 100, 5, "fused"),
    *(Contestant("rejax", "dqn", 100, seeds) for seeds in (1, 5, 20)),
    *(Contestant(library, "dqn", 100, 1) for library in ("stable-baselines3", "sbx", "cleanrl")),
    *(Contestant(library, "dqn", 50_000, 1) for library in ("stable-baselines3", "sbx", "cleanrl")),
)

INSTALL = {
    "iqrl": "pip install -e .",
    "stable-baselines3": "pip install -r benchmarks/requirements.txt",
    "rejax": "pip install -r benchmarks/requirements.txt",
    "sbx": "pip install -r benchmarks/requirements.txt",
    "cleanrl": "git clone https://github.com/vwxyzjn/cleanrl, and --cleanrl with its directory",
}
MODULES = {
    "iqrl": "iqrl",
    "stable-baselines3": "stable_baselines3",
    "rejax": "rejax",
    "sbx": "sbx",
    "cleanrl": "cleanrl_utils",
}

UNMATCHED = {
    "iqrl": "iq has three heads, finds contexts and distils; the peers' dqn does none of that; "
    "with N=1 a batch is 32 copies of one transition, which iqrl computes once",
    "stable-baselines3": "one seed per process; always computes the gradient's norm (limit set to infinity); "
    "its buffer of 50,000 is not full when timed, ours is",
    "rejax": "squared loss instead of Huber; batches drawn without replacement, at a cost that grows with N; "
    "a time limit counts as termination; its evaluations are switched off; "
    "its one hidden layer is set by replacing the agent, as its own options always make two",
    "sbx": "two hidden layers of 64 units, as it has no other number; its buffer of 50,000 is not full when timed",
    "cleanrl": "its script dqn_jax.py, whose network has 120 and 84 rectified units; squared loss; "
    "a time limit counts as termination; its buffer of 50,000 is not full when timed",
}


# --- what one process does ------------------------------------------------------------------------


class Prepared(NamedTuple):
    """A contestant ready to be timed."""

    compile_seconds: float | None
    warm_up_chunks: int
    run_chunk: Callable[[], int]
    """train a little, wait for the result, say how many environment steps that was over all seeds"""


def prepare_iqrl(contestant: Contestant) -> Prepared:
    import jax
    import numpy as np

    from iqrl.make_run import resolve
    from iqrl.training.compilation import compile_driver
    from iqrl.training.loop import driver_of

    run = resolve(ENVIRONMENT, contestant.method, **iqrl_settings(contestant))
    init, advance, compile_seconds, *_ = compile_driver(driver_of(run))
    state, stop = init(), 0

    def run_chunk() -> int:
        nonlocal state, stop
        stop += CHUNK
        state, period = jax.block_until_ready(advance(state, np.int32(stop)))
        if not bool(period.finite.all()):
            raise RuntimeError(f"{contestant.name}: the parameters are no longer finite")
        return CHUNK * run.seeds

    return Prepared(compile_seconds, math.ceil(contestant.buffer_size / CHUNK) + 1, run_chunk)


def iqrl_settings(contestant: Contestant) -> dict[str, Any]:
    """The common settings, but for those that the method has its own values of."""
    from iqrl.methods.registry import METHODS

    own = {**METHODS[contestant.method].defaults, **METHODS[contestant.method].fixed}
    common = {
        "buffer_size": contestant.buffer_size,
        "seeds": contestant.seeds,
        "period": CHUNK,
        "accelerator": "fused" if contestant.how == "fused" else "none",
        "batch_size": BATCH_SIZE,
        "hidden": (HIDDEN,),
        "activation": "tanh",
        "gamma": GAMMA,
        "learning_rate": LEARNING_RATE,
        "learning_starts": LEARNING_STARTS,
        "update_every": 1,
        "target_period": TARGET_PERIOD,
        "epsilon_start": EPSILON_START,
        "epsilon_final": EPSILON_FINAL,
        "epsilon_decay": EPSILON_DECAY,
    }
    return {name: value for name, value in common.items() if name not in own}


def prepare_stable_baselines3(contestant: Contestant) -> Prepared:
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    first = LEARNING_STARTS + PYTHON_CHUNK
    model = DQN(
        "MlpPolicy",
        ENVIRONMENT,
        learning_rate=LEARNING_RATE,
        buffer_size=contestant.buffer_size,
        learning_starts=LEARNING_STARTS,
        batch_size=BATCH_SIZE,
        gamma=GAMMA,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=TARGET_PERIOD,
        exploration_fraction=EPSILON_DECAY / first,
        exploration_initial_eps=EPSILON_START,
        exploration_final_eps=EPSILON_FINAL,
        max_grad_norm=math.inf,
        policy_kwargs={"net_arch": [HIDDEN], "activation_fn": torch.nn.Tanh},
        seed=0,
        device="cpu",
    )
    return in_python(model, first)


def prepare_sbx(contestant: Contestant) -> Prepared:
    from flax import linen
    from sbx import DQN

    first = LEARNING_STARTS + PYTHON_CHUNK
    model = DQN(
        "MlpPolicy",
        ENVIRONMENT,
        learning_rate=LEARNING_RATE,
        buffer_size=contestant.buffer_size,
        learning_starts=LEARNING_STARTS,
        batch_size=BATCH_SIZE,
        gamma=GAMMA,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=TARGET_PERIOD,
        exploration_fraction=EPSILON_DECAY / first,
        exploration_initial_eps=EPSILON_START,
        exploration_final_eps=EPSILON_FINAL,
        policy_kwargs={"net_arch": [HIDDEN], "activation_fn": linen.tanh},
        seed=0,
    )
    return in_python(model, first)


def in_python(model: Any, first: int) -> Prepared:
    """A model of Stable-Baselines3 or SBX, after its first steps."""
    model.learn(first, log_interval=None)

    def run_chunk() -> int:
        # Continued calls are always past the share of the run in which exploration decays.
        before = model.num_timesteps
        model.learn(PYTHON_CHUNK, log_interval=None, reset_num_timesteps=False)
        return model.num_timesteps - before

    return Prepared(None, 1, run_chunk)


def prepare_cleanrl(contestant: Contestant) -> Prepared:
    """Its script as it is, in a thread. Each step of its environment waits until a turn asks for it."""
    import gymnasium
    import torch

    torch.set_num_threads(1)
    asked, made, make = threading.Semaphore(0), threading.Semaphore(0), gymnasium.make

    class Gate(gymnasium.Wrapper):
        def step(self, action: Any) -> Any:
            asked.acquire()
            obs, reward, terminated, truncated, info = self.env.step(action)
            made.release()
            # Newer versions of Gymnasium have no `final_observation`, which the script reads at a time limit.
            return obs, reward, terminated or truncated, False, info

    gymnasium.make = lambda *given, **named: Gate(make(*given, **named))
    spec = importlib.util.find_spec("cleanrl_utils")
    script, steps = Path(spec.submodule_search_locations[0]).parent / "cleanrl" / "dqn_jax.py", 10**9
    flags = {
        "env-id": ENVIRONMENT,
        "total-timesteps": steps,
        "learning-rate": LEARNING_RATE,
        "buffer-size": contestant.buffer_size,
        "gamma": GAMMA,
        "target-network-frequency": TARGET_PERIOD,
        "batch-size": BATCH_SIZE,
        "start-e": EPSILON_START,
        "end-e": EPSILON_FINAL,
        "exploration-fraction": EPSILON_DECAY / steps,
        "learning-starts": LEARNING_STARTS,
        "train-frequency": 1,
    }
    sys.argv = [script.name, *(f"--{name}={value}" for name, value in flags.items())]
    os.chdir(tempfile.mkdtemp())  # it writes to runs/
    thread = threading.Thread(target=runpy.run_path, args=(str(script),), kwargs={"run_name": "__main__"}, daemon=True)
    thread.start()

    def run_chunk() -> int:
        asked.release(PYTHON_CHUNK)
        for _ in range(PYTHON_CHUNK):
            while not made.acquire(timeout=1):
                if not thread.is_alive():
                    raise RuntimeError("the script ended")
        return PYTHON_CHUNK

    return Prepared(None, LEARNING_STARTS // PYTHON_CHUNK + 2, run_chunk)


def prepare_rejax(contestant: Contestant) -> Prepared:
    import jax

    algorithm = rejax_algorithm(contestant)
    keys = jax.random.split(jax.random.key(0), contestant.seeds)
    started = time.perf_counter()
    # One seed is not batched: under `vmap` its conditionals would run both branches.
    over_seeds = jax.vmap if contestant.seeds > 1 else lambda function: function
    keys = keys if contestant.seeds > 1 else keys[0]
    init = jax.jit(over_seeds(algorithm.init_state)).lower(keys).compile()
    state = init(keys)
    train = jax.jit(over_seeds(lambda state: algorithm.train(train_state=state)[0]), donate_argnums=0)
    advance = train.lower(state).compile()
    compile_seconds = time.perf_counter() - started

    def run_chunk() -> int:
        nonlocal state
        state = jax.block_until_ready(advance(state))
        return CHUNK * contestant.seeds

    return Prepared(compile_seconds, 1, run_chunk)


def rejax_algorithm(contestant: Contestant) -> Any:
    """rejax's DQN, as near to ours as it goes; `total_timesteps` is the length of one call."""
    import jax.numpy as jnp
    from flax import linen
    from rejax import get_algo
    from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy

    algorithm = get_algo("dqn").create(
        env=ENVIRONMENT,
        total_timesteps=CHUNK,
        eval_freq=CHUNK,
        skip_initial_evaluation=True,
        num_envs=1,
        num_epochs=1,
        buffer_size=contestant.buffer_size,
        fill_buffer=LEARNING_STARTS,
        batch_size=BATCH_SIZE,
        gamma=GAMMA,
        learning_rate=LEARNING_RATE,
        ddqn=False,
        target_update_freq=TARGET_PERIOD,
        polyak=0.0,
        eps_start=EPSILON_START,
        eps_end=EPSILON_FINAL,
        exploration_fraction=EPSILON_DECAY / CHUNK,
    )
    network = EpsilonGreedyPolicy(DiscreteQNetwork)
    return algorithm.replace(
        agent=network(hidden_layer_sizes=(HIDDEN,), activation=linen.tanh, action_dim=algorithm.action_dim),
        eval_callback=lambda algorithm, state, key: jnp.zeros(()),
    )


PREPARE = {
    "iqrl": prepare_iqrl,
    "stable-baselines3": prepare_stable_baselines3,
    "sbx": prepare_sbx,
    "cleanrl": prepare_cleanrl,
    "rejax": prepare_rejax,
}


def work(contestant: Contestant, core: int | None) -> None:
    """A contestant's process: prepare, then take a turn of as many seconds as each line of the input says."""
    if core is not None:
        # Before any library is imported: they size their pools of threads when they are.
        os.sched_setaffinity(0, {core})
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        prepared = PREPARE[contestant.library](contestant)
        for _ in range(prepared.warm_up_chunks):
            prepared.run_chunk()
        say(answer, {"compile_seconds": prepared.compile_seconds})
        for line in sys.stdin:
            say(answer, take_turn(prepared.run_chunk, float(line)))


def take_turn(run_chunk: Callable[[], int], at_least_seconds: float) -> dict[str, float]:
    steps, seconds, started = 0, 0.0, time.perf_counter()
    while seconds < at_least_seconds:
        steps += run_chunk()
        seconds = time.perf_counter() - started
    return {"steps": steps, "seconds": seconds}


def say(stream: TextIO, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=stream, flush=True)


# --- what the parent does -------------------------------------------------------------------------


class Failed(Exception):
    """A contestant's process ended early; the text is the last line it wrote."""


@dataclass(frozen=True)
class Worker:
    """A contestant's process, seen from the parent."""

    process: subprocess.Popen[str]
    complaints: TextIO
    """what it writes beside its answers"""

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.complaints.seek(0)
        lines = self.complaints.read().strip().splitlines() or ["it said nothing"]
        raise Failed(lines[-1])

    def turn(self, seconds: float) -> float:
        """Steps per second over a turn."""
        print(seconds, file=self.process.stdin, flush=True)
        answer = self.answer()
        return answer["steps"] / answer["seconds"]


@contextlib.contextmanager
def running(contestant: Contestant, core: int | None, cache: Path) -> Iterator[Worker]:
    """The contestant's process; it ends when its input does."""
    command = [sys.executable, __file__, "--worker", json.dumps(asdict(contestant))]
    if core is not None and contestant.how != "all cores":
        command += ["--core", str(core)]
    environment = worker_environment(cache)
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=complaints, text=True, env=environment) as process,
    ):
        yield Worker(process, complaints)


def worker_environment(cache: Path) -> dict[str, str]:
    """One thread everywhere, the processor even where there is a GPU, and compiled programs kept in `cache` alone."""
    return os.environ | {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        # The threshold that iqrl sets where it chooses the directory itself.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3",
    }


@dataclass
class Measurement:
    contestant: Contestant
    compile_seconds: float | None
    rounds: list[float] = field(default_factory=list)
    """steps per second over all seeds, one per round"""

    @property
    def steps_per_second(self) -> float:
        return statistics.median(self.rounds)

    def times_slower(self, reference: Measurement) -> float:
        """Median over rounds of the reference's speed over this one's in the same round."""
        return statistics.median(ours / its for ours, its in zip(reference.rounds, self.rounds, strict=True))


def installed(contestants: tuple[Contestant, ...]) -> list[Contestant]:
    """Those whose library is there; a line about each library that is not."""
    libraries = dict.fromkeys(contestant.library for contestant in contestants)
    missing = [library for library in libraries if importlib.util.find_spec(MODULES[library]) is None]
    if REFERENCE.library in missing:
        sys.exit(f"{REFERENCE.library} is not installed; install it with: {INSTALL[REFERENCE.library]}")
    for library in missing:
        print(f"skipped {library}: not installed; install it with: {INSTALL[library]}", flush=True)
    return [contestant for contestant in contestants if contestant.library not in missing]


def wait_until_warm(worker: Worker, contestant: Contestant) -> Measurement | None:
    """None, and a line that says why, for a peer that does not run: not every pair of versions works together."""
    try:
        return Measurement(contestant, worker.answer()["compile_seconds"])
    except Failed as failure:
        if contestant.library == REFERENCE.library:
            raise
        advice = f"versions known to work: {INSTALL[contestant.library]}"
        print(f"skipped {contestant.name}, {contestant.seeds} seed(s): {failure}; {advice}", flush=True)
        return None


def measure(
    contestants: list[Contestant], core: int | None, rounds: int, seconds: float, caches: Path
) -> list[Measurement]:
    """Prepare the contestants one after the other, then let them take turns."""
    taking_part: list[tuple[Worker, Measurement]] = []
    with contextlib.ExitStack() as processes:
        for contestant in contestants:
            note(f"preparing {contestant.name}, {contestant.seeds} seed(s)")
            worker = processes.enter_context(running(contestant, core, cache_of(contestant, caches)))
            measurement = wait_until_warm(worker, contestant)
            if measurement is not None:
                taking_part.append((worker, measurement))
        for number in range(rounds):
            note(f"round {number + 1} of {rounds}")
            for worker, measurement in taking_part:
                measurement.rounds.append(worker.turn(seconds))
    return [measurement for _, measurement in taking_part]


def cache_of(contestant: Contestant, caches: Path) -> Path:
    """A directory of its own, empty at first: nothing is found that another contestant compiled."""
    return (
        caches
        / f"{contestant.library}-{contestant.method}-{contestant.buffer_size}-{contestant.seeds}-{contestant.how}"
    )


def warm_compile_seconds(core: int | None, caches: Path) -> float:
    """What a second process of the reference pays, which finds what the first one compiled."""
    note("starting the reference again, its programs cached")
    with running(REFERENCE, core, cache_of(REFERENCE, caches)) as worker:
        return worker.answer()["compile_seconds"]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- what is reported -----------------------------------------------------------------------------


def print_table(measurements: list[Measurement], reference: Contestant, rounds: int) -> None:
    fastest = next(m for m in measurements if m.contestant == reference)
    print(f"\n{'':36}{'seeds':>6}{'steps/s':>11}{'lowest':>10}{'highest':>10}{'compile s':>11}{'ratio':>8}")
    for m in measurements:
        compiling = "-" if m.compile_seconds is None else f"{m.compile_seconds:.1f}"
        print(
            f"{m.contestant.name:36}{m.contestant.seeds:>6}{m.steps_per_second:>11,.0f}{min(m.rounds):>10,.0f}"
            f"{max(m.rounds):>10,.0f}{compiling:>11}{m.times_slower(fastest):>8.2f}"
        )
    print(f"\nsteps/s: environment steps over all seeds, median of {rounds} rounds, compilation excluded.")
    print(f"ratio: how many times faster {reference.name}, {reference.seeds} seeds, is; median over rounds.")
    print("compile s: with an empty cache.", flush=True)


def print_unmatched(measurements: list[Measurement]) -> None:
    print("\nNot the same everywhere:")
    for library in dict.fromkeys(m.contestant.library for m in measurements):
        print(f"- {library}: {UNMATCHED[library]}.")


def surroundings(core: int | None) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in ("iqrl", "jax", "torch", "gymnasium", "stable-baselines3", "sbx-rl", "rejax", "gymnax"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {"processor": processor_name(), "core": "not pinned" if core is None else str(core)} | versions


def processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write_json(
    path: Path, measurements: list[Measurement], warm_seconds: float, where: dict[str, str], seconds: float
) -> None:
    reference = next(m for m in measurements if m.contestant == REFERENCE)
    results = [
        asdict(m) | {"steps_per_second": m.steps_per_second, "ratio": m.times_slower(reference)} for m in measurements
    ]
    content = {
        "surroundings": where,
        "seconds_per_turn": seconds,
        "reference": asdict(REFERENCE),
        "reference_compile_seconds_warm": warm_seconds,
        "results": results,
    }
    path.write_text(json.dumps(content, indent=2) + "\n")


def compare_methods(core: int | None, rounds: int, seconds: float) -> None:
    """Every method beside DQN with the same buffer."""
    from iqrl.methods.registry import METHODS

    for size in (100, 1):
        methods = [name for name, method in METHODS.items() if method.fixed.get("buffer_size", size) == size]
        contestants = [Contestant("iqrl", method, size, 5) for method in methods]
        with tempfile.TemporaryDirectory() as caches:
            print_table(measure(contestants, core, rounds, seconds, Path(caches)), contestants[0], rounds)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer contestants, shorter turns")
    parser.add_argument("--all", action="store_true", help="all that iqrl can do, and all peers")
    parser.add_argument("--cleanrl", type=Path, metavar="DIR", help="a checkout of CleanRL, which cannot be installed")
    parser.add_argument("--methods", action="store_true", help="every method of iqrl beside its DQN, no peers")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (default: 7; quick: 3)")
    parser.add_argument("--seconds", type=float, help="least length of a turn (default: 2; quick: 1)")
    parser.add_argument("--core", type=int, help="the core to run on (default: the last one available)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers of every round there, too")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def last_core() -> int | None:
    """None where processes cannot be pinned (macOS, Windows)."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker is not None:
        work(Contestant(**json.loads(arguments.worker)), arguments.core)
        return
    core = last_core() if arguments.core is None else arguments.core
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    seconds = arguments.seconds or (1.0 if arguments.quick else 2.0)
    where = surroundings(core)
    print(", ".join(f"{name} {value}" for name, value in where.items()), flush=True)
    if arguments.methods:
        compare_methods(core, rounds, seconds)
        return
    if arguments.cleanrl is not None:
        sys.path.append(str(arguments.cleanrl))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(arguments.cleanrl))))
    contestants = installed(ALL if arguments.all else QUICK if arguments.quick else CONTESTANTS)
    with tempfile.TemporaryDirectory() as caches:
        try:
            measurements = measure(contestants, core, rounds, seconds, Path(caches))
            warm_seconds = warm_compile_seconds(core, Path(caches))
        except Failed as failure:
            sys.exit(f"a contestant failed: {failure}")
    print_table(measurements, REFERENCE, rounds)
    print(f"A second process of {REFERENCE.name}, {REFERENCE.seeds} seeds, cache warm: {warm_seconds:.2f} s.")
    print_unmatched(measurements)
    if arguments.json is not None:
        write_json(arguments.json, measurements, warm_seconds, where, seconds)


if __name__ == "__main__":
    main()
