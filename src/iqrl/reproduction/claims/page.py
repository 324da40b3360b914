"""`docs/claims.md`: an overview, then a section per claim with its place, its numbers and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iqrl.diagnostics.text import count, listing
from iqrl.experiments.report.cells import interval_text, scale_legend
from iqrl.experiments.report.comparison_tables import p_text, percent_text
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table, escape_markdown, markdown
from iqrl.reproduction.claims.contrasts import EARLY_SHARE, MEASURES, Contrast, Effect
from iqrl.reproduction.claims.evaluate import MeasuredClaim, MeasuredPart, measure_claims
from iqrl.reproduction.claims.verdicts import FAILS, HOLDS, IN_PART, LEVEL, RULES, UNTESTED, by_measure
from iqrl.statistics.curves import COLLAPSED, NEVER_LEARNED

COLUMNS = {"highest": "highest", "final": "final", "auc": "AUC", "fall": "deterioration", "early": "early"}
HEAD = f"""\
# The paper's claims, one by one

What Zhang et al. 2022 claim, and which of it our runs confirm. The numbers are made from `results/` by \
`scripts/results`. A verdict follows from them by the rules below. Claims that no run here can test have a verdict by \
hand, with its reason. A place is a section of the paper and a paragraph in it.

**Measures.** *Highest*: the highest point of the mean curve over seeds, the paper's number. *Final*: the last tenth \
of a run. *AUC*: the mean of the whole curve. *Deterioration*: the best point of a seed's curve minus its final; less \
is better. *Early*: the first 1/{EARLY_SHARE} of a run. The paper says "stability" without a number on classic \
control; here it is deterioration. Runs have the preset `paper`; [differences.md](differences.md) says what the paper \
left open. Where it did, the preset has what came nearest to the printed highest returns, mostly IQ's, on other seeds \
([results.md](results.md#what-the-preset-paper-rests-on)). So highest returns like the printed ones are in part made.

**Numbers.** *Difference*: first side minus second, in percent of the task's range of returns, averaged over tasks and \
buffers, with its 95% bootstrap interval over seeds. *P*: how likely a run of the first side is the better one. *p*: \
two-sided permutation test of the seeds within tasks and buffers. It tests P, and for the highest point the \
difference. It is corrected (Holm) for all {{tests}} tests of this page, \
which is severe. Many p are equal, because they are the smallest that the random splits can give. Seeds are drawn at \
random and tasks are not: all numbers are about these tasks. *Seeds*: the fewest of a cell that \
have been run; a command runs all that its study plans. \
*Never learned*, *collapsed*: seeds of all cells, of the first side and of the second.

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
        *[_section(claim) for claim in claims],
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _counts_text(claims: Sequence[MeasuredClaim]) -> str:
    verdicts = [claim.verdict for claim in claims]
    words = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold", UNTESTED: "cannot be tested here"}
    counts = [f"{verdicts.count(name)} {word}" for name, word in words.items() if name in verdicts]
    return (
        f"## Overview\n\nOf {count(len(claims), 'claim')} {listing(counts)}. In bold: the measures that a claim is "
        f"about. *Mixed*: not the same against all that the claim names."
    )


def overview_table(claims: Sequence[MeasuredClaim]) -> Table:
    rows = []
    for claim in claims:
        both = _contrasts(claim)
        words = [by_measure(both, measure) for measure in ("highest", "final", "auc", "fall")]
        marked = [
            Cell(text=word, strong=measure in _about(claim)) for word, measure in zip(words, COLUMNS, strict=False)
        ]
        rows.append(Row(name=f"{claim.number}. {claim.entry['title']}", cells=[Cell(text=claim.verdict), *marked]))
    columns = [Column(name="verdict", align="left", numeric=False)]
    columns += [Column(name=f"by {COLUMNS[name]}", align="left", numeric=False) for name in MEASURES]
    return Table(section_header=None, row_header="claim", columns=columns, sections=[Section(name="", rows=rows)])


def _contrasts(claim: MeasuredClaim) -> list[tuple[Contrast, str]]:
    return [(one, part.says) for part in claim.parts for one in part.contrasts]


def _about(claim: MeasuredClaim) -> set[str]:
    return {measure for part in claim.parts for measure in part.measures}


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
    both, about = _contrasts(claim), _about(claim)
    if not both:
        missing = [part for part in claim.parts if part.observation is None]
        return "The study it needs has not been run." if missing and not claim.entry.get("verdict") else ""
    word = lambda names: ", ".join(f"by {COLUMNS[it]}: {by_measure(both, it)}" for it in COLUMNS if it in names)
    others = [it for it in MEASURES if it not in about]
    words = {by_measure(both, it) for it in MEASURES}
    text = f"{_capital(word(about))}."
    if len(words) > 1:
        rest = f" {_capital(word(others))}." if others else ""
        return f"{text}{rest} The conclusion depends on the measure."
    return text


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
    columns = [Column(name="cells"), Column(name="seeds"), Column(name=NEVER_LEARNED), Column(name=COLLAPSED)]
    for measure in measures:
        names = ("difference [95%]", "p") if measure == "highest" else ("difference [95%]", "P [95%]", "p")
        columns += [Column(name=name, group=COLUMNS[measure]) for name in names]
    rows = []
    for one in part.contrasts:
        seeds = f"{one.seeds[0]}" if one.seeds[0] == one.seeds[1] else f"{one.seeds[0]}, {one.seeds[1]}"
        cells = [
            Cell(text=str(one.cells)),
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
    wins = [Cell(text=interval_text(effect.wins, "{:.2f}".format))] if effect.wins else []
    difference = Cell(text=interval_text(effect.share, percent_text), strong=strong)
    return [difference, *wins, Cell(text=p_text(effect.adjusted), strong=strong)]


def _source(claim: MeasuredClaim) -> str:
    command = claim.entry.get("command", "")
    studies = sorted({part["study"] for part in claim.entry.get("part", ())})
    where = f" Study: {listing([f'`results/{name}`' for name in studies])}." if studies else ""
    return f"Command: `{command}`.{where}" if command else where.strip()
