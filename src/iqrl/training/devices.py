"""The device that runs are compiled for: what JAX takes first, or the one that was asked for."""

from __future__ import annotations

import os

import jax

from iqrl.errors import BadInput

VARIABLE = "IQRL_DEVICE"
"""tells processes that are started from here"""


def choose_device(name: str) -> None:
    """cpu, gpu or tpu, for all that is compiled from now on, here and in processes started from here."""
    compute_in_the_calling_thread()
    jax.config.update("jax_default_device", found(name))
    os.environ[VARIABLE] = name


def compute_in_the_calling_thread() -> None:
    """Runs wait for every result. In a thread of its own a program could keep no more than 64 MB of working memory
    from one call to the next (see `memory`). Too late, and no harm, where JAX is at work already."""
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
