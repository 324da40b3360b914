"""Studies as data: what a file means, and what is wrong with it."""

import contextlib
import sys

import numpy as np
import pytest

from iqrl.envs.atari import actions_of
from iqrl.errors import BadInput, PackagesMissing
from iqrl.experiments.study.study import Study, catalogue, find_study

GRID = {
    "title": "two by two",
    "settings": {"preset": "paper", "seeds": 2, "steps": 3000},
    "runs": [{"task": ["CartPole-v0", "Acrobot-v1"], "method": ["dqn", "iq"], "buffer_size": 1}],
}


def study(**content):
    return Study("mine", GRID | content)


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_list_is_an_axis_and_a_value_holds_for_all():
    planned = study().planned
    cells = [(run.run.task, run.run.method, run.run.buffer_size, run.run.seeds, run.run.steps) for run in planned]
    assert cells == [
        ("CartPole-v0", "dqn", 1, 2, 3000), ("CartPole-v0", "iq", 1, 2, 3000),
        ("Acrobot-v1", "dqn", 1, 2, 3000), ("Acrobot-v1", "iq", 1, 2, 3000),
    ]  # fmt: skip
    assert {run.varied for run in planned} == {("task", "method")}
    assert planned[0].run.gamma == 0.995, "the preset was asked for"


def test_a_setting_that_is_a_list_itself_needs_a_list_of_lists_to_be_an_axis():
    one = study(runs=[{"task": "CartPole-v0", "method": "dqn", "hidden": [32, 32]}]).planned
    assert [run.run.hidden for run in one] == [(32, 32)]
    assert one[0].varied == ()
    two = study(runs=[{"task": "CartPole-v0", "method": "dqn", "hidden": [[64], [32, 32]]}]).planned
    assert [run.run.hidden for run in two] == [(64,), (32, 32)]
    assert two[0].varied == ("hidden",)


def test_variants_name_blocks_and_share_runs():
    blocks = [
        {"task": "CartPole-v0", "method": ["dqn", "iq"], "buffer_size": 1},
        {"variant": "single", "task": "CartPole-v0", "method": ["dqn", "iq"], "buffer_size": 1, "double_q": False},
    ]
    both = study(runs=blocks)
    assert [run.variant for run in both.planned] == ["", "", "single", "single"]
    assert len(both.runs) == 3, "IQ is single anyway: one run, in two variants"


def test_a_study_may_belong_beside_another(tmp_path):
    text = "beside = 'table1'\n[[runs]]\ntask = 'CartPole-v0'\nmethod = 'dqn'"
    assert find_study(written(tmp_path, text)).beside == "table1"
    assert study().beside == ""


def test_settings_given_later_hold_for_every_run():
    changed = study().with_settings({"seeds": 3, "task": "CartPole-v1"})
    assert {run.seeds for run in changed.runs.values()} == {3}
    assert {run.task for run in changed.runs.values()} == {"CartPole-v1"}
    assert len(changed.runs) == 2, "task is no axis any more"
    assert changed.digest != study().digest == study(title="another").digest


def test_runs_are_selected_by_their_settings():
    study = Study("mine", {"runs": [
        {"task": "CartPole-v0", "method": ["dqn", "iq"], "buffer_size": [1, 100]},
        {"variant": "wide", "task": "CartPole-v0", "method": "iq", "hidden": [128]},
    ]})  # fmt: skip
    sizes = lambda **wanted: [run.buffer_size for run in study.select(wanted)]
    assert sizes(method="dqn") == [1, 100]
    assert sizes(method="iq", buffer_size=1) == [1]
    assert len(sizes()) == 5
    assert [run.hidden for run in study.select({"variant": "wide"})] == [(128,)]
    with pytest.raises(BadInput, match=r"did you mean method\?"):
        study.select({"methd": "iq"})
    with pytest.raises(BadInput, match="no run of the study mine has method=srnn, buffer_size=1"):
        study.select({"method": "srnn", "buffer_size": 1})


def test_the_catalogue_can_be_planned():
    studies = catalogue()
    assert {"table1", "fig2", "contexts", "ablations", "strategies", "k", "convergence", "cost", "interference"} <= set(
        studies
    )
    for found in studies.values():
        with contextlib.suppress(PackagesMissing):  # LunarLander needs Box2D
            assert found.runs


def test_table_1_is_the_papers():
    runs = list(find_study("table1").runs.values())
    assert len(runs) == 4 * 3 * 5 * 3
    assert sum(run.steps * run.seeds for run in runs) == 30 * 42_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 'a'", "no runs"),
        ("runs = []", "no runs"),
        ("nonsense = 1\n[[runs]]\ntask = 'CartPole-v0'", "unknown key 'nonsense'"),
        ("[[runs]]\ntask = 'CartPole-v0'\nmethod = 'iq'\nbufer_size = 1", "did you mean buffer_size?"),
        ("[[runs]]\ntask = []\nmethod = 'iq'", "task is an empty list"),
        ("analyses = ['context_matrx']\n[[runs]]\ntask = 'CartPole-v0'", "did you mean context_matrix?"),
        ("title = 3\n[[runs]]\ntask = 'CartPole-v0'", "title must be text"),
        ("beside = 3\n[[runs]]\ntask = 'CartPole-v0'", "beside must be text"),
        ("[[runs]\n", "not valid TOML"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_a_sentence(tmp_path, text, words):
    with pytest.raises(BadInput, match=r"mine\.toml") as error:
        find_study(written(tmp_path, text))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ({"task": ["CartPole-v0", "CartPol-v0"], "method": "iq"}, "task CartPol-v0: unknown task"),
        ({"task": "CartPole-v0"}, "needs a task and a method"),
        ({"task": "CartPole-v0", "method": "dqn", "contexts": [2, 3]}, "contexts 2: method 'dqn' has no contexts"),
        ({"task": "CartPole-v0", "method": "iq", "gamma": [0.9, 1.1]}, "gamma 1.1"),
    ],
)
def test_a_run_that_is_wrong_is_said_with_its_place(runs, words):
    with pytest.raises(BadInput) as error:
        _ = study(runs=[runs]).planned
    assert words in str(error.value)
    assert "study mine" in str(error.value)


def test_atari_is_run_seed_by_seed_at_the_papers_lengths():
    planned = find_study("table2").planned
    assert len(planned) == 6 * 6 * 2 * 5
    assert {(each.run.seeds, each.run.steps, each.run.period) for each in planned} == {(1, 10_000_000, 200_000)}
    assert {each.run.seed for each in planned} == {0, 1, 2, 3, 4}


def test_a_study_without_its_packages_says_what_it_needs(monkeypatch):
    actions_of.cache_clear()
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(PackagesMissing, match="Atari games need more packages") as error:
        _ = find_study("table2").planned
    assert error.value.extra == "the extra atari"


def test_unknown_names_get_the_nearest():
    with pytest.raises(BadInput, match="did you mean table1"):
        find_study("tabel1")
    with pytest.raises(BadInput, match=r"cannot read none\.toml"):
        find_study("none.toml")


SEARCH = {
    "draws": 4, "double_q": [False, True], "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
}  # fmt: skip


def searching(**search):
    block = {"task": ["CartPole-v0", "Acrobot-v1"], "method": "dqn", "buffer_size": 1}
    return Study(
        "mine", GRID | {"runs": [block | {"search": SEARCH | search}, block | {"method": "iq", "search": SEARCH}]}
    )


def test_a_search_tries_every_cell_and_method_with_the_same_draws():
    planned = searching().planned
    drawn = lambda task, method: [
        (one.run.double_q, one.run.learning_rate) for one in planned if (one.run.task, one.run.method) == (task, method)
    ]
    first = drawn("CartPole-v0", "dqn")
    assert len(set(first)) == 4
    powers = sorted(np.log10(rate) for _, rate in first)
    assert [int(2 * (power + 4)) for power in powers] == [0, 1, 2, 3], "one from each quarter of the range"
    assert sorted(double for double, _ in first) == [False, False, True, True]
    assert drawn("Acrobot-v1", "dqn") == drawn("CartPole-v0", "iq") == first
    assert {one.varied for one in planned} == {("task", "double_q", "learning_rate")}
    assert "search" not in planned[0].given
    assert planned[0].given["learning_rate"] == first[0][1], "a manifest says what was drawn"


def test_a_search_of_another_seed_draws_other_values():
    rates = lambda study: [one.run.learning_rate for one in study.planned[:4]]
    assert rates(searching()) == rates(searching()) != rates(searching(draw_seed=1))
    assert rates(searching(learning_rate={"low": 1e-4, "high": 1e-2})) != rates(searching())


def test_a_setting_given_later_is_searched_no_more():
    one = searching().with_settings({"learning_rate": 1e-3})
    assert {run.learning_rate for run in one.runs.values()} == {1e-3}
    assert {run.double_q for run in one.runs.values()} == {False, True}
    none = one.with_settings({"double_q": True})
    assert len(none.planned) == 4
    assert all("search" not in block for block in none.content["runs"])


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("3", "search must be a table"),
        ("{ draws = 3 }", "search must be a table with draws and a setting"),
        ("{ double_q = [false, true] }", "draws of a search must be a whole number from 1 on"),
        ("{ draws = 3, draw_seed = -1, double_q = [true] }", "draw_seed of a search must be a whole number from 0 on"),
        ("{ draws = 3, double_q = [] }", "double_q is searched in []; it must be a list of values, or a range"),
        ("{ draws = 3, gamma = { low = 0, high = 1, log = true } }", "gamma is searched in"),
        ("{ draws = 3, gamma = { low = 1 } }", "gamma is searched in"),
        ("{ draws = 3, gama = [1, 2] }", "did you mean gamma?"),
        ("{ draws = 3, buffer_size = [1, 2] }", "buffer_size is searched and given"),
    ],
)
def test_a_search_that_is_wrong_is_refused_in_a_sentence(tmp_path, search, words):
    text = f"[[runs]]\ntask = 'CartPole-v0'\nmethod = 'dqn'\nbuffer_size = 1\nsearch = {search}"
    with pytest.raises(BadInput, match=r"mine\.toml") as error:
        find_study(written(tmp_path, text))
    assert words in str(error.value)
