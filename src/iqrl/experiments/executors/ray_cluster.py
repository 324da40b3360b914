"""The Ray executor: the same work units on a cluster. The study's directory must be one that every node sees."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from iqrl.errors import BadInput, RunFailed, shorten, shown
from iqrl.experiments.executors.base import Outcome
from iqrl.experiments.study.directory import WorkUnit
from iqrl.training.devices import VARIABLE


class RayExecutor:
    """One core per unit; Ray finds the node. The study retries failed units, so Ray does not.

    A cluster that is started here listens to this machine alone, unless RAY_NODE_IP_ADDRESS says otherwise. One that
    asks for no token lets everybody who reaches it run code as its user, so it is joined only if it is `trusted`.
    """

    def __init__(self, address: str | None, workers: int | None, trusted: bool = False):
        refuse_open(address, trusted)
        if address is None and HOST not in os.environ:
            os.environ.setdefault(REACHABLE, "0")  # Ray takes 127.0.0.1 for the machine's address otherwise
        self.ray = ray = _import_ray()
        # Ray may not change what the user's own process logs to, nor wait for metrics nobody reads.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        _refuse_unreachable(address)
        variables = {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}
        # Of a cluster that is there already, only its address is given.
        own = {} if address else {"_node_ip_address": os.environ.get(HOST, LOOPBACK), "include_dashboard": False}
        try:
            ray.init(
                address=address or "local", log_to_driver=False, logging_level=logging.ERROR,
                runtime_env={"env_vars": variables} if variables else None, **own,
            )  # fmt: skip
        except (ConnectionError, ValueError, RuntimeError) as error:
            why = str(error).splitlines()[0].rstrip(".")
            hint = "a cluster that asks for a token, as Ray does by default, needs RAY_AUTH_MODE=token here too"
            raise BadInput(f"cannot join the Ray cluster at {address!r}: {why}; {hint}.") from error
        cores = int(ray.cluster_resources().get("CPU", 0))
        self.size = workers or cores
        if not self.size:
            raise RunFailed("the Ray cluster has no CPU to offer.")
        self.running: dict[Any, WorkUnit] = {}
        self.task = ray.remote(num_cpus=1, max_retries=0)(_remote_work)

    @property
    def free(self) -> int:
        return self.size - len(self.running)

    def submit(self, unit: WorkUnit) -> None:
        self.running[self.task.remote(tuple(unit))] = unit

    def wait(self, seconds: float) -> list[Outcome]:
        done, _ = self.ray.wait(list(self.running), timeout=seconds)
        return [Outcome(unit=self.running.pop(reference), error=self._error(reference)) for reference in done]

    def _error(self, reference: Any) -> str | None:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return f"its Ray worker failed: {str(error).splitlines()[0].rstrip('.')}"

    def stop(self) -> list[Outcome]:
        for reference in self.running:
            self.ray.cancel(reference)
        ended = []
        while self.running:
            ended += self.wait(1.0)
        return ended

    def close(self) -> None:
        self.ray.shutdown()


def _remote_work(unit: tuple) -> str | None:
    """Runs on a node of the cluster."""
    from iqrl.experiments.executors.worker import reply_to

    return reply_to(WorkUnit(*unit)._asdict()).get("error")


LOOPBACK, HOST, MODE = "127.0.0.1", "RAY_NODE_IP_ADDRESS", "RAY_AUTH_MODE"
REACHABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""whether a cluster that is started here can be joined from other machines"""


def refuse_open(address: str | None, trusted: bool) -> None:
    """A cluster elsewhere must ask for a token: with RAY_AUTH_MODE=token Ray takes it from RAY_AUTH_TOKEN, from the
    file RAY_AUTH_TOKEN_PATH or from ~/.ray/auth_token, and sends it with every call. iqrl never reads it."""
    if address is None or trusted or os.environ.get(MODE) == "token":
        return
    raise BadInput(
        f"the cluster at {shown(address)} may be open to everybody, who could then run code here; set {MODE}=token "
        f"with its token, or say --trust {shorten(address, 60)} if its network is your own."
    )


def _refuse_unreachable(address: str | None) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=5).close()
    except OSError as error:
        raise BadInput(f"no Ray cluster at {address!r}: {error.strerror or error}.") from error


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BadInput("Ray is not installed; pip install '.[ray]' in iqrl's source tree brings it.") from None
    return ray
