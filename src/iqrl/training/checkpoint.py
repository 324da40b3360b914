"""Saving and loading a state, bit for bit, never half-written, never by pickle."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iqrl.errors import BadInput

FORMAT = "iqrl-checkpoint-2"
ENVIRONMENTS = "environments/"
"""before the names of what belongs to external environments"""
PIECES, SHAPE = "/pieces", "/shape"
"""after the name of an array that is compressed"""
LARGE = 1 << 22
"""bytes, from which images are compressed"""
PIECE = 1 << 24
"""bytes that are compressed at once"""


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


def save_state(path: Path, state: Any, identity: str, environments: Mapping[str, np.ndarray] | None = None) -> None:
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(state).items()}
    arrays |= {ENVIRONMENTS + name: np.asarray(array, order="C") for name, array in (environments or {}).items()}
    packed = [part for name, array in arrays.items() for part in compressed(name, array)]
    write_whole(path, save(dict(packed), metadata={"format": FORMAT, "run": identity}))


def load_state(path: Path, like: Any, identity: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The state saved by this very run, and the snapshot of its environments; `like` has the expected structure, shapes
    and types."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = dict(decompressed(file))
    except (SafetensorError, OSError, zlib.error) as error:
        raise BadInput(f"{path} is damaged or not a checkpoint, and was left alone ({error}).") from error
    if metadata.get("format") != FORMAT:
        raise BadInput(f"{path} was not written by this version of iqrl, and was left alone.")
    if metadata.get("run") != identity:
        raise BadInput(f"{path} belongs to another run ({metadata.get('run')}, not {identity}), and was left alone.")
    beside = [name for name in arrays if name.startswith(ENVIRONMENTS)]
    environments = {name.removeprefix(ENVIRONMENTS): arrays.pop(name) for name in beside}
    expected = named_leaves(like)
    for name in expected.keys() | arrays.keys():
        if name not in expected or name not in arrays or not _fits(arrays[name], expected[name]):
            raise BadInput(f"{path} does not fit its run: {name} differs; it was left alone.")
    # One array after the other, each given up when it is copied: a buffer of images is not there a third time.
    leaves = [jax.numpy.asarray(arrays.pop(name)) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), environments


def _fits(array: np.ndarray, like: Any) -> bool:
    return array.shape == like.shape and array.dtype == like.dtype


def compressed(name: str, array: np.ndarray) -> Generator[tuple[str, np.ndarray]]:
    """The array as it is; one of many bytes, which are images, in compressed pieces."""
    if array.dtype != np.uint8 or array.nbytes < LARGE:
        yield name, array
        return
    flat = array.reshape(-1)
    pieces = [flat[start : start + PIECE] for start in range(0, flat.size, PIECE)]
    with ThreadPoolExecutor() as pool:  # zlib leaves other threads alone while it works
        for number, piece in enumerate(pool.map(lambda piece: zlib.compress(piece, 1), pieces)):
            yield f"{name}{PIECES}/{number}", np.frombuffer(piece, np.uint8)
    yield name + SHAPE, np.asarray(array.shape, np.int64)


def decompressed(file: Any) -> Generator[tuple[str, np.ndarray]]:
    names = list(file.keys())
    for name in names:
        if name.endswith(SHAPE):
            whole = name.removesuffix(SHAPE)
            yield whole, _put_together(file, whole, file.get_tensor(name))
        elif PIECES not in name:
            yield name, file.get_tensor(name)


def _put_together(file: Any, name: str, shape: np.ndarray) -> np.ndarray:
    array = np.empty(shape, np.uint8)
    flat = array.reshape(-1)

    def fill(number: int) -> None:
        piece = zlib.decompress(file.get_tensor(f"{name}{PIECES}/{number}"))
        flat[number * PIECE : number * PIECE + len(piece)] = np.frombuffer(piece, np.uint8)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(-(-flat.size // PIECE))))
    return array
