"""The claims of the paper, measured: `claims.toml` says which runs each is about, `results/` has them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from iqrl.experiments.study.results import load_results
from iqrl.reproduction.claims.contrasts import MEASURES, Contrast, MeasuredStudy, contrast, measure_study, select
from iqrl.reproduction.claims.observations import KINDS, Observation
from iqrl.reproduction.claims.verdicts import NOT_RUN, support, verdict
from iqrl.statistics.significance import holm

Side = Mapping[str, Any]
Known = dict[tuple[str, tuple[str, ...]], Contrast | None]


class MeasuredPart(NamedTuple):
    """One statement of a claim: contrasts that it names, or an observation."""

    says: str
    """better, worse or alike; empty for an observation"""
    about: str
    """which runs, where a claim has several parts"""
    measures: tuple[str, ...]
    contrasts: list[Contrast]
    observation: Observation | None
    counts: bool = True
    """whether it is part of the verdict; otherwise it is shown beside"""


class MeasuredClaim(NamedTuple):
    number: int
    entry: Mapping[str, Any]
    """as in claims.toml"""
    parts: list[MeasuredPart]

    @property
    def found(self) -> list[str]:
        """A word per rival and measure that the claim is about, and per observation."""
        words = [
            support(one, measure, part.says)
            for part in self.counting
            for one in part.contrasts
            for measure in part.measures
        ]
        return words + [word for part in self.counting if part.observation for word in part.observation.found]

    @property
    def counting(self) -> list[MeasuredPart]:
        return [part for part in self.parts if part.counts]

    @property
    def verdict(self) -> str:
        if self.parts and not any(part.contrasts or part.observation for part in self.parts):
            return NOT_RUN
        return self.entry.get("verdict") or verdict(self.found)


def read_claims() -> list[dict[str, Any]]:
    text = resources.files("iqrl.reproduction.claims").joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["claim"]


def measure_claims(results: Path) -> tuple[list[MeasuredClaim], int]:
    """All claims from the studies in a directory, and how many tests they were corrected for."""
    entries = read_claims()
    names = {name for entry in entries for part in entry.get("part", ()) for name in studies_of(part)}
    studies = {name: measure_study(load_results(results / name)) for name in sorted(names) if (results / name).is_dir()}
    known: Known = {}
    claims = [
        MeasuredClaim(number, entry, [_measure(part, studies, known) for part in entry.get("part", ())])
        for number, entry in enumerate(entries, 1)
    ]
    # Several claims rest on the same runs: a test that is named twice is one test.
    tests = {(one.key, name): effect.p for one in _contrasts(claims) for name, effect in one.effects.items()}
    adjusted = dict(zip(tests, holm(list(tests.values())).tolist(), strict=True))
    return [_corrected(claim, adjusted) for claim in claims], len(tests)


def studies_of(part: Mapping[str, Any]) -> list[str]:
    """The study of a part, and that of its second side where it is another."""
    return [part[name] for name in ("study", "others_study") if name in part]


def _contrasts(claims: list[MeasuredClaim]) -> Iterator[Contrast]:
    return (one for claim in claims for part in claim.parts for one in part.contrasts)


def _corrected(claim: MeasuredClaim, adjusted: Mapping[tuple[str, str], float]) -> MeasuredClaim:
    correct = lambda one: one._replace(
        effects={name: effect._replace(adjusted=adjusted[one.key, name]) for name, effect in one.effects.items()}
    )
    return claim._replace(
        parts=[part._replace(contrasts=[correct(one) for one in part.contrasts]) for part in claim.parts]
    )


def _measure(part: Mapping[str, Any], studies: Mapping[str, MeasuredStudy], known: Known) -> MeasuredPart:
    """Nothing where its study has not been run."""
    of_part = [studies.get(name) for name in studies_of(part)]
    study, others = of_part[0], of_part[-1]
    measures, about = tuple(part.get("measures", ())), part.get("about", "")
    if study is None or others is None:
        return MeasuredPart(part.get("says", ""), about, measures, [], None)
    counts = part.get("counts", True)
    if "kind" in part:
        return MeasuredPart("", about, measures, [], KINDS[part["kind"]](study, part), counts)
    pairs = [(own, other) for own in _sides(part["own"]) for other in _sides(part["others"])]
    shown = (*measures, *part.get("also", ()))
    found = [_contrast((study, others), part.get("within", {}), own, other, shown, known) for own, other in pairs]
    return MeasuredPart(part["says"], about, measures, [one for one in found if one], None, counts)


def _contrast(
    studies: tuple[MeasuredStudy, MeasuredStudy],
    within: Side,
    own: Side,
    other: Side,
    measures: tuple[str, ...],
    known: Known,
) -> Contrast | None:
    """Several claims may be about the same runs: these are measured once."""
    key = json.dumps([[study.results.name for study in studies], within, own, other])
    place = key, tuple(sorted(set(measures) - set(MEASURES)))
    if place not in known:
        runs, others = (select(study.runs, within) for study in studies)
        found = contrast(runs, own, other, measures, others)
        known[place] = found._replace(key=key) if found else None
    return known[place]


def _sides(sides: Any) -> list[Side]:
    return sides if isinstance(sides, list) else [sides]
