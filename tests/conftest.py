"""Shared by all tests."""

import dataclasses
import os
import tempfile

USER = os.getuid() if hasattr(os, "getuid") else "user"

os.environ.setdefault("MPLBACKEND", "agg")
# Programs compiled by one test serve the others, and the subprocesses that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", tempfile.gettempdir() + f"/iqrl-tests-{USER}")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
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

import jax
import pytest

from iqrl.envs.registry import make_task
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training import loop
from iqrl.training.compilation import COMPILER_OPTIONS
from iqrl.training.compiled import Driver


@pytest.fixture
def optimised(monkeypatch):
    """For programs that run long enough to be worth it."""
    monkeypatch.setitem(COMPILER_OPTIONS, "xla_backend_optimization_level", 1)


@pytest.fixture(scope="module")
def compiled_once():
    """A run is compiled once in a module: its program does not depend on how far it goes."""
    compile_driver, programs = loop.compile_driver, {}

    def compile_once(driver):
        key = dataclasses.replace(driver.run, steps=10**6)
        programs[key] = programs.get(key) or compile_driver(driver)
        return programs[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "compile_driver", compile_once)
        yield


@pytest.fixture
def small_run():
    """A run small enough to train in a second; keywords override."""

    def make(task="CartPole-v0", method="iq", **settings):
        defaults = {"steps": 2000, "period": 500, "seeds": 2, "learning_starts": 200, "target_period": 100}
        return resolve(task, method, **(defaults | settings))

    return make


@pytest.fixture
def final_state():
    """The state after driving a run to its end in one call."""

    def drive(run, stops=None):
        task = make_task(run)
        driver = Driver(run, task, build_agent(run, task))
        state, advance = jax.jit(driver.init)(), jax.jit(driver.advance)
        for stop in stops or [run.steps]:
            state, period = advance(state, stop)
        return state, period

    return drive
