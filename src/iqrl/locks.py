"""Locks that end with their process, on every operating system.

On Linux and macOS a directory itself is locked (flock). Windows has locks of files alone: there a file in the directory
is locked. Nor can Windows remove a file that a process has open, so a file that is being written needs no lock there.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
LOCK_FILE = ".iqrl-lock"
"""in a locked directory, where directories cannot be locked themselves"""


def flag(name: str) -> int:
    """A flag of `os.open`; nothing where the system has none of that name."""
    return getattr(os, name, 0)


CLOSED_ON_EXEC, NO_LINKS, NO_WAITING = flag("O_CLOEXEC"), flag("O_NOFOLLOW"), flag("O_NONBLOCK")
DIRECTORY = flag("O_DIRECTORY")
"""of systems on which a directory can be opened"""
MOVES_OPEN_FILES = os.name != "nt"
"""whether a file can be renamed and removed while it is open"""
BINARY = flag("O_BINARY")
"""Windows would change the ends of lines"""


@contextlib.contextmanager
def locked(directory: Path) -> Generator[None]:
    """Raises BlockingIOError where another process has the lock, and OSError where there can be none."""
    if fcntl is not None:
        descriptor = os.open(directory, os.O_RDONLY | CLOSED_ON_EXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(descriptor)
        return
    file = directory / LOCK_FILE
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | BINARY)
    try:
        _lock_first_byte(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        raise
    try:
        yield
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):  # another process looks at it
            file.unlink()


def _lock_first_byte(descriptor: int) -> None:
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(*error.args) from error


def is_locked(directory: Path) -> bool:
    """Whether a process has the lock."""
    if fcntl is None:
        if not (directory / LOCK_FILE).exists():
            return False
        try:
            with locked(directory):
                return False
        except BlockingIOError:
            return True
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def hold_open(descriptor: int) -> None:
    """Lock what is being written, so that nobody sweeps it away; some network file systems have no locks."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def refuse_held(descriptor: int) -> None:
    """Raises OSError for what a process is writing."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
