"""The command line; no logic of its own."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from iqrl.cli_settings import add_device, add_settings, fraction, read_config, whole
from iqrl.cli_study import STUDY_COMMANDS, add_study_parsers
from iqrl.config import OPTIONS, TaskOptions
from iqrl.errors import BadInput, RunFailed, unknown

MATRIX_OPTIONS = (
    ("updates", 1000, "updates on one context"),
    ("settle", 1000, "updates on all contexts before that"),
    ("contexts", 3, "clusters of states where the agent has one context"),
)
OTHER_TASKS = {
    "ALE/Pong-v5, …": "an Atari game, as the paper plays it; needs the extra atari",
    "LunarLander-v3, …": "any Gymnasium environment with discrete actions; package:Name-v0 is imported first",
    "my_module:MyEnv": "of your own: a gymnasium.Env class, an iqrl.Task, or a function that makes one",
}
DEMO_TASK, DEMO_METHODS = "CartPole-v0", ("dqn", "iq")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message[0].lower()}{message[1:].rstrip('.')}; see {self.prog} --help.")

    def known_flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 2 bad input, 1 failed while running, 130 interrupted."""
    # Until training takes over there is nothing to save, and an interrupted import only confuses JAX.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        parser, commands = build_parser()
        options, rest = parser.parse_known_args(arguments)
        if rest and not rest[0].startswith("-"):
            raise BadInput(f"unexpected argument {rest[0]!r}; see iqrl {options.command or ''} --help.")
        if rest:
            flags = commands[options.command].known_flags() if options.command else parser.known_flags()
            raise unknown("argument", rest[0], [flag for flag in flags if flag.startswith("--")])
        if options.command is None:
            parser.print_help()
            return 0
        # Polars takes SIGINT for itself when it is loaded, and does nothing with it: what is set here must come after.
        import polars  # noqa: F401

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if getattr(options, "device", None):
            from iqrl.training.devices import choose_device

            choose_device(options.device)
        COMMANDS[options.command](options)
        return 0
    except BadInput as error:
        print(f"iqrl: {error}", file=sys.stderr)
        return 2
    except RunFailed as error:
        print(f"iqrl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"iqrl: {str(error) or 'stopped at once'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser("iqrl", description="Deep Q-learning that does not forget.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    _add_training(commands)
    _add_analysis(commands)

    listing = commands.add_parser("list", help="tasks, methods, runs", allow_abbrev=False)
    listing.add_argument("what", nargs="?", choices=("tasks", "methods", "runs"), help="only these")
    listing.add_argument("--dir", type=Path, default=Path("runs"), help="where to look for runs (default: runs)")

    demo = commands.add_parser("demo", help="DQN and IQ on CartPole with a buffer of one", allow_abbrev=False)
    demo.add_argument("--steps", type=whole, help="environment steps per seed (default: the paper's 400,000)")
    demo.add_argument("--preset", help="paper: each method as the paper has it (default: both with the same settings)")
    demo.add_argument("--seeds", type=whole, default=5, help="seeds per method (default: 5)")
    demo.add_argument("--out", type=Path, default=Path("demo"), help="directory of runs and picture (default: demo)")
    parsers = dict(commands.choices) | add_study_parsers(commands, Parser)
    return parser, parsers


def _add_training(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train a method on a task",
        epilog="Defaults are those of classic control. Some methods and all images have others: iqrl list methods, "
        "docs/methods.md, docs/images.md; run.json in a run's folder has what it was trained with.",
        allow_abbrev=False,
    )
    train.add_argument("task", nargs="?", help="CartPole-v0, …; see iqrl list; or your own as module:name")
    train.add_argument(
        "--method",
        default=argparse.SUPPRESS,
        help="dqn, iq, …; see iqrl list methods; or your own as module:name (default: iq)",
    )
    train.add_argument(
        "--preset",
        help="paper: the IQ paper's values for this task and method; original: those of the method's own authors",
    )
    train.add_argument("--config", type=Path, help="a TOML or JSON file of the settings below; flags win over it")
    train.add_argument("--out", type=Path, help="directory of the run (default: runs/TASK-METHOD-N…)")
    train.add_argument("--json", action="store_true", help="print the summary as one JSON object, last on stdout")
    add_settings(train)
    add_device(train)

    resume = commands.add_parser("resume", help="continue an interrupted run", allow_abbrev=False)
    resume.add_argument("run", type=Path, metavar="RUN", help="directory of the run")
    resume.add_argument("--steps", type=whole, help="go on to this many steps instead")
    resume.add_argument("--json", action="store_true", help="print the summary as one JSON object, last on stdout")
    add_device(resume)

    evaluate = commands.add_parser(
        "evaluate", help="greedy episodes, in Gymnasium's own environment where there is one", allow_abbrev=False
    )
    evaluate.add_argument("run", type=Path, metavar="RUN", help="directory of the run")
    evaluate.add_argument("--episodes", type=whole, default=10, help="episodes per trained seed (default: 10)")
    evaluate.add_argument("--seed", type=whole, default=0, help="seed of the first episode (default: 0)")
    evaluate.add_argument(
        "--epsilon", type=fraction, default=0.0, help="share of actions at random (default: 0; Atari is often 0.001)"
    )
    evaluate.add_argument("--json", action="store_true", help="print the returns as one JSON object, last on stdout")

    plot = commands.add_parser("plot", help="learning curves: mean and spread per method", allow_abbrev=False)
    plot.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="directories of runs")
    plot.add_argument("--out", type=Path, default=Path("curves.png"), help="PNG, SVG or PDF (default: curves.png)")


def _add_analysis(commands: Any) -> None:
    interference = commands.add_parser(
        "interference", help="interference of measured runs; matrix and map of contexts of any run", allow_abbrev=False
    )
    interference.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="directories of runs")
    interference.add_argument(
        "--out", type=Path, default=Path("interference"), help="directory of the pictures (default: interference)"
    )
    interference.add_argument(
        "--matrix", action="store_true", help="train each run's agents on one context alone, and see the others' losses"
    )
    for name, default, text in MATRIX_OPTIONS:
        interference.add_argument(f"--{name}", type=whole, help=f"with --matrix: {text} (default: {default})")
    interference.add_argument("--map", action="store_true", help="t-SNE of the states of each run, coloured by context")
    interference.add_argument(
        "--json", action="store_true", help="print the numbers as one JSON object, last on stdout"
    )

    explain = commands.add_parser(
        "explain", help="why the return fell: what moved before, what to try", allow_abbrev=False
    )
    explain.add_argument("run", type=Path, metavar="RUN", help="directory of the run")
    explain.add_argument(
        "--drop", type=fraction, default=0.25, help="share of the range that is a fall (default: 0.25)"
    )
    explain.add_argument("--out", type=Path, help="where to write the page (default: explain.md in RUN)")

    cost = commands.add_parser("cost", help="operations of a run and where its time goes", allow_abbrev=False)
    cost.add_argument("run", type=Path, metavar="RUN", help="directory of the run")
    cost.add_argument("--json", action="store_true", help="print the numbers as one JSON object, last on stdout")

    paper = commands.add_parser(
        "paper", help="the paper's Atari tables, computed again from its authors' curves", allow_abbrev=False
    )
    paper.add_argument("path", type=Path, metavar="PATH", help="a clone of the authors' repository, or an .npz file")
    paper.add_argument(
        "--beside", type=Path, metavar="STUDY", help="no page, but the Atari runs of a study of ours beside theirs"
    )
    paper.add_argument("--out", type=Path, default=Path("paper.md"), help="where to write the page (default: paper.md)")
    paper.add_argument("--json", action="store_true", help="print the numbers as one JSON object, last on stdout")


def _version() -> str:
    from importlib import metadata

    return f"iqrl {metadata.version('iqrl')}"


def train(options: argparse.Namespace) -> None:
    from iqrl.settings import resolve
    from iqrl.training.loop import driver_of
    from iqrl.training.store import RunStore, default_directory

    given = vars(options)
    settings = read_config(options.config) if options.config else {}
    settings |= {name: given[name] for name in OPTIONS if name in given}
    names = {name: settings.pop(name, None) for name in ("task", "method", "preset")}
    names |= {name: given[name] for name in names if given.get(name) is not None}
    if names["task"] is None:
        raise BadInput("which task? name one, such as CartPole-v0; see iqrl list tasks.")
    run = resolve(names["task"], names["method"] or "iq", names["preset"], **settings)
    if settings.get("contexts") == "auto":
        alone = "; with one context there is no other head to keep, and nothing to gain" if run.contexts == 1 else ""
        print(f"contexts: {run.contexts}, found in the states of a random policy{alone}", file=sys.stderr)
    driver_of(run)  # says what is wrong before a directory is made
    _train_and_tell(RunStore.create(options.out or default_directory(run), run), options.json)


def resume(options: argparse.Namespace) -> None:
    from iqrl.training.store import RunStore

    store = RunStore.open(options.run)
    if options.steps is not None:
        store.extend(options.steps)
    _train_and_tell(store, options.json)


def _train_and_tell(store: Any, as_json: bool) -> None:
    from rich.console import Console

    from iqrl.report.tables import print_results

    result = _train_with_display(store)
    # With --json, stdout is for the machine.
    print_results([result], Console(stderr=as_json))
    print(f"run: {store.path}", file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(json.dumps(result.summary()))


def _train_with_display(store: Any) -> Any:
    from iqrl.report.progress import display
    from iqrl.training.loop import load, train_run

    if store.has_checkpoint:
        result = load(store.path)
        done = int(result.steps[-1])
        if done >= store.run.steps:
            print(f"{store.path} holds this run, finished.", file=sys.stderr)
            return result
        print(f"{store.path} holds this run up to step {done:,}; continuing.", file=sys.stderr)
    label = f"{store.run.method} {store.run.task} N={store.run.buffer_size:,}"
    with display(label) as report:
        return train_run(store.run, store, report)


def evaluate(options: argparse.Namespace) -> None:
    from iqrl.report.progress import counting
    from iqrl.training.evaluation import evaluate as greedy
    from iqrl.training.loop import load

    result = load(options.run)
    with counting(str(options.run), "episodes") as display:
        returns = greedy(result, options.episodes, options.seed, epsilon=options.epsilon, display=display)
    to = sys.stderr if options.json else sys.stdout
    for agent, row in zip(result.agents, returns, strict=True):
        print(f"seed {agent.seed}: mean {row.mean():.1f}, worst {row.min():.1f}, best {row.max():.1f}", file=to)
    how = "greedy " if options.epsilon == 0 else ""
    print(f"all: mean {returns.mean():.1f} over {returns.size} {how}episode{'s' * (returns.size > 1)}", file=to)
    if options.json:
        seeds = [
            {"seed": agent.seed, "returns": row.tolist()} for agent, row in zip(result.agents, returns, strict=True)
        ]
        print(json.dumps({"mean": float(returns.mean()), "seeds": seeds, "run": str(options.run)}))


def plot(options: argparse.Namespace) -> None:
    from iqrl.report.figures import plot_curves
    from iqrl.results import steps_and_returns
    from iqrl.training.store import RunStore

    stores = [RunStore.open(path) for path in options.runs]
    curves = [(store.run, *steps_and_returns(store.metrics())) for store in stores]
    print(plot_curves(curves, options.out))


def interference(options: argparse.Namespace) -> None:
    from rich.console import Console

    from iqrl.analysis.experience import check_compiled
    from iqrl.report import measurements
    from iqrl.report.maps import plot_runs
    from iqrl.tasks import make_task
    from iqrl.training.loop import load
    from iqrl.training.store import RunStore

    stores = [RunStore.open(path) for path in options.runs]
    metrics = [store.metrics() for store in stores]
    measured = [(store, table) for store, table in zip(stores, metrics, strict=True) if measurements.is_measured(table)]
    if not (measured or options.matrix or options.map):
        raise BadInput(
            f"{stores[0].path} was not measured; train with --measure-every 100, or ask for what can be found "
            f"afterwards: --matrix, --map."
        )
    matrix_options = _matrix_options(options)
    if options.matrix or options.map:
        for store in stores:
            check_compiled(make_task(store.run))
    _make_folder(options.out)
    to = Console(stderr=options.json)
    numbers: dict[str, Any] = {"runs": {}}
    names = dict(zip(stores, measurements.names_of([store.path for store in stores]), strict=True))
    if measured:
        runs = [(store.run, table) for store, table in measured]
        measurements.print_interference(runs, to)
        drawn = measurements.draw_measured(runs, [names[store] for store, _ in measured], options.out)
        numbers["runs"] = {str(store.path): measurements.interference_of(table) for store, table in measured}
        print(*drawn, sep="\n", file=to.file)
    if options.matrix:
        path_of = lambda store: options.out / f"{names[store]}-matrix.png"
        drawn = {str(store.path): _draw_matrix(store, matrix_options, path_of(store), to.file) for store in stores}
        numbers["matrices"] = drawn
    if options.map:
        path = options.out / f"{'-'.join(names.values())}-map.png"
        print("collecting states and laying them out…", file=sys.stderr)
        print(plot_runs([load(store.path) for store in stores], path), file=to.file)
    if options.json:
        print(json.dumps(numbers))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror}.") from error


def _matrix_options(options: argparse.Namespace) -> dict[str, int]:
    from iqrl.analysis.context_matrix import check_training

    given = {name: getattr(options, name) for name, _, _ in MATRIX_OPTIONS if getattr(options, name) is not None}
    if given and not options.matrix:
        raise BadInput(f"--{next(iter(given))} is for --matrix; give both or neither.")
    chosen = {name: default for name, default, _ in MATRIX_OPTIONS} | given
    check_training(**chosen)
    return chosen


def _draw_matrix(store: Any, training: dict[str, int], path: Path, file: Any) -> dict[str, Any]:
    from iqrl.analysis.context_matrix import context_matrix
    from iqrl.report.matrices import plot_context_matrix
    from iqrl.training.loop import load

    print(f"{store.path}: training on one context after another…", file=sys.stderr)
    matrix = context_matrix(load(store.path), **training)
    plot_context_matrix(matrix, store.run, path)
    print(f"{store.path}: change of each context's loss, mean over seeds", matrix, path, sep="\n", file=file)
    known = lambda values: [None if value != value else value for value in values]
    change = [[known(row) for row in seed] for seed in matrix.change.tolist()]
    return {"change": change, "counts": matrix.counts.tolist()}


def explain(options: argparse.Namespace) -> None:
    from iqrl.explain.page import explain as page_of
    from iqrl.training.store import RunStore

    store = RunStore.open(options.run)
    page, path = page_of(store.run, store.metrics(), options.drop), options.out or store.path / "explain.md"
    _write_page(path, page)
    print(page, end="")
    print(f"written to {path}", file=sys.stderr)


def cost(options: argparse.Namespace) -> None:
    from iqrl.analysis.cost import cost_report
    from iqrl.training.store import RunStore

    store = RunStore.open(options.run)
    numbers, lines = cost_report(store)
    if store.progress != "finished":
        lines[0] += f"; {store.progress}, and counted to its end"
    print(*lines, sep="\n", file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(numbers))


def paper(options: argparse.Namespace) -> None:
    from iqrl.paper.curves import read_curves
    from iqrl.paper.findings import findings
    from iqrl.paper.numbers import as_numbers
    from iqrl.paper.page import page
    from iqrl.paper.reanalysis import reanalyse

    curves = read_curves(options.path)
    if options.beside:
        from iqrl.paper.beside import beside, table
        from iqrl.studies.results import load_results

        print(table(beside(load_results(options.beside), curves)))
        return
    found = reanalyse(curves)
    _write_page(options.out, page(found))
    to = sys.stderr if options.json else sys.stdout
    print(*(text.replace("**", "") for text in findings(found)), sep="\n\n", file=to)
    print(f"written to {options.out}", file=sys.stderr)
    if options.json:
        print(json.dumps(as_numbers(found)))


def _write_page(path: Path, page: str) -> None:
    from iqrl.training.checkpoint import write_whole

    try:
        write_whole(path, page.encode())
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}.") from error


def list_everything(options: argparse.Namespace) -> None:
    from iqrl.methods import METHODS
    from iqrl.tasks import TASKS
    from iqrl.training.store import RUN_FILE, RunStore, describe

    if options.what in (None, "tasks"):
        print("tasks")
        for name, make in TASKS.items():
            print(f"  {name:26}{make(TaskOptions()).summary}")
        for name, what in OTHER_TASKS.items():
            print(f"  {name:26}{what}")
    if options.what in (None, "methods"):
        print("methods")
        for name, method in METHODS.items():
            print(f"  {name:20}{method.summary} ({method.source})")
    if options.what in (None, "runs"):
        files = sorted(options.dir.glob(f"*/{RUN_FILE}"))
        print(f"runs in {options.dir}" if files else f"no runs in {options.dir}")
        for file in files:
            try:
                store = RunStore.open(file.parent)
                print(f"  {file.parent}: {describe(store.run)}, {store.progress}")
            except BadInput as error:
                print(f"  {file.parent}: damaged; {error}")


def demo(options: argparse.Namespace) -> None:
    from rich.console import Console

    from iqrl.report.figures import plot_curves
    from iqrl.report.tables import print_results
    from iqrl.settings import resolve
    from iqrl.training.store import RunStore

    steps = {} if options.steps is None else {"steps": options.steps}
    results = []
    for method in DEMO_METHODS:
        run = resolve(DEMO_TASK, method, options.preset, buffer_size=1, seeds=options.seeds, **steps)
        results.append(_train_with_display(RunStore.create(options.out / f"{method}-{run.identity}", run)))
    print_results(results, Console())
    print(plot_curves([(result.run, result.steps, result.returns) for result in results], options.out / "demo.png"))


COMMANDS = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "plot": plot,
    "interference": interference,
    "explain": explain,
    "cost": cost,
    "paper": paper,
    "list": list_everything,
    "demo": demo,
    **STUDY_COMMANDS,
}

if __name__ == "__main__":
    sys.exit(main())
