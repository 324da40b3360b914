"""The local executor: worker processes on this machine, each on a core of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from iqrl.errors import BadInput
from iqrl.experiments.executors.base import Outcome
from iqrl.experiments.study.directory import WorkUnit
from iqrl.files import cache_folder
from iqrl.locks import locked


class LocalExecutor:
    """Workers are started when there is work for them, and again when one has died."""

    def __init__(self, workers: int | None, logs: Path):
        cores = available_cores()
        if workers is not None and workers < 1:
            raise BadInput(f"workers is {workers}; there must be at least 1.")
        self.size = workers or len(cores)
        self.held = contextlib.ExitStack()
        # More workers than cores share them all: pinning two to one core would leave others idle.
        fits = self.size <= len(cores)
        self.cores: list[int | None] = list(_take(cores, self.size, self.held)) if fits else [None] * self.size
        self.logs, self.workers = logs, dict[int, _Worker]()
        self.replies: queue.Queue[tuple[int, str]] = queue.Queue()
        """slots, and a line of each: what its worker answered, or nothing when it ended"""

    @property
    def free(self) -> int:
        return self.size - sum(worker.unit is not None for worker in self.workers.values())

    def submit(self, unit: WorkUnit) -> None:
        slot = next(i for i in range(self.size) if i not in self.workers or self.workers[i].unit is None)
        if slot not in self.workers:
            self.workers[slot] = _Worker(self.cores[slot], self.logs / f"worker-{slot}.log")
            threading.Thread(target=self._listen, args=(slot, self.workers[slot].replies), daemon=True).start()
        self.workers[slot].send(unit)

    def wait(self, seconds: float) -> list[Outcome]:
        """The units that ended within this time."""
        ended = []
        with contextlib.suppress(queue.Empty):
            ended += self._end(*self.replies.get(timeout=max(seconds, 0)))
            while True:
                ended += self._end(*self.replies.get_nowait())
        return ended

    def _listen(self, slot: int, replies: IO[str]) -> None:
        """Pass on what a worker says. A thread for each: Windows cannot wait for several pipes."""
        with contextlib.suppress(ValueError):  # closed while reading
            for line in replies:
                self.replies.put((slot, line))
        self.replies.put((slot, ""))

    def _end(self, slot: int, reply: str) -> list[Outcome]:
        if slot not in self.workers:
            return []
        worker = self.workers[slot]
        unit = worker.unit
        error = json.loads(reply).get("error") if reply else self._remove_dead(slot)
        worker.unit = None
        return [] if unit is None else [Outcome(unit=unit, error=error)]

    def _remove_dead(self, slot: int) -> str:
        """How the process ended, in a sentence."""
        worker = self.workers.pop(slot)
        code = worker.close()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"its worker process ended {how}; {worker.log} may say why"

    def stop(self) -> list[Outcome]:
        """Make the running units save and stop, and wait for them."""
        for worker in self.workers.values():
            if worker.unit is not None:
                with contextlib.suppress(ProcessLookupError):
                    worker.process.send_signal(signal.SIGTERM)
        ended = []
        while any(worker.unit is not None for worker in self.workers.values()):
            ended += self.wait(1.0)
        return ended

    def close(self) -> None:
        for worker in self.workers.values():
            worker.process.kill()
            worker.close()
        self.workers.clear()
        self.held.close()


class _Worker:
    def __init__(self, core: int | None, log: Path):
        command = [sys.executable, "-m", "iqrl.experiments.executors.worker", *([] if core is None else [str(core)])]
        with open(log, "ab") as file:
            # A process group of its own: Ctrl-C reaches the study, which stops its workers.
            group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # of Windows
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True,
                creationflags=group,
            )  # fmt: skip
        self.log = log
        self.unit: WorkUnit | None = None
        self.requests: IO[str] = self.process.stdin  # ty: ignore[invalid-assignment]
        self.replies: IO[str] = self.process.stdout  # ty: ignore[invalid-assignment]

    def send(self, unit: WorkUnit) -> None:
        self.unit = unit
        with contextlib.suppress(BrokenPipeError):  # it died while idle: `wait` sees that
            self.requests.write(json.dumps(unit._asdict()) + "\n")
            self.requests.flush()

    def close(self) -> int:
        """Wait for the process to end; returns its exit code."""
        for stream in (self.requests, self.replies):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return self.process.wait()


def _take(cores: list[int], count: int, held: contextlib.ExitStack) -> list[int]:
    """The first cores that no other study has taken, then the others; each is held until the stack is closed."""
    free = []
    for core in cores:
        with contextlib.suppress(OSError):  # it is taken, or the cache cannot be written
            folder = cache_folder() / "cores" / str(core)
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(folder))
            free.append(core)
        if len(free) == count:
            break
    return (free + [core for core in cores if core not in free])[:count]


def available_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
