"""The two ways a command can fail, and the words it fails with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from iqrl.other_names import SAID_OTHERWISE, name_here

LONGEST, LONGEST_VALUE = 480, 80
"""characters of a message, and of a value that it quotes"""


class BadInput(ValueError):
    """The request cannot be carried out as written (exit code 2)."""


class PackagesMissing(BadInput):
    """What was asked for needs an extra that is not installed."""

    def __init__(self, message: str, extra: str):
        super().__init__(message)
        self.extra = extra


class RunFailed(RuntimeError):
    """The request was sound but went wrong while running (exit code 1)."""


def unknown(kind: str, name: str, valid: Iterable[str], also: Iterable[str] = (), otherwise: str = "") -> BadInput:
    """A sentence naming the nearest valid name; when none is near, `otherwise`, or all names but those of `also`.

    A name that another library has for it is near too. That flags begin with dashes brings them no nearer.

    >>> str(unknown("argument", "--terminal", ["--help", "--out"], otherwise="see iqrl watch --help"))
    "unknown argument '--terminal'; see iqrl watch --help."
    """
    names, name = sorted(valid), shorten(str(name), LONGEST_VALUE)
    if here := name_here(name, names):
        return BadInput(f"unknown {kind} {name!r}; did you mean {here}?")
    if name in SAID_OTHERWISE:
        return BadInput(f"unknown {kind} {name!r}; {SAID_OTHERWISE[name]}.")
    plain = lambda candidate: candidate.lstrip("-").lower()
    by_plain = {plain(candidate): candidate for candidate in (*also, *names)}
    near = difflib.get_close_matches(plain(name), by_plain, n=1, cutoff=0.5)
    others = f"{otherwise or 'choose from ' + ', '.join(names)}."
    hint = f"did you mean {by_plain[near[0]]}?" if near else others
    return BadInput(f"unknown {kind} {name!r}; {hint}")


def shown(value: Any) -> str:
    """A value in a message, short whatever it is.

    >>> shown([1, 2]), len(shown("x" * 100_000)), shown(10**5000)
    ('[1, 2]', 80, 'an integer of 16,610 bits')
    """
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"an integer of {value.bit_length():,} bits"
    try:
        return shorten(repr(value), LONGEST_VALUE)
    except Exception:  # of an object of the user's own, or of one that is nested too deeply
        return type(value).__name__


def shorten(text: str, longest: int) -> str:
    """Its beginning and its end.

    >>> shorten("abcdefghijkl", 9)
    'abcd…ijkl'
    """
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - half]}…{text[len(text) - half :]}"


def one_line(message: object) -> str:
    """A message as it is printed: one line, not too long, nothing in it that a terminal would obey."""
    text = "".join(character if character.isprintable() else " " for character in str(message))
    return shorten(" ".join(text.split()), LONGEST)
