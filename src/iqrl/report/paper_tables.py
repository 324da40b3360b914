"""The tables of a study in Markdown and in LaTeX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from iqrl.report.comparison_tables import (
    QUESTION,
    Sheet,
    Text,
    cell_sheet,
    headlines,
    improvement_sheet,
    notes,
    standing_sheet,
)
from iqrl.report.comparisons import Comparison, compare
from iqrl.report.grid import (
    Column,
    Detail,
    Entry,
    Found,
    Grid,
    Row,
    details,
    grids,
    placed_cells,
    unfinished_text,
)
from iqrl.report.verdicts import SIGNS, legend
from iqrl.studies.results import StudyResults

DETAIL_COLUMNS = ("task", "buffer", "line", "variant", "final [95%]", "AUC [95%]", "final of each seed")


# Markdown


def markdown_table(study: StudyResults, comparisons: Sequence[Comparison] | None = None) -> str:
    """Highest returns beside the paper's, finals and areas with 95% intervals, and which methods differ.

    `comparisons`: those of the study, where they are known already.
    """
    found = placed_cells(study)
    tables = grids(found)
    comparisons = compare(study) if comparisons is None else comparisons
    parts = [
        f"## {_markdown(study.title)}",
        _markdown(study.about),
        unfinished_text(study),
        "Highest return of the mean curve; the best of a task and column in bold.",
        *map(_markdown_grid, tables),
        legend() if any(map(_has_printed, tables)) else "",
        "Final (the last tenth of the curve) and area under the curve (its mean), with 95% bootstrap intervals.",
        _markdown_lines(list(DETAIL_COLUMNS), [_markdown_detail(row) for row in details(found)]),
        *_markdown_comparisons(comparisons),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return []
    sheets = [improvement_sheet(comparisons), standing_sheet(comparisons)]
    sheets += [cell_sheet(one) for one in comparisons if one.cells]
    said = [_markdown(line) for line in [*headlines(comparisons), *notes(comparisons)]]
    tables = [part for sheet in sheets if sheet.sections for part in _markdown_sheet(sheet)]
    return [f"### {QUESTION}", *said, *tables]


def _markdown_sheet(sheet: Sheet) -> list[str]:
    head = [" ".join(filter(None, [group, name])) for group in _group_names(sheet) for name in sheet.columns]
    rows = [
        [_markdown(section.name), _markdown(name), *map(_markdown_text, texts)]
        for section in sheet.sections
        for name, texts in section.rows
    ]
    lines = _markdown_lines(["", "", *map(_markdown, head)], rows)
    return [f"#### {_markdown(sheet.title)}", _markdown(sheet.caption) + ".", lines]


def _group_names(sheet: Sheet) -> list[str]:
    """A group that stands alone needs no name."""
    return sheet.groups if len(sheet.groups) > 1 else [""]


def _markdown_text(text: Text) -> str:
    shown = _markdown(text.text)
    return f"**{shown}**" if text.strong else shown


def _markdown_grid(grid: Grid) -> str:
    return _markdown_lines(["task", "", *map(_column_name, grid.columns)], [_markdown_row(row) for row in grid.rows])


def _has_printed(grid: Grid) -> bool:
    return any(column.variant is None for column in grid.columns)


def _markdown_lines(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def _markdown_row(row: Row) -> list[str]:
    return [_markdown(row.task), _markdown(row.label), *map(_markdown_entry, row.entries)]


def _markdown_detail(row: Detail) -> list[str]:
    return [*map(_markdown, row[:4]), *row[4:]]


def _markdown_entry(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    return " ".join(filter(None, [text, _sign(entry)]))


def _markdown(text: str) -> str:
    """Characters that Markdown would take for its own, as they are."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def _column_name(column: Column) -> str:
    return " ".join(filter(None, [column.group, _markdown(column.name)]))


def _sign(entry: Entry) -> str:
    return SIGNS[entry.cell.verdict.word] if entry.cell and entry.cell.verdict else ""


# LaTeX

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "…": r"\ldots{}", "≈": r"$\approx$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ε": r"$\varepsilon$", "κ": r"$\kappa$", "λ": r"$\lambda$",
}  # fmt: skip


def latex_table(study: StudyResults) -> str:
    """Floats with booktabs rules; needs the packages booktabs, amssymb and, for names in quotes, T1 fonts."""
    found = placed_cells(study)
    tables = grids(found)
    labels = [f"tab:{study.name}", *[f"tab:{study.name}-{grid.columns[0].group}" for grid in tables[1:]]]
    highest = [_latex_highest(study, grid, label) for grid, label in zip(tables, labels, strict=True)]
    return "\n".join([*highest, _latex_details(study, found)])


def _latex_highest(study: StudyResults, grid: Grid, label: str) -> str:
    note = f" {legend()}" if _has_printed(grid) else ""
    return _latex_float(
        label,
        f"{study.title}. Highest return of the mean curve; the best of a task and column in bold.{note}",
        "ll" + "r" * len(grid.columns),
        [*_latex_heads(grid.columns), r"\midrule", *_latex_rows(grid)],
    )


def _latex_float(label: str, caption: str, columns: str, lines: list[str]) -> str:
    body = [r"\toprule", *lines, r"\bottomrule"]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,amssymb}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(caption)}}}",
            rf"\label{{{re.sub(r'[^A-Za-z0-9:-]', '-', label)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            *body,
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_heads(columns: list[Column]) -> list[str]:
    """The buffer sizes over their columns, where there are any, and the names of the columns."""
    names = " & ".join(["", "", *[latex(column.name) for column in columns]]).strip() + r" \\"
    if not columns or not columns[0].group:
        return [names]
    heads, rules, at = ["", ""], [], 3
    for group, members in itertools.groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{${group.replace(',', '{,}')}$}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    return [" & ".join(heads).strip() + r" \\", " ".join(rules), names]


def _latex_rows(grid: Grid) -> list[str]:
    """The task is named in its first row, and a rule divides tasks."""
    lines = []
    for task, rows in itertools.groupby(grid.rows, key=lambda row: row.task):
        lines += [r"\midrule"] * bool(lines)
        for number, row in enumerate(rows):
            cells = [latex(task) if number == 0 else "", latex(row.label), *map(_latex_entry, row.entries)]
            lines.append(" & ".join(cells).strip() + r" \\")
    return lines


def _latex_entry(entry: Entry) -> str:
    text = _latex_number(entry.text)
    text = rf"\textbf{{{text}}}" if entry.best else text
    return " ".join(filter(None, [text, latex(_sign(entry))]))


def _latex_details(study: StudyResults, found: Found) -> str:
    rows = [_latex_detail(row) for row in details(found)]
    head = " & ".join(latex(name) for name in DETAIL_COLUMNS[:-1]) + r" \\"
    caption = f"{study.title}. Final (the last tenth of the curve) and area under the curve, with 95% intervals."
    return _latex_float(f"tab:{study.name}-intervals", caption, "llllrr", [head, r"\midrule", *rows])


def _latex_detail(row: Detail) -> str:
    names, numbers = row[:4], (row.final, row.auc)
    return " & ".join([*map(latex, names), *map(_latex_number, numbers)]) + r" \\"


def _latex_number(text: str) -> str:
    """A hyphen before a digit is a minus."""
    return re.sub(r"-(?=\d)", "$-$", text)


def latex(text: str) -> str:
    """Special characters as LaTeX writes them.

    >>> latex("my_module:x<y> 5%")
    'my\\\\_module:x\\\\textless{}y\\\\textgreater{} 5\\\\%'
    """
    return "".join(LATEX.get(character, character) for character in text)
