"""What commands print."""

import io

import numpy as np
import pytest
from rich.console import Console
from untrained_runs import untrained

from iqrl.experiments.report.terminal import (
    LiveDisplay,
    PlainDisplay,
    clock,
    live_text,
    print_results,
    returns_text,
)
from iqrl.training.loop import Progress

PROGRESS = Progress(
    step=2000,
    steps=4000,
    returns=np.array([10.0, np.nan, 30.0]),
    report={"epsilon": 0.5, "distillation_weight": 0.5},
    steps_per_second=12345.6,
    seconds_left=75.0,
)


@pytest.mark.parametrize("kind", [LiveDisplay, PlainDisplay])
def test_displays_say_return_epsilon_speed_and_time_left(kind):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=kind is LiveDisplay, width=160)
    with kind(console, "iq on CartPole-v0") as display:
        display(PROGRESS)
    text = stream.getvalue()
    for words in ("iq on CartPole-v0", "return 20.0 (10.0…30.0)", "0.50", "3 × 4,115 steps/s", "1:15 left"):
        assert words in text


def test_the_live_line_is_not_cut_in_80_columns():
    stream = io.StringIO()
    long = PROGRESS._replace(returns=np.array([-1234.0, -1000.0]), evaluation=-1234.5)
    with LiveDisplay(
        Console(file=stream, force_terminal=True, width=80), "local-q CartPole-v1, stores nothing"
    ) as display:
        display(long)
    text = stream.getvalue()
    assert "local-q CartPole-v1, stores nothing" in text
    assert "1:15 left  return -1117.0 (-1234.0…-1000.0)  evaluation -1234.5" in text
    assert "…\n" not in text
    assert live_text(long, 44) == "1:15 left  return -1117.0 (-1234.0…-1000.0)"
    assert live_text(long, 30) == "1:15 left  evaluation -1234.5"


def test_the_speed_of_one_seed_and_returns_that_are_not_known_yet():
    one = PROGRESS._replace(returns=np.array([np.nan]))
    assert live_text(one) == "1:15 left  no episode ended  epsilon 0.50  12,346 steps/s"
    assert live_text(one._replace(known=False)) == "1:15 left  epsilon 0.50  12,346 steps/s"
    assert live_text(one._replace(known=False, evaluation=9.0)).startswith("1:15 left  evaluation 9.00  epsilon")


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_table_of_results_says_what_its_numbers_are(seeds):
    file = io.StringIO()
    print_results([untrained(seeds=seeds)], Console(file=file, width=120))
    text = file.getvalue()
    assert text.count("(seeds)") == (0 if seeds == 1 else 3), "two columns, and what they are"
    last = text.splitlines()[-1].rstrip()
    assert last.startswith("final: mean of the last tenth; AUC: mean of the whole run")
    assert last.endswith("; steps/s: of all seeds together") == (seeds > 1)
    head, row = (next(line for line in text.splitlines() if word in line) for word in ("highest", "dqn"))
    empty = 1  # the speed of what was not trained
    assert len(head.split()) - empty == len(row.replace(" kB", "kB").split())


def test_small_words():
    assert clock(3661) == "1:01:01"
    assert returns_text(np.array([np.nan])) == "no episode ended"
    assert returns_text(np.array([0.02, 0.13, np.nan])) == "return 0.07 (0.02…0.13)"
