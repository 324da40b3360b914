"""The command that shows an episode: watch."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iqrl.cli.flags import add_trust, decimal, file_path, whole
from iqrl.errors import BadInput

if TYPE_CHECKING:
    from iqrl.training.results import Result
    from iqrl.watching.frames import Film

DEMO_TASK, DEMO_METHODS, DEMO_STEPS, DEMO_SEEDS = "CartPole-v0", ("dqn", "local-q"), 100_000, 1
FILE = Path("watch.gif")


def add_watch(commands: Any) -> None:
    parser = commands.add_parser(
        "watch",
        help="show an episode, with Q values and contexts: GIF, MP4, a window or the terminal",
        epilog="Without --out it is shown in a window where there is a screen, else in the terminal. Where the output "
        f"is no terminal either, it is written to {FILE}.",
    )
    parser.set_defaults(command=watch)
    parser.add_argument(
        "runs", type=file_path, nargs="*", metavar="RUN|FILE",
        help="directories of runs, or files of models; several are shown side by side, from the same start",
    )  # fmt: skip
    parser.add_argument("--out", type=file_path, help="write it to this file: .gif or .mp4")
    parser.add_argument("--seed", type=whole, help="whose agent of a run's seeds (default: that of the first)")
    parser.add_argument("--start", type=whole, default=0, help="seed of the episode (default: 0)")
    parser.add_argument("--longest", type=whole, default=1000, help="steps that are shown at most (default: 1000)")
    parser.add_argument("--fps", type=decimal, help="steps a second (default: as many as the environment says)")
    parser.add_argument(
        "--demo", action="store_true",
        help="first train DQN and local-q on CartPole without replay, some seconds, and show both",
    )  # fmt: skip
    add_trust(parser)


def watch(options: argparse.Namespace) -> None:
    _check(options)  # before the imports: an error in flags appears at once

    from iqrl.diagnostics.text import three_digits
    from iqrl.watching.episode import record
    from iqrl.watching.frames import make_film
    from iqrl.watching.pictures import check_drawing
    from iqrl.watching.showing import check_ending

    if options.out:
        check_ending(options.out)
    if options.demo:
        check_drawing()  # before anything is trained
    results = _train_demo() if options.demo else [_load(path) for path in options.runs]
    episodes = [record(result, options.seed, options.start, options.longest) for result in results]
    for episode in episodes:
        end = "over" if episode.over else "at its time limit" if episode.limited else "still going"
        steps = len(episode.moments) - 1
        who, total = f"{episode.run.method} on {episode.run.task}", three_digits(episode.total)
        print(f"{who}: return {total}, {end} after {steps:,} steps", file=sys.stderr)
    for task in dict.fromkeys(each.run.task for each in episodes if each.moments[0].variables is not None):
        print(
            f"{task} draws no picture (by render_mode 'rgb_array'); its observations are shown as bars.",
            file=sys.stderr,
        )
    _show(make_film(episodes, options.fps), options.out, ", ".join(episode.run.method for episode in episodes))


def _check(options: argparse.Namespace) -> None:
    if bool(options.runs) == options.demo:
        raise BadInput("which run? name directories of runs or files of models, or give --demo.")
    for name, least in (("longest", 1), ("start", 0)):
        if getattr(options, name) < least:
            raise BadInput(f"--{name} must be at least {least}, got {getattr(options, name)}.")
    if options.fps is not None and not 0 < options.fps <= 1000:
        raise BadInput(f"--fps must be more than 0 and at most 1000, got {options.fps}.")


def _load(path: Path) -> Result:
    from iqrl.api import load
    from iqrl.model import Model

    found = load(path)
    return found.result_with_task if isinstance(found, Model) else found


def _train_demo() -> list[Result]:
    """Runs of `demo/`: trained once, found again."""
    from iqrl.experiments.report.terminal import train_with_display
    from iqrl.make_run import resolve
    from iqrl.training.run_directory import RunStore

    runs = [resolve(DEMO_TASK, method, buffer_size=1, steps=DEMO_STEPS, seeds=DEMO_SEEDS) for method in DEMO_METHODS]
    return [train_with_display(RunStore.create(Path("demo") / f"{run.method}-{run.identity}", run)) for run in runs]


def _show(film: Film, out: Path | None, title: str) -> None:
    from iqrl.watching.pictures import has_screen
    from iqrl.watching.showing import open_window, write_film
    from iqrl.watching.terminal import play_in_terminal

    if out is None and has_screen():
        open_window(film, title)
    elif out is None and sys.stdout.isatty():
        columns, rows = shutil.get_terminal_size()
        play_in_terminal(film, sys.stdout, columns, rows - 2)
    else:
        write_film(film, out or FILE)
        print(f"wrote {out or FILE}")
