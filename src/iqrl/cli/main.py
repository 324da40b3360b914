"""The command `iqrl`: its parser, its errors and its exit codes.

The commands are in the other files of this folder. For each there is a function that adds its parser and a function
that runs it. Nothing heavy is imported before a command runs, so help and errors in flags appear at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from iqrl import __version__
from iqrl.cli.diagnosing import add_cost, add_explain, add_interference
from iqrl.cli.listing import add_list
from iqrl.cli.reproducing import add_paper
from iqrl.cli.settings import setting_groups
from iqrl.cli.studies import add_report, add_study
from iqrl.cli.training import add_demo, add_evaluate, add_plot, add_resume, add_train
from iqrl.errors import BadInput, RunFailed, unknown
from iqrl.settings import COMMON

COMMANDS = (
    add_resume, add_evaluate, add_plot, add_demo,
    add_interference, add_explain, add_cost,
    add_study, add_report, add_paper,
    add_list,
)  # fmt: skip
"""all but `train`, whose flags depend on its method and task"""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, and that does not guess flags from their beginnings."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message[0].lower()}{message[1:].rstrip('.')}; see {self.prog} --help.")

    @property
    def flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Nothing needs saving before training starts, and JAX does not expect an interrupted import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        run(parse(sys.argv[1:] if arguments is None else arguments))
        return DONE
    except BadInput as error:
        return report_error(error, BAD_INPUT)
    except RunFailed as error:
        return report_error(error, FAILED)
    except KeyboardInterrupt as error:
        return report_error(str(error) or "stopped at once", INTERRUPTED)
    except BrokenPipeError:  # of a pager that was closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def report_error(message: object, code: int) -> int:
    print(f"iqrl: {message}", file=sys.stderr)
    return code


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command. `options.command` is the function that runs it, `options.parser` its parser."""
    parser = build_parser(COMMON)
    if arguments[:1] == ["train"]:
        parser = build_parser(setting_groups(parser, arguments))
    options, rest = parser.parse_known_args(arguments)
    if rest and rest[0].startswith("-"):
        raise unknown("argument", rest[0], options.parser.flags)
    if rest:
        raise BadInput(f"unexpected argument {rest[0]!r}; see {options.parser.prog} --help.")
    return options


def build_parser(groups: Iterable[type]) -> Parser:
    """The parser of all commands, with these groups of settings as flags of `train`."""
    parser = Parser("iqrl", description="Deep Q-learning that needs almost no memory.")
    parser.set_defaults(command=None)
    parser.add_argument("--version", action="version", version=f"iqrl {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    add_train(commands, groups)
    for add in COMMANDS:
        add(commands)
    return parser


def run(options: argparse.Namespace) -> None:
    if options.command is None:
        options.parser.print_help()
        return
    # Polars installs a handler of SIGINT when it is imported, and the handler does nothing. Import it, then replace it.
    import polars  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if getattr(options, "device", None):
        from iqrl.training.devices import choose_device

        choose_device(options.device)
    options.command(options)
