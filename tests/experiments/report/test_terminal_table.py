"""Tables fit their terminal, whatever its width."""

import io

import pytest
from rich.console import Console

from iqrl.experiments.report.terminal_table import print_table

COLUMNS = (
    "method", "negative", "of the TD error", "updates that raise", "largest AEI", "across iterations", "lowest cosine",
    "dormant units",
)  # fmt: skip
ROWS = [
    ("dqn N=50000", "0.0123", "0.021%", "49%", "0.817", "0.133", "-0.0968", "0%"),
    ("iq [b]N=1 learning_rate=0.00025", "12,345.6", "1%", "5%", "2.5", "2", "0.3", "100%"),
]


def printed(width):
    file = io.StringIO()
    print_table(Console(file=file, width=width), "interference", COLUMNS, ROWS)
    return file.getvalue()


@pytest.mark.parametrize("width", [200, 100, 80, 70, 60, 40, 25])
def test_nothing_is_cut(width):
    text = printed(width)
    assert "…" not in text
    words = text.split()
    for word in " ".join(COLUMNS[1:]).split():
        assert word in words
    for row in ROWS:
        assert all(cell in words for cell in row[1:])
    assert max(map(len, text.splitlines())) <= width


def test_headers_stand_in_one_line_where_there_is_room():
    assert any("updates that raise" in line and "dormant units" in line for line in printed(200).splitlines())
    assert "[b]N=1" in printed(200)  # a label is no markup
    assert "updates that raise  49%" in printed(40)  # a list
