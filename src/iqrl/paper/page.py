"""The page about the paper's Atari results: findings first, then every number."""

from __future__ import annotations

from iqrl.paper.findings import findings
from iqrl.paper.page_tables import (
    changed_tests_table,
    changes_table,
    claims_table,
    encoders_table,
    overall_table,
    settings_table,
    tests_table,
    zero_runs,
)
from iqrl.paper.reanalysis import Reanalysis
from iqrl.paper.settings import POINTS, RUNS, SMOOTHING

REPOSITORY = "https://github.com/Sweety-dm/Interference-aware-Deep-Q-learning"


def page(found: Reanalysis) -> str:
    """In Markdown."""
    sections = [
        _head(),
        "## Findings\n\n" + "\n".join(f"{i}. {text}" for i, text in enumerate(findings(found), 1)),
        _overall(found),
        _claims(found),
        _tests(found),
        _defects(found),
        _encoders(found),
        _settings(found),
        _reading(),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head() -> str:
    return (
        f"# The paper's Atari results, from its authors' own curves\n\n"
        f"The authors of *Catastrophic Interference in Reinforcement Learning: A Solution Based on Context Division "
        f"and Knowledge Distillation* published the training curves behind their Atari tables "
        f"([repository]({REPOSITORY}), MIT License): 6 games, 2 replay capacities N, 6 methods, {RUNS} runs each of "
        f"{POINTS} iterations, and a comparison of two encoders. This page computes the paper's numbers from them "
        f"again, and sets beside them what {RUNS} runs can show. It says nothing about why a method does better, only "
        f"about the numbers.\n\n"
        f"Made by `iqrl paper PATH --out FILE`, where PATH is a clone of that repository."
    )


def _overall(found: Reanalysis) -> str:
    return (
        "## IQ-RE against each baseline, over all games\n\n"
        "P(better): the probability that a run of IQ-RE has a larger AUC than a run of the baseline, averaged over the "
        "games (one half: no difference), with a 95% bootstrap interval. p: permutation test of the same number, runs "
        "dealt out anew within each game; not corrected. The last two columns take the logged curves in place "
        "of the copies.\n\n" + overall_table(found.overall, found.defects.overall)
    )


def _claims(found: Reanalysis) -> str:
    return (
        "## What the text claims\n\n"
        "Against the printed tables, and against the curves by the paper's own way of counting (significant: pooled "
        "test at 1% and the larger mean AUC; highest returns not rounded, so that equal printed numbers may "
        "differ).\n\n" + claims_table(found.claims)
    )


def _tests(found: Reanalysis) -> str:
    return (
        "## Test by test\n\n"
        "*points*: which pooled points give the printed p-value: those of the drawn curves (smoothed), the raw ones, "
        "or both. Printed in bold: marked as significant; with an asterisk: marked as worse than SRNN. *KS of 5 AUC*: "
        "the test that the text describes. *exact p*: permutation test of the AUC of 5 runs against 5, all 252 splits; "
        "bold below .05. *Holm*: the same, corrected for all comparisons. *ΔAUC*: IQ-RE's mean minus the baseline's, "
        "in game score.\n\n" + tests_table(found.tests)
    )


def _defects(found: Reanalysis) -> str:
    defects = found.defects
    parts = ["## Runs saved twice"]
    parts += ["No two runs of a setting are equal, but for runs that never scored."] if not defects.copies else []
    if defects.changes:
        parts += [
            "Each of these settings holds one curve twice, while one of the two runs logged another curve. What "
            "changes when the logged curve takes the place of the copy:",
            changes_table(defects.changes),
            changed_tests_table(defects.tests),
        ]
    elif defects.copies:
        parts += ["No log was found of the runs that were replaced, so nothing can be put in their place."]
    if defects.elsewhere:
        pairs = "; ".join(f"{first} and {second}" for first, second in defects.elsewhere)
        parts += [f"Settings that share a curve: {pairs}."]
    return "\n\n".join([*parts, *filter(None, [zero_runs(defects)])])


def _encoders(found: Reanalysis) -> str:
    return (
        "## Random against trained encoder\n\n"
        "N = 10,000. *pooled p*: by the paper's own way of testing, which it did not apply here. Intervals 95%, "
        f"bootstrap of {RUNS} runs.\n\n" + encoders_table(found.encoders)
    )


def _settings(found: Reanalysis) -> str:
    return (
        "## Every setting\n\n"
        "Computed numbers in bold do not round to the printed ones. *final*: mean of the last tenth of the iterations; "
        f"*AUC*: mean of all; both with a 95% bootstrap interval of {RUNS} runs.\n\n" + settings_table(found)
    )


def _reading() -> str:
    return (
        "## How to read this\n\n"
        f"*drawn curve*: means of {SMOOTHING} consecutive iterations, as in the paper's figures; its tables are made "
        "of these. *highest*: the maximum of the mean curve, which is optimistic for noisy curves. *deterioration*: "
        "the largest drop of the mean curve below its maximum so far, over its range; the maximum counts from the "
        "second point on. *pooled p*: two-sample Kolmogorov–Smirnov test of all points of all runs; points of one run "
        "resemble each other, so there is less in them than their number says. *exact p*: of all ways to deal out ten "
        "runs to two sides of five, the share in which the mean AUC differs at least as much; the smallest possible is "
        "2/252 = .0079. A comparison that is not significant does not show that methods are equal: with five runs "
        "a side only large differences can be seen. Bootstrap intervals of five runs are too narrow: a nominal 95% is "
        "about 83%."
    )
