"""One table, three languages, by hand."""

import pytest

from iqrl.experiments.report.table import Cell, Column, Mark, Row, Section, Table, html, latex, markdown

ABOVE = Mark(sign="▲", meaning="far above")
ROWS = [
    Row(name="iq", cells=[Cell(text="-1.5", strong=True, mark=ABOVE, hint="-1, -2"), Cell(text="a_b")]),
    Row(name="x<y>", cells=[Cell(), Cell(text="semi-gradient")]),
]
COLUMNS = [Column(name="return", group="N=1,000"), Column(name="50%", group="N=1,000", align="left", numeric=False)]


@pytest.fixture
def table():
    more = Section(name="Pendulum", rows=[Row(name="iq", cells=[Cell(text="2"), Cell(text="c")])])
    sections = [Section(name="Acrobot", rows=ROWS), more]
    return Table(title="A & B", caption="5% of all", section_header="task", columns=COLUMNS, sections=sections)


@pytest.fixture
def plain():
    """Without sections and without groups."""
    columns = [column._replace(group="") for column in COLUMNS]
    return Table(section_header=None, row_header="line", columns=columns, sections=[Section(name="", rows=ROWS)])


def test_markdown(table):
    assert markdown(table).splitlines() == [
        "| task |  | N=1,000 return | N=1,000 50% |",
        "| --- | --- | ---: | --- |",
        r"| Acrobot | iq | **-1.5** ▲ | a\_b |",
        r"| Acrobot | x\<y\> |  | semi-gradient |",
        "| Pendulum | iq | 2 | c |",
    ]


def test_markdown_without_sections_and_with_text_as_it_is(plain):
    columns = [column._replace(escape=False) for column in plain.columns]
    assert markdown(plain._replace(columns=columns)).splitlines() == [
        "| line | return | 50% |",
        "| --- | ---: | --- |",
        "| iq | **-1.5** ▲ | a_b |",
        r"| x\<y\> |  | semi-gradient |",
    ]


def test_latex(table):
    assert latex(table, "tab:a_b").splitlines()[3:] == [
        r"\caption{5\% of all}",
        r"\label{tab:a-b}",
        r"\begin{tabular}{llrl}",
        r"\toprule",
        r"&  & \multicolumn{2}{c}{$N=1{,}000$} \\",
        r"\cmidrule(lr){3-4}",
        r"task &  & return & 50\% \\",
        r"\midrule",
        r"Acrobot & iq & \textbf{$-$1.5} $\blacktriangle$ & a\_b \\",
        r"& x\textless{}y\textgreater{} &  & semi-gradient \\",
        r"\midrule",
        r"Pendulum & iq & 2 & c \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_latex_without_sections_and_groups(plain):
    lines = latex(plain, "tab:plain").splitlines()
    assert lines[5:9] == [r"\begin{tabular}{lrl}", r"\toprule", r"line & return & 50\% \\", r"\midrule"]
    assert lines.count(r"\midrule") == 1


def test_latex_groups_that_are_no_formula_are_text(table):
    columns = [column._replace(group="both_single") for column in table.columns]
    assert r"{c}{both\_single}" in latex(table._replace(columns=columns), "tab:a")


def test_html(table):
    text = html(table)
    assert 'aria-label="A &amp; B"><table><thead>' in text
    assert text.endswith('</div><p class="caption">5% of all.</p>')
    assert '<th scope="colgroup" colspan="2" class="edge">N=1,000</th>' in text
    assert '<tr class="section"><th scope="rowgroup" colspan="3"><span>Acrobot</span></th></tr>' in text
    mark = '<span class="mark far-above" role="img" aria-label="far above">▲</span>'
    assert f'<td class="edge" title="−1, −2"><b>−1.5</b> {mark}</td><td class="left">a_b</td>' in text
    assert '<th scope="row">x&lt;y&gt;</th><td class="edge"></td><td class="left">semi-gradient</td>' in text


def test_html_without_sections_and_groups(plain):
    text = html(plain)
    assert "rowgroup" not in text
    assert "colgroup" not in text
    assert text.count("<tr>") == 3
