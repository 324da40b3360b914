"""A table as data, and what makes HTML, Markdown and LaTeX of it.

A table has columns, which may stand in groups, and rows, which may stand in named sections. Every renderer escapes the
text for its own language, so a table holds plain text only.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

Align = Literal["left", "right"]


class Mark(NamedTuple):
    """A sign behind the text of a cell, and what it means."""

    sign: str
    meaning: str


class Cell(NamedTuple):
    text: str = ""
    strong: bool = False
    mark: Mark | None = None
    hint: str = ""
    """shown in HTML when the cell is pointed at"""


class Column(NamedTuple):
    name: str
    group: str = ""
    """the header above this column and its neighbours of the same group"""
    align: Align = "right"
    numeric: bool = True
    """a hyphen in it is a minus sign"""
    muted: bool = False
    """in HTML, a column that stands back"""
    escape: bool = True
    """whether Markdown must escape its name and its text; brackets around an interval can stay as they are"""


class Row(NamedTuple):
    name: str
    cells: Sequence[Cell]


class Section(NamedTuple):
    name: str
    rows: Sequence[Row]


class Table(NamedTuple):
    columns: Sequence[Column]
    sections: Sequence[Section]
    title: str = ""
    caption: str = ""
    section_header: str | None = ""
    """over the names of sections; None: the table has one section, without a name"""
    row_header: str = ""
    """over the names of rows"""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Name and number of columns of each group; empty if columns have none."""
        groups = [(name, len(list(members))) for name, members in itertools.groupby(it.group for it in self.columns)]
        return groups if any(name for name, _ in groups) else []


# Markdown


def markdown(table: Table) -> str:
    """The lines of the table, without title and caption. Sections and groups are repeated in every row and header."""
    sides: list[Align] = ["left"] * len(_name_headers(table)) + [column.align for column in table.columns]
    lines = [
        [*map(escape_markdown, _name_headers(table)), *map(_markdown_header, table.columns)],
        ["---" if side == "left" else "---:" for side in sides],
        *[_markdown_row(table, section, row) for section in table.sections for row in section.rows],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape_markdown(text: str) -> str:
    r"""
    >>> print(escape_markdown("my_module:x<y>"))
    my\_module:x\<y\>
    """
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


def _name_headers(table: Table) -> list[str]:
    return [table.row_header] if table.section_header is None else [table.section_header, table.row_header]


def _markdown_header(column: Column) -> str:
    text = " ".join(filter(None, [column.group, column.name]))
    return escape_markdown(text) if column.escape else text


def _markdown_row(table: Table, section: Section, row: Row) -> list[str]:
    names = [row.name] if table.section_header is None else [section.name, row.name]
    return [*map(escape_markdown, names), *map(_markdown_cell, row.cells, table.columns)]


def _markdown_cell(cell: Cell, column: Column) -> str:
    text = escape_markdown(cell.text) if column.escape else cell.text
    text = f"**{text}**" if cell.strong and text else text
    return " ".join(filter(None, [text, cell.mark.sign if cell.mark else ""]))


# LaTeX

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "…": r"\ldots{}", "≈": r"$\approx$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ε": r"$\varepsilon$", "κ": r"$\kappa$", "λ": r"$\lambda$",
}  # fmt: skip


def latex(table: Table, label: str) -> str:
    """A float with booktabs rules; needs the packages booktabs, amssymb and, for names in quotes, T1 fonts."""
    sides = "l" * len(_name_headers(table)) + "".join(column.align[0] for column in table.columns)
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,amssymb}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(table.caption)}}}",
            rf"\label{{{re.sub(r'[^A-Za-z0-9:-]', '-', label)}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            *_latex_headers(table),
            r"\midrule",
            *_latex_rows(table),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escape_latex(text: str) -> str:
    r"""
    >>> print(escape_latex("my_module:x<y> 5%"))
    my\_module:x\textless{}y\textgreater{} 5\%
    """
    return "".join(LATEX.get(character, character) for character in text)


def _latex_headers(table: Table) -> list[str]:
    """The groups over their columns, where there are any, and the names of the columns."""
    stubs = _name_headers(table)
    names = _latex_line([escape_latex(name) for name in (*stubs, *[column.name for column in table.columns])])
    if not table.groups:
        return [names]
    groups, rules, at = [""] * len(stubs), [], len(stubs) + 1
    for group, width in table.groups:
        groups.append(rf"\multicolumn{{{width}}}{{c}}{{{_latex_group(group)}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    return [_latex_line(groups), " ".join(rules), names]


def _latex_group(group: str) -> str:
    """A group such as N=50,000 is a formula."""
    return f"${group.replace(',', '{,}')}$" if re.fullmatch(r"[A-Za-z]=[\d,]+", group) else escape_latex(group)


def _latex_rows(table: Table) -> list[str]:
    """A section is named in its first row, and a rule divides sections."""
    lines = []
    for section in table.sections:
        lines += [r"\midrule"] * bool(lines)
        for number, row in enumerate(section.rows):
            names = [row.name]
            if table.section_header is not None:
                names = [section.name if number == 0 else "", row.name]
            lines.append(_latex_line([*map(escape_latex, names), *map(_latex_cell, row.cells, table.columns)]))
    return lines


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells).strip() + r" \\"


def _latex_cell(cell: Cell, column: Column) -> str:
    text = escape_latex(cell.text)
    text = re.sub(r"-(?=\d)", "$-$", text) if column.numeric else text
    text = rf"\textbf{{{text}}}" if cell.strong else text
    return " ".join(filter(None, [text, escape_latex(cell.mark.sign) if cell.mark else ""]))


# HTML


def html(table: Table) -> str:
    """The table in a box in which it scrolls; the title is what a screen reader calls it.

    The caption stands below the box, as wide as the page: a narrow table would break it into slivers.
    """
    caption = f'<p class="caption">{escape(table.caption)}.</p>' if table.caption else ""
    body = "".join(_html_section(section, table) for section in table.sections)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f"<table><thead>{_html_headers(table)}</thead>{body}</table></div>{caption}"
    )


def _html_headers(table: Table) -> str:
    names = "".join(
        f'<th scope="col"{_html_class(column, edge=edge)}>{escape(column.name)}</th>'
        for column, edge in zip(table.columns, _edges(table), strict=True)
    )
    corner = escape(table.row_header)
    if not table.groups:
        return f"<tr><td>{corner}</td>{names}</tr>"
    groups = "".join(
        f'<th scope="colgroup" colspan="{width}" class="edge">{escape(group)}</th>' for group, width in table.groups
    )
    return f'<tr><td rowspan="2">{corner}</td>{groups}</tr><tr>{names}</tr>'


def _edges(table: Table) -> list[bool]:
    """Whether a column is the first of its group, which a rule sets apart."""
    groups = [column.group for column in table.columns]
    return [i == 0 or group != groups[i - 1] for i, group in enumerate(groups)]


def _html_section(section: Section, table: Table) -> str:
    width = len(table.columns) + 1
    name = f'<th scope="rowgroup" colspan="{width}"><span>{escape(section.name)}</span></th>' if section.name else ""
    header = f'<tr class="section">{name}</tr>' if name else ""
    return f"<tbody>{header}{''.join(_html_row(row, table) for row in section.rows)}</tbody>"


def _html_row(row: Row, table: Table) -> str:
    cells = "".join(map(_html_cell, row.cells, table.columns, _edges(table)))
    return f'<tr><th scope="row">{escape(row.name)}</th>{cells}</tr>'


def _html_cell(cell: Cell, column: Column, edge: bool) -> str:
    text = escape(_minus(cell.text) if column.numeric else cell.text)
    text = f"<b>{text}</b>" if cell.strong else text
    hint = f' title="{escape(_minus(cell.hint))}"' if cell.hint else ""
    return f"<td{_html_class(column, edge)}{hint}>{text}{_html_mark(cell.mark)}</td>"


def _html_class(column: Column, edge: bool) -> str:
    kinds = ["muted"] * column.muted + ["left"] * (column.align == "left") + ["edge"] * edge
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _html_mark(mark: Mark | None) -> str:
    if mark is None:
        return ""
    kind = mark.meaning.replace(" ", "-")
    return f' <span class="mark {escape(kind)}" role="img" aria-label="{escape(mark.meaning)}">{mark.sign}</span>'


def _minus(text: str) -> str:
    return text.replace("-", "−")
