"""The same environments in processes of their own, several to a process.

A process holds its share of the environments (`envs/episodes.py`) and does what it is asked for all of them at once:
one exchange per process and step, however many environments there are. What fails there is told here in the same
sentence. A process ends when its connection closes, so it does not outlive this one, however this one ends.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import signal
import sys
import weakref
from collections.abc import Generator, Mapping, Sequence
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

import cloudpickle
import jax
import numpy as np

from iqrl.envs.base import Task
from iqrl.envs.episodes import Environments, Outcome
from iqrl.errors import BadInput, RunFailed
from iqrl.plugins import in_a_sentence

PATIENCE = 2.0
"""seconds that a process has to end"""


class EnvironmentsInProcesses:
    """What `Environments` does, by processes that each have a share of them."""

    def __init__(self, task: Task, seed: int, seeds: int, n_envs: int, processes: int):
        self.task = task
        count = seeds * n_envs
        bounds = np.linspace(0, count, min(processes, count) + 1).astype(int).tolist()
        self.shares = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
        self._workers: list[tuple[Any, Connection]] = []
        self._end = weakref.finalize(self, end_all, self._workers)
        self._start(packed(task), (seed, seeds, n_envs))

    def _start(self, task: bytes, given: tuple) -> None:
        # A fork of this process would have the locks of JAX's threads without the threads. The server has no threads.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        with without_main():
            for share in self.shares:
                here, there = context.Pipe()
                worker = context.Process(target=serve, args=(there, task, (*given, share)), daemon=True)
                worker.start()
                there.close()
                self._workers.append((worker, here))

    def begin(self) -> np.ndarray:
        return np.concatenate(self._ask_all("begin"))

    def step(self, actions: np.ndarray) -> Outcome:
        outcomes = self._ask_each("step", [(actions[share],) for share in self.shares])
        return jax.tree.map(lambda *parts: np.concatenate(parts), *outcomes)

    @property
    def masks(self) -> Any:
        return np.concatenate(self._ask_all("masks")) if self.task.masked_actions else ()

    def snapshot(self) -> dict[str, np.ndarray]:
        return {name: array for part in self._ask_all("snapshot") for name, array in part.items()}

    def restore(self, saved: Mapping[str, np.ndarray], obs: np.ndarray) -> dict[int, np.ndarray]:
        parts = self._ask_each("restore", [(dict(saved), obs[share]) for share in self.shares])
        numbered = zip(self.shares, parts, strict=True)
        return {share.start + i: first for share, part in numbered for i, first in part.items()}

    def close(self) -> None:
        self._end()

    def _ask_all(self, what: str) -> list[Any]:
        return self._ask_each(what, [()] * len(self.shares))

    def _ask_each(self, what: str, given: Sequence[tuple]) -> list[Any]:
        """The answers; the processes work at the same time. Whatever goes wrong, all of them end."""
        if not self._end.alive:
            raise RunFailed(f"the processes of {self.task.name} have ended.")
        try:
            for (_, connection), each in zip(self._workers, given, strict=True):
                connection.send((what, each))
            answers = [connection.recv() for _, connection in self._workers]
            for answer in answers:
                if isinstance(answer, RunFailed):
                    raise answer
        except (EOFError, OSError) as error:
            self.close()
            raise RunFailed(f"{self.task.name} ended the process that it was in.") from error
        except BaseException:
            self.close()
            raise
        return answers


def make_environments(
    task: Task, seed: int, seeds: int, n_envs: int, processes: int
) -> Environments | EnvironmentsInProcesses:
    """All environments of a run, in this process or in so many others."""
    if not processes:
        return Environments(task, seed, seeds, n_envs)
    return EnvironmentsInProcesses(task, seed, seeds, n_envs, processes)


def packed(task: Task) -> bytes:
    try:
        return cloudpickle.dumps(task)
    except Exception as error:
        raise BadInput(
            f"{task.name} cannot be sent to a process ({in_a_sentence(error)}); leave out env_processes."
        ) from error


@contextlib.contextmanager
def without_main() -> Generator[None]:
    """Processes that are started here do not run the user's script again; what they need of it they are sent."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def end_all(workers: Sequence[tuple[Any, Connection]]) -> None:
    for _, connection in workers:
        connection.close()
    for worker, _ in workers:
        worker.join(PATIENCE)
        if worker.is_alive():
            worker.kill()
            worker.join()


# In the process


def serve(connection: Connection, task: bytes, given: tuple) -> None:
    """Do what is asked until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that trains: it still wants answers
    environments: list[Environments] = []
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(_answer(environments, task, given, *connection.recv()))
    for episode in (episode for each in environments for episode in each.episodes):
        with contextlib.suppress(Exception):
            episode.env.close()


def _answer(environments: list[Environments], task: bytes, given: tuple, what: str, asked: tuple) -> Any:
    try:
        if not environments:
            environments.append(Environments(cloudpickle.loads(task), *given))
        found = getattr(environments[0], what)
        return found(*asked) if callable(found) else found
    except RunFailed as error:
        return RunFailed(str(error))  # without what caused it, which may not be sendable
    except (Exception, SystemExit) as error:
        return RunFailed(f"an environment failed in its process with {in_a_sentence(error)}.")
