"""The command tune."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from iqrl.cli.flags import add_cores, add_device, add_devices, add_json, decimal, file_path, whole
from iqrl.cli.output import text_stream
from iqrl.cli.settings import NAMES, check_file, read_file
from iqrl.cli.studies import assignment
from iqrl.errors import BadInput
from iqrl.plugins import trust

if TYPE_CHECKING:
    from iqrl.experiments.tuning import Tuning

TRIALS = 20


def add_tune(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="search the settings of a method on a task",
        epilog="Every trial is a whole run on seeds of its own. The command, given again, goes on where it stopped. "
        "The best settings are in DIR/best.toml: iqrl train --config DIR/best.toml.",
    )
    parser.set_defaults(command=tune)
    parser.add_argument("task", metavar="TASK", help="a name of iqrl list tasks, or module:name of your own")
    parser.add_argument("--method", help="a name of iqrl list methods (default: local-q; dqn for images)")
    parser.add_argument("--preset", help="paper or original: what the settings that are not searched come from")
    parser.add_argument("--config", type=file_path, help="a TOML or JSON file of settings that are not searched")
    parser.add_argument("--trials", type=whole, default=TRIALS, help=f"runs to make in all (default: {TRIALS})")
    parser.add_argument(
        "--over", type=searched, nargs="+", metavar="NAME=VALUES",
        help="settings to search: low:high, low:high:log, or a,b,c; such as learning_rate=1e-5:1e-2:log "
        "(default: those that the method names)",
    )  # fmt: skip
    parser.add_argument(
        "--by", default="auc", help="what is to be high, of the mean curve: auc, final or highest (default: auc)"
    )
    parser.add_argument("--seeds", type=whole, help="seeds of each run (default: 5)")
    parser.add_argument("--seed", type=whole, help="the first of them (default: 1000)")
    parser.add_argument("--steps", type=whole, help="steps per seed; short runs may mislead (default: the task's)")
    parser.add_argument(
        "--set", type=assignment, nargs="+", default=[], metavar="NAME=VALUE",
        help="other settings of every run, such as buffer_size=1",
    )  # fmt: skip
    parser.add_argument("--out", type=file_path, help="directory of the search (default: tuning/TASK-METHOD)")
    add_json(parser, "the best trial")
    add_cores(parser)
    add_device(parser)
    add_devices(parser)


def searched(text: str) -> tuple[str, Any]:
    """A setting and where to search it: a span (low, high, is logarithmic), or choices."""
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUES, such as learning_rate=1e-5:1e-2:log")
    ends = values.split(":")
    if len(ends) == 1:
        return name, tuple(assignment(f"{name}={value}")[1] for value in values.split(","))
    if len(ends) > 3 or ends[2:] not in ([], ["log"]):
        raise argparse.ArgumentTypeError(f"{text!r} is not {name}=low:high or {name}=low:high:log")
    return name, {"low": decimal(ends[0]), "high": decimal(ends[1]), "log": len(ends) == 3}


def tune(options: argparse.Namespace) -> None:
    from iqrl.experiments.report.figures.tuning import draw_tuning
    from iqrl.experiments.report.terminal import print_trials, train_with_display
    from iqrl.experiments.tuning import BEST_FILE, default_directory, make_request
    from iqrl.experiments.tuning import tune as search
    from iqrl.methods.base import Span

    if options.trials < 1:
        raise BadInput(f"--trials must be at least 1, got {options.trials}.")
    trust(name for name in (options.task, options.method or "") if ":" in name)
    over = {name: Span(**each) if isinstance(each, dict) else each for name, each in options.over or ()}
    request = make_request(options.task, options.method, over, options.by, options.preset, **_settings(options))
    path = options.out or default_directory(request)
    stream = text_stream(options)

    def tell(tuning: Tuning) -> None:
        value = tuning.trials[-1].value
        shown = "failed" if value is None else f"{value:.4g}"
        settings = ", ".join(f"{name} {_short(value)}" for name, value in tuning.trials[-1].settings.items())
        print(f"trial {len(tuning.trials)} of {options.trials}: {options.by} {shown} with {settings}", file=stream)

    tuning = search(request, path, options.trials, train_with_display, tell)
    print_trials(tuning, stream)
    print(f"{draw_tuning(tuning, path / 'tuning.png')}\n{path / BEST_FILE}", file=stream)
    if options.json:
        best = tuning.best
        print(json.dumps({"settings": best.settings, options.by: best.value, "file": str(path / BEST_FILE)}))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    from iqrl.make_run import groups_for

    content, tables = read_file(options.config) if options.config else ({}, ())
    for name in NAMES:
        if name in content:
            raise BadInput(f"in {options.config}: {name} is named on the command line of iqrl tune.")
    settings = check_file(content, tables, groups_for(options.task, options.method), options.config)
    flags = {name: getattr(options, name) for name in ("seeds", "seed", "steps") if getattr(options, name) is not None}
    return settings | dict(options.set) | flags


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
