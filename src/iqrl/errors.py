"""The two ways a command can fail, and the words it fails with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """The request cannot be carried out as written (exit code 2)."""


class PackagesMissing(BadInput):
    """What was asked for needs an extra that is not installed."""

    def __init__(self, message: str, extra: str):
        super().__init__(message)
        self.extra = extra


class RunFailed(RuntimeError):
    """The request was sound but went wrong while running (exit code 1)."""


def unknown(kind: str, name: str, valid: Iterable[str], also: Iterable[str] = ()) -> BadInput:
    """A sentence naming the nearest valid name, or all of them, but for those of `also`, when none is near."""
    names = sorted(valid)
    by_lowercase = {candidate.lower(): candidate for candidate in (*also, *names)}
    near = difflib.get_close_matches(name.lower(), by_lowercase, n=1, cutoff=0.5)
    hint = f"did you mean {by_lowercase[near[0]]}?" if near else f"choose from {', '.join(names)}."
    return BadInput(f"unknown {kind} {name!r}; {hint}")
