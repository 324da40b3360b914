"""The command that verifies files: check."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from iqrl.cli.flags import add_json, file_path
from iqrl.cli.output import text_stream
from iqrl.errors import RunFailed


def add_check(commands: Any) -> None:
    parser = commands.add_parser("check", help="verify every file of runs, studies and exports; nothing is changed")
    parser.set_defaults(command=check)
    parser.add_argument("paths", type=file_path, nargs="+", metavar="DIR", help="directories of runs, studies, exports")
    add_json(parser, "what was found")


def check(options: argparse.Namespace) -> None:
    from iqrl.experiments.integrity import check as check_directory

    findings = [finding for path in options.paths for finding in check_directory(path)]
    for finding in findings:
        text = finding.text if finding.state == "damaged" else f"{finding.path}: {finding.text}"
        print(text, file=text_stream(options))
    if options.json:
        print(json.dumps([{"path": str(it.path), "state": it.state, "text": it.text} for it in findings]))
    counts = Counter(finding.state for finding in findings)
    if counts["damaged"]:
        raise RunFailed(f"{counts['damaged']} of {len(findings)} files are damaged.")
