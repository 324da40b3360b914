"""What came out, in sentences; every number is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iqrl.explain.words import count, listing
from iqrl.paper.cells import Cell
from iqrl.paper.comparisons import Comparison, Overall
from iqrl.paper.defects import Copy
from iqrl.paper.encoders import EncoderComparison
from iqrl.paper.reanalysis import Reanalysis
from iqrl.paper.settings import POINTS, RUNS, SMOOTHING
from iqrl.statistics.multiple import holm


def findings(found: Reanalysis) -> list[str]:
    """The main ones, in order of weight; each stands by itself."""
    return [
        reproduced(found),
        how_tested(found.tests),
        *([alarms(found)] if found.false_alarms.tests else []),
        exactly_tested(found.tests),
        taken_together(found.overall),
        *_claimed(found),
        copied(found),
        encoded(found.encoders),
    ]


def reproduced(found: Reanalysis) -> str:
    matched = lambda cells: f"{sum(cell.matches for cell in cells)} of {len(cells)}"
    tested = sum(test.printed_from != "neither" for test in found.tests)
    numbers = (
        f"{matched(found.highest)} highest returns, {matched(found.deterioration)} deterioration ratios, "
        f"{matched(found.averages)} of their averages and {tested} of {len(found.tests)} p-values"
    )
    wrong = [cell for cell in (*found.highest, *found.deterioration, *found.averages) if not cell.matches]
    others = f" The others: {listing([_mismatch(cell) for cell in wrong])}." if wrong else ""
    return f"**The printed tables come out of the published curves**: {numbers}, to the last digit printed.{others}"


def _mismatch(cell: Cell) -> str:
    return f"{cell.setting} (printed {cell.printed.text}, computed {decimals(cell.computed, cell.printed.text)})"


def decimals(value: float, like: str) -> str:
    """A number with as many decimals as a printed one."""
    return f"{value:.{len(like.partition('.')[2])}f}"


def how_tested(tests: Sequence[Comparison]) -> str:
    of = lambda *kinds: sum(test.printed_from in kinds for test in tests)
    points = f"{RUNS} × {POINTS // SMOOTHING} points of the drawn curves ({of('smoothed', 'both')} cells)"
    raw = f"the {RUNS} × {POINTS} raw points ({of('raw')} cells)"
    return (
        f"**The p-values do not test what the text says.** The text describes a test of {RUNS} AUC values against "
        f"{RUNS}, whose p-value cannot be below .0079. The printed p-values are those of a test on all points of all "
        f"runs thrown together, as if each were an experiment of its own: {points} or {raw}."
    )


def alarms(found: Reanalysis) -> str:
    share = found.false_alarms
    return (
        f"**That test finds differences where there are none.** Two runs of a setting against the other three of the "
        f"same setting differ at the 1% level in {share.at_one_percent} of {share.tests} cases: {share.share:.0%} "
        f"instead of 1%."
    )


def exactly_tested(tests: Sequence[Comparison]) -> str:
    marked = sum(test.printed.significant for test in tests)
    described = sum(test.described_p < 0.01 for test in tests)
    strong, weak = (_favour(tests, level) for level in (0.01, 0.05))
    kept = sum(test.holm_p < 0.05 for test in tests)
    return (
        f"**Cell by cell**, the paper marks {marked} of {len(tests)} comparisons as significant at 1%. The test it "
        f"describes gives {described}; the exact permutation test of the runs' AUC gives {strong} at 1% and {weak} at "
        f"5%, where chance alone would give about {0.05 * len(tests):.1f}. Corrected for {len(tests)} comparisons "
        f"(Holm), {_left(kept)}{_out_of_reach(tests)}."
    )


def _out_of_reach(tests: Sequence[Comparison]) -> str:
    """Said where even the smallest p that this many runs can give would not pass."""
    smallest = 2 / tests[0].permutation.splits
    if smallest * len(tests) < 0.05:
        return ""
    return (
        f": with {RUNS} runs a side none could be, as the smallest p, {smallest:.4f}, is far above .05 / {len(tests)}"
    )


def _left(kept: int) -> str:
    return "none is left" if not kept else f"{kept} {'is' if kept == 1 else 'are'} left"


def _favour(tests: Sequence[Comparison], level: float) -> str:
    found = [test for test in tests if test.permutation.p < level]
    worse = sum(not test.better for test in found)
    return f"{len(found)}" + (f" ({worse} of them against IQ-RE)" if worse else "")


def taken_together(overall: Sequence[Overall]) -> str:
    whole = [one for one in overall if one.buffer_size is None]
    corrected = holm([one.permutation.p for one in whole])
    told = listing([_together(one, float(p)) for one, p in zip(whole, corrected, strict=True)])
    clear = [f"{one.method} over {one.baseline}" for one, p in zip(whole, corrected, strict=True) if p < 0.05]
    better = all(one.improvement.value > 0.5 for one in whole)
    head = "Taken together, IQ-RE scores moderately higher" if better and clear else "Taken together, it is not clear"
    verdict = f"Clear is the advantage of {listing(clear)}." if clear else "None of these is clear."
    return (
        f"**{head}.** The probability that a run of IQ-RE has a larger AUC than a run of the baseline, averaged over "
        f"all games and capacities: {told} (95% intervals; p of one permutation test over all games each, corrected "
        f"for {len(whole)} by Holm). {verdict}"
    )


def _together(one: Overall, p: float) -> str:
    value, low, high = one.improvement
    return f"{value:.2f} against {one.baseline} ({low:.2f} to {high:.2f}, {p_text(p)})"


def p_text(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _claimed(found: Reanalysis) -> list[str]:
    wrong = [claim for claim in found.claims if claim.text != claim.tables]
    if not wrong:
        return []
    told = [f"{claim.what} ({claim.family}): text {claim.text}, table {claim.tables}" for claim in wrong]
    tests = [f"{claim.exact} ({claim.family})" for claim in found.claims if claim.exact]
    exact = f" By the exact test at 5%: {listing(tests)}." if tests else ""
    return [f"**The text says more than the tables.** {capital('; '.join(told))}.{exact}"]


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def copied(found: Reanalysis) -> str:
    copies = found.defects.copies
    if not copies:
        return "**No run is there twice**, but for runs that never scored."
    told = listing([f"{copy.setting} runs {listing([str(run) for run in copy.runs])}" for copy in copies])
    lost = _lost(found)
    return (
        f"**{capital(count(len(copies), 'run'))} {'is' if len(copies) == 1 else 'are'} there twice**: {told}. "
        f"{_logs(copies)}{lost}"
    )


def _logs(copies: Sequence[Copy]) -> str:
    known = sum(copy.replaced is not None for copy in copies)
    if not known:
        return "What the replaced runs were is not known."
    which = "each" if known == len(copies) else str(known)
    return f"For {which} of them the run's own log tells of another curve; the printed tables come out of the copies."


def _lost(found: Reanalysis) -> str:
    crossed: Callable[[float, float], bool] = lambda before, after: (before < 0.05) != (after < 0.05)
    turned = [
        f"{both.before.pair} goes from {both.before.permutation.p:.3f} to {both.after.permutation.p:.3f}"
        for both in found.defects.tests
        if crossed(both.before.permutation.p, both.after.permutation.p)
    ]
    return f" With the logged curves, the exact p of {listing(turned)}." if turned else ""


def encoded(encoders: Sequence[EncoderComparison]) -> str:
    above = sum(one.permutation.difference > 0 for one in encoders)
    clear = sum(one.permutation.p < 0.05 for one in encoders)
    same = sum(one.same_runs for one in encoders)
    smallest = min(one.permutation.p for one in encoders)
    return (
        f"**Random against trained encoder**: the random one has the larger mean AUC in {above} of {len(encoders)} "
        f"comparisons; {f'{clear} of them' if clear else 'none'} with p < .05 by the exact test (the smallest is "
        f"{smallest:.2f}). {same} of the {RUNS * len(encoders)} runs with the random encoder are those of the main "
        f"comparison, not new ones."
    )
