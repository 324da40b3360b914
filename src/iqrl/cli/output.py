"""Where the output of a command goes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from iqrl.files import make_directories, write_whole, writing


def text_stream(options: argparse.Namespace) -> TextIO:
    """The stream of text for people: with --json, stdout is for the JSON object alone."""
    return sys.stderr if options.json else sys.stdout


def write_text(path: Path, text: str) -> None:
    with writing(path):
        write_whole(path, text.encode())
    print(f"written to {path}", file=sys.stderr)


def make_directory(path: Path) -> None:
    make_directories(path)
