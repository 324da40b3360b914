"""The page about the paper's Atari results, in Markdown: findings first, then every number in tables.

A table is data until `render_table` makes Markdown of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from iqrl.diagnostics.text import count, listing
from iqrl.reproduction.findings import list_findings, round_like
from iqrl.reproduction.printed import ITERATIONS, RUNS, SMOOTHING, PrintedP
from iqrl.reproduction.reanalysis import (
    Change,
    ChangedTest,
    Claim,
    Defects,
    EncoderComparison,
    EncoderScores,
    Reanalysis,
)
from iqrl.reproduction.tables import Comparison, OverallComparison, RecomputedNumber
from iqrl.statistics.intervals import Interval

REPOSITORY = "https://github.com/Sweety-dm/Interference-aware-Deep-Q-learning"


def render_page(found: Reanalysis) -> str:
    findings = "\n".join(f"{i}. {text}" for i, text in enumerate(list_findings(found), 1))
    sections = [
        _introduction(),
        f"## Findings\n\n{findings}",
        _overall_section(found),
        _claims_section(found),
        _tests_section(found),
        _defects_section(found.defects),
        _encoders_section(found),
        _settings_section(found),
        _explanation(),
    ]
    return "\n\n".join(sections) + "\n"


# Sections


def _introduction() -> str:
    return (
        f"# The paper's Atari results, from its authors' own curves\n\n"
        f"The authors of *Catastrophic Interference in Reinforcement Learning: A Solution Based on Context Division "
        f"and Knowledge Distillation* published the training curves behind their Atari tables "
        f"([repository]({REPOSITORY}), MIT License): 6 games, 2 replay capacities N, 6 methods, {RUNS} runs each of "
        f"{ITERATIONS} iterations, and a comparison of two encoders. This page computes the paper's numbers again "
        f"from these curves, and puts beside them what {RUNS} runs can show. It is about the numbers only, not about "
        f"why a method does better.\n\n"
        f"What was run is not quite what the paper describes. In the released code λ is evaluated once, at ε = 1, so "
        f"the distillation has no weight; the heads share one set of weights; there are no target centroids. And "
        f"IQ-RE's network has a shared layer of 128 units after the 512 that its DQN and Rainbow lack. A gain of IQ-RE "
        f"here is a gain of that network over a smaller one, until a run says otherwise (`--preset as-released`, "
        f"[differences.md](differences.md)).\n\n"
        f"Made by `iqrl paper PATH --out FILE`, where PATH is a clone of that repository."
    )


def _overall_section(found: Reanalysis) -> str:
    return (
        "## IQ-RE against each baseline, over all games\n\n"
        "P(better): the probability that a run of IQ-RE has a larger AUC than a run of the baseline, averaged over the "
        "games (one half: no difference), with a 95% bootstrap interval. p: permutation test of the same number, "
        "with the runs split at random within each game; not corrected. The last two columns use the logged curves in "
        "place of the copies.\n\n" + render_table(overall_table(found.overall, found.defects.overall)) + "\n\n"
        "The same for what SRNN adds to its base:\n\n" + render_table(srnn_table(found.srnn))
    )


def _claims_section(found: Reanalysis) -> str:
    return (
        "## What the text claims\n\n"
        "Each claim beside the printed tables, and beside the curves counted in the paper's own way (significant: "
        "pooled test at 1% and the larger mean AUC; highest returns are not rounded, so equal printed numbers may "
        "differ).\n\n" + render_table(claims_table(found.claims))
    )


def _tests_section(found: Reanalysis) -> str:
    return (
        "## Test by test\n\n"
        "*points*: which pooled points give the printed p-value: those of the drawn curves (smoothed), the raw ones, "
        "or both. Printed in bold: marked as significant; with an asterisk: marked as worse than SRNN. *KS of 5 AUC*: "
        "the test that the text describes. *exact p*: permutation test of the AUC of 5 runs against 5, all 252 splits; "
        "bold below .05. *Holm*: the same, corrected for all comparisons. *ΔAUC*: IQ-RE's mean minus the baseline's, "
        "in game score.\n\n" + render_table(tests_table(found.tests))
    )


def _defects_section(defects: Defects) -> str:
    parts = ["## Runs saved twice"]
    parts += ["No two runs of a setting are equal, except runs that never scored."] if not defects.copies else []
    if defects.changes:
        parts += [
            "Each of these settings holds one curve twice, but one of the two runs logged another curve. The numbers "
            "with the copy, and with the logged curve in its place:",
            render_table(changes_table(defects.changes)),
            render_table(changed_tests_table(defects.tests)),
        ]
    elif defects.copies:
        parts += ["The runs that were overwritten have no log, so their curves are lost."]
    if defects.elsewhere:
        pairs = "; ".join(f"{first} and {second}" for first, second in defects.elsewhere)
        parts += [f"Settings that share a curve: {pairs}."]
    if defects.zero_runs:
        runs = [f"{setting} ({count(number, 'run')})" for setting, number in defects.zero_runs.items()]
        parts += [f"Runs that never scored are equal too, but they are not copies: {listing(runs)}."]
    return "\n\n".join(parts)


def _encoders_section(found: Reanalysis) -> str:
    return (
        "## Random against trained encoder\n\n"
        "N = 10,000. *pooled p*: the paper's own test, which it did not apply here. Intervals are 95%, "
        f"by bootstrap of {RUNS} runs. *deterioration*: of the mean curve, without a test.\n\n"
        + render_table(encoders_table(found.encoders))
    )


def _settings_section(found: Reanalysis) -> str:
    return (
        "## Every setting\n\n"
        "Computed numbers in bold do not round to the printed ones. *final*: mean of the last tenth of the iterations; "
        f"*AUC*: mean of all; both with a 95% bootstrap interval of {RUNS} runs.\n\n"
        + render_table(settings_table(found))
    )


def _explanation() -> str:
    return (
        "## How to read this\n\n"
        f"*drawn curve*: means of {SMOOTHING} consecutive iterations, as in the paper's figures; its tables are made "
        "of these. *highest*: the maximum of the mean curve, which is optimistic for noisy curves. *deterioration*: "
        "the largest drop of the mean curve below its maximum so far, over its range; the maximum counts from the "
        "second point on. *pooled p*: two-sample Kolmogorov–Smirnov test of all points of all runs; points of one run "
        "resemble each other, so they are worth fewer observations than their number. *exact p*: of all ways to split "
        "ten runs into two sides of five, the share in which the mean AUC differs at least as much; the smallest "
        "possible is 2/252 = .0079. A comparison that is not significant does not show that methods are equal: with "
        "five runs a side only large differences can be seen. Bootstrap intervals of five runs are too narrow: a "
        "nominal 95% interval holds the true mean in about 83% of all samples."
    )


# Tables


class Strong(NamedTuple):
    """A cell that stands out."""

    text: str


class Table(NamedTuple):
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Strong]]
    text_columns: int
    """how many columns hold text, from the left; the others hold numbers"""


def render_table(table: Table) -> str:
    """In Markdown: text to the left, numbers to the right."""
    lines = [
        f"| {' | '.join(table.columns)} |",
        "|" + "---|" * table.text_columns + "---:|" * (len(table.columns) - table.text_columns),
        *[f"| {' | '.join(map(_render_cell, row))} |" for row in table.rows],
    ]
    return "\n".join(lines)


def _render_cell(cell: str | Strong) -> str:
    text = (cell.text if isinstance(cell, Strong) else cell).replace("*", "\\*")
    return f"**{text}**" if isinstance(cell, Strong) else text


def overall_table(before: Sequence[OverallComparison], after: Sequence[OverallComparison]) -> Table:
    columns = ("method", "against", "N", "P(better)", "p", "P(better), logged curves", "p, logged curves")
    rows = [
        (
            *_names(one),
            _probability(one.improvement),
            f"{one.permutation.p:.4f}",
            _probability(repaired.improvement),
            f"{repaired.permutation.p:.4f}",
        )
        for one, repaired in zip(before, after, strict=True)
    ]
    return Table(columns=columns, rows=rows, text_columns=3)


def srnn_table(found: Sequence[OverallComparison]) -> Table:
    columns = ("method", "against", "N", "P(better)", "p")
    rows = [(*_names(one), _probability(one.improvement), f"{one.permutation.p:.4f}") for one in found]
    return Table(columns=columns, rows=rows, text_columns=3)


def _names(one: OverallComparison) -> tuple[str, str, str]:
    return one.method, one.baseline, "both" if one.buffer_size is None else f"{one.buffer_size:,}"


def claims_table(claims: Sequence[Claim]) -> Table:
    columns = ("what", "family", "text", "printed tables", "curves", "exact test, 5%")
    rows = [(claim.what, claim.family, claim.text, claim.tables, claim.curves, claim.exact) for claim in claims]
    return Table(columns=columns, rows=rows, text_columns=2)


def tests_table(tests: Sequence[Comparison]) -> Table:
    columns = (
        "game", "N", "IQ-RE with", "against", "points", "printed p", "KS of 5 AUC", "exact p", "Holm", "ΔAUC",
        "P(better)",
    )  # fmt: skip
    return Table(columns=columns, rows=[_test_row(test) for test in tests], text_columns=5)


def _test_row(test: Comparison) -> tuple[str | Strong, ...]:
    exact = f"{test.permutation.p:.4f}"
    return (
        test.pair.game,
        f"{test.pair.buffer_size:,}",
        test.pair.family,
        test.pair.baseline,
        test.printed_from,
        _printed_p(test.printed),
        f"{test.described_p:.4f}",
        Strong(exact) if test.permutation.p < 0.05 else exact,
        f"{test.holm_p:.2f}",
        f"{test.permutation.difference:+.2f}",
        _probability(test.improvement),
    )


def _printed_p(printed: PrintedP) -> str | Strong:
    text = printed.cell.text + "*" * printed.worse
    return Strong(text) if printed.significant else text


def changes_table(changes: Sequence[Change]) -> Table:
    columns = ("setting", "number", "with the copy", "with the logged curve")
    rows = [
        (str(change.setting), change.what, _number(change.before, change.what), _number(change.after, change.what))
        for change in changes
    ]
    return Table(columns=columns, rows=rows, text_columns=2)


def changed_tests_table(tests: Sequence[ChangedTest]) -> Table:
    columns = (
        "comparison", "pooled p: with the copy", "with the logged curve", "exact p: with the copy",
        "with the logged curve",
    )  # fmt: skip
    # Both pooled p-values are from the kind of points that gives the printed one.
    pooled_after = lambda test: test.after.raw_p if test.before.printed_from == "raw" else test.after.smoothed_p
    rows = [
        (
            str(test.before.pair),
            f"{test.before.pooled_p:.2e}",
            f"{pooled_after(test):.2e}",
            f"{test.before.permutation.p:.4f}",
            f"{test.after.permutation.p:.4f}",
        )
        for test in tests
    ]
    return Table(columns=columns, rows=rows, text_columns=1)


def encoders_table(encoders: Sequence[EncoderComparison]) -> Table:
    columns = (
        "game",
        "family",
        "encoder",
        "highest",
        "final",
        "AUC",
        "deterioration",
        "pooled p",
        "exact p",
        "P(RE better)",
    )
    rows = []
    for one in encoders:
        tests = f"{one.pooled_p:.2e}", f"{one.permutation.p:.3f}", _probability(one.improvement)
        rows.append((one.game, one.family, "random", *_encoder_cells(one.random), *tests))
        rows.append((one.game, one.family, "trained", *_encoder_cells(one.trained), "", "", ""))
    return Table(columns=columns, rows=rows, text_columns=3)


def _encoder_cells(scores: EncoderScores) -> tuple[str, str, str, str]:
    return f"{scores.highest:.1f}", _interval(scores.final), _interval(scores.auc), f"{scores.deterioration:.3f}"


def settings_table(found: Reanalysis) -> Table:
    columns = (
        "game", "N", "method", "highest: printed", "computed", "deterioration: printed", "computed", "final", "AUC"
    )  # fmt: skip
    rows: list[tuple[str | Strong, ...]] = []
    for high, drop, scores in zip(found.highest, found.deterioration, found.scores, strict=True):
        intervals = _interval(scores.final), _interval(scores.auc)
        rows.append((*_setting_cells(high), *_number_cells(high), *_number_cells(drop), *intervals))
    for average in found.averages:
        rows.append((*_setting_cells(average), "", "", *_number_cells(average), "", ""))
    return Table(columns=columns, rows=rows, text_columns=3)


def _setting_cells(one: RecomputedNumber) -> tuple[str, str, str]:
    return one.setting.game, f"{one.setting.buffer_size:,}", one.setting.method


def _number_cells(one: RecomputedNumber) -> tuple[str, str | Strong]:
    computed = round_like(one.computed, one.printed.text)
    return one.printed.text, computed if one.matches else Strong(computed)


# Numbers


def _probability(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _interval(interval: Interval) -> str:
    digits = 0 if abs(interval.value) >= 1000 else 1 if abs(interval.value) >= 1 else 2
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def _number(value: float, what: str) -> str:
    return f"{value:.3f}" if what == "deterioration" else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"
