"""The commands that say why a run went as it did: interference, explain, cost."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from iqrl.cli.flags import RUN_OR_FILE, add_json, add_run, add_runs, decimal, file_path, whole
from iqrl.cli.output import make_directory, text_stream, write_text
from iqrl.errors import BadInput

MATRIX_FLAGS = {
    "updates": (1000, "updates on one context"),
    "settle": (1000, "updates on all contexts before those"),
    "contexts": (3, "number of clusters of states, for an agent that has one context"),
}
"""default and help of the flags that go with --matrix"""


def add_interference(commands: Any) -> None:
    parser = commands.add_parser(
        "interference", help="interference that was measured while training; matrix and map of contexts of any run"
    )
    parser.set_defaults(command=interference)
    add_runs(parser)
    parser.add_argument(
        "--out", type=file_path, default=Path("interference"), help="directory of the figures (default: interference)"
    )
    parser.add_argument(
        "--matrix", action="store_true", help="train the agents on one context and measure the losses of all contexts"
    )
    for name, (default, text) in MATRIX_FLAGS.items():
        parser.add_argument(f"--{name}", type=whole, help=f"with --matrix: {text} (default: {default})")
    parser.add_argument("--map", action="store_true", help="draw the states of each run by t-SNE, coloured by context")
    add_json(parser, "the numbers")


def interference(options: argparse.Namespace) -> None:
    training = _matrix_training(options)  # before the imports: an error in flags appears at once

    from rich.console import Console

    from iqrl.diagnostics.analysis.context_matrix import check_training
    from iqrl.diagnostics.analysis.experience import check_compiled
    from iqrl.envs.registry import make_task
    from iqrl.experiments.report.interference_tables import is_measured
    from iqrl.experiments.report.terminal import report_map, report_matrices, report_measured
    from iqrl.training.run_directory import RunStore

    stores = [RunStore.open(path) for path in options.runs]
    if not (any([is_measured(store.metrics()) for store in stores]) or options.matrix or options.map):
        raise BadInput(
            f"{stores[0].path} has no measurements; train with --measure-every 100, or use what needs none: "
            f"--matrix, --map."
        )
    check_training(**training)
    if options.matrix or options.map:
        for store in stores:
            check_compiled(make_task(store.run))
    make_directory(options.out)
    console = Console(file=text_stream(options))
    numbers: dict[str, Any] = {"runs": report_measured(stores, options.out, console)}
    if options.matrix:
        numbers["matrices"] = report_matrices(stores, training, options.out, console)
    if options.map:
        report_map(stores, options.out, console)
    if options.json:
        print(json.dumps(numbers))


def _matrix_training(options: argparse.Namespace) -> dict[str, int]:
    given = {name: getattr(options, name) for name in MATRIX_FLAGS if getattr(options, name) is not None}
    if given and not options.matrix:
        raise BadInput(f"--{next(iter(given))} is for --matrix; give both or neither.")
    return {name: default for name, (default, _) in MATRIX_FLAGS.items()} | given


def add_explain(commands: Any) -> None:
    parser = commands.add_parser("explain", help="what became of a run, what went with it, and what to try")
    parser.set_defaults(command=explain)
    add_run(parser, RUN_OR_FILE)
    parser.add_argument(
        "--drop",
        type=decimal,
        default=0.25,
        help="a fall is a loss of this share of the range of returns (default: 0.25)",
    )
    parser.add_argument(
        "--out",
        type=file_path,
        help="the page to write, with its picture beside it (default: explain.md in RUN, or beside a file)",
    )
    add_json(parser, "what was found")


def explain(options: argparse.Namespace) -> None:
    from iqrl.diagnostics.explain.diagnosis import diagnose
    from iqrl.diagnostics.explain.page import as_data, write_page
    from iqrl.diagnostics.explain.picture import draw_falls
    from iqrl.training.model_file import curves_of

    found = curves_of(options.run)
    diagnosis = diagnose(found.run, found.metrics, options.drop, bool(found.stopped), found.step)
    beside = options.run / "explain.md" if options.run.is_dir() else options.run.with_suffix(".explain.md")
    path = options.out or beside
    picture = path.with_suffix(".svg")
    own = shlex.quote(str(options.run))
    write_text(path, write_page(diagnosis, picture.name, own))
    if path.is_file():  # and no device
        write_text(picture, draw_falls(diagnosis))
    print(write_page(diagnosis, path=own), end="", file=text_stream(options))  # a terminal shows no picture
    if options.json:
        print(json.dumps({"run": str(options.run), "page": str(path)} | as_data(diagnosis, own)))


def add_cost(commands: Any) -> None:
    parser = commands.add_parser("cost", help="floating-point operations of a run, and where its time goes")
    parser.set_defaults(command=cost)
    add_run(parser)
    add_json(parser, "the numbers")


def cost(options: argparse.Namespace) -> None:
    from iqrl.diagnostics.analysis.cost import cost_report
    from iqrl.training.run_directory import RunStore

    store = RunStore.open(options.run)
    numbers, lines = cost_report(store)
    if store.progress != "finished":
        lines[0] += f" ({store.progress}; this is the cost of the whole run)"
    print(*lines, sep="\n", file=text_stream(options))
    if options.json:
        print(json.dumps(numbers))
