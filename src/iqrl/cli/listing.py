"""The command that lists tasks, methods and runs."""

from __future__ import annotations

import argparse
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
        print(f"  {name:26}{summary}")


def list_methods(options: argparse.Namespace) -> None:
    from iqrl.methods.registry import METHODS

    print("methods")
    for name, method in METHODS.items():
        print(f"  {name:20}{method.summary} ({method.paper})")


def list_runs(options: argparse.Namespace) -> None:
    from iqrl.training.run_directory import describe_runs

    runs = describe_runs(options.dir)
    print(f"runs in {options.dir}" if runs else f"no runs in {options.dir}")
    for path, description in runs.items():
        print(f"  {path}: {description}")


SECTIONS = {"tasks": list_tasks, "methods": list_methods, "runs": list_runs}
