"""What the paper's text says in numbers, against its own tables, its curves, and a test that holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from iqrl.paper.cells import Cell, average
from iqrl.paper.comparisons import Comparison
from iqrl.paper.printed import printed_deterioration, text_claims
from iqrl.paper.settings import FAMILIES


class Claim(NamedTuple):
    what: str
    family: str
    text: str
    """as the text has it"""
    tables: str
    """by the printed tables"""
    curves: str
    """by the published curves, with the paper's own way of counting"""
    exact: str
    """by the exact test at 5%, where it is a matter of a test"""


def claims(highest: list[Cell], deterioration: list[Cell], tests: list[Comparison]) -> list[Claim]:
    return [*_better_than_both(tests), *_lower_highest(highest), *_average_gaps(deterioration)]


def _better_than_both(tests: list[Comparison]) -> list[Claim]:
    said = text_claims()["atari_significantly_better_than_both_baselines"]
    printed = lambda test: test.printed.significant and not test.printed.worse
    pooled = lambda test: test.pooled_p < 0.01 and test.better
    exact = lambda test: test.permutation.p < 0.05 and test.better
    return [
        Claim(
            "settings in which IQ-RE is significantly better than both baselines",
            family,
            said[family],
            *(_both(tests, family, holds) for holds in (printed, pooled, exact)),
        )
        for family in FAMILIES
    ]


def _both(tests: list[Comparison], family: str, holds: Callable[[Comparison], bool]) -> str:
    """Settings in which a condition holds against both baselines, of all."""
    verdicts: dict[tuple[str, int], bool] = {}
    for test in tests:
        if test.pair.family == family:
            place = test.pair.game, test.pair.buffer_size
            verdicts[place] = verdicts.get(place, True) and holds(test)
    return f"{sum(verdicts.values())} of {len(verdicts)}"


def _lower_highest(cells: list[Cell]) -> list[Claim]:
    said = text_claims()["atari_IQ-RE_max_score_lower_than_a_baseline"]
    return [
        Claim(
            "settings in which IQ-RE's highest return is below a baseline's",
            family,
            said[family],
            _lower(cells, family, lambda cell: cell.printed.value),
            _lower(cells, family, lambda cell: cell.computed),
            "",
        )
        for family in FAMILIES
    ]


def _lower(cells: list[Cell], family: str, number: Callable[[Cell], float]) -> str:
    by_place = {cell.setting: number(cell) for cell in cells}
    mine = [setting for setting in by_place if setting.method == f"{family}+IQ-RE"]
    rivals = lambda setting: [by_place[setting._replace(method=family + part)] for part in ("", "+SRNN")]
    return f"{sum(by_place[setting] < max(rivals(setting)) for setting in mine)} of {len(mine)}"


def _average_gaps(cells: list[Cell]) -> list[Claim]:
    said, size = text_claims()["deterioration_average_gap_N=10000"], 10_000
    return [
        Claim(
            f"average deterioration at N=10,000, {family + part} minus IQ-RE",
            family,
            f"{said[against][family]:.3f}",
            f"{_printed_average(family + part, size) - _printed_average(f'{family}+IQ-RE', size):.3f}",
            f"{average(cells, family + part, size) - average(cells, f'{family}+IQ-RE', size):.3f}",
            "",
        )
        for against, part in (("vs base", ""), ("vs SRNN", "+SRNN"))
        for family in FAMILIES
    ]


def _printed_average(method: str, buffer_size: int) -> float:
    printed = printed_deterioration("Average", method, buffer_size)
    assert printed is not None
    return printed.value
