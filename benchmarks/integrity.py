"""What checksums cost: their share of a run's time, and how fast a large checkpoint is verified.

    python benchmarks/integrity.py
    python benchmarks/integrity.py --frames 1000000 --folder /dev/shm

A checkpoint of a million frames of Atari holds 7 GB in memory, and its file what zlib leaves of that.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

import iqrl
from iqrl import files
from iqrl.training import checkpoint, loop

RUNS = {
    "CartPole-v0 iq, N=100, 5 seeds": ("CartPole-v0", "iq", {"steps": 200_000, "buffer_size": 100}),
    "CartPole-v0 dqn, N=50,000, 5 seeds": ("CartPole-v0", "dqn", {"steps": 200_000, "buffer_size": 50_000}),
}
FRAME = 84 * 84


class Stopwatch:
    """Adds up the seconds that calls of a function take."""

    def __init__(self, function):
        self.function, self.seconds, self.calls = function, 0.0, 0

    def __call__(self, *given, **named):
        started = time.perf_counter()
        try:
            return self.function(*given, **named)
        finally:
            self.seconds, self.calls = self.seconds + time.perf_counter() - started, self.calls + 1


def share_of_run(name: str, folder: Path, checkpoint_seconds: float) -> None:
    """Seconds in which digests are computed, of all seconds of a run with its saving."""
    task, method, settings = RUNS[name]
    digest = Stopwatch(files._digest)
    with mock.patch.object(files, "_digest", digest), mock.patch.object(loop, "CHECKPOINT_SECONDS", checkpoint_seconds):
        started = time.perf_counter()
        result = iqrl.train(task, method, out=folder / name.replace(" ", "-").replace("/", "-"), **settings)
        seconds = time.perf_counter() - started - result.timing["compile_seconds"]
    share = digest.seconds / seconds
    print(f"{name:40} {seconds:8.1f} s {digest.calls:5} digests {1000 * digest.seconds:8.1f} ms {share:8.3%}")


def verify_frames(frames: int, folder: Path) -> None:
    """Write a checkpoint of so many frames, about half of whose bytes zlib removes, and verify it."""
    block = np.random.default_rng(0).integers(0, 16, (500, FRAME), np.uint8)
    array = np.empty((frames, FRAME), np.uint8)
    for start in range(0, frames, len(block)):
        array[start : start + len(block)] = block[: frames - start]
    path = folder / "checkpoint.safetensors"
    started = time.perf_counter()
    checkpoint.save_state(path, {"frames": array}, "benchmark")
    saved = time.perf_counter() - started
    size = path.stat().st_size
    times = []
    for _ in range(5):
        started = time.perf_counter()
        assert checkpoint.is_intact(path, "benchmark")
        times.append(time.perf_counter() - started)
    best = min(times)
    print(
        f"{frames:,} frames, {array.nbytes / 1e9:.2f} GB in memory, {size / 1e9:.2f} GB in the file: saved in "
        f"{saved:.1f} s, verified in {best:.2f} s: {size / best / 1e9:.2f} GB/s of the file, "
        f"{array.nbytes / best / 1e9:.2f} GB/s of the frames"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--checkpoint-seconds", type=float, default=1.0, help="between two checkpoints; 20 in a run")
    parser.add_argument("--folder", help="where to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in RUNS:
            share_of_run(name, Path(folder), options.checkpoint_seconds)
        verify_frames(options.frames, Path(folder))


if __name__ == "__main__":
    main()
