"""The commands about studies: study list, run, status, export and choose, and report."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iqrl.cli.flags import add_device, add_trust, file_path, whole
from iqrl.cli.output import write_text
from iqrl.errors import BadInput, RunFailed
from iqrl.plugins import trust

if TYPE_CHECKING:
    from iqrl.experiments.executors.base import Executor
    from iqrl.experiments.study.results import StudyResults


def add_study(commands: Any) -> None:
    parser = commands.add_parser("study", help="many runs as one: the tables and figures of the paper, or your own")
    parser.set_defaults(command=refuse_no_action)
    actions = parser.add_subparsers(metavar="ACTION")
    for add in (add_list, add_run, add_status, add_export, add_choose):
        add(actions)


def refuse_no_action(options: argparse.Namespace) -> None:
    raise BadInput("which action? iqrl study list, run, status, export or choose; see iqrl study --help.")


def add_list(actions: Any) -> None:
    parser = actions.add_parser("list", help="list the studies and the time that each takes on this machine")
    parser.set_defaults(command=list_studies)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="only these; a name, or a .toml file of your own")
    add_trust(parser)


def list_studies(options: argparse.Namespace) -> None:
    from rich.console import Console

    from iqrl.experiments.executors.local import available_cores
    from iqrl.experiments.study.progress import print_studies
    from iqrl.experiments.study.study import catalogue, find_study

    studies = [find_study(name) for name in options.studies] or list(catalogue().values())
    print_studies(studies, len(available_cores()), Console())


def add_run(actions: Any) -> None:
    parser = actions.add_parser("run", help="run a study, or continue it")
    parser.set_defaults(command=run_study)
    parser.add_argument("study", metavar="STUDY", help="a name of iqrl study list, or a .toml file of your own")
    parser.add_argument("--out", type=file_path, help="directory of the study (default: studies/NAME)")
    parser.add_argument("--workers", type=whole, help="runs at a time (default: one per core)")
    parser.add_argument("--executor", default="local", help="local (default) or ray")
    parser.add_argument(
        "--address", help="with --executor ray: address of the cluster (default: a cluster on this machine)"
    )
    parser.add_argument(
        "--part", type=part, metavar="I/N", help="run only part I of N, such as 1/2; iqrl study export merges the parts"
    )
    parser.add_argument(
        "--only", type=assignment, nargs="+", default=[], metavar="NAME=VALUE",
        help="run only the runs with these settings, such as method=iq; the others wait",
    )  # fmt: skip
    parser.add_argument("--seeds", type=whole, help="seeds of each run, instead of the study's")
    parser.add_argument("--steps", type=whole, help="environment steps per seed, instead of the study's")
    parser.add_argument(
        "--set", type=assignment, nargs="+", default=[], metavar="NAME=VALUE",
        help="other settings of every run, such as gamma=0.99",
    )  # fmt: skip
    parser.add_argument(
        "--reuse", type=file_path, nargs="+", default=[], metavar="DIR",
        help="directories of other studies: copy the runs that they have finished",
    )  # fmt: skip
    add_device(parser)
    add_trust(parser)
    parser.add_argument("--no-report", action="store_true", help="do not write a report at the end")


def run_study(options: argparse.Namespace) -> None:
    from iqrl.experiments.study.directory import StudyDirectory
    from iqrl.experiments.study.progress import show_study
    from iqrl.experiments.study.results import load_results
    from iqrl.experiments.study.run_study import run_study as run
    from iqrl.experiments.study.study import find_study

    changes = {name: value for name, value in (("seeds", options.seeds), ("steps", options.steps)) if value is not None}
    study = find_study(options.study).with_settings(changes | dict(options.set))
    trust(study.plugins)  # the user's own file names them
    number, count = options.part or (1, 1)
    chosen = study.select(dict(options.only))[number - 1 :: count]
    directory = StudyDirectory.create(options.out or Path("studies") / study.name, study)
    executor = _make_executor(options, directory.path)
    try:
        with show_study() as watcher:
            failures = run(directory, executor, watcher, chosen, options.reuse)
    finally:
        executor.close()
    print(f"study: {directory.path}")
    if not options.no_report:
        _write_report([load_results(directory.path)], directory.path / "report")
    if failures:
        reasons = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise RunFailed(f"{len(failures)} of {len(study.runs)} runs failed, and the others are finished: {reasons}")


def part(text: str) -> tuple[int, int]:
    try:
        number, count = map(int, text[:40].split("/"))
        if 1 <= number <= count:
            return number, count
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not I/N with I from 1 to N, such as 1/2")


def assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as gamma=0.99")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return name, value


def _make_executor(options: argparse.Namespace, path: Path) -> Executor:
    if options.executor == "local":
        from iqrl.experiments.executors.local import LocalExecutor

        if options.address:
            raise BadInput("--address is for --executor ray; give both or neither.")
        return LocalExecutor(options.workers, path / "logs")
    if options.executor == "ray":
        from iqrl.experiments.executors.ray_cluster import RayExecutor

        return RayExecutor(options.address, options.workers, trusted=options.address in options.trust)
    raise BadInput(f"unknown executor {options.executor!r}; choose from local, ray.")


def add_status(actions: Any) -> None:
    parser = actions.add_parser("status", help="which runs of a study are finished, running or failed")
    parser.set_defaults(command=print_status)
    parser.add_argument("directory", type=file_path, metavar="DIR", help="directory of the study")
    add_trust(parser)


def print_status(options: argparse.Namespace) -> None:
    from iqrl.experiments.study.directory import StudyDirectory
    from iqrl.experiments.study.progress import status_lines

    print(*status_lines(StudyDirectory.open(options.directory)), sep="\n")


def add_export(actions: Any) -> None:
    parser = actions.add_parser("export", help="write the curves as one table with a manifest; merge directories")
    parser.set_defaults(command=export_study)
    parser.add_argument(
        "directories",
        type=file_path,
        nargs="+",
        metavar="DIR",
        help="directories of one study, or exports; the first says which runs the study has",
    )
    add_trust(parser)
    parser.add_argument("--out", type=file_path, required=True, help="directory to write")
    parser.add_argument("--csv", action="store_true", help="write curves.csv too")


def export_study(options: argparse.Namespace) -> None:
    from iqrl.experiments.study.results import left_out, load_results, write_export

    results = [load_results(path) for path in options.directories]
    print(*write_export(results, options.out, options.csv), sep="\n")
    if count := left_out(results):
        print(f"left out: {count} runs of an earlier form of the study, which {options.directories[0]} does not plan")


def add_choose(actions: Any) -> None:
    parser = actions.add_parser("choose", help="write a study of the best settings of another, with other seeds")
    parser.set_defaults(command=choose_settings)
    parser.add_argument("directory", type=file_path, metavar="DIR", help="directory of the study, or an export")
    add_trust(parser)
    parser.add_argument("--over", nargs="+", required=True, metavar="SETTING", help="the settings to choose")
    parser.add_argument("--by", default="auc", help="auc (default), final or highest, of the mean curve")
    parser.add_argument("--variant", default="tuned", help="name of the chosen runs (default: tuned)")
    parser.add_argument("--seeds", type=whole, default=5, help="seeds of each chosen run (default: 5)")
    parser.add_argument("--out", type=file_path, required=True, help="the .toml file to write")


def choose_settings(options: argparse.Namespace) -> None:
    from iqrl.experiments.study.choose import choose, make_study_file
    from iqrl.experiments.study.results import load_results

    if options.out.exists():
        raise BadInput(f"{options.out} exists; choose another file.")
    if options.seeds < 1:
        raise BadInput(f"--seeds must be at least 1, got {options.seeds}.")
    results = load_results(options.directory)
    choices = choose(results, options.over, options.by)
    file = make_study_file(results, choices, options.over, options.by, options.variant, options.seeds)
    write_text(options.out, file)
    for choice in choices:
        varied = ", ".join(f"{name} {choice.run.config[name]}" for name in choice.run.varied)
        print(f"{options.by} {choice.value:9.1f}  {varied}")


def add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report", help="write one page of studies: tables beside those of the paper, charts, figures"
    )
    parser.set_defaults(command=report)
    parser.add_argument("studies", type=file_path, nargs="+", metavar="DIR", help="directories of studies, or exports")
    add_trust(parser)
    parser.add_argument("--out", type=file_path, default=Path("report"), help="directory to write (default: report)")


def report(options: argparse.Namespace) -> None:
    from iqrl.experiments.study.results import load_results

    paths = list(dict.fromkeys(path.resolve() for path in options.studies))
    _write_report([load_results(path) for path in paths], options.out)


def _write_report(results: list[StudyResults], out: Path) -> None:
    from iqrl.experiments.report.cells import unfinished_text
    from iqrl.experiments.report.write import write_report

    for study in results:
        if study.unfinished:
            print(f"{study.name}: {unfinished_text(study)}", file=sys.stderr)
        for column in set(study.charts) - set(study.curves.columns):
            print(f"{study.name}: no run has the column {column!r}, so it has no chart.", file=sys.stderr)
    written = write_report(results, out)
    for finding in written.findings:
        print(f"- {finding}")
    print(f"report: {written.files[0]}, with {len(written.files) - 1} tables and figures in the same directory")
