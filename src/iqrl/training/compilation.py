"""Compiling a driver: ahead of time, timed, and kept between processes."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from iqrl.training.compiled import Driver
from iqrl.training.devices import give_memory_back, keep_working_memory, use_chosen_device
from iqrl.training.hosted import HostedDriver, HostedProgram, Part, Parts
from iqrl.training.states import Period, TrainState


def enable_cache() -> None:
    """Keep compiled programs in the user's cache directory, unless JAX was told otherwise. Best effort."""
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    # Programs are made for one processor: another kind of machine sharing the home gets its own directory.
    folder = root / "iqrl" / f"xla-{platform.machine()}-{_processor_features()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def _processor_features() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        text = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        text = platform.processor()
    return hashlib.sha256(text.encode()).hexdigest()[:8]


COMPILER_OPTIONS: dict[str, str | bool] = {
    # One thread per run: the products are too small to share, and a study runs one run per core. Said here and not in
    # the environment, so that a run has the same bits from the command line, from Python and on any number of cores.
    "xla_cpu_multi_thread_eigen": False,
}


class Program(NamedTuple):
    """A driver ready to run."""

    init: Callable[[], TrainState]
    advance: Callable[..., tuple[TrainState, Period | None]]
    """(state, stop, paused) -> state at `stop` and the period that ends there, or where it was paused, and nothing"""
    seconds: float
    """that compiling took"""
    snapshot: Callable[[], dict[str, np.ndarray]] = dict
    """the state of external environments"""
    restore: Callable[[TrainState, Mapping[str, np.ndarray]], TrainState] = lambda state, snapshot: state
    """the state with the environments where they were"""


def compile_driver(driver: Driver) -> Program:
    use_chosen_device()
    enable_cache()
    compile_kind = compile_hosted if driver.task.external else compile_whole
    return compile_kind(driver)


def compile_whole(driver: Driver) -> Program:
    """One program for a whole period."""
    started = time.perf_counter()
    init = jax.jit(driver.init).lower().compile(COMPILER_OPTIONS)
    like = jax.eval_shape(driver.init)
    step = jax.ShapeDtypeStruct((), jax.numpy.int32)
    advance = jax.jit(driver.advance, donate_argnums=0).lower(like, step).compile(COMPILER_OPTIONS)
    give_memory_back()
    return Program(
        init=init,
        advance=lambda state, stop, paused=None: advance(state, stop),
        seconds=time.perf_counter() - started,
    )


def compile_hosted(driver: Any) -> Program:
    """A program for each part of a step."""
    started = time.perf_counter()
    hosted = HostedProgram(driver, compile_parts(driver))
    give_memory_back()
    keep_working_memory()
    return Program(
        init=hosted.init,
        advance=hosted.advance,
        seconds=time.perf_counter() - started,
        snapshot=hosted.environments.snapshot,
        restore=hosted.restore,
    )


def compile_parts(driver: HostedDriver) -> Parts:
    # The products of images are large enough to be shared by all cores.
    options = COMPILER_OPTIONS | {"xla_cpu_multi_thread_eigen": driver.task.image is not None}

    def compiled(part: Part) -> Callable:
        return jax.jit(part.function, donate_argnums=tuple(range(part.donated))).lower(*part.given).compile(options)

    return Parts(*map(compiled, driver.parts()))
