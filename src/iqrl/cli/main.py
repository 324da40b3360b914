"""The command `iqrl`: its parser, its errors and its exit codes.

The commands are in the other files of this folder. For each there is a function that adds its parser and a function
that runs it. Nothing heavy is imported before a command runs, so help and errors in flags appear at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, NoReturn

from iqrl import __version__
from iqrl.cli.checking import add_check
from iqrl.cli.completing import add_completion
from iqrl.cli.diagnosing import add_cost, add_explain, add_interference
from iqrl.cli.listing import add_list
from iqrl.cli.reproducing import add_paper
from iqrl.cli.settings import Flags, flags_of_train
from iqrl.cli.studies import add_report, add_study
from iqrl.cli.training import add_demo, add_evaluate, add_export, add_plot, add_resume, add_train
from iqrl.cli.tuning import add_tune
from iqrl.cli.watching import add_watch
from iqrl.errors import BadInput, RunFailed, one_line, shown, unknown
from iqrl.files import why
from iqrl.plugins import in_a_sentence, trust

COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "train": (add_train, add_resume, add_tune, add_demo),
    "use an agent": (add_evaluate, add_watch, add_plot, add_export),
    "see why": (add_explain, add_interference, add_cost),
    "many runs": (add_study, add_report, add_paper),
    "look around": (add_list, add_check, add_completion),
}
"""what adds each command, by sections of the help; the flags of `train` depend on its method and task"""
MORE = "iqrl COMMAND --help has the flags of a command. Begin with: iqrl train CartPole-v1"

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, and that does not guess flags from their beginnings."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.set_defaults(parser=self)
        self.sections: dict[str, list[str]] = {}
        """names of commands by title, in the help of `iqrl` itself"""

    def format_help(self) -> str:
        """The commands in sections, where there are any."""
        if not self.sections:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        commands = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        lines = {line.dest: line for action in commands for line in action._get_subactions()}
        for title, names in self.sections.items():
            formatter.start_section(title)
            formatter.add_arguments([lines[name] for name in names])
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """argparse would list all choices; the nearest is what was meant."""
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else f"argument of {self.prog}"
            raise unknown(kind, value, action.choices)

    def error(self, message: str) -> NoReturn:
        runs = " (iqrl list runs names them)" if message.endswith("are required: RUN") else ""
        raise BadInput(f"{message[0].lower()}{message[1:].rstrip('.')}{runs}; see {self.prog} --help.")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse would say nothing where it cannot write."""
        try:
            print(message, end="", file=file or sys.stderr)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RunFailed(f"cannot write to the standard output: {why(error)}.") from error

    @property
    def flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Nothing needs saving before training starts, and JAX does not expect an interrupted import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(50_000, 20, 100)  # imports and tracing make many objects and few cycles
    _write_what_the_terminal_can()
    warnings.showwarning = show_warning  # ty: ignore[invalid-assignment]
    try:
        with no_traceback():
            try:
                options = parse(sys.argv[1:] if arguments is None else arguments)
            except SystemExit:  # after --help and --version
                flush()
                raise
            run_to_end(options)
        return DONE
    except BadInput as error:
        return report_error(error, BAD_INPUT)
    except RunFailed as error:
        return report_error(error, FAILED)
    except KeyboardInterrupt as error:
        return report_error(str(error) or "stopped at once", INTERRUPTED)
    except BrokenPipeError:  # of a pager that was closed
        _close_stdout()
        return DONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return report_error(f"{where}{why(error)}.", FAILED)
    except MemoryError:
        return report_error("there is not enough memory for this.", FAILED)


def run_to_end(options: argparse.Namespace) -> None:
    """The command, and all that it printed written."""
    try:
        run(options)
    except SystemExit as error:  # of code of the user's own: commands return
        if isinstance(error.__context__, BrokenPipeError):  # rich ends a program whose reader has gone
            raise error.__context__ from None
        raise RunFailed(f"a task or method of your own ended the command with {in_a_sentence(error)}.") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            flush()
        raise
    flush()


@contextlib.contextmanager
def no_traceback() -> Generator[None]:
    """What nobody foresaw is a sentence too."""
    try:
        yield
    except (BadInput, RunFailed, OSError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise RunFailed(
            f"a mistake in iqrl: {in_a_sentence(error)}; please report it; {TRACEBACK}=1 shows where it is."
        ) from error


TRACEBACK = "IQRL_TRACEBACK"
"""set it to see where a mistake in iqrl is"""


def flush() -> None:
    """All that was printed is written; a full disk is an error like others."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _close_stdout()
        raise RunFailed(f"cannot write to the standard output: {why(error)}.") from error


def _close_stdout() -> None:
    """Python would try to write the rest once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_what_the_terminal_can() -> None:
    """A terminal that has no γ shows a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def show_warning(message: Warning | str, *place: Any) -> None:
    print(f"iqrl: {one_line(message)}", file=sys.stderr)


def report_error(message: object, code: int) -> int:
    print(f"iqrl: {one_line(message)}", file=sys.stderr)
    return code


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command. `options.command` is the function that runs it, `options.parser` its parser."""
    parser = build_parser(Flags())
    if arguments[:1] == ["train"]:
        parser = build_parser(flags_of_train(parser, arguments))
    options, rest = parser.parse_known_args(arguments)
    if rest and rest[0].startswith("-"):
        raise unknown("argument", rest[0], options.parser.flags, otherwise=f"see {options.parser.prog} --help")
    if rest:
        raise BadInput(f"unexpected argument {shown(rest[0])}; see {options.parser.prog} --help.")
    return options


def build_parser(flags: Flags) -> Parser:
    """The parser of all commands, with these settings as flags of `train`."""
    parser = Parser("iqrl", description="Deep Q-learning that needs almost no memory.", epilog=MORE)
    parser.set_defaults(command=None)
    parser.add_argument("--version", action="version", version=f"iqrl {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    for title, adds in COMMANDS.items():
        before = len(commands.choices)
        for add in adds:
            add(commands, flags) if add is add_train else add(commands)
        parser.sections[title] = list(commands.choices)[before:]
    return parser


def run(options: argparse.Namespace) -> None:
    if options.command is None:
        options.parser.print_help()
        return
    # Polars installs a handler of SIGINT when it is imported, and the handler does nothing. Import it, then replace it.
    import polars  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    trust(getattr(options, "trust", ()))
    if getattr(options, "cores", None) is not None:
        from iqrl.training.cores import choose_cores

        choose_cores(options.cores)
    if getattr(options, "devices", None) is not None:
        from iqrl.training.devices import choose_devices

        choose_devices(options.devices)
    if getattr(options, "device", None):
        from iqrl.training.devices import choose_device

        choose_device(options.device)
    options.command(options)
