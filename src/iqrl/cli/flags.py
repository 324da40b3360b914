"""Flags that several commands have, and the types of their values."""

from __future__ import annotations

import argparse
from pathlib import Path


def whole(text: str) -> int:
    """A whole number; 400,000 and 4e5 are the same."""
    try:
        number = float(text.replace(",", ""))
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


def decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of the run")


def add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="directories of runs")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--json", action="store_true", help=f"print {what} as one JSON object on stdout; all else goes to stderr"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, gpu or tpu (default: the best that JAX finds)")
