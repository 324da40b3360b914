"""One method beside all others, up to a margin: on numbers worked out by hand."""

import re

import numpy as np
import pytest
from made_up_studies import curves, record, study

from iqrl.errors import BadInput
from iqrl.experiments.report.cells import summarise_runs
from iqrl.experiments.report.margins import compare_to_reference, margin_sentences
from iqrl.experiments.report.page.render import render_page
from iqrl.experiments.report.write import markdown_report
from iqrl.experiments.study.study import check_content

FAR_ABOVE = (
    "final above on 1 (by more than 2% on 1) of 1, not below by more than 2% on 1; "
    "AUC above on 1 (by more than 2% on 1) of 1, not below by more than 2% on 1."
)
SPREAD = np.array([-0.5, 0.0, 0.5])


def made(*runs, **content):
    """Runs (settings, mean) whose seeds stand still around their mean."""
    records = [record(study="without", seeds=3, **settings) for settings, _ in runs]
    tables = [
        curves(run, **{"return": [[mean + away] * 2 for away in SPREAD]})
        for run, (_, mean) in zip(records, runs, strict=True)
    ]
    return study(records, tables, name="without", content={"reference": "local-q", **content})


def of(method, size=1, task="CartPole-v0", variant="", **more):
    return {"method": method, "buffer_size": size, "task": task, "variant": variant} | more


@pytest.fixture
def small():
    """CartPole-v0 goes from 9 to 200: 1.91 is 1% of its range, and a difference of means has an interval of ±0.7."""
    return made(
        (of("local-q"), 190.0), (of("dqn"), 150.0), (of("dqn", 50_000), 190.1),
        (of("dqn", 50_000, variant="tuned"), 199.0), (of("local-q", variant="8 bins"), 190.0),
    )  # fmt: skip


def test_each_verdict_by_hand(small):
    found = compare_to_reference(small, summarise_runs(small))
    finals = {one.rival: one for one in found if one.measure == "final"}
    assert {name: one.verdict for name, one in finals.items()} == {
        "DQN, N=1": "above",
        "DQN, N=50,000": "level",
        "DQN, N=50,000, tuned": "below",
        "local-q, N=1, 8 bins": "level",
    }
    assert finals["DQN, N=50,000"].share.value == pytest.approx(-0.1 / 191)
    assert finals["DQN, N=1"].effect.value == pytest.approx(40.0)
    assert {one.verdict for one in found if one.measure == "auc"} == {"above", "level", "below"}
    # Three seeds against three have 20 splits: p is .1 at the least, times eight tests.
    assert finals["DQN, N=1"].p == pytest.approx(0.8)
    assert not finals["DQN, N=1"].is_confirmed


def test_below_0_is_below_also_within_the_margin():
    """1% of the range, with an interval of ±0.4%: below, but not by more than 2%."""
    near = made((of("local-q"), 190.0), (of("dqn"), 191.91))
    found = compare_to_reference(near, summarise_runs(near))
    assert {one.verdict for one in found} == {"below"}
    assert margin_sentences(found, "local-q", 0.02)[0] == (
        "local-q beside DQN, N=1: final below on 1 (by more than 2% on none) of 1, not below by more than 2% on 1; "
        "AUC below on 1 (by more than 2% on none) of 1, not below by more than 2% on 1."
    )


def test_the_margin_is_that_of_the_study(small):
    narrow = small._replace(content=small.content | {"margin": 0.001})
    found = compare_to_reference(narrow, summarise_runs(narrow))
    verdicts = {one.rival: one.verdict for one in found if one.measure == "final"}
    assert verdicts["DQN, N=50,000"] == "open"
    assert verdicts["DQN, N=1"] == "above"
    assert verdicts["local-q, N=1, 8 bins"] == "open", "its interval reaches to both sides of 0"


def test_a_task_without_a_range_is_judged_by_returns():
    other = made((of("local-q", task="LunarLander-v3"), 200.0), (of("dqn", task="LunarLander-v3"), 100.0))
    one = compare_to_reference(other, summarise_runs(other))[0]
    assert (one.share, one.verdict, one.effect.value) == (None, "above", pytest.approx(100.0))


def test_sentences_and_tables(small):
    sentences = margin_sentences(compare_to_reference(small, summarise_runs(small)), "local-q", 0.02)
    assert sentences[0] == f"local-q beside DQN, N=1: {FAR_ABOVE}"
    assert sentences[-1] == (
        "Corrected for all 8 tests of the table (Holm): 0 of the 4 differences that are above or below are confirmed, "
        "not those beside DQN, N=1 on CartPole-v0 (final); DQN, N=1 on CartPole-v0 (AUC); "
        "DQN, N=50,000, tuned on CartPole-v0 (final); DQN, N=50,000, tuned on CartPole-v0 (AUC)."
    )
    text = markdown_report(small)
    assert "| CartPole-v0 | DQN, N=1 | 150.0 | 190.0 | +20.9% [+20.6%, +21.3%] | .800 | above |" in text
    assert "local-q beside every other run" in render_page([small])


def test_the_findings_of_the_page_begin_with_them(small):
    page = render_page([small])
    findings = page.partition('<ul class="findings">')[2].partition("</ul>")[0]
    found = re.findall("<li>(.*?)</li>", findings)
    assert found[0] == f"<b>local-q beside DQN, N=1</b>: {FAR_ABOVE}"
    assert [line.startswith("<b>local-q beside ") for line in found].index(False) == 4, "four rivals, then the tests"
    assert found[4].startswith("<b>Corrected for all 8 tests of the table (Holm)</b>: ")
    assert found[5].startswith("<b>Final return</b> (")
    assert "Level: it contains 0 and lies within ±2% of the task's range." in page
    assert page.count("local-q beside DQN, N=1</b>") == 1, "said once"
    assert 'href="#margins-0"' in page
    assert 'id="margins-0"' in page


def test_without_a_reference_nothing_is_said(small):
    plain = small._replace(content={})
    assert compare_to_reference(plain, summarise_runs(plain)) == []
    assert "beside every other run" not in markdown_report(plain)


@pytest.mark.parametrize(("content", "message"), [
    ({"margin": 2}, "margin must be a number between 0 and 1"), ({"margin": "x"}, "margin must be"),
    ({"margin": True}, "margin must be"), ({"reference": 3}, "reference must be a method"),
])  # fmt: skip
def test_bad_keys_of_a_study(content, message):
    with pytest.raises(BadInput, match=message):
        check_content({"runs": [{"task": "CartPole-v0", "method": "dqn"}]} | content)
