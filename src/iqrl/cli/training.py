"""The commands that train and use agents: train, resume, evaluate, export, plot, demo."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iqrl.cli.flags import (
    RUN_OR_FILE,
    RUNS_OR_FILES,
    add_cores,
    add_device,
    add_devices,
    add_json,
    add_run,
    add_runs,
    decimal,
    file_path,
    whole,
)
from iqrl.cli.output import text_stream
from iqrl.cli.settings import HELP_ALL, Flags, add_settings, read_request
from iqrl.settings import Following, settings_of
from iqrl.tracking import package_of

if TYPE_CHECKING:
    from iqrl.methods.base import Method
    from iqrl.training.compiled import Driver
    from iqrl.training.run_directory import RunStore

DEMO_TASK = "CartPole-v0"
DEMO_RUNS = (("dqn", 1), ("iq", 1), ("local-q", 1), ("dqn", 50_000))
"""methods and buffer sizes; the last one is what the others are compared with"""


MORE_HELP = (
    "Other methods have other settings and defaults: iqrl train --method NAME --help shows them; iqrl train --help-all "
    "shows the settings of all. "
)


def add_train(commands: Any, flags: Flags) -> None:
    method = _record(flags.method) if flags.method else None
    parser = commands.add_parser(
        "train",
        help="train a method on a task",
        usage="%(prog)s [TASK] [--method METHOD] [SETTINGS]",
        description=_description(method, flags.task),
        epilog=(MORE_HELP if method else "")
        + (
            ""
            if flags.task
            else "The defaults above are those of classic control; images have others: see docs/images.md. "
        )
        + "The file run.json in the directory of a run has all its settings.",
    )
    parser.set_defaults(command=train)
    parser.add_argument(HELP_ALL, action="help", help="show the settings of all methods and tasks, and exit")
    parser.add_argument("task", nargs="?", metavar="TASK", help="a name of iqrl list tasks, or module:name of your own")
    parser.add_argument(
        "--method", help="a name of iqrl list methods, or module:name (default: local-q; dqn for images)"
    )
    parser.add_argument(
        "--preset",
        help="paper: the settings of the IQ paper for this task and method; original: those of the method's authors",
    )
    parser.add_argument(
        "--config", type=file_path, metavar="FILE", help="a TOML or JSON file of the settings below; flags override it"
    )
    parser.add_argument(
        "--out", type=file_path, metavar="DIR", help="directory of the run (default: runs/TASK-METHOD-N…)"
    )
    add_json(parser, "the summary")
    add_settings(parser, (*flags.groups, Following), method, flags.task)
    add_cores(parser)
    add_device(parser)
    add_devices(parser)


def _description(method: Method | None, task: str | None) -> str:
    """Whose settings and defaults are shown."""
    if method is None:
        return "The settings of all methods and tasks. A default is that of dqn where the method has none of its own."
    of_task = f" on {task}" if task else ""
    return f"{method.name}: {method.summary} ({method.paper}). Below are its settings, with its defaults{of_task}."


def _record(name: str) -> Method:
    from iqrl.methods.registry import find_method

    return find_method(name)


def train(options: argparse.Namespace) -> None:
    request = read_request(options)  # before the imports: an error in a file of settings appears at once

    from iqrl.make_run import resolve
    from iqrl.training.loop import driver_of
    from iqrl.training.run_directory import RunStore, default_directory

    run = resolve(request.task, request.method, request.preset, **request.settings)
    if request.settings.get("contexts") == "auto":
        one = "; one context has one head, so distillation does nothing" if run.contexts == 1 else ""
        print(f"contexts: {run.contexts}, found in the states of a random policy{one}", file=sys.stderr)
    read_following(Following(), options)
    driver = driver_of(run)  # what is wrong with the request is reported before a directory is made
    store = RunStore.create(options.out or default_directory(run), run)
    store.follow(read_following(store.following, options))
    if request.method is None:
        print(f"method: {run.method}, recommended for this kind of task", file=sys.stderr)
    _train_and_report(store, options, driver)


def add_resume(commands: Any) -> None:
    parser = commands.add_parser("resume", help="continue an interrupted run")
    parser.set_defaults(command=resume)
    add_run(parser)
    parser.add_argument("--steps", type=whole, help="train to this step instead of the run's last one")
    add_json(parser, "the summary")
    add_settings(parser, (Following,))
    add_cores(parser)
    add_device(parser)
    add_devices(parser)


def resume(options: argparse.Namespace) -> None:
    from iqrl.training.run_directory import RunStore

    store = RunStore.open(options.run)
    store.warn_of_edits()
    store.follow(read_following(store.following, options))
    if options.steps is not None:
        store.extend(options.steps)
    _train_and_report(store, options)


def read_following(before: Following, options: argparse.Namespace) -> Following:
    """How the run is followed: as it was, but for what the flags say."""
    given = {name: value for name, value in vars(options).items() if name in settings_of((Following,))}
    following = replace(before, **given)
    if following.track != "none":
        package_of(following.track)  # says what is missing
    return following


def _train_and_report(store: RunStore, options: argparse.Namespace, driver: Driver | None = None) -> None:
    from rich.console import Console

    from iqrl.callbacks import followed
    from iqrl.experiments.report.terminal import print_best, print_results, train_with_display
    from iqrl.model import Model

    with followed(store.run, Model.of, store=store) as follow:
        result = train_with_display(store, driver, follow)
    print_results([result], Console(file=text_stream(options)))
    print_best(store, text_stream(options))
    print(f"run: {store.path}", file=text_stream(options))
    if options.json:
        print(json.dumps(result.summary()))


def add_evaluate(commands: Any) -> None:
    parser = commands.add_parser(
        "evaluate", help="returns of the trained policy, in Gymnasium's own environment where there is one"
    )
    parser.set_defaults(command=evaluate)
    add_run(parser, RUN_OR_FILE)
    parser.add_argument("--episodes", type=whole, default=10, help="episodes per trained seed (default: 10)")
    parser.add_argument("--seed", type=whole, default=0, help="seed of the first episode (default: 0)")
    parser.add_argument(
        "--epsilon", type=decimal, default=0.0, help="share of random actions (default: 0; Atari often has 0.001)"
    )
    add_json(parser, "the returns")


def evaluate(options: argparse.Namespace) -> None:
    from iqrl.api import load
    from iqrl.experiments.report.terminal import print_returns, show_count
    from iqrl.model import Model
    from iqrl.training.evaluation import evaluate as evaluate_result

    found = load(options.run)
    result = found.result_with_task if isinstance(found, Model) else found
    with show_count(str(options.run), "episodes") as display:
        returns = evaluate_result(result, options.episodes, options.seed, epsilon=options.epsilon, display=display)
    by_seed = {agent.seed: row for agent, row in zip(result.agents, returns, strict=True)}
    if result.step < result.run.steps:
        print(f"at step {result.step:,} of {result.run.steps:,}", file=text_stream(options))
    print_returns(by_seed, greedy=options.epsilon == 0, file=text_stream(options))
    if options.json:
        seeds = [{"seed": seed, "returns": row.tolist()} for seed, row in by_seed.items()]
        steps = {"step": result.step, "steps": result.run.steps}
        print(json.dumps({"mean": float(returns.mean()), "seeds": seeds, "run": str(options.run)} | steps))


def add_export(commands: Any) -> None:
    parser = commands.add_parser("export", help="write an agent to a file that needs no JAX: NumPy source or ONNX")
    parser.set_defaults(command=export)
    add_run(parser, RUN_OR_FILE)
    parser.add_argument("--to", default="numpy", metavar="numpy|onnx", help="what to write (default: numpy)")
    parser.add_argument("--out", type=file_path, help="the file (default: agent.py or agent.onnx)")
    parser.add_argument("--seed", type=whole, help="whose agent of the run's seeds (default: that of the first)")


def export(options: argparse.Namespace) -> None:
    from iqrl.api import export as export_agent

    written = export_agent(options.run, options.out, to=options.to, seed=options.seed)
    print(
        f"largest difference from the agent: {written.difference:.2g}, of Q values up to {written.largest:.3g}",
        file=sys.stderr,
    )
    print(written.path)


def add_plot(commands: Any) -> None:
    parser = commands.add_parser("plot", help="draw learning curves: mean and band per method")
    parser.set_defaults(command=plot)
    add_runs(parser, RUNS_OR_FILES)
    parser.add_argument(
        "--out", type=file_path, default=Path("curves.png"), help="PNG, SVG or PDF (default: curves.png)"
    )
    parser.add_argument(
        "--band", choices=("deviation", "interval", "range"), default="deviation",
        help="around the mean: one standard deviation, its 95%% interval, or all seeds (default: deviation)",
    )  # fmt: skip


def plot(options: argparse.Namespace) -> None:
    from iqrl.experiments.report.figures.curves import plot_curves
    from iqrl.statistics.curves import steps_and_returns
    from iqrl.training.model_file import curves_of

    found = [curves_of(path) for path in options.runs]
    curves = [(it.run, *steps_and_returns(it.metrics)) for it in found]
    verb = "replaced" if options.out.exists() else "wrote"
    print(verb, plot_curves(curves, options.out, spread=options.band))


def add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="train DQN, IQ and local-q on CartPole without replay, and DQN with a buffer of 50,000"
    )
    parser.set_defaults(command=demo)
    parser.add_argument("--steps", type=whole, help="environment steps per seed (default: 400,000, as in the paper)")
    parser.add_argument(
        "--preset", help="paper: each method with its settings in the paper (default: the library's settings)"
    )
    parser.add_argument("--seeds", type=whole, default=5, help="seeds per method (default: 5)")
    parser.add_argument(
        "--out", type=file_path, default=Path("demo"), help="directory of runs and figure (default: demo)"
    )


def demo(options: argparse.Namespace) -> None:
    from rich.console import Console

    from iqrl.experiments.report.arrangement import size_text
    from iqrl.experiments.report.figures.curves import plot_curves
    from iqrl.experiments.report.terminal import print_results, train_with_display
    from iqrl.make_run import resolve
    from iqrl.training.run_directory import RunStore

    steps = {} if options.steps is None else {"steps": options.steps}
    results = []
    for method, size in DEMO_RUNS:
        run = resolve(DEMO_TASK, method, options.preset, buffer_size=size, seeds=options.seeds, **steps)
        results.append(train_with_display(RunStore.create(options.out / f"{method}-{run.identity}", run)))
    print_results(results, Console())
    curves = [(result.run, result.steps, result.returns) for result in results]
    notes = [size_text(result.memory) for result in results]
    print(plot_curves(curves, options.out / "demo.png", notes, dashed=1))
