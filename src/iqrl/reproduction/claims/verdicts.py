"""Whether a claim holds, by rules that are the same for all claims."""

from __future__ import annotations

from collections.abc import Sequence

from iqrl.diagnostics.text import listing
from iqrl.reproduction.claims.contrasts import LESS_IS_BETTER, Contrast, Effect
from iqrl.statistics.curves import NEVER_LEARNED

HOLDS, IN_PART, FAILS, UNTESTED, NOT_RUN = (
    "holds", "holds in part", "does not hold", "not testable here", "not run yet",
)  # fmt: skip
YES, SUGGESTED, NOT_SHOWN, OPPOSITE = "yes", "suggested", "not shown", "the opposite"
OPPOSITE_SUGGESTED = "the opposite is suggested"
WORDS = (YES, SUGGESTED, NOT_SHOWN, OPPOSITE_SUGGESTED, OPPOSITE)
"""of findings, from the best for a claim to the worst"""
LEVEL = 0.05
ALIKE = 0.10
"""share of the range within which two sides are called comparable"""
RULES = f"""\
- A finding is one comparison by one measure, or one observation. It is *yes* if the difference has the sign that the \
claim says and its test, corrected for all tests of this page, is below {LEVEL:g}. It is *suggested* if the 95% \
interval of the difference excludes 0 and the corrected test is not below {LEVEL:g}. *The opposite*, and *the opposite \
is suggested*: the same with the other sign. *Not shown*: all else; it does not say that there is no difference. Less \
deterioration does not count for the side of which a larger share of seeds never learned: a return that was never \
reached cannot be lost.
- That two sides are comparable is *yes* if the whole interval of the difference lies within {ALIKE:.0%} of the range. \
If it lies outside, it is *the opposite*, or *the opposite is suggested* where the corrected test finds no difference. \
Otherwise it is *not shown*. The {ALIKE:.0%} are our choice and generous.
- Observations, such as a return that is near the best or a share of seeds that collapse, are judged by their 95% \
interval, without a correction. That an advantage is larger with one buffer than with another is a difference of \
differences. It has an interval and no test, so at best it is *suggested*.
- A claim **holds** if all findings are *yes*, and **holds in part** if some are. If none is, it **does not hold** \
where one is *the opposite*, and is **not shown** otherwise. The column *findings* counts them."""


def support(one: Contrast, measure: str, says: str) -> str:
    """What one measurement says of a claim: that the first side is better, worse or alike."""
    effect = one.effects[measure]
    if says == "alike":
        return _alike(effect)
    if measure == "fall" and _learned_less(one):
        return NOT_SHOWN
    sign = (-1 if measure in LESS_IS_BETTER else 1) * (-1 if says == "worse" else 1)
    low, high = sorted((sign * effect.share.low, sign * effect.share.high))
    if effect.adjusted < LEVEL:
        return YES if sign * effect.share.value > 0 else OPPOSITE
    return SUGGESTED if low > 0 else OPPOSITE_SUGGESTED if high < 0 else NOT_SHOWN


def _learned_less(one: Contrast) -> bool:
    """Whether the side that lost less has the larger share of seeds that never learned."""
    never = [fates[NEVER_LEARNED] / fates.total() if fates else 0.0 for fates in one.fates]
    lost_less = 0 if one.effects["fall"].share.value < 0 else 1
    return never[lost_less] > never[1 - lost_less]


def _alike(effect: Effect) -> str:
    if effect.share.low >= -ALIKE and effect.share.high <= ALIKE:
        return YES
    if effect.share.low > ALIKE or effect.share.high < -ALIKE:
        return OPPOSITE if effect.adjusted < LEVEL else OPPOSITE_SUGGESTED
    return NOT_SHOWN


def verdict(found: Sequence[str]) -> str:
    """Of all that was found for a claim.

    >>> verdict(["yes", "yes"]), verdict(["yes", "not shown"]), verdict(["suggested", "the opposite"]), verdict([])
    ('holds', 'holds in part', 'does not hold', 'not testable here')
    >>> verdict(["suggested", "the opposite is suggested"])
    'not shown'
    """
    if not found:
        return UNTESTED
    if YES in found:
        return HOLDS if set(found) == {YES} else IN_PART
    return FAILS if OPPOSITE in found else NOT_SHOWN


def counts_text(found: Sequence[str]) -> str:
    """
    >>> counts_text(["yes", "not shown", "yes"])
    '2 yes, 1 not shown'
    """
    return ", ".join(f"{found.count(word)} {word}" for word in WORDS if word in found)


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
