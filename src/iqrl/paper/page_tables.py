"""The tables of the page about the paper, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iqrl.explain.words import count, listing
from iqrl.paper.cells import Cell
from iqrl.paper.claims import Claim
from iqrl.paper.comparisons import Comparison, Overall
from iqrl.paper.defects import Change, ChangedTest, Defects
from iqrl.paper.encoders import EncoderComparison, Side
from iqrl.paper.findings import decimals
from iqrl.paper.reanalysis import Reanalysis
from iqrl.statistics.bootstrap import Interval


def table(names: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> str:
    """The first columns hold text, the others numbers."""
    rule = "|" + "---|" * text_columns + "---:|" * (len(names) - text_columns)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(names)} |", rule, *lines])


def overall_table(before: Sequence[Overall], after: Sequence[Overall]) -> str:
    rows = [
        (
            one.method,
            one.baseline,
            "both" if one.buffer_size is None else f"{one.buffer_size:,}",
            _share(one.improvement),
            f"{one.permutation.p:.4f}",
            _share(repaired.improvement),
            f"{repaired.permutation.p:.4f}",
        )
        for one, repaired in zip(before, after, strict=True)
    ]
    names = ("method", "against", "N", "P(better)", "p", "P(better), logged curves", "p, logged curves")
    return table(names, rows, 3)


def tests_table(tests: Sequence[Comparison]) -> str:
    names = (
        "game", "N", "IQ-RE with", "against", "points", "printed p", "KS of 5 AUC", "exact p", "Holm", "ΔAUC",
        "P(better)",
    )  # fmt: skip
    return table(names, [_test_row(test) for test in tests], 5)


def _test_row(test: Comparison) -> tuple[str, ...]:
    mark = "**" if test.printed.significant else ""
    printed = f"{mark}{test.printed.cell.text}{'*' if test.printed.worse else ''}{mark}"
    return (
        test.pair.game,
        f"{test.pair.buffer_size:,}",
        test.pair.family,
        test.pair.baseline,
        test.printed_from,
        printed.replace("***", "\\***"),
        f"{test.described_p:.4f}",
        _exact(test),
        f"{test.holm_p:.2f}",
        f"{test.permutation.difference:+.2f}",
        _share(test.improvement),
    )


def _exact(test: Comparison) -> str:
    p = f"{test.permutation.p:.4f}"
    return f"**{p}**" if test.permutation.p < 0.05 else p


def claims_table(claims: Sequence[Claim]) -> str:
    rows = [(claim.what, claim.family, claim.text, claim.tables, claim.curves, claim.exact) for claim in claims]
    return table(("what", "family", "text", "printed tables", "curves", "exact test, 5%"), rows, 2)


def settings_table(found: Reanalysis) -> str:
    names = (
        "game", "N", "method", "highest: printed", "computed", "deterioration: printed", "computed", "final", "AUC"
    )  # fmt: skip
    rows = [
        (
            score.setting.game,
            f"{score.setting.buffer_size:,}",
            score.setting.method,
            *_cell(high),
            *_cell(drop),
            _interval(score.final),
            _interval(score.auc),
        )
        for high, drop, score in zip(found.highest, found.deterioration, found.scores, strict=True)
    ]
    rows += [
        (cell.setting.game, f"{cell.setting.buffer_size:,}", cell.setting.method, "", "", *_cell(cell), "", "")
        for cell in found.averages
    ]
    return table(names, rows, 3)


def _cell(cell: Cell) -> tuple[str, str]:
    computed = decimals(cell.computed, cell.printed.text)
    return cell.printed.text, computed if cell.matches else f"**{computed}**"


def changes_table(changes: Sequence[Change]) -> str:
    rows = [
        (str(change.setting), change.what, _number(change.before, change.what), _number(change.after, change.what))
        for change in changes
    ]
    return table(("setting", "number", "with the copy", "with the logged curve"), rows, 2)


def changed_tests_table(tests: Sequence[ChangedTest]) -> str:
    rows = [
        (
            str(both.before.pair),
            f"{both.before.pooled_p:.2e}",
            # By the same kind of points as the printed number.
            f"{both.after.raw_p if both.before.printed_from == 'raw' else both.after.smoothed_p:.2e}",
            f"{both.before.permutation.p:.4f}",
            f"{both.after.permutation.p:.4f}",
        )
        for both in tests
    ]
    names = ("comparison", "pooled p: with the copy", "with the logged curve", "exact p: with the copy",
             "with the logged curve")  # fmt: skip
    return table(names, rows, 1)


def zero_runs(defects: Defects) -> str:
    """Runs that never scored are equal too, which is no defect."""
    if not defects.zero_runs:
        return ""
    runs = [f"{setting} ({count(number, 'run')})" for setting, number in defects.zero_runs.items()]
    return f"Runs that never scored are equal too, but no copies: {listing(runs)}."


def encoders_table(encoders: Sequence[EncoderComparison]) -> str:
    names = (
        "game", "family", "encoder", "highest", "final", "AUC", "pooled p", "exact p", "P(RE better)"
    )  # fmt: skip
    rows = []
    for one in encoders:
        tests = f"{one.pooled_p:.2e}", f"{one.permutation.p:.3f}", _share(one.improvement)
        rows += [(one.game, one.family, "random", *_side(one.random), *tests)]
        rows += [(one.game, one.family, "trained", *_side(one.trained), "", "", "")]
    return table(names, rows, 3)


def _side(side: Side) -> tuple[str, str, str]:
    return f"{side.highest:.1f}", _interval(side.final), _interval(side.auc)


def _share(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _interval(interval: Interval) -> str:
    digits = 0 if abs(interval.value) >= 1000 else 1 if abs(interval.value) >= 1 else 2
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def _number(value: float, what: str) -> str:
    return f"{value:.3f}" if what == "deterioration" else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"
