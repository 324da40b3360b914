"""The command about the paper's own data: paper."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from iqrl.cli.flags import add_json, add_trust, file_path
from iqrl.cli.output import text_stream, write_text


def add_paper(commands: Any) -> None:
    parser = commands.add_parser("paper", help="the paper's Atari tables, computed again from its authors' curves")
    parser.set_defaults(command=paper)
    parser.add_argument(
        "path", type=file_path, metavar="PATH", help="a clone of the authors' repository, or an .npz file"
    )
    parser.add_argument(
        "--beside",
        type=file_path,
        metavar="STUDY",
        help="compare the Atari runs of a study with the authors'; no page",
    )
    parser.add_argument("--out", type=file_path, default=Path("paper.md"), help="the page to write (default: paper.md)")
    add_json(parser, "the numbers")
    add_trust(parser)


def paper(options: argparse.Namespace) -> None:
    from iqrl.reproduction.authors_curves import read_curves
    from iqrl.reproduction.findings import list_findings
    from iqrl.reproduction.page import render_page
    from iqrl.reproduction.reanalysis import reanalyse, to_plain_data

    curves = read_curves(options.path)
    if options.beside:
        from iqrl.experiments.study.results import load_results
        from iqrl.reproduction.beside import match_runs, render_matches

        print(render_matches(match_runs(load_results(options.beside), curves)))
        return
    found = reanalyse(curves)
    write_text(options.out, render_page(found))
    print(*(text.replace("**", "") for text in list_findings(found)), sep="\n\n", file=text_stream(options))
    if options.json:
        print(json.dumps(to_plain_data(found)))
