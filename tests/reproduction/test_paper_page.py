"""The page about the paper, and the command that writes it."""

import json
import re
from pathlib import Path

from iqrl.cli.main import main
from iqrl.reproduction.page import Strong, Table, render_page, render_table


def test_the_page_in_docs_is_this_page(found):
    """After a change: `iqrl paper PATH --out docs/paper.md`."""
    assert (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8") == render_page(found)


def test_a_table_in_markdown():
    table = Table(columns=("game", "p"), rows=[("Pong", Strong("0.01*")), ("Tennis", "")], text_columns=1)
    assert render_table(table).splitlines() == [
        "| game | p |",
        "|---|---:|",
        "| Pong | **0.01\\*** |",
        "| Tennis |  |",
    ]


def test_tables_are_whole(noise):
    text = render_page(noise)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    assert text.count("| Pong | 10,000 |") == 4 + 6
    assert text.count("| Pong DQN N=10,000 |") == 4
    assert "Freeway DQN N=10,000 (2 runs)" in text


def test_the_command_writes_a_page_and_prints_numbers(made_up_file, noise, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("iqrl.reproduction.reanalysis.reanalyse", lambda curves: noise)  # it takes seconds
    out = tmp_path / "page.md"
    assert main(["paper", str(made_up_file), "--out", str(out), "--json"]) == 0
    numbers, findings = capsys.readouterr()
    assert len(json.loads(numbers.strip().splitlines()[-1])["tests"]) == 48
    assert "of 72 highest returns" in findings
    text = out.read_text(encoding="utf-8")
    assert str(made_up_file) not in text
    assert text.startswith("# The paper's Atari results")
    for title in ("Findings", "Test by test", "Runs saved twice", "Random against trained encoder", "Every setting"):
        assert f"\n## {title}\n" in text
    assert "nan" not in text


def test_a_bad_path_is_one_sentence(capsys, tmp_path):
    assert main(["paper", str(tmp_path / "none")]) == 2
    assert "does not exist; give a clone of the authors' repository" in capsys.readouterr().err
