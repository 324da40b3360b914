"""`docs/claims.md`: an overview, then a section per claim with its place, its numbers and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iqrl.diagnostics.text import count, listing
from iqrl.experiments.report.cells import interval_text, scale_legend
from iqrl.experiments.report.comparison_tables import p_text, percent_text
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table, escape_markdown, markdown
from iqrl.reproduction.claims.contrasts import EARLY_SHARE, MEASURES, Contrast, Effect
from iqrl.reproduction.claims.evaluate import MeasuredClaim, MeasuredPart, measure_claims, studies_of
from iqrl.reproduction.claims.verdicts import (
    FAILS,
    HOLDS,
    IN_PART,
    LEVEL,
    NOT_RUN,
    NOT_SHOWN,
    RULES,
    SUGGESTED,
    UNTESTED,
    YES,
    by_measure,
    by_rival,
    counts_text,
)
from iqrl.statistics.curves import COLLAPSED, NEVER_LEARNED

COLUMNS = {
    "highest": "highest", "final": "final", "auc": "AUC", "fall": "deterioration", "early": "early",
    "negative": "negative interference", "relative": "relative interference",
}  # fmt: skip
HEAD = f"""\
# The paper's claims, one by one

What Zhang et al. 2022 claim, and which of it our runs confirm. The numbers are made from `results/` by \
`scripts/results`. A verdict follows from them by the rules below. Claims that no run here can test have a verdict by \
hand, with its reason. A place is a section of the paper and a paragraph in it.

**Measures.** *Highest*: the highest point of the mean curve over seeds, the paper's number. *Final*: the last tenth \
of a run. *AUC*: the mean of the whole curve. *Deterioration*: the best point of a seed's curve minus its final; less \
is better. *Early*: the first 1/{EARLY_SHARE} of a run. *Negative interference*: the mean AEI of the updates that \
raise the error; *relative*: as a share of the squared error ([interference.md](interference.md)). The paper says \
"stability" without a number on classic control; here it is deterioration. By which measures a claim is judged \
follows from its words: a maximum by the highest return, stability by deterioration, performance by final return and \
AUC, beside the highest return where the paper reads it off a table of highest returns. This choice is ours, it was \
made when results were known, and it matters: the overview has every measure of every claim. Runs have the preset \
`paper`; [differences.md](differences.md) says what the paper left open. Where it did, the preset has what came \
nearest to the printed highest returns, mostly IQ's, on other seeds \
([results.md](results.md#what-the-preset-paper-rests-on)). So where our highest returns equal the printed ones, this \
was in part chosen.

**Numbers.** All returns are those of training episodes, with ε as it is then. *Difference*: first side minus \
second, in percent of the task's range of returns, averaged over tasks and buffers, with its 95% bootstrap interval \
over seeds; of interference, in percent of the second side's, by the geometric mean over seeds, tasks and buffers. \
*P*: how likely a run of the first side is the better one; where it is below one half beside a difference above 0, \
the first side wins less often, and by more. *Ahead, behind*: in how many cells, a task with a buffer, the interval \
of the final difference lies above 0, and below; an average over cells hides this. *p*: two-sided permutation test \
of the difference, seeds split within tasks and buffers, each difference divided by its standard error. It is \
corrected (Holm) for all {{tests}} tests of this page; a test that several claims share counts once. On other pages \
the same test is corrected for fewer, so its p is smaller there. In bold: p below {LEVEL:g}. The smallest p that \
30,000 or 100,000 random splits can give is common; it is then multiplied by the correction. So a few values of p \
appear often. *Seeds*: how many were run in the cell that has fewest. *Never learned*, *collapsed*: seeds of all \
cells, of the first side and of the second.

**What to keep in mind.** Bootstrap intervals of few seeds are too short: the nominal 95% interval of the mean of \
five seeds holds in about 83% of samples, that of twenty in 92% ([studies.md](studies.md#the-numbers)). The highest \
point of a mean curve is too high, and more so for the noisier side; its interval is not centred on it. The test of \
highest returns asks whether both sides have the same curves, noise included; a small difference by highest return \
may be noise. Where one side has fewer seeds, as many of the other are taken. Methods share their seeds' numbers, \
and are compared as independent samples. CartPole counts twice: its two tasks differ in their limit. Seeds are \
drawn at random and tasks are not: all numbers are about these tasks. Rules and thresholds are ours. They were \
written when ten seeds of Table I were known, and last changed before the results of the 20 others were.

**Verdicts.**

{{RULES}}
"""


def claims_page(results: Path) -> str:
    claims, tests = measure_claims(results)
    parts = [
        HEAD.replace("{tests}", f"{tests:,}").replace("{RULES}", RULES),
        scale_legend(),
        _counts_text(claims),
        markdown(overview_table(claims)),
        *[_section(claim) for claim in claims if not claim.entry.get("brief")],
        "## Without a measurement",
        markdown(_brief_table([claim for claim in claims if claim.entry.get("brief")])),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _brief_table(claims: Sequence[MeasuredClaim]) -> Table:
    """Sentences that no run here can test, with the reason."""
    columns = [Column(name=name, align="left", numeric=False, escape=name != "why") for name in ("place", "why")]
    rows = [
        Row(
            name=f"{claim.number}. {claim.entry['title']}",
            cells=[Cell(text=claim.entry["quote"][0]["place"]), Cell(text=claim.entry["text"])],
        )
        for claim in claims
    ]
    return Table(section_header=None, row_header="not testable here", columns=columns, sections=[Section("", rows)])


def _counts_text(claims: Sequence[MeasuredClaim]) -> str:
    verdicts = [claim.verdict for claim in claims]
    words = {
        HOLDS: ("holds", "hold"),
        IN_PART: ("holds in part", "hold in part"),
        FAILS: ("does not hold", "do not hold"),
        NOT_SHOWN: ("is not shown", "are not shown"),
        UNTESTED: ("cannot be tested here", "cannot be tested here"),
        NOT_RUN: ("waits for a study that has not been run", "wait for a study that has not been run"),
    }
    counts = [
        f"{verdicts.count(name)} {forms[verdicts.count(name) > 1]}" for name, forms in words.items() if name in verdicts
    ]
    brief = sum(claim.entry.get("brief", False) for claim in claims)
    tested = [
        claim.number for claim in claims if claim.verdict == HOLDS and any(part.contrasts for part in claim.parts)
    ]
    by_test = f"Of those that hold, {listing([str(number) for number in tested])} rest on tests, the others do not. "
    return (
        f"## Overview\n\nOf {count(len(claims), 'claim')} {listing(counts)}; {brief} of those that cannot be tested "
        f"stand at the end of the page and not in this table. {by_test if tested else ''}*Findings*: all comparisons "
        f"and observations that make the verdict. In bold: the measures that a claim is about; words by a measure are "
        f"of comparisons alone. *Mixed*: not the same against all that the claim names."
    )


def overview_table(claims: Sequence[MeasuredClaim]) -> Table:
    rows = []
    for claim in claims:
        if claim.entry.get("brief"):
            continue
        words = [_word(claim, measure) for measure in MEASURES]
        marked = [
            Cell(text=word, strong=measure in _about(claim)) for word, measure in zip(words, COLUMNS, strict=False)
        ]
        told = [Cell(text=claim.verdict), Cell(text=counts_text(claim.found))]
        rows.append(Row(name=f"{claim.number}. {claim.entry['title']}", cells=[*told, *marked]))
    columns = [Column(name=name, align="left", numeric=False) for name in ("verdict", "findings")]
    columns += [Column(name=f"by {COLUMNS[name]}", align="left", numeric=False) for name in MEASURES]
    return Table(section_header=None, row_header="claim", columns=columns, sections=[Section(name="", rows=rows)])


def _parts(claim: MeasuredClaim, measure: str) -> list[MeasuredPart]:
    """Those that are about a measure, or all where none is."""
    parts = [part for part in claim.counting if part.contrasts]
    return [part for part in parts if measure in part.measures] or parts


def _word(claim: MeasuredClaim, measure: str) -> str:
    return by_measure([(one, part.says) for part in _parts(claim, measure) for one in part.contrasts], measure)


def _words(claim: MeasuredClaim, measure: str) -> str:
    """A word, or which part and which rival has which."""
    parts = _parts(claim, measure)
    found = [by_rival(part.contrasts, measure, part.says) for part in parts]
    if len(set(found)) == 1:
        return found[0]
    return "; ".join(
        f"({part.about}) {words}" if part.about else words for part, words in zip(parts, found, strict=True)
    )


def _about(claim: MeasuredClaim) -> set[str]:
    return {measure for part in claim.counting for measure in part.measures}


def _section(claim: MeasuredClaim) -> str:
    entry = claim.entry
    quotes = [f"> {escape_markdown(quote['text'])}\n>\n> {quote['place']}" for quote in entry["quote"]]
    lines = [
        f"## {claim.number}. {escape_markdown(entry['title'])}",
        "\n>\n".join(quotes),
        f"**{claim.verdict[0].upper()}{claim.verdict[1:]}.** {_why(claim)}".strip(),
        *[text for part in claim.parts for text in _part_texts(part)],
        entry.get("text", ""),
        _source(claim),
    ]
    return "\n\n".join(line for line in lines if line)


def _why(claim: MeasuredClaim) -> str:
    """What the verdict rests on, and whether another measure would say something else."""
    about = _about(claim)
    if not any(part.contrasts for part in claim.counting):
        return ""
    sentences = [f"By {COLUMNS[it]}: {_words(claim, it)}." for it in COLUMNS if it in about]
    words = {it: _word(claim, it) for it in MEASURES}
    if len(set(words.values())) > 1:
        sentences += [f"By {COLUMNS[it]}: *{words[it]}*." for it in MEASURES if it not in about]
        shown = {word for word in words.values() if word in (YES, SUGGESTED)}
        sentences += ["The conclusion depends on the measure."] if shown and shown != set(words.values()) else []
    return " ".join(sentences)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _part_texts(part: MeasuredPart) -> list[str]:
    about = f"{_capital(part.about)}:" if part.about else ""
    if part.observation:
        return [f"{about} {part.observation.text} ({count(part.observation.seeds, 'seed')})".strip()]
    return [about, markdown(contrast_table(part))] if part.contrasts else []


def contrast_table(part: MeasuredPart) -> Table:
    """A row per pair of sides; the difference, the share of wins and p by each measure."""
    measures = list(part.contrasts[0].effects)
    names = ("cells", "ahead, behind", "seeds", NEVER_LEARNED, COLLAPSED)
    columns = [Column(name=name) for name in names]
    for measure in measures:
        names = ("difference [95%]", "p") if measure == "highest" else ("difference [95%]", "P", "p")
        columns += [Column(name=name, group=COLUMNS[measure]) for name in names]
    rows = []
    for one in part.contrasts:
        seeds = f"{one.seeds[0]}" if one.seeds[0] == one.seeds[1] else f"{one.seeds[0]}, {one.seeds[1]}"
        cells = [
            Cell(text=str(one.cells)),
            Cell(text=f"{one.apart[0]}, {one.apart[1]}"),
            Cell(text=seeds),
            *[_fate_cell(one, it) for it in (NEVER_LEARNED, COLLAPSED)],
        ]
        cells += [cell for measure in measures for cell in _effect_cells(one.effects[measure])]
        rows.append(Row(name=f"{one.own} against {one.other}", cells=cells))
    return Table(section_header=None, columns=columns, sections=[Section(name="", rows=rows)])


def _fate_cell(one: Contrast, fate: str) -> Cell:
    """Of all seeds of all cells, on either side."""
    own, other = (f"{seen[fate]} of {seen.total()}" for seen in one.fates)
    return Cell(text=f"{own}, {other}")


def _effect_cells(effect: Effect) -> list[Cell]:
    strong = effect.adjusted < LEVEL
    difference = Cell(text=interval_text(effect.share, percent_text), strong=strong)
    wins = [Cell(text=f"{effect.wins.value:.2f}")] if effect.wins else []
    return [difference, *wins, Cell(text=p_text(effect.adjusted), strong=strong)]


def _source(claim: MeasuredClaim) -> str:
    command = claim.entry.get("command", "")
    studies = sorted({name for part in claim.entry.get("part", ()) for name in studies_of(part)})
    where = f" Study: {listing([f'`results/{name}`' for name in studies])}." if studies else ""
    return f"Command: `{command}`.{where}" if command else where.strip()
