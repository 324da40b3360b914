"""The local executor: worker processes on this machine, each on a core of its own."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from iqrl.errors import BadInput
from iqrl.studies.directory import Unit
from iqrl.studies.executor import Outcome


class LocalExecutor:
    """Workers are started when there is work for them, and again when one has died."""

    def __init__(self, workers: int | None, logs: Path):
        cores = available_cores()
        if workers is not None and workers < 1:
            raise BadInput(f"workers is {workers}; there must be at least 1.")
        self.size = workers or len(cores)
        # More workers than cores share them all: pinning two to one core would leave others idle.
        self.cores: list[int | None] = list(cores[: self.size]) if self.size <= len(cores) else [None] * self.size
        self.logs, self.workers = logs, dict[int, _Worker]()
        self.selector = selectors.DefaultSelector()

    @property
    def free(self) -> int:
        return self.size - sum(worker.unit is not None for worker in self.workers.values())

    def submit(self, unit: Unit) -> None:
        slot = next(i for i in range(self.size) if i not in self.workers or self.workers[i].unit is None)
        if slot not in self.workers:
            self.workers[slot] = _Worker(self.cores[slot], self.logs / f"worker-{slot}.log")
            self.selector.register(self.workers[slot].answers, selectors.EVENT_READ, slot)
        self.workers[slot].take(unit)

    def wait(self, seconds: float) -> list[Outcome]:
        """What ended within this time."""
        ended = []
        for key, _ in self.selector.select(seconds):
            worker = self.workers[key.data]
            unit, answer = worker.unit, worker.answers.readline()
            error = json.loads(answer).get("error") if answer else self._bury(key.data)
            worker.unit = None
            if unit is not None:
                ended.append(Outcome(unit, error))
        return ended

    def _bury(self, slot: int) -> str:
        worker = self.workers.pop(slot)
        self.selector.unregister(worker.answers)
        code = worker.end()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"its worker process ended {how}; {worker.log} may say why"

    def stop(self) -> list[Outcome]:
        """Ask what is running to save and stop; what was running is returned."""
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
            worker.end()
        self.workers.clear()
        self.selector.close()


class _Worker:
    def __init__(self, core: int | None, log: Path):
        command = [sys.executable, "-m", "iqrl.studies.worker", *([] if core is None else [str(core)])]
        with open(log, "ab") as file:
            # A process group of its own: Ctrl-C reaches the study, which tells its workers.
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True
            )
        self.log = log
        self.unit: Unit | None = None
        self.orders: IO[str] = self.process.stdin  # ty: ignore[invalid-assignment]
        self.answers: IO[str] = self.process.stdout  # ty: ignore[invalid-assignment]

    def take(self, unit: Unit) -> None:
        self.unit = unit
        with contextlib.suppress(BrokenPipeError):  # it died while idle: `wait` sees that
            self.orders.write(json.dumps(unit._asdict()) + "\n")
            self.orders.flush()

    def end(self) -> int:
        """How it ended; nothing of it is left."""
        for stream in (self.orders, self.answers):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return self.process.wait()


def available_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
