"""One curve out of TensorBoard logs, without TensorBoard.

A log is a list of records: the length in eight bytes, four of checksum, the record, four of checksum. A record is
a protocol buffer: the time, the iteration (left out if 0), and the numbers logged then, each under its tag.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

TAG = b"Train/AverageReturns"
ITERATION = re.compile(rb"\x09.{8}\x10([\x80-\xff]*[\x00-\x7f])", re.DOTALL)
NUMBER = re.compile(b"\x0a" + bytes([len(TAG)]) + TAG + b"\x15(.{4})", re.DOTALL)


def logged_curve(logs: Iterable[Path]) -> np.ndarray:
    """[iterations]: the mean returns that a run logged, single precision.

    A run that was resumed has a log for each part; an iteration that was done again counts as done last.
    """
    curve: dict[int, float] = {}
    for path in sorted(logs):
        curve |= dict(_numbers(path.read_bytes()))
    return np.array([curve[iteration] for iteration in sorted(curve)])


def _numbers(log: bytes) -> Iterator[tuple[int, float]]:
    for record in _records(log):
        if number := NUMBER.search(record):
            iteration = ITERATION.match(record)
            yield (_whole(iteration[1]) if iteration else 0), struct.unpack("<f", number[1])[0]


def _records(log: bytes) -> Iterator[bytes]:
    start = 0
    while start + 12 <= len(log):
        end = start + 12 + struct.unpack_from("<Q", log, start)[0]
        yield log[start + 12 : end]
        start = end + 4


def _whole(digits: bytes) -> int:
    """Seven bits a byte, the lowest first."""
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(digits))
