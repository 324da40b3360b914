"""The devices that runs are compiled for, and what the process does with memory that is free.

They are of the first kind that JAX finds, or of the one that was chosen. What is done about memory is for glibc's
allocator.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable

import jax

from iqrl.errors import BadInput

VARIABLE = "IQRL_DEVICE"
"""tells processes that are started from here"""


COUNT_VARIABLE = "IQRL_DEVICES"
"""how many"""
MOST_DEVICES = 256


def choose_device(name: str) -> None:
    """cpu, gpu or tpu, for all that is compiled from now on, here and in processes started from here."""
    compute_in_the_calling_thread()
    if name == "cpu":  # is everywhere; to look for it would start XLA before the number of its threads is known
        jax.config.update("jax_platforms", "cpu")
    else:
        jax.config.update("jax_default_device", found(name))
    os.environ[VARIABLE] = name


def choose_devices(count: int) -> None:
    """How many devices the seeds of a run are spread over. A CPU is as many as are asked for."""
    if not 1 <= count <= MOST_DEVICES:
        raise BadInput(f"devices is {count}; it must be from 1 to {MOST_DEVICES}.")
    os.environ[COUNT_VARIABLE] = str(count)


def make_devices() -> None:
    """A CPU is several devices from when XLA is used first in a process; later it is too late."""
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", _chosen_count() or 1)


def available_devices() -> list[jax.Device]:
    """Those that were chosen; or the CPU as one device, or all of another kind."""
    kind = platform()
    there = jax.devices(kind)
    count = _chosen_count() or (1 if kind == "cpu" else len(there))
    if count > len(there):
        raise BadInput(f"devices is {count}; JAX finds {len(there)} of kind {kind} here.")
    return there[:count]


def _chosen_count() -> int:
    """0 where none was chosen."""
    text = os.environ.get(COUNT_VARIABLE, "")
    return min(int(text), MOST_DEVICES) if text.isdigit() else 0


def compute_in_the_calling_thread() -> None:
    """Runs wait for every result. In a thread of its own a program could keep no more than 64 MB of working memory
    from one call to the next (see `keep_working_memory`). Too late, and no harm, where JAX is at work already."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def use_chosen_device() -> None:
    """What the process that started this one chose."""
    if name := os.environ.get(VARIABLE):
        choose_device(name)


def platform() -> str:
    """What runs are compiled for: cpu, gpu or tpu."""
    device = jax.config.jax_default_device  # ty: ignore[missing-attribute]
    return device.platform if device else jax.default_backend()


def found(name: str) -> jax.Device:
    try:
        return jax.devices(name)[0]
    except RuntimeError as error:
        there = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise BadInput(
            f"device {name} is not one that JAX finds here, which is {there}; for an NVIDIA GPU install jax[cuda12], "
            f"for a TPU jax[tpu]."
        ) from error


# The options' numbers in malloc.h, and the largest value that they take.
TRIM_THRESHOLD, MMAP_MAX, LARGEST = -1, -4, 2**31 - 1


def keep_working_memory() -> None:
    """Memory that was used once stays with the process, for what is computed next.

    Each call of a compiled program takes its working memory from the allocator, tens of megabytes for a batch of
    images, and frees it. As glibc comes, that goes back to the system every time and is given anew page by page, which
    takes a large part of an update's time.
    """
    if mallopt := _function("mallopt"):
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, LARGEST)


def give_memory_back() -> None:
    """Compiling leaves hundreds of megabytes with the allocator, which a run with a large buffer could use."""
    if malloc_trim := _function("malloc_trim"):
        malloc_trim(0)


def _function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None)
