"""Where the output of a command goes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from iqrl.errors import BadInput


def text_stream(options: argparse.Namespace) -> TextIO:
    """The stream of text for people: with --json, stdout is for the JSON object alone."""
    return sys.stderr if options.json else sys.stdout


def write_text(path: Path, text: str) -> None:
    from iqrl.training.checkpoint import write_whole

    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}.") from error
    print(f"written to {path}", file=sys.stderr)


def make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {path}: {error.strerror}.") from error
