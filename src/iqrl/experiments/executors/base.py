"""An executor runs work units: a few at a time, units go in, outcomes come out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from iqrl.experiments.study.directory import WorkUnit


class Outcome(NamedTuple):
    unit: WorkUnit
    error: str | None
    """in a sentence; None if there was none"""


class Executor(Protocol):
    size: int
    """units worked on at a time"""

    @property
    def free(self) -> int:
        """Units that can be submitted now."""
        ...

    def submit(self, unit: WorkUnit) -> None: ...

    def wait(self, seconds: float) -> list[Outcome]:
        """The units that ended within this time."""
        ...

    def stop(self) -> list[Outcome]:
        """Make the running units save and stop, and wait for them."""
        ...

    def close(self) -> None: ...
