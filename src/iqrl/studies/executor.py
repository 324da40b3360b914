"""What runs work units: a few slots, units go in, outcomes come out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from iqrl.studies.directory import Unit


class Outcome(NamedTuple):
    unit: Unit
    error: str | None
    """what went wrong, in a sentence; None if nothing did"""


class Executor(Protocol):
    size: int
    """units worked on at a time"""

    @property
    def free(self) -> int:
        """Units that can be submitted now."""
        ...

    def submit(self, unit: Unit) -> None: ...

    def wait(self, seconds: float) -> list[Outcome]:
        """What ended within this time."""
        ...

    def stop(self) -> list[Outcome]:
        """Ask what is running to save and stop, and wait for it."""
        ...

    def close(self) -> None: ...
