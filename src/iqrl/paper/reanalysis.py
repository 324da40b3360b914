"""Every Atari number of the paper, computed again from its authors' curves."""

from __future__ import annotations

from dataclasses import dataclass

from iqrl.paper.calibration import FalseAlarms, false_alarms
from iqrl.paper.cells import Cell, Scores, average_cells, deterioration_cells, highest_cells, scores
from iqrl.paper.claims import Claim, claims
from iqrl.paper.comparisons import Comparison, Overall, compare, overall
from iqrl.paper.curves import AuthorsCurves
from iqrl.paper.defects import Defects, defects
from iqrl.paper.encoders import EncoderComparison, compare_encoders


@dataclass(frozen=True)
class Reanalysis:
    highest: list[Cell]
    deterioration: list[Cell]
    averages: list[Cell]
    scores: list[Scores]
    tests: list[Comparison]
    overall: list[Overall]
    false_alarms: FalseAlarms
    defects: Defects
    encoders: list[EncoderComparison]
    claims: list[Claim]


def reanalyse(curves: AuthorsCurves) -> Reanalysis:
    highest, deterioration = highest_cells(curves.runs), deterioration_cells(curves.runs)
    tests = compare(curves.runs)
    return Reanalysis(
        highest,
        deterioration,
        average_cells(deterioration),
        scores(curves.runs),
        tests,
        overall(curves.runs),
        false_alarms(curves.runs),
        defects(curves, tests),
        compare_encoders(curves),
        claims(highest, deterioration, tests),
    )
