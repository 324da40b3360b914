"""Processes that are killed, stopped, short of disk or two at a time; what they leave goes on to the same bits.

Short in the tests, long in `scripts/soak`.
"""

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import lives
from safetensors.numpy import load_file

from iqrl.experiments.integrity import check
from iqrl.files import SCRATCH

FILES = ("metrics.parquet", "checkpoint.safetensors")
KINDS = tuple(lives.KINDS)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["lives"])


class Killed:
    """A kind of run, trained undisturbed once: what all others are compared with."""

    def __init__(self, kind: str, folder: Path, timed: bool = True):
        self.kind, self.whole = kind, folder / kind
        assert self.finish(self.whole) == 0, f"{kind} does not train"
        if not timed:
            return
        again = self.start(folder / f"{kind}-again")  # compiled before; how long it saves
        wait_for_file(again, folder / f"{kind}-again" / FILES[0], None)
        started = time.monotonic()
        assert ended(again) == 0
        self.seconds = time.monotonic() - started
        self.assert_same(folder / f"{kind}-again")

    def start(self, path: Path, limit: int | None = None, clock: float = 0.0) -> BaseProcess:
        process = PROCESSES.Process(target=lives.train, args=(self.kind, str(path), limit, clock), daemon=True)
        process.start()
        return process

    def finish(self, path: Path) -> int:
        return ended(self.start(path))

    def assert_same(self, path: Path) -> None:
        for name in FILES:
            assert content(path / name) == content(self.whole / name), f"{self.kind}: {name} differs"
        assert {finding.state for finding in check(path)} == {"intact"}
        assert not left_over(path), f"{self.kind}: {left_over(path)} is left over"


def content(file: Path) -> object:
    """The bytes; of a checkpoint those of its arrays, since safetensors writes its metadata in any order."""
    if file.suffix != ".safetensors":
        return file.read_bytes()
    arrays = load_file(file)
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def left_over(path: Path) -> list[str]:
    return [str(file) for file in path.rglob("*") if SCRATCH.fullmatch(file.name)]


def ended(process: BaseProcess) -> int:
    """Its exit code; minus the signal that killed it."""
    process.join(120)
    code = process.exitcode
    process.close()
    assert code is not None
    return code


def stamp(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None


def wait_for_file(process: BaseProcess, file: Path, before: int | None) -> None:
    """Until the process has written the file, or is over."""
    while process.is_alive():
        with contextlib.suppress(FileNotFoundError):
            if stamp(file) != before:
                return
        time.sleep(0.002)


# Faults


def kill_run(killed: Killed, path: Path, chance: random.Random) -> bool:
    """Kill a process at a random moment, now and then one that was stopped and continued; whether it still ran.

    The moment is one in which it saves; half of a minute would go into killing processes that load their libraries.
    """
    before = stamp(path / FILES[0])
    process = killed.start(path, clock=chance.choice((0.0, 0.0, 3600.0, 1e7)))
    if chance.random() < 0.9:
        wait_for_file(process, path / FILES[0], before)
    time.sleep(chance.uniform(0.0, 0.2 * killed.seconds))
    if chance.random() < 0.2 and process.is_alive():
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.02)
    process.kill()
    return ended(process) == -signal.SIGKILL


def kill_runs(killed: Killed, folder: Path, kills: int, seed: int) -> int:
    """So many kills, a few to each run; every run is finished and compared. How many runs."""
    chance, done, runs = random.Random(f"{seed}/{killed.kind}"), 0, 0
    while done < kills:
        path = folder / f"{killed.kind}-{runs}"
        for _ in range(min(chance.randrange(1, 16), kills - done)):
            done += kill_run(killed, path, chance)
            if chance.random() < 0.3:
                age_files(path, chance)
        assert killed.finish(path) == 0, f"{killed.kind}: what was killed does not go on"
        killed.assert_same(path)
        shutil.rmtree(path)
        runs += 1
    return runs


def age_files(path: Path, chance: random.Random) -> None:
    """Times of files from before and after now, as when the clock was set."""
    if path.is_dir():
        for file in path.iterdir():
            moment = time.time() + chance.uniform(-1e8, 1e8)
            os.utime(file, (moment, moment))


def fill_disks(killed: Killed, folder: Path, count: int, seed: int) -> Counter:
    """No file may become larger than some size: exit codes. What was saved before is there, and goes on."""
    chance, codes = random.Random(f"{seed}/full/{killed.kind}"), Counter()
    largest = max((killed.whole / name).stat().st_size for name in FILES)
    for number in range(count):
        path = folder / f"{killed.kind}-full-{number}"
        process = killed.start(path, limit=chance.randrange(1, largest + 100))
        codes[code := ended(process)] += 1
        assert code in (0, 1, 2), f"{killed.kind}: exit code {code}"
        assert not left_over(path), f"{killed.kind}: {left_over(path)} is left over"
        if (path / "run.json").exists():
            assert {finding.state for finding in check(path)} == {"intact"}
        assert killed.finish(path) == 0
        killed.assert_same(path)
        shutil.rmtree(path)
    return codes


def train_twice_at_once(killed: Killed, path: Path) -> list[int]:
    """Two processes on one directory: one trains, the other is told."""
    codes = sorted(map(ended, [killed.start(path), killed.start(path)]))
    assert codes in ([0, 2], [0, 0]), codes  # the second may come when the first is done
    killed.assert_same(path)
    shutil.rmtree(path)
    return codes
