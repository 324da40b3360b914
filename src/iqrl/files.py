"""Files: written whole or not at all, sealed with a checksum of their content, read with care.

Every file of a run, a study and a report is written and read here.

A sealed file holds two marks: `iqrl-sealed-KIND`, and `iqrl-seal:` with the SHA-256 of all its other bytes. JSON has
them as its first and last entry, Parquet and safetensors in their metadata. A file with neither mark is one that an
earlier version wrote. A file in which one mark is missing or the digest differs is damaged, and is refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import mmap
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from iqrl.errors import BadInput
from iqrl.locks import BINARY, CLOSED_ON_EXEC, DIRECTORY, MOVES_OPEN_FILES, NO_LINKS, NO_WAITING, hold_open, refuse_held

if TYPE_CHECKING:
    import polars as pl

Buffer = bytes | memoryview


class Damaged(BadInput):
    """A file does not hold what was written to it."""


def cache_folder() -> Path:
    """Where programs and locks of this user are kept between processes; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "iqrl"


# Writing

SCRATCH = re.compile(r"\.iqrl-[0-9a-f]{16}\.tmp")
"""names of files that are being written; nothing else has such a name"""
STREAMS = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))
"""folders whose entries are open files and devices"""


def write_whole(path: Path, *parts: Buffer, keep: Path | None = None) -> None:
    """The file has its old content or all of the new one, whatever happens in between.

    `keep`: the old content gets this name. A stream or a device is written to and never replaced.
    """
    if _is_stream(path):
        _write_into(path, parts)
        return
    with _scratch(path.parent, directory=False) as (scratch, descriptor):
        for part in parts:
            _write_all(descriptor.number, part)
        os.fsync(descriptor.number)
        if not MOVES_OPEN_FILES:
            descriptor.close()
        if keep is not None and path.exists():
            os.replace(path, keep)
        os.replace(scratch, path)
    _sync_directory(path.parent)


def _is_stream(path: Path) -> bool:
    """Whether to write into what is there; raises OSError for what can be neither written into nor replaced."""
    if path.parent in STREAMS and path.exists():
        return True
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link; name the file itself")
    return not stat.S_ISREG(mode)


def _write_into(path: Path, parts: tuple[Buffer, ...]) -> None:
    # Without O_NONBLOCK a named pipe that nobody reads would wait for ever.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | NO_WAITING | CLOSED_ON_EXEC | BINARY)
    try:
        if NO_WAITING:
            os.set_blocking(descriptor, True)
        for part in parts:
            _write_all(descriptor, part)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: Buffer) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class _Descriptor:
    """An open file or directory; none where directories cannot be opened."""

    def __init__(self, number: int = -1):
        self.number = number

    def close(self) -> None:
        if self.number >= 0:
            os.close(self.number)
        self.number = -1


@contextlib.contextmanager
def _scratch(folder: Path, directory: bool) -> Generator[tuple[Path, _Descriptor]]:
    """A new file or directory beside the place it is meant for, locked while this process lives."""
    while True:
        path = folder / f".iqrl-{secrets.token_hex(8)}.tmp"
        descriptor = _new_directory(path) if directory else _new_file(path)
        if descriptor.number >= 0:
            hold_open(descriptor.number)
        if os.path.exists(path):  # else a sweep came between
            break
        descriptor.close()
    try:
        yield path, descriptor
    finally:
        if not MOVES_OPEN_FILES:
            descriptor.close()
        _remove(path)
        descriptor.close()


def _new_file(path: Path) -> _Descriptor:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS | CLOSED_ON_EXEC | BINARY
    return _Descriptor(os.open(path, flags, 0o666))


def _new_directory(path: Path) -> _Descriptor:
    path.mkdir()
    if not DIRECTORY:
        return _Descriptor()
    return _Descriptor(os.open(path, os.O_RDONLY | DIRECTORY | NO_LINKS | CLOSED_ON_EXEC))


@contextlib.contextmanager
def new_directory(path: Path) -> Generator[Path]:
    """A directory to fill, which has its name `path` only when it is complete."""
    with _scratch(path.parent, directory=True) as (scratch, _):
        yield scratch
        scratch.rename(path)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    if not DIRECTORY:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system can
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the half-written files of killed processes, and nothing else. A process that writes holds a lock."""
    with contextlib.suppress(OSError):
        for path in [entry for entry in folder.iterdir() if SCRATCH.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _sweep_one(path)


def _sweep_one(path: Path) -> None:
    """Where directories cannot be locked they are left, and a file that is open cannot be removed."""
    if not DIRECTORY:
        path.unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | NO_LINKS | NO_WAITING | CLOSED_ON_EXEC)
    try:
        refuse_held(descriptor)
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a directory
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def writing(path: Path | str) -> Generator[None]:
    """An error of the operating system becomes a sentence."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {path}: {why(error)}.") from error


def why(error: OSError) -> str:
    return (error.strerror or str(error)).rstrip(".")


def make_directories(*paths: Path) -> None:
    for path in paths:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write to {path}: {why(error)}.") from error


# Reading

LARGEST_TEXT, LARGEST_TABLE = 1 << 26, 1 << 31
"""bytes"""


@contextlib.contextmanager
def opened(path: Path) -> Generator[int]:
    """A descriptor of a regular file. A named pipe or a device is refused instead of waited for."""
    descriptor = os.open(path, os.O_RDONLY | NO_WAITING | CLOSED_ON_EXEC | BINARY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInput(f"{path} is not a regular file.")
        yield descriptor
    finally:
        os.close(descriptor)


def read_bytes(path: Path, largest: int = LARGEST_TEXT) -> bytes:
    """Raises OSError, and BadInput for what is too large or not a regular file."""
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > largest:
            raise BadInput(f"{path} has {size:,} bytes; it may have {largest:,}.")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(largest + 1)


def read_text(path: Path) -> str:
    """The text of a file that a user named; raises BadInput."""
    try:
        return read_bytes(path).decode()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {why(error)}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"cannot read {path}: it is not text in UTF-8.") from error


@contextlib.contextmanager
def mapped(path: Path) -> Generator[tuple[memoryview, int]]:
    """The bytes of a large file without a copy of them, and its descriptor."""
    with opened(path) as descriptor:
        if not os.fstat(descriptor).st_size:
            raise Damaged(f"{path} is empty, and was left alone.")
        # Not closed: an error may still hold a part of it. It ends with the last of them.
        yield memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)), descriptor


# Seals

DIGITS = 64
UNSEALED = "iqrl-seal:" + "0" * DIGITS
"""stands where the digest will be"""
SEAL = re.compile(rb"iqrl-seal:([0-9a-f]{64})")
CLAIM = re.compile(rb"iqrl-sealed-(\w+)")
WINDOW = 1 << 20
"""bytes at each end of a file in which the marks are"""
PIECE = 1 << 24
"""bytes that one thread hashes at a time"""


def claim(kind: str) -> str:
    return f"iqrl-sealed-{kind}"


def seal(data: Buffer) -> tuple[Buffer, ...]:
    """The parts to write, the digest in its place."""
    place = _find(SEAL, memoryview(data))[0]
    view = memoryview(data)
    return view[:place], _digest(view, place).encode(), view[place + DIGITS :]


def is_sealed(path: Path, data: Buffer, kind: str) -> bool:
    """Whether the content is what was written; False for a file of an earlier version. Raises Damaged."""
    view = memoryview(data)
    places, claims = _find(SEAL, view), _find(CLAIM, view)
    if not places and not claims:
        return False
    if len(places) != 1 or len(claims) != 1:
        raise Damaged(f"{path} is damaged, and was left alone: its checksum is incomplete.")
    if bytes(view[places[0] : places[0] + DIGITS]).decode() != _digest(view, places[0]):
        raise Damaged(f"{path} is damaged or was edited, and was left alone: its checksum differs.")
    found = CLAIM.match(bytes(view[claims[0] - len(claim("")) :][:100]))
    if found is None or found[1].decode() != kind:
        raise Damaged(f"{path} is not a file of the kind {kind}, and was left alone.")
    return True


def _find(mark: re.Pattern[bytes], view: memoryview) -> list[int]:
    """Where the values of a mark begin."""
    if len(view) <= 2 * WINDOW:
        return [found.start(1) for found in mark.finditer(view)]
    last = len(view) - WINDOW
    first = [found.start(1) for found in mark.finditer(view[:WINDOW])]
    return first + [last + found.start(1) for found in mark.finditer(view[last:])]


def _digest(view: memoryview, place: int) -> str:
    """Of all bytes but the digest's own: the digest of the digests of pieces, which several threads compute."""
    starts = [*range(0, place, PIECE), *range(place + DIGITS, len(view), PIECE)]
    ends = [min(start + PIECE, place if start < place else len(view)) for start in starts]
    pieces = [view[start:end] for start, end in zip(starts, ends, strict=True)]
    leaf = lambda piece: hashlib.sha256(piece).digest()
    if len(view) <= PIECE:
        digests = list(map(leaf, pieces))
    else:
        from concurrent.futures import ThreadPoolExecutor  # a tenth of the time of iqrl --help

        with ThreadPoolExecutor() as pool:  # hashing leaves other threads alone
            digests = list(pool.map(leaf, pieces))
    return hashlib.sha256(b"".join(digests)).hexdigest()


# JSON

MARKS = ("format", "checksum")


def write_json(path: Path, kind: str, content: Mapping[str, Any], indent: int | None = 2) -> None:
    marked = {"format": claim(kind), **content, "checksum": UNSEALED}
    write_whole(path, *seal((json.dumps(marked, indent=indent) + "\n").encode()))


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """The content of a sealed file, or of one that an earlier version wrote. Raises OSError and Damaged."""
    data = read_bytes(path)
    is_sealed(path, data, kind)
    return {name: value for name, value in parse_json(path, data).items() if name not in MARKS}


def parse_json(path: Path, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is not valid JSON, and was left alone ({_first_line(error)}).") from error
    if not isinstance(content, dict):
        raise Damaged(f"{path} must hold names and values, and was left alone.")
    return content


# Tables


class Sealed(NamedTuple):
    table: pl.DataFrame
    names: dict[str, str]
    """what the table belongs to; empty for a table of an earlier version"""
    data: bytes


def table_bytes(kind: str, table: pl.DataFrame, names: Mapping[str, str], **options: Any) -> tuple[Buffer, ...]:
    """A table as sealed Parquet, in parts."""
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={"format": claim(kind), **names, "checksum": UNSEALED}, **options)
    return seal(buffer.getbuffer())


def read_table(path: Path, kind: str) -> Sealed:
    """Raises OSError and Damaged."""
    import polars as pl

    data = read_bytes(path, LARGEST_TABLE)
    sealed = is_sealed(path, data, kind)
    # What is not sealed may be anything, and polars tells of a panic in lines of its own.
    with contextlib.nullcontext() if sealed else _silent_stderr():
        try:
            _refuse_bomb(path, data)
            table = pl.read_parquet(io.BytesIO(data))
            names = pl.read_parquet_metadata(io.BytesIO(data)) if sealed else {}
        except BadInput:
            raise
        except (Exception, pl.exceptions.PanicException) as error:
            raise Damaged(f"{path} is not valid Parquet, and was left alone ({_first_line(error)}).") from error
    return Sealed(table, {name: names[name] for name in names if name not in (*MARKS, "ARROW:schema")}, data)


def _refuse_bomb(path: Path, data: bytes) -> None:
    """A table that says it has more rows than its bytes can hold."""
    import polars as pl

    rows = pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item()
    if rows > 1000 * len(data):
        raise Damaged(f"{path} is damaged, and was left alone: it claims {rows:,} rows.")


@contextlib.contextmanager
def _silent_stderr() -> Generator[None]:
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")[:200]
