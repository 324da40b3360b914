"""Shared by all tests."""

import dataclasses
import os
import tempfile

USER = os.getuid() if hasattr(os, "getuid") else "user"

os.environ.setdefault("MPLBACKEND", "agg")
# Programs compiled by one test serve the others, and the subprocesses that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", tempfile.gettempdir() + f"/iqrl-tests-{USER}")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# There are as many processes as cores; threads of scikit-learn and NumPy would only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# The key by which an installation knows its own directories is not the user's here.
os.environ.setdefault("XDG_STATE_HOME", tempfile.gettempdir() + f"/iqrl-tests-{USER}/state")
# Most of the time here is compilation; programs that run for a second need not be optimised, and XLA's newer emitters
# take twice as long as those before them.
XLA_FLAGS = ("backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1")
os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{flag}" for flag in XLA_FLAGS))
# Two workers share two cores.
os.environ.setdefault("IQRL_CORES", "1")
# Nor need they say of every operation which lines it comes from.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import functools
import gc

import jax
import pytest

from iqrl import plugins
from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training import compilation
from iqrl.training.compilation import COMPILER_OPTIONS
from iqrl.training.compiled import Driver

STEPS = 2**20 * 3 * 5 * 7

# Tracing makes many objects and few cycles: Python's default looks through all of them hundreds of times.
gc.set_threshold(50_000, 20, 100)


class SameProgram:
    """A driver that equals those which are compiled to the same program: of the same run, with the same code."""

    def __init__(self, driver):
        self.driver = driver
        run = dataclasses.replace(driver.run, steps=STEPS)  # a program does not depend on how far the run goes
        named = [name for name in (run.task, run.method) if name.partition(":")[2].isidentifier()]
        self.own = own = [plugins.load_attribute(name) for name in named]  # kept: nothing else gets its address
        options = tuple(sorted(COMPILER_OPTIONS.items()))
        self.key = (type(driver), run, type(driver.agent), type(driver.meter), *map(id, own), options)

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """A run that is trained twice in one process, as a resumed one is, is compiled once: most of its time is that."""

    def once(compile_kind):
        kept = functools.lru_cache(maxsize=16)(lambda same: compile_kind(same.driver))
        return lambda driver: kept(SameProgram(driver))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "OF_INIT", {})  # here nothing is optimised at all
        for name in ("compile_advance", "compile_parts"):
            patch.setattr(compilation, name, once(getattr(compilation, name)))
        yield


@pytest.fixture
def optimised(monkeypatch):
    """For programs that run long enough to be worth it."""
    monkeypatch.setitem(COMPILER_OPTIONS, "xla_backend_optimization_level", 1)


@pytest.fixture
def small_run():
    """A run small enough to train in a second; keywords override."""

    def make(task="CartPole-v0", method="iq", **settings):
        defaults = {"steps": 2000, "period": 500, "seeds": 2, "learning_starts": 200, "target_period": 100}
        return resolve(task, method, **(defaults | settings))

    return make


@functools.lru_cache(maxsize=8)
def program_of(run):
    task = make_task(run)
    driver = Driver(run, task, build_agent(run, task))
    return jax.jit(driver.init), jax.jit(driver.advance)


@pytest.fixture
def final_state():
    """The state after driving a run to its end in one call."""

    def drive(run, stops=None):
        init, advance = program_of(run)
        state = init()
        for stop in stops or [run.steps]:
            state, period = advance(state, stop)
        return state, period

    return drive
