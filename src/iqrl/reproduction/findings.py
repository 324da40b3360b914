"""The findings of the re-analysis in sentences. Every number in them is computed."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.diagnostics.text import count, listing
from iqrl.reproduction.printed import ITERATIONS, RUNS, SMOOTHING
from iqrl.reproduction.reanalysis import Claim, Copy, Defects, EncoderComparison, Reanalysis
from iqrl.reproduction.tables import Comparison, FalseAlarms, OverallComparison, RecomputedNumber
from iqrl.statistics.significance import holm


def list_findings(found: Reanalysis) -> list[str]:
    """The main findings, the most important first. Each can be read by itself."""
    findings = [
        describe_tables(found),
        describe_papers_test(found.tests),
        describe_false_alarms(found.false_alarms),
        describe_exact_tests(found.tests),
        describe_overall(found.overall),
        describe_claims(found.claims),
        describe_copies(found.defects),
        describe_encoders(found.encoders),
    ]
    return [text for text in findings if text]


def describe_tables(found: Reanalysis) -> str:
    matched = lambda numbers: f"{sum(one.matches for one in numbers)} of {len(numbers)}"
    tested = sum(test.printed_from != "neither" for test in found.tests)
    numbers = (
        f"{matched(found.highest)} highest returns, {matched(found.deterioration)} deterioration ratios, "
        f"{matched(found.averages)} of their averages and {tested} of {len(found.tests)} p-values"
    )
    wrong = [one for one in (*found.highest, *found.deterioration, *found.averages) if not one.matches]
    others = f" The others: {listing([_describe_mismatch(one) for one in wrong])}." if wrong else ""
    return f"**The printed tables come out of the published curves**: {numbers}, to the last digit printed.{others}"


def _describe_mismatch(one: RecomputedNumber) -> str:
    return f"{one.setting} (printed {one.printed.text}, computed {round_like(one.computed, one.printed.text)})"


def round_like(value: float, text: str) -> str:
    """With as many decimals as a printed number.

    >>> round_like(1.8964, "0.5")
    '1.9'
    """
    return f"{value:.{len(text.partition('.')[2])}f}"


def describe_papers_test(tests: Sequence[Comparison]) -> str:
    cells = lambda *kinds: sum(test.printed_from in kinds for test in tests)
    drawn = f"{RUNS} × {ITERATIONS // SMOOTHING} points of the drawn curves ({cells('smoothed', 'both')} cells)"
    raw = f"the {RUNS} × {ITERATIONS} raw points ({cells('raw')} cells)"
    return (
        f"**The p-values do not test what the text says.** The text describes a test of {RUNS} AUC values against "
        f"{RUNS}, whose p-value cannot be below .0079. The printed p-values are those of a test on the points "
        f"of all runs pooled, as if each point were an experiment of its own: {drawn} or {raw}."
    )


def describe_false_alarms(alarms: FalseAlarms) -> str:
    if not alarms.tests:
        return ""
    return (
        f"**That test finds differences where there are none.** Two runs of a setting against the other three of the "
        f"same setting differ at the 1% level in {alarms.at_one_percent} of {alarms.tests} cases: {alarms.share:.0%} "
        f"instead of 1%."
    )


def describe_exact_tests(tests: Sequence[Comparison]) -> str:
    marked = sum(test.printed.significant for test in tests)
    described = sum(test.described_p < 0.01 for test in tests)
    strong, weak = (_count_significant(tests, level) for level in (0.01, 0.05))
    return (
        f"**Cell by cell**, the paper marks {marked} of {len(tests)} comparisons as significant at 1%. The test it "
        f"describes gives {described}; the exact permutation test of the runs' AUC gives {strong} at 1% and {weak} at "
        f"5%, where chance alone would give about {0.05 * len(tests):.1f}. {_describe_correction(tests)}"
    )


def _count_significant(tests: Sequence[Comparison], level: float) -> str:
    significant = [test for test in tests if test.permutation.p < level]
    worse = sum(not test.better for test in significant)
    return f"{len(significant)}" + (f" ({worse} of them against IQ-RE)" if worse else "")


def _describe_correction(tests: Sequence[Comparison]) -> str:
    kept = sum(test.holm_p < 0.05 for test in tests)
    left = f"{kept} {'is' if kept == 1 else 'are'} left" if kept else "none is left"
    smallest = 2 / tests[0].permutation.splits
    if smallest * len(tests) >= 0.05:
        # Even the smallest p that this many runs can give would not pass.
        bound = f"the smallest p, {smallest:.4f}, is far above .05 / {len(tests)}"
        left += f". With {RUNS} runs a side none could be: {bound}"
    return f"Corrected for {len(tests)} comparisons (Holm), {left}."


def describe_overall(overall: Sequence[OverallComparison]) -> str:
    whole = [one for one in overall if one.buffer_size is None]
    corrected = holm([one.permutation.p for one in whole]).tolist()
    numbers = listing([_describe_improvement(one, p) for one, p in zip(whole, corrected, strict=True)])
    clear = [f"{one.method} over {one.baseline}" for one, p in zip(whole, corrected, strict=True) if p < 0.05]
    better = all(one.improvement.value > 0.5 for one in whole)
    head = (
        "Taken together, IQ-RE (of the released network) scores moderately higher"
        if better and clear
        else "Taken together, it is not clear"
    )
    verdict = f"Below .05 once corrected: {listing(clear)}." if clear else "None of these is below .05 once corrected."
    return (
        f"**{head}.** The probability that a run of IQ-RE has a larger AUC than a run of the baseline, averaged over "
        f"all games and capacities: {numbers} (95% intervals; p of one permutation test over all games each, corrected "
        f"for {len(whole)} by Holm). {verdict}"
    )


def _describe_improvement(one: OverallComparison, p: float) -> str:
    value, low, high = one.improvement
    p_text = f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"
    return f"{value:.2f} against {one.baseline} ({low:.2f} to {high:.2f}, {p_text})"


def describe_claims(claims: Sequence[Claim]) -> str:
    wrong = [claim for claim in claims if claim.text != claim.tables]
    if not wrong:
        return ""
    texts = [f"{claim.what} ({claim.family}): text {claim.text}, table {claim.tables}" for claim in wrong]
    tests = [f"{claim.exact} ({claim.family})" for claim in claims if claim.exact]
    exact = f" By the exact test at 5%: {listing(tests)}." if tests else ""
    return f"**The text claims more than the tables show.** {_capitalise('; '.join(texts))}.{exact}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def describe_copies(defects: Defects) -> str:
    copies = defects.copies
    if not copies:
        return "**No run was saved twice**, except runs that never scored."
    runs = listing([f"{copy.setting} runs {listing([str(run) for run in copy.runs])}" for copy in copies])
    twice = f"{count(len(copies), 'run')} {'was' if len(copies) == 1 else 'were'} saved twice"
    return f"**{twice}**: {runs}. {_describe_logs(copies)}{_describe_changed_tests(defects)}"


def _describe_logs(copies: Sequence[Copy]) -> str:
    logged = sum(copy.replaced is not None for copy in copies)
    if not logged:
        return "The curves that were overwritten are not known."
    which = "each" if logged == len(copies) else str(logged)
    return f"For {which} of them, one run's own log holds another curve. The printed tables come out of the copies."


def _describe_changed_tests(defects: Defects) -> str:
    p_values = [(test.before.pair, test.before.permutation.p, test.after.permutation.p) for test in defects.tests]
    changed = [
        f"{pair} goes from {before:.3f} to {after:.3f}"
        for pair, before, after in p_values
        if (before < 0.05) != (after < 0.05)
    ]
    return f" With the logged curves, the exact p of {listing(changed)}." if changed else ""


def describe_encoders(encoders: Sequence[EncoderComparison]) -> str:
    above = sum(one.permutation.difference > 0 for one in encoders)
    clear = sum(one.permutation.p < 0.05 for one in encoders)
    same = sum(one.same_runs for one in encoders)
    smallest = min(one.permutation.p for one in encoders)
    return (
        f"**Random against trained encoder**: the random one has the larger mean AUC in {above} of {len(encoders)} "
        f"comparisons, {f'{clear} of them' if clear else 'none'} with p < .05 by the exact test (the smallest is "
        f"{smallest:.2f}). {same} of the {RUNS * len(encoders)} runs with the random encoder are those of the main "
        f"comparison, not new ones."
    )
