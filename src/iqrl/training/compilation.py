"""Compiling a driver: ahead of time, timed, and kept between processes."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from pathlib import Path
from typing import Any

import jax

from iqrl.training.compiled import Driver


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


def compile_driver(driver: Driver) -> tuple[Any, Any, float]:
    """`init` and `advance` compiled, and the seconds that took."""
    enable_cache()
    started = time.perf_counter()
    init = jax.jit(driver.init).lower().compile(COMPILER_OPTIONS)
    like = jax.eval_shape(driver.init)
    step = jax.ShapeDtypeStruct((), jax.numpy.int32)
    advance = jax.jit(driver.advance, donate_argnums=0).lower(like, step).compile(COMPILER_OPTIONS)
    seconds = time.perf_counter() - started
    return init, advance, seconds
