"""The paper's printed numbers."""

import pytest

from iqrl.reproduction.printed import (
    ATARI_PAIRS,
    ATARI_SETTINGS,
    ENCODER_SETTINGS,
    Pair,
    PrintedNumber,
    Setting,
    printed_deterioration,
    printed_highest,
    printed_p,
    printed_value,
    text_claims,
)


def test_table_one_by_our_names():
    assert printed_value("CartPole-v0", "dqn", 1) == (106.0, "106.0", False)
    assert printed_value("CartPole-v0", "iq", 1) == (200.0, "200.0", True)
    assert printed_value("Acrobot-v1", "tcnn", 100) == (-426.5, "-426.5", False)
    assert printed_value("Pendulum-v0", "srnn", 50_000) == (-144.2, "-144.2", False)
    assert printed_value("CartPole-v1", "dsom", 100) == (490.0, "490.0", False)


@pytest.mark.parametrize(
    "cell", [("CartPole-v0", "iq", 2), ("CartPole-v0", "medqn-u", 1), ("MountainCar", "iq", 1), ("", "", 0)]
)
def test_what_is_not_printed_is_none(cell):
    assert printed_value(*cell) is None


def test_the_atari_tables_are_whole():
    assert (len(set(ATARI_SETTINGS)), len(set(ATARI_PAIRS)), len(set(ENCODER_SETTINGS))) == (72, 48, 8)
    assert all(printed_highest(setting) and printed_deterioration(setting) for setting in ATARI_SETTINGS)
    assert all(printed_p(pair) for pair in ATARI_PAIRS)


def test_some_atari_cells():
    assert printed_highest(Setting("Carnival", 1_000_000, "Rainbow+IQ-RE")) == (5289.0, "5289.0", True)
    assert printed_deterioration(Setting("Average", 10_000, "DQN+IQ-RE")) == (0.257, "0.257", True)
    found = printed_p(Pair("Tennis", 10_000, "DQN+IQ-RE", "DQN+SRNN"))
    assert found.cell.value == 7.14e-11
    assert found.significant
    assert found.worse
    assert printed_p(Pair("Tennis", 10_000, "DQN+IQ-RE", "Rainbow")) is None
    assert text_claims()["atari_significantly_better_than_both_baselines"]["DQN"] == "7 of 12"


def test_agreement_to_the_digits_printed():
    tenth = PrintedNumber(17.3, "17.3", False)
    assert tenth.agrees(17.349)
    assert tenth.agrees(17.25)
    assert not tenth.agrees(17.351)
    assert not tenth.agrees(17.24)
    tiny = PrintedNumber(1.37e-12, "1.37e-12", True)
    assert tiny.agrees(1.374e-12)
    assert not tiny.agrees(1.38e-12)
    assert PrintedNumber(1.0, "1.00e-00", False).agrees(0.9951)
