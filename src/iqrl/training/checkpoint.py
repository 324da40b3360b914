"""Saving and loading a state, bit for bit, sealed, never by pickle."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iqrl.errors import BadInput
from iqrl.files import UNSEALED, Damaged, claim, is_sealed, mapped, seal, why, write_whole

FORMAT = "iqrl-checkpoint-2"
ENVIRONMENTS = "environments/"
"""before the names of what belongs to external environments"""
PIECES, SHAPE = "/pieces", "/shape"
"""after the name of an array that is compressed"""
LARGE = 1 << 22
"""bytes, from which images are compressed"""
PIECE = 1 << 24
"""bytes that are compressed at once"""


def named_leaves(state: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def save_state(
    path: Path,
    state: Any,
    identity: str,
    environments: Mapping[str, np.ndarray] | None = None,
    keep: Path | None = None,
) -> None:
    """`keep`: the name that the checkpoint before this one gets."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(state).items()}
    arrays |= {ENVIRONMENTS + name: np.asarray(array, order="C") for name, array in (environments or {}).items()}
    packed = [part for name, array in arrays.items() for part in compressed(name, array)]
    marks = {"sealed": claim("checkpoint"), "format": FORMAT, "run": identity, "checksum": UNSEALED}
    write_whole(path, *seal(save(dict(packed), metadata=marks)), keep=keep)


def load_state(path: Path, like: Any, identity: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The state saved by this very run, and the snapshot of its environments; `like` has the expected structure, shapes
    and types. Raises Damaged for a file that is not what was written, FileNotFoundError where there is none."""
    expected = named_leaves(like)
    try:
        with mapped(path) as (view, descriptor):
            is_sealed(path, view, "checkpoint")
            with safe_open(path, framework="numpy") as file:
                if not os.path.samestat(os.stat(path), os.fstat(descriptor)):
                    raise BadInput(f"{path} was written by another process in this moment; try again.")
                check_owner(path, file.metadata() or {}, identity)
                arrays = dict(read_arrays(path, file, expected))
                environments = dict(read_environments(path, file))
    except (BadInput, FileNotFoundError):
        raise
    except (SafetensorError, OSError, zlib.error, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise Damaged(f"{path} is damaged or not a checkpoint, and was left alone ({reason}).") from error
    # One array after the other, each given up when it is copied: a buffer of images is not there a third time.
    leaves = [jax.numpy.asarray(arrays.pop(name)) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), environments


def step_in(path: Path) -> int | None:
    """The step at which a checkpoint was saved; None where there is none that can be read."""
    try:
        with safe_open(path, framework="numpy") as file:
            return int(file.get_tensor(".step"))
    except (SafetensorError, OSError, TypeError, ValueError):
        return None


def check_owner(path: Path, metadata: Mapping[str, str], identity: str) -> None:
    if metadata.get("format") != FORMAT:
        raise BadInput(f"{path} was not written by this version of iqrl, and was left alone.")
    if metadata.get("run") != identity:
        raise BadInput(f"{path} belongs to another run ({metadata.get('run')}, not {identity}), and was left alone.")


def is_intact(path: Path, identity: str) -> bool:
    """Whether a checkpoint of this run is sealed; False for one of an earlier version. Raises BadInput."""
    try:
        with mapped(path) as (view, _):
            sealed = is_sealed(path, view, "checkpoint")
            with safe_open(path, framework="numpy") as file:
                check_owner(path, file.metadata() or {}, identity)
            return sealed
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError) as error:
        raise Damaged(f"{path} is damaged or not a checkpoint ({error}).") from error


def read_arrays(
    path: Path, file: Any, expected: Mapping[str, Any], others: Iterable[str] = ()
) -> Generator[tuple[str, np.ndarray]]:
    """The arrays of the state; sizes are compared before anything is made of the size that the file claims.

    `others`: names of arrays that are not the state's.
    """
    names = set(file.keys())
    for name, like in expected.items():
        if name in names:
            array = file.get_tensor(name)
        elif name + SHAPE in names and _same_shape(file.get_tensor(name + SHAPE), like.shape):
            array = _put_together(path, file, name, like.shape)
        else:
            raise _misfit(path, name)
        if array.shape != like.shape or array.dtype != like.dtype:
            raise _misfit(path, name)
        yield name, array
    for name in sorted(names):
        whole = name.partition(PIECES)[0].removesuffix(SHAPE)
        if whole not in (*expected, *others) and not whole.startswith(ENVIRONMENTS):
            raise _misfit(path, whole)


def _same_shape(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    return array.tolist() == list(shape)


def _misfit(path: Path, name: str) -> BadInput:
    return BadInput(f"{path} does not fit its run: {name} differs; it was left alone.")


def read_environments(path: Path, file: Any) -> Generator[tuple[str, np.ndarray]]:
    names = [name for name in file.keys() if name.startswith(ENVIRONMENTS)]  # noqa: SIM118
    for name in names:
        if name.endswith(SHAPE):
            whole = name.removesuffix(SHAPE)
            pieces = sum(other.startswith(whole + PIECES) for other in names)
            shape = tuple(file.get_tensor(name).tolist())
            if not 0 <= math.prod(shape) <= pieces * PIECE:
                raise _misfit(path, whole)
            yield whole.removeprefix(ENVIRONMENTS), _put_together(path, file, whole, shape)
        elif PIECES not in name:
            yield name.removeprefix(ENVIRONMENTS), file.get_tensor(name)


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


def _put_together(path: Path, file: Any, name: str, shape: Iterable[int]) -> np.ndarray:
    array = np.empty(tuple(shape), np.uint8)
    flat = array.reshape(-1)

    def fill(number: int) -> None:
        place = flat[number * PIECE : (number + 1) * PIECE]
        unpacker = zlib.decompressobj()
        piece = unpacker.decompress(file.get_tensor(f"{name}{PIECES}/{number}"), place.size + 1)
        if len(piece) != place.size or not unpacker.eof:
            raise _misfit(path, name)
        place[:] = np.frombuffer(piece, np.uint8)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(-(-flat.size // PIECE))))
    return array
