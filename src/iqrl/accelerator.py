"""The accelerator: kernels of C++ (`core/fused_update.cc`), compiled where they are first asked for.

They are made for the processor they run on and kept in the user's cache directory, like the programs of JAX. Where
there is no compiler, runs are computed without them.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax

from iqrl.files import cache_folder

SOURCE = Path(__file__).parent / "core" / "fused_update.cc"
KERNELS = ("iqrl_values", "iqrl_update")
COMPILERS = ("g++", "clang++")
OPTIONS = (
    "-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fPIC",
    "-shared", "-w",
)  # fmt: skip
SECONDS = 120
"""that a compiler may take"""


def found() -> bool:
    """Whether the kernels are known to JAX; compiles them where that was not done yet."""
    return not missing()


@functools.cache
def missing() -> str:
    """Why there are no kernels, in a few words; empty where there are."""
    if jax.default_backend() != "cpu":
        return "they are for CPUs"
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return f"there is no compiler of C++ here ({' or '.join(COMPILERS)})"
    try:
        library = ctypes.CDLL(str(_compiled(compiler)))
    except subprocess.SubprocessError:
        return f"{compiler} cannot compile them"
    except OSError as error:
        return f"{compiler} or what it made cannot be used ({error})"
    for name in KERNELS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    return ""


def _compiled(compiler: str) -> Path:
    """The library, made by this compiler for this processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=SECONDS).stdout
    target = subprocess.run(
        [compiler, "-march=native", "-Q", "--help=target"], capture_output=True, check=False, timeout=SECONDS
    ).stdout
    parts = (SOURCE.read_bytes(), version, target, jax.__version__.encode(), platform.machine().encode())
    name = hashlib.sha256(b"\0".join((*parts, *map(str.encode, OPTIONS)))).hexdigest()[:16]
    folder = _folder()
    library = folder / f"fused-{name}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = Path(work) / library.name
            include = ("-isystem", jax.ffi.include_dir())
            command = [compiler, *OPTIONS, *include, str(SOURCE), "-o", str(made)]
            subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)
            made.replace(library)  # whole or not at all, also where two processes compile
    return library


def _folder() -> Path:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="iqrl-"))
    return folder
