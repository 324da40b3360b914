"""The claims: rules by hand, and the numbers of the pages computed again without the library's statistics."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from recomputed import NUMBERS, RANGE, ROOT, curves_of, near, number, rows_between

from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.claims.contrasts import Contrast, Effect, MeasuredCurves, MeasuredStudy, contrast, select
from iqrl.reproduction.claims.evaluate import read_claims
from iqrl.reproduction.claims.observations import lower_column
from iqrl.reproduction.claims.verdicts import by_measure, support
from iqrl.statistics.intervals import Interval

# Rules


def found(share, p=1.0, wins=None, never=(0, 0), measure="final"):
    """A contrast with one measure."""
    effect = Effect(Interval(*share), Interval(wins, wins, wins) if wins is not None else None, p, p)
    return Contrast("a", "b", 1, (5, 5), tuple(Counter({"never learned": n}) for n in never), {measure: effect})


@pytest.mark.parametrize(
    ("share", "p", "wins", "says", "word"),
    [
        ((0.2, 0.1, 0.3), 0.01, 0.8, "better", "yes"),
        ((0.2, 0.1, 0.3), 0.01, 0.8, "worse", "the opposite"),
        ((-0.2, -0.3, -0.1), 0.01, 0.2, "worse", "yes"),
        ((0.2, 0.1, 0.3), 0.01, 0.2, "better", "not shown"),  # wins less often, by more
        ((0.2, 0.1, 0.3), 0.2, 0.6, "better", "in the mean only"),
        ((0.2, -0.1, 0.5), 0.2, 0.6, "better", "not shown"),
        ((-0.2, -0.3, -0.1), 0.2, 0.4, "better", "the opposite, in the mean only"),
        ((0.2, 0.1, 0.3), 0.01, None, "better", "yes"),
        ((0.02, -0.05, 0.09), 0.01, 0.9, "alike", "yes"),
        ((0.2, 0.11, 0.3), 1.0, 0.5, "alike", "the opposite"),
        ((0.05, -0.05, 0.15), 1.0, 0.5, "alike", "not shown"),
    ],
)
def test_what_one_measurement_says(share, p, wins, says, word):
    assert support(found(share, p, wins), "final", says) == word


def test_what_was_never_learned_cannot_be_lost():
    less = ((-0.2, -0.3, -0.1), 0.01, 0.8)
    assert support(found(*less, measure="fall"), "fall", "better") == "yes"
    assert support(found(*less, never=(5, 1), measure="fall"), "fall", "better") == "not shown"
    assert by_measure([(found(*less, measure="fall"), "better")], "final") == ""


def test_sides_are_matched_by_what_neither_fixes():
    curve = np.array([[9.0, 104.5], [9.0, 104.5]])
    runs = [
        MeasuredCurves("", {"task": "CartPole-v0", "method": method, "buffer_size": size}, curve * scale)
        for method, size, scale in (("iq", 1, 1.0), ("iq", 100, 2.0), ("dqn", 100, 1.0))
    ]
    one = contrast(runs, {"method": "iq"}, {"method": "dqn"}, ["early"])
    assert (one.cells, one.seeds) == (1, (2, 2))
    assert one.effects["final"].share.value == pytest.approx(104.5 / 191)
    assert one.effects["highest"].share.value == pytest.approx(104.5 / 191)
    assert one.effects["early"].share.value == pytest.approx(9 / 191)
    across = contrast(runs, {"method": "iq", "buffer_size": 1}, {"method": "dqn", "buffer_size": 100}, [])
    assert (across.own, across.other, across.effects["auc"].share.value) == ("iq, N=1", "dqn, N=100", 0.0)
    assert contrast(runs, {"method": "srnn"}, {"method": "dqn"}, []) is None
    assert len(select(runs, {"buffer_size": [1, 100], "method": "iq"})) == 2


def test_a_column_that_is_lower_is_counted_by_cells_and_by_seeds():
    runs, values = [], {"iq": (1.0, 3.0), "dqn": (2.0, 4.0), "srnn": (0.0, 0.5)}
    for method in values:
        config = {"task": "CartPole-v0", "method": method, "buffer_size": 1, "seeds": 2}
        runs.append(RunRecord(method, "mine", "", config, (), {}, {}))
    rows = [
        {"run": method, "seed": seed, "step": step, "return": 0.0, "interference": value if step == 1 else float("nan")}
        for method, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
        for step in (1, 2)
    ]
    study = MeasuredStudy(StudyResults("mine", "", "", (), pl.DataFrame(rows), runs, 0), [])
    found = lower_column(study, {"column": "interference", "own": "iq", "others": ["dqn", "srnn", "tcnn"]})
    assert found.found == ["yes", "not shown"], "nothing is said of what has not been run"
    assert "than dqn in 1 of 1 (P 0.75), than srnn in 0 of 1 (P 0.00)." in found.text


def test_every_claim_has_a_sentence_its_place_and_something_behind_it():
    claims = read_claims()
    assert len(claims) > 35
    for claim in claims:
        assert all(quote["text"] and quote["place"] for quote in claim["quote"])
        assert claim.get("part") or (claim["verdict"] and claim["text"])
        assert not (claim.get("part") and claim.get("verdict")), "a measured claim has the verdict of its numbers"


# The numbers of the pages again


def test_finals_areas_and_what_was_lost_on_the_page_of_results():
    page = (ROOT / "docs" / "results.md").read_text()
    curves = curves_of("table1", "table1-same-rule", "table1-tuned")
    compared = 0
    for row in rows_between(page, "<!-- results/table1 results/table1-same-rule", "### Which differences"):
        if "line" not in row:
            continue
        returns = curves[row["variant"], row["task"], row["line"], int(number(row["buffer"].removeprefix("N=")))]
        for name, score in NUMBERS.items():
            assert near(row[f"{name} [95%]"], score(returns).mean()), row
            compared += 1
    assert compared >= 400


SECTIONS = {
    "## 5. ": ("table1", "", (1, 100, 50_000)), "## 7. ": ("table1", "", (100,)), "## 8. ": ("table1", "", (1,)),
    "Both with the single rule:": ("table1-same-rule", "both single", (1, 100, 50_000)),
    "Both with the double rule:": ("table1-same-rule", "both double", (1, 100, 50_000)),
    "Each tuned:": ("table1-tuned", "tuned", (1, 100, 50_000)), "## 39. ": ("mountaincar", "", (100, 50_000)),
}  # fmt: skip


def test_effect_sizes_and_wins_on_the_page_of_claims():
    page = (ROOT / "docs" / "claims.md").read_text()
    compared = 0
    for start, (study, variant, sizes) in SECTIONS.items():
        curves = curves_of(study)
        # Each begins with a table; after it there is text.
        table = page[page.index("\n|", page.index(start)) :].partition("\n\n")[0]
        for row in rows_between(f"{table}\n\n", "\n|", "\n\n"):
            own, other = row[""].split(" against ")
            cells = [key for key in curves if key[0] == variant and key[2] == own and key[3] in sizes]
            pairs = [(curves[key], curves[*key[:2], other, key[3]], RANGE[key[1]]) for key in cells]
            assert int(row["cells"]) == len(pairs)
            highest = [np.nanmax(x.mean(axis=0)) - np.nanmax(y.mean(axis=0)) for x, y, _ in pairs]
            shares = [100 * apart / scale for apart, (*_, scale) in zip(highest, pairs, strict=True)]
            assert near(row["highest difference [95%]"], np.mean(shares)), row
            for name, score in NUMBERS.items():
                shares = [100 * (score(x).mean() - score(y).mean()) / scale for x, y, scale in pairs]
                assert near(row[f"{name} difference [95%]"], np.mean(shares)), row
                ahead = [score(x)[:, None] - score(y)[None, :] for x, y, _ in pairs]
                wins = np.mean([(apart > 0).mean() + 0.5 * (apart == 0).mean() for apart in ahead])
                assert near(row[f"{name} P [95%]"], 1 - wins if name == "deterioration" else wins), row
                compared += 2
            compared += 1
    assert compared >= 100
