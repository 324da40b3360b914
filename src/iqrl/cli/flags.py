"""Flags that several commands have, and the types of their values."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from iqrl.errors import shorten

LONGEST_NAME = 255
"""bytes of one part of a path"""


def whole(text: str) -> int:
    """A whole number; 400,000 and 4e5 are the same."""
    try:
        number = float(text.replace(",", ""))
        if number.is_integer() and abs(number) < 1e18:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{shorten(text, 60)!r} is not a whole number")


def file_path(text: str) -> Path:
    """A path, of a file or a directory."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a path")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(text).parts):
        raise argparse.ArgumentTypeError(f"{shorten(text, 60)!r} has a name of more than {LONGEST_NAME} bytes")
    return Path(text)


def decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text, 60)!r} is not a number") from None


RUN_OR_FILE = "directory of a run, or file of a model"
RUNS_OR_FILES = "directories of runs, or files of models"


def add_run(parser: argparse.ArgumentParser, what: str = "directory of the run") -> None:
    parser.add_argument("run", type=file_path, metavar="RUN", help=what)
    add_trust(parser)


def add_runs(parser: argparse.ArgumentParser, what: str = "directories of runs") -> None:
    parser.add_argument("runs", type=file_path, nargs="+", metavar="RUN", help=what)
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module of your own that may be imported, though a directory made elsewhere names it; may be repeated",
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--json", action="store_true", help=f"print {what} as one JSON object on stdout; all else goes to stderr"
    )


def add_cores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cores", type=whole, metavar="N", help="cores that the seeds are spread over (default: all)")


def add_devices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--devices", type=whole, metavar="N", help="devices that the seeds are spread over (default: all GPUs)"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, gpu or tpu (default: the best that JAX finds)")
