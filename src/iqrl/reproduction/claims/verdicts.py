"""Whether a claim holds, by rules that are the same for all claims."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.diagnostics.text import listing
from iqrl.reproduction.claims.contrasts import LESS_IS_BETTER, Contrast, Effect
from iqrl.statistics.curves import NEVER_LEARNED

HOLDS, IN_PART, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "not testable here"
YES, MEAN_ONLY, NOT_SHOWN, OPPOSITE = "yes", "in the mean only", "not shown", "the opposite"
OPPOSITE_MEAN = "the opposite, in the mean only"
CLOSE = "close, and not the same"
AGAINST = {OPPOSITE, OPPOSITE_MEAN}
LEVEL = 0.05
ALIKE = 0.10
"""share of the range within which two sides are called comparable"""
RULES = f"""\
- By one measure, *yes*: the difference has the sign that the claim says, and its test, corrected for all tests of \
this page, is below {LEVEL:g}. *In the mean only*: the 95% interval of the difference excludes 0, but the corrected \
test is not below {LEVEL:g}. *The opposite*, and *the opposite, in the mean only*: the same with the other sign. \
*Not shown*: all else; it does not say that there is no difference. Less deterioration counts only if no more seeds \
of that side never learned: a return that was never reached cannot be lost.
- A claim that two sides are comparable is *yes* if the whole interval of the difference lies within {ALIKE:.0%} of \
the range and the test finds no difference, *close, and not the same* if it finds one. It is *the opposite* if the \
whole interval lies outside, or the test finds a difference that may be larger, and *not shown* otherwise. The \
{ALIKE:.0%} are our choice and generous.
- That an advantage is larger with one buffer than with another is a difference of differences. It has an interval and \
no test, so at best it is *in the mean only*.
- A claim **holds** if it is *yes* against all that it names, by all measures that it is about. It is **not shown** if \
it is *not shown* throughout, and **does not hold** if some of it is the opposite and nothing of it is shown. \
Otherwise it **holds in part**."""


def support(one: Contrast, measure: str, says: str) -> str:
    """What one measurement says of a claim: that the first side is better, worse or alike."""
    effect = one.effects[measure]
    if says == "alike":
        return _alike(effect)
    if measure == "fall":
        favoured, other = one.fates if says == "better" else one.fates[::-1]
        if favoured[NEVER_LEARNED] > other[NEVER_LEARNED]:
            return NOT_SHOWN
    sign = (-1 if measure in LESS_IS_BETTER else 1) * (-1 if says == "worse" else 1)
    ahead, ends = sign * effect.share.value > 0, (sign * effect.share.low, sign * effect.share.high)
    if effect.adjusted >= LEVEL:
        return MEAN_ONLY if min(ends) > 0 else OPPOSITE_MEAN if max(ends) < 0 else NOT_SHOWN
    # The test is of wins. Where the mean has the other sign, neither side is the better one throughout.
    wins = ahead if effect.wins is None else (effect.wins.value > 0.5) != (says == "worse")
    return YES if wins and ahead else NOT_SHOWN if wins or ahead else OPPOSITE


def _alike(effect: Effect) -> str:
    differs = effect.adjusted < LEVEL
    if effect.share.low >= -ALIKE and effect.share.high <= ALIKE:
        return CLOSE if differs else YES
    return OPPOSITE if differs or effect.share.low > ALIKE or effect.share.high < -ALIKE else NOT_SHOWN


def verdict(found: Sequence[str]) -> str:
    """Of all that was found for a claim.

    >>> verdict(["yes", "yes"]), verdict(["yes", "not shown"]), verdict(["not shown", "the opposite"]), verdict([])
    ('holds', 'holds in part', 'does not hold', 'not testable here')
    >>> verdict(["not shown", "not shown"])
    'not shown'
    """
    if not found:
        return UNTESTED
    if all(one == YES for one in found):
        return HOLDS
    if any(one in (YES, MEAN_ONLY, CLOSE) for one in found):
        return IN_PART
    return FAILS if AGAINST.intersection(found) else NOT_SHOWN


def by_rival(contrasts: Sequence[Contrast], measure: str, says: str) -> str:
    """The word of a measure, or which side has which; the side that all have in common is not named."""
    same_own, same_other = (len({getattr(one, side) for one in contrasts}) == 1 for side in ("own", "other"))
    words: dict[str, list[str]] = {}
    for one in contrasts:
        name = f"against {one.other}" if same_own else one.own if same_other else f"{one.own} against {one.other}"
        words.setdefault(support(one, measure, says), []).append(name)
    if len(words) == 1:
        return f"*{next(iter(words))}*"
    sides = {
        word: listing(names).replace("and against", "and").replace(", against", ",") for word, names in words.items()
    }
    return ", ".join(f"*{word}* {names if same_own else f'for {names}'}" for word, names in sides.items())


def by_measure(contrasts: Sequence[tuple[Contrast, str]], measure: str) -> str:
    """Over all contrasts of a claim, each with what it says: one word for a measure."""
    found = {support(one, measure, says) for one, says in contrasts if measure in one.effects}
    if not found:
        return ""
    return found.pop() if len(found) == 1 else "mixed"
