"""Compiling a driver: ahead of time, timed, and kept between processes."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from iqrl.files import cache_folder
from iqrl.training.compiled import Driver
from iqrl.training.cores import GroupProgram, Groups, InGroups, OnDevices, count_threads, equal_groups, groups_of
from iqrl.training.devices import available_devices, give_memory_back, keep_working_memory, use_chosen_device
from iqrl.training.hosted import HostedDriver, compile_part
from iqrl.training.packing import Packing
from iqrl.training.rounds import hosted_program
from iqrl.training.states import Period, TrainState


def enable_cache() -> None:
    """Keep compiled programs in the user's cache directory, unless JAX was told otherwise. Best effort."""
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    # Programs are made for one processor: another kind of machine sharing the home gets its own directory.
    folder = cache_folder() / f"xla-{platform.machine()}-{_processor_features()}"
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
    # In the order that saves memory, few parts of a step are ready at a time, and XLA seldom hands one to another
    # thread (see `cores.compute_in_threads`). The bits are the same.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


MOST_COPIES = 4
"""of the program of a group: each takes half a second to trace and to read from the cache"""


OF_INIT: dict[str, Any] = {"xla_backend_optimization_level": 1}
"""The first state is computed once: it is optimised less, which takes half the time. The bits are the same."""


class Program(NamedTuple):
    """A driver ready to run."""

    init: Callable[[], Any]
    advance: Callable[..., tuple[Any, Period | None]]
    """(state, stop, paused) -> state at `stop` and the period that ends there, or where it was paused, and nothing"""
    seconds: float
    """that compiling took"""
    snapshot: Callable[[], dict[str, np.ndarray]] = dict
    """the state of external environments"""
    restore: Callable[[TrainState, Mapping[str, np.ndarray]], Any] = lambda state, snapshot: state
    """the state with the environments where they were"""
    step: Callable[[Any], int] = lambda state: int(state.step)
    whole: Callable[[Any], TrainState] = lambda state: state
    """the state of all seeds, from what `init`, `restore` and `advance` give"""
    close: Callable[[], None] = lambda: None
    """end the processes of environments"""


def compile_driver(driver: Driver) -> Program:
    use_chosen_device()
    enable_cache()
    if driver.task.external:
        return compile_hosted(driver)
    if len(devices := available_devices()) > 1 and driver.run.seeds > 1:
        return compile_on_devices(driver, devices)
    return compile_in_groups(driver, groups_of(driver.run.seeds, one_by_one=driver.task.image is not None))


def compile_together(driver: Driver) -> Program:
    """All seeds in one program."""
    seeds = driver.run.seeds
    return compile_in_groups(driver, Groups(size=seeds, places=(np.arange(seeds),), counts=(seeds,)))


def compile_in_groups(driver: Driver, groups: Groups) -> Program:
    """A program for a whole period of some of the seeds; each core has its own seeds."""
    started = time.perf_counter()
    init = compile_init(driver)
    one = replace(driver, run=replace(driver.run, seeds=groups.size))
    copies = [compile_advance(one) for _ in range(count_copies(groups))]
    give_memory_back()
    if len(groups.places) == 1:
        advance = lambda state, stop, paused=None: copies[0](state, stop)
        return Program(init=init, advance=advance, seconds=time.perf_counter() - started)
    shared = InGroups(groups, copies)
    return Program(
        init=lambda: shared.split(init()),
        advance=lambda state, stop, paused=None: shared.advance(state, stop),
        seconds=time.perf_counter() - started,
        restore=lambda state, snapshot: shared.split(state),
        step=lambda parts: int(parts.states[0].step),
        whole=shared.join,
    )


def compile_on_devices(driver: Driver, devices: Sequence[jax.Device]) -> Program:
    """A program for a whole period; each device has its own seeds."""
    started = time.perf_counter()
    shared = OnDevices(equal_groups(driver.run.seeds, len(devices)), devices)
    one = replace(driver, run=replace(driver.run, seeds=shared.groups.size))
    init = compile_init(driver)
    like, step = jax.eval_shape(lambda: shared.padded(driver.init())), jax.ShapeDtypeStruct((), jax.numpy.int32)
    program = shared.program(one.advance).lower(like, step).compile(COMPILER_OPTIONS)
    give_memory_back()

    def advance(state: TrainState, stop: Any, paused: Any = None) -> tuple[TrainState, Period]:
        state, period = program(state, stop)
        return state, shared.counted(period)

    return Program(
        init=lambda: shared.split(init()),
        advance=advance,
        seconds=time.perf_counter() - started,
        restore=lambda state, snapshot: shared.split(state),
        whole=shared.join,
    )


def compile_init(driver: Driver) -> Any:
    return jax.jit(driver.init).lower().compile(COMPILER_OPTIONS | OF_INIT)


def compile_advance(driver: Driver) -> GroupProgram:
    def advance(state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        return driver.advance(state, stop)

    like, step = jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), jax.numpy.int32)
    # A function of each call's own, under one name: JAX would give the same program again, and not a copy of it.
    return jax.jit(advance, donate_argnums=0).lower(like, step).compile(COMPILER_OPTIONS)


def count_copies(groups: Groups) -> int:
    """Of the program of a group. All but the first are read from the cache; without one, threads share the first."""
    return min(count_threads(groups), MOST_COPIES) if jax.config.values.get("jax_compilation_cache_dir") else 1


def compile_hosted(driver: Any) -> Program:
    """A program for each part of a step."""
    started = time.perf_counter()
    hosted = hosted_program(driver, compile_parts(driver))
    give_memory_back()
    keep_working_memory()
    return Program(
        init=hosted.init,
        advance=hosted.advance,
        seconds=time.perf_counter() - started,
        snapshot=hosted.environments.snapshot,
        restore=hosted.restore,
        step=lambda held: int(hosted.whole(held).step),
        whole=hosted.whole,
        close=hosted.environments.close,
    )


def compile_parts(driver: HostedDriver) -> Any:
    images = driver.task.image is not None
    # The products of images are large enough to be shared by all cores. The other analysis finds that their weights,
    # tens of megabytes, need not be copied before a step of the optimiser; the bits are the same.
    options = COMPILER_OPTIONS | {
        "xla_cpu_multi_thread_eigen": images,
        "xla_cpu_copy_insertion_use_region_analysis": images,
    }
    parts, states = driver.parts(), Packing(jax.eval_shape(driver.init))
    return type(parts)(*[compile_part(driver, part, states, options) for part in parts])
