"""Saving and loading a state, bit for bit, never half-written, never by pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iqrl.errors import BadInput

FORMAT = "iqrl-checkpoint-1"


def write_whole(path: Path, data: bytes) -> None:
    """The file has its old content or all of the new one, whatever happens in between."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(scratch, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def named_leaves(state: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def save_state(path: Path, state: Any, identity: str) -> None:
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(state).items()}
    write_whole(path, save(arrays, metadata={"format": FORMAT, "run": identity}))


def load_state(path: Path, like: Any, identity: str) -> Any:
    """The state saved by this very run; `like` has the structure, shapes and types expected."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is damaged or not a checkpoint, and was left alone ({error}).") from error
    if metadata.get("format") != FORMAT:
        raise BadInput(f"{path} was not written by this version of iqrl, and was left alone.")
    if metadata.get("run") != identity:
        raise BadInput(f"{path} belongs to another run ({metadata.get('run')}, not {identity}), and was left alone.")
    expected = named_leaves(like)
    for name in expected.keys() | arrays.keys():
        if name not in expected or name not in arrays or not _fits(arrays[name], expected[name]):
            raise BadInput(f"{path} does not fit its run: {name} differs; it was left alone.")
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.asarray(arrays[name]) for name in expected])


def _fits(array: np.ndarray, like: Any) -> bool:
    return array.shape == like.shape and array.dtype == like.dtype
