"""The head of the page: what was run, with what, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from iqrl.explain.words import count
from iqrl.report.grid import Found
from iqrl.report.page.parts import verdict_text
from iqrl.studies.results import RunRecord, StudyResults


def facts(studies: Sequence[StudyResults]) -> str:
    """A list of terms; runs that are in several studies count once."""
    runs = list({run.id: run for study in studies for run in study.runs}.values())
    unfinished = sum(study.unfinished for study in studies)
    steps = sum(run.config.get("seeds", 1) * run.config.get("steps", 0) for run in runs)
    per_seed = _spread([run.config.get("steps") for run in runs], "per seed")
    lines = {
        "runs": f"{len(runs):,}" + (f", and {unfinished:,} planned but not finished" if unfinished else ""),
        "seeds": _spread([run.config.get("seeds") for run in runs], "per run"),
        "steps": f"{steps:,} environment steps in all; {per_seed}",
        "speed": _speed(runs),
        "versions": _counted([_joined(run.info.get("versions")) for run in runs]),
        "commit": _counted([run.info.get("commit") for run in runs]),
        "machine": _counted([_machine(run.info.get("machine")) for run in runs]),
    }
    return "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in lines.items() if text)


def contents(studies: Sequence[tuple[StudyResults, Found]]) -> str:
    """A line per study: its title, how many runs, and how they compare."""
    rows = []
    for number, (study, found) in enumerate(studies):
        notes = [count(len(study.runs), "run"), verdict_text(found) if "return" in study.charts else ""]
        notes += [f"{study.unfinished:,} not finished"] if study.unfinished else []
        about = "; ".join(filter(None, notes))
        rows.append(f'<li><a href="#study-{number}">{escape(study.title)}</a><span>{escape(about)}</span></li>')
    return "".join(rows)


def _spread(values: Sequence[Any], of_what: str) -> str:
    known = sorted({value for value in values if value is not None})
    if not known:
        return ""
    text = f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
    return f"{text} {of_what}"


def _speed(runs: Sequence[RunRecord]) -> str:
    speeds = [(run.info.get("timing") or {}).get("steps_per_second") for run in runs]
    known = [speed for speed in speeds if speed]
    return f"{np.median(known):,.0f} steps per second (median of runs)" if known else ""


def _counted(texts: Sequence[str | None]) -> str:
    """What all share, or each with the number of runs that have it."""
    counts = Counter(text for text in texts if text)
    if len(counts) <= 1 and sum(counts.values()) == len(texts):
        return "".join(counts)
    return "; ".join(f"{text} ({count(number, 'run')})" for text, number in counts.most_common())


def _joined(versions: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {version}" for name, version in (versions or {}).items())


def _machine(machine: Any) -> str:
    if not isinstance(machine, dict):
        return str(machine or "")
    cores = machine.get("cores")
    known = [machine.get("processor"), count(cores, "core") if cores else "", machine.get("system")]
    return ", ".join(str(part) for part in known if part)
