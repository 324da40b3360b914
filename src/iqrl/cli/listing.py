"""The command that lists tasks, methods and runs."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

from iqrl.cli.flags import file_path


def add_list(commands: Any) -> None:
    parser = commands.add_parser("list", help="list tasks, methods and runs")
    parser.set_defaults(command=list_all)
    parser.add_argument("what", nargs="?", choices=SECTIONS, help="list only these")
    parser.add_argument("--dir", type=file_path, default=Path("runs"), help="directory of the runs (default: runs)")


def list_all(options: argparse.Namespace) -> None:
    for name in [options.what] if options.what else SECTIONS:
        SECTIONS[name](options)


def list_tasks(options: argparse.Namespace) -> None:
    from iqrl.envs.registry import summaries

    print("tasks")
    for name, summary in summaries().items():
        _print_entry(f"  {name:26}", summary)


def list_methods(options: argparse.Namespace) -> None:
    from iqrl.methods.registry import METHODS

    print("methods")
    for name, method in METHODS.items():
        _print_entry(f"  {name:20}", f"{method.summary} ({method.paper})")


def list_runs(options: argparse.Namespace) -> None:
    from iqrl.training.run_directory import describe_runs

    runs = describe_runs(options.dir)
    print(f"runs in {options.dir}" if runs else f"no runs in {options.dir}")
    for path, description in runs.items():
        print(f"  {path}: {description}")


def _print_entry(name: str, text: str) -> None:
    """On a terminal, further lines of the text stand below its first one; elsewhere an entry is one line."""
    width = shutil.get_terminal_size().columns
    if sys.stdout.isatty() and width > len(name) + FEWEST_COLUMNS:
        print(textwrap.fill(text, width, initial_indent=name, subsequent_indent=" " * len(name)))
    else:
        print(name + text)


FEWEST_COLUMNS = 20
"""beside the name: in less, a text is not worth a column of its own"""

SECTIONS = {"tasks": list_tasks, "methods": list_methods, "runs": list_runs}
