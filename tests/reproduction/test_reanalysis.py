"""Copies among the authors' curves, their encoders, and the claims of the paper's text."""

import json
import subprocess
import sys

from iqrl.reproduction.printed import Setting
from iqrl.reproduction.reanalysis import to_plain_data


def test_copies(found):
    copies = {(copy.setting, copy.runs): copy.replaced for copy in found.defects.copies}
    assert copies == {
        (Setting("Pong", 10_000, "DQN+SRNN"), (1, 4)): 4,
        (Setting("Breakout", 1_000_000, "DQN+SRNN"), (1, 2)): 1,
        (Setting("Carnival", 1_000_000, "DQN+IQ-RE"), (2, 4)): 2,
        (Setting("Freeway", 10_000, "DQN+SRNN"), (4, 5)): 4,
    }
    assert {setting.game for setting in found.defects.zero_runs} == {"Freeway"}
    assert sum(found.defects.zero_runs.values()) == 11
    assert found.defects.elsewhere == []


def test_what_the_logged_curves_change(found):
    pong = next(both for both in found.defects.tests if both.before.pair.game == "Pong")
    assert (round(pong.before.permutation.p, 4), round(pong.after.permutation.p, 4)) == (0.0397, 0.1111)
    assert len(found.defects.tests) == 5
    breakout = [change for change in found.defects.changes if change.setting.game == "Breakout"]
    assert [change.what for change in breakout] == ["highest", "deterioration", "final", "AUC"]
    assert (round(breakout[0].before, 1), round(breakout[0].after, 1)) == (86.4, 92.2)


def test_encoders(found):
    assert [one.same_runs for one in found.encoders] == [5, 5, 5, 5]
    assert all(one.permutation.difference > 0 and one.permutation.p > 0.15 for one in found.encoders)
    assert round(found.encoders[0].random.highest, 1) == 90.5  # the number of the main table
    falls = [(one.random.deterioration, one.trained.deterioration) for one in found.encoders]
    assert [random < trained for random, trained in falls] == [False, False, True, False]


def test_claims(found):
    claims = {(claim.what.split()[0] + claim.what[-3:], claim.family): claim[2:] for claim in found.claims}
    assert claims["settingsnes", "DQN"] == ("7 of 12", "5 of 12", "5 of 12", "0 of 12")
    assert claims["settingsnes", "Rainbow"] == ("8 of 12", "7 of 12", "7 of 12", "0 of 12")
    lower = [claim[2:5] for claim in found.claims if "below" in claim.what]
    assert lower == [("4 of 12", "4 of 12", "5 of 12"), ("2 of 12", "2 of 12", "4 of 12")]
    gaps = [claim[2:5] for claim in found.claims if "average" in claim.what]
    assert gaps[1] == ("0.022", "0.022", "0.027")
    assert gaps[3] == ("0.108", "0.108", "0.108")


def test_plain_data(noise):
    numbers = json.loads(json.dumps(to_plain_data(noise)))
    assert numbers["highest"][0].keys() == {"setting", "printed", "computed", "matches"}
    assert numbers["highest"][0]["setting"] == {"game": "Pong", "buffer_size": 10_000, "method": "DQN"}
    assert numbers["tests"][0]["printed_from"] in ("smoothed", "raw", "both", "neither")
    assert numbers["defects"]["zero_runs"] == {"Freeway DQN N=10,000": 2}


def test_the_analysis_does_not_load_jax():
    script = "import sys, iqrl.reproduction.reanalysis; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
