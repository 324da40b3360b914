"""The commands about studies: list, run, status, export, choose, report. No logic of their own."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

from iqrl.cli_settings import add_device, whole
from iqrl.errors import BadInput, PackagesMissing, RunFailed


def add_study_parsers(commands: argparse._SubParsersAction, parser_class: type) -> dict[str, Any]:
    """The parsers by the words that name them, such as "study run"."""
    study = commands.add_parser("study", help="many runs as one: the paper's tables and figures, or a grid of your own")
    actions = study.add_subparsers(dest="action", metavar="ACTION", parser_class=parser_class)
    parsers: dict[str, Any] = {"study": study}

    def add(name: str, help: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help, allow_abbrev=False)
        parser.set_defaults(command=f"study {name}")
        parsers[f"study {name}"] = parser
        return parser

    listing = add("list", "the studies there are, and what each costs here")
    listing.add_argument("studies", nargs="*", metavar="STUDY", help="only these; a name, or a .toml file of your own")

    run = add("run", "run a study, or go on with it")
    run.add_argument("study", metavar="STUDY", help="a name of iqrl study list, or a .toml file of your own")
    run.add_argument("--out", type=Path, help="its directory (default: studies/NAME)")
    run.add_argument("--workers", type=whole, help="runs at a time (default: one per core)")
    run.add_argument("--executor", default="local", help="local (default) or ray")
    run.add_argument(
        "--address", help="with --executor ray: the cluster's address (default: a cluster of this machine)"
    )
    run.add_argument("--part", help="only part I of N, such as 1/2: the parts of several machines merge in an export")
    run.add_argument("--seeds", type=whole, help="seeds of each run, instead of the study's")
    run.add_argument("--steps", type=whole, help="environment steps per seed, instead of the study's")
    run.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings of every run, such as gamma=0.99"
    )
    run.add_argument(
        "--reuse", type=Path, nargs="+", default=[], metavar="DIR",
        help="directories of other studies: what they have finished is copied, not run again",
    )  # fmt: skip
    add_device(run)
    run.add_argument("--no-report", action="store_true", help="do not write the report when it ends")

    status = add("status", "how far a study is")
    status.add_argument("directory", type=Path, metavar="DIR", help="directory of the study")

    export = add("export", "the curves as one table, with a manifest; several directories are merged")
    export.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="directories of one study, or exports")
    export.add_argument("--out", type=Path, required=True, help="directory to write")
    export.add_argument("--csv", action="store_true", help="write curves.csv too")

    choose = add(
        "choose",
        "the best settings a study found, written as a study of their own: of the usual length, on other seeds",
    )
    choose.add_argument("directory", type=Path, metavar="DIR", help="directory of the study, or an export")
    choose.add_argument("--over", nargs="+", required=True, metavar="SETTING", help="the settings to choose")
    choose.add_argument("--by", default="auc", help="auc (default), final or highest, of the mean curve")
    choose.add_argument("--variant", default="tuned", help="what the chosen runs are called (default: tuned)")
    choose.add_argument("--out", type=Path, required=True, help="the .toml file to write")

    report = commands.add_parser("report", help="one page of studies: tables beside the paper's, charts, figures")
    report.add_argument("studies", type=Path, nargs="+", metavar="DIR", help="directories of studies, or exports")
    report.add_argument("--out", type=Path, default=Path("report"), help="directory to write (default: report)")
    return parsers | {"report": report}


def study_help(options: argparse.Namespace) -> None:
    raise BadInput("which action? iqrl study list, run, status, export or choose; see iqrl study --help.")


def list_studies(options: argparse.Namespace) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from iqrl.studies.estimate import seconds_of, total_seconds
    from iqrl.studies.local import available_cores
    from iqrl.studies.progress import duration
    from iqrl.studies.study import catalogue, find_study

    studies = [find_study(name) for name in options.studies] or list(catalogue().values())
    cores = len(available_cores())
    table = Table("study", "what", "runs × seeds", "steps", "time here", box=box.SIMPLE)
    table.columns[0].no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    for study in studies:
        try:
            runs = list(study.runs.values())
        except PackagesMissing as missing:
            table.add_row(study.name, study.title, f"needs {missing.extra}")
            continue
        steps = sum(run.steps * run.seeds for run in runs)
        seconds = total_seconds(map(seconds_of, runs), cores)
        seeds = "–".join(map(str, sorted({min(run.seeds for run in runs), max(run.seeds for run in runs)})))
        total = f"{steps / 1e6:,.1f} M" if steps >= 1e6 else f"{steps:,}"
        table.add_row(study.name, study.title, f"{len(runs)} × {seeds}", total, duration(seconds))
    Console().print(table)
    print(f"times are estimates for the {cores} core{'s' * (cores > 1)} of this machine")


def run_study(options: argparse.Namespace) -> None:
    from iqrl.studies.conduct import conduct
    from iqrl.studies.directory import StudyDirectory
    from iqrl.studies.progress import display
    from iqrl.studies.study import find_study

    changes = {name: value for name, value in (("seeds", options.seeds), ("steps", options.steps)) if value is not None}
    study = find_study(options.study).changed(changes | dict(map(_assignment, options.set)))
    chosen = _part(list(study.runs.values()), options.part)
    directory = StudyDirectory.create(options.out or Path("studies") / study.name, study)
    executor = _executor(options, directory.path)
    try:
        with display() as watcher:
            failures = conduct(directory, executor, watcher, chosen, options.reuse)
    finally:
        executor.close()
    print(f"study: {directory.path}")
    if not options.no_report:
        from iqrl.studies.results import load_results

        _write_report([load_results(directory.path)], directory.path / "report")
    if failures:
        reasons = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise RunFailed(f"{len(failures)} of {len(study.runs)} runs failed, and the others are there: {reasons}")


def _executor(options: argparse.Namespace, path: Path) -> Any:
    if options.executor == "local":
        from iqrl.studies.local import LocalExecutor

        if options.address:
            raise BadInput("--address is for --executor ray; give both or neither.")
        return LocalExecutor(options.workers, path / "logs")
    if options.executor == "ray":
        from iqrl.studies.ray_cluster import RayExecutor

        return RayExecutor(options.address, options.workers)
    raise BadInput(f"unknown executor {options.executor!r}; choose from local, ray.")


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInput(f"--set takes NAME=VALUE, such as gamma=0.99, got {text!r}.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except ValueError:
        return name, value


def _part(runs: list, part: str | None) -> list:
    if part is None:
        return runs
    try:
        number, count = map(int, part.split("/"))
        if not 1 <= number <= count:
            raise ValueError
    except ValueError:
        raise BadInput(f"--part takes I/N with I from 1 to N, such as 1/2, got {part!r}.") from None
    return runs[number - 1 :: count]


def study_status(options: argparse.Namespace) -> None:
    from iqrl.studies.directory import StudyDirectory
    from iqrl.studies.work import reported

    directory = StudyDirectory.open(options.directory)
    runs = directory.study.runs.values()
    finished = sum(directory.is_finished(run) for run in runs)
    state = "" if finished == len(runs) or directory.is_running else "; nothing is running, the same command goes on"
    print(f"{directory.path}: {directory.study.title}; {finished} of {len(runs)} runs finished{state}")
    for run in runs:
        unit = directory.unit_of(run)
        if said := reported(unit):
            print(f"  running {unit.name}: step {said[0]:,} of {run.steps:,}, {said[1]:,.0f} steps/s")
    for name, why in directory.failures().items():
        print(f"  failed {name}: {why}")


def export_study(options: argparse.Namespace) -> None:
    from iqrl.studies.export import export
    from iqrl.studies.results import load_results

    results = [load_results(path) for path in options.directories]
    print(*export(results, options.out, options.csv), sep="\n")


def choose_settings(options: argparse.Namespace) -> None:
    from iqrl.studies.choose import as_study, choose
    from iqrl.studies.results import load_results
    from iqrl.training.checkpoint import write_whole

    if options.out.exists():
        raise BadInput(f"{options.out} exists; choose another file.")
    results = load_results(options.directory)
    chosen = choose(results, options.over, options.by)
    for record, value in chosen:
        named = ", ".join(f"{name} {record.config[name]}" for name in (*record.varied,))
        print(f"{options.by} {value:9.1f}  {named}")
    try:
        write_whole(options.out, as_study(results, chosen, options.over, options.by, options.variant).encode())
    except OSError as error:
        raise BadInput(f"cannot write {options.out}: {error.strerror}.") from error
    print(f"written to {options.out}", file=sys.stderr)


def report(options: argparse.Namespace) -> None:
    from iqrl.studies.results import load_results

    paths = list(dict.fromkeys(path.resolve() for path in options.studies))
    _write_report([load_results(path) for path in paths], options.out)


def _write_report(results: list, out: Path) -> None:
    from iqrl.report.grid import unfinished_text
    from iqrl.report.write import write_report

    for study in results:
        if study.unfinished:
            print(f"{study.name}: {unfinished_text(study)}", file=sys.stderr)
        for column in set(study.charts) - set(study.curves.columns):
            print(f"{study.name}: there is no chart of {column!r}, which no run has.", file=sys.stderr)
    written = write_report(results, out)
    print(f"report: {written[0]}, and {len(written) - 1} tables and figures beside it")


STUDY_COMMANDS = {
    "study": study_help,
    "study list": list_studies,
    "study run": run_study,
    "study status": study_status,
    "study export": export_study,
    "study choose": choose_settings,
    "report": report,
}
