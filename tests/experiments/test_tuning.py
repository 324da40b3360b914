"""Tuning: what is proposed, what is kept, what is refused. The runs themselves are not made here."""

import pytest

from iqrl.cli.settings import read_file
from iqrl.cli.tuning import searched
from iqrl.errors import BadInput, RunFailed
from iqrl.experiments import tuning
from iqrl.experiments.report.figures.tuning import draw_tuning
from iqrl.experiments.tuning import Trial, make_request, open_tuning, tune
from iqrl.make_run import resolve
from iqrl.methods.base import Span

pytest.importorskip("optuna")
OVER = {"learning_rate": Span(1e-4, 1e-2, log=True), "buffer_size": Span(1, 50), "hidden": ((8,), (16, 16))}
BEST_RATE = 2e-3


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """The closer its learning rate is to a certain one, the better is a run."""
    monkeypatch.setattr(tuning, "measure_run", lambda store, by: -abs(store.run.learning_rate - BEST_RATE))


def request_of(**changes):
    return make_request("CartPole-v0", "dqn", OVER, steps=1000, seeds=2, **changes)


def search(path, trials, train=lambda store: None, request=None):
    told = []
    found = tune(request or request_of(), path, trials, train, lambda tuning: told.append(len(tuning.trials)))
    return found, told


def test_a_stopped_search_makes_the_same_trials(tmp_path):
    whole, _ = search(tmp_path / "whole", 6)

    def stop(store):
        raise KeyboardInterrupt

    search(tmp_path / "parts", 4)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "parts", 6, stop)
    parts, told = search(tmp_path / "parts", 6)
    assert parts.trials == whole.trials
    assert told == [5, 6]
    assert len({trial.run for trial in whole.trials}) == 6


def test_the_first_trial_has_the_defaults_and_all_are_in_their_ranges(tmp_path):
    over = OVER | {"hidden": ((64,), (8,)), "buffer_size": Span(1, 200)}
    found, _ = search(tmp_path, 8, request=make_request("CartPole-v0", "dqn", over, steps=1000))
    default = resolve("CartPole-v0", "dqn")
    assert found.trials[0].settings == {name: getattr(default, name) for name in over}
    for trial in found.trials:
        rate, size, hidden = (trial.settings[name] for name in over)
        assert 1e-4 <= rate <= 1e-2
        assert size in range(1, 201)
        assert hidden in ((64,), (8,))


def test_the_best_settings_are_a_file_for_train(tmp_path):
    found, _ = search(tmp_path, 5)
    best = min(found.trials, key=lambda trial: abs(trial.settings["learning_rate"] - BEST_RATE))
    assert found.best == best
    settings = dict(read_file(tmp_path / "best.toml").settings)
    run = resolve(settings.pop("task"), settings.pop("method"), **settings)
    expected = resolve("CartPole-v0", "dqn", steps=1000, **best.settings)
    assert run == expected  # with seeds of its own, not those of the search
    assert draw_tuning(found, tmp_path / "tuning.png").stat().st_size > 1000


def test_a_failed_run_is_a_trial_that_is_never_the_best(tmp_path):
    def fail_once(store):
        if not list(tmp_path.glob("tuning.json")):
            raise RunFailed("infinite")

    found, _ = search(tmp_path, 3, fail_once)
    assert [trial.value is None for trial in found.trials] == [True, False, False]
    assert found.best in found.trials[1:]
    with pytest.raises(BadInput, match="no finished trial"):
        _ = found._replace(trials=[Trial({}, None, "")]).best


def test_another_search_in_the_same_place_is_refused(tmp_path):
    search(tmp_path / "a", 1)
    with pytest.raises(BadInput, match="holds another tuning"):
        open_tuning(tmp_path / "a", request_of(by="final"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("mine")
    with pytest.raises(BadInput, match="not a tuning"):
        search(tmp_path / "b", 1)


@pytest.mark.parametrize(
    ("over", "settings", "sentence"),
    [
        ({"learning_rte": Span(1, 2)}, {}, "learning_rate"),
        ({"learning_rate": Span(1e-2, 1e-4)}, {}, "must rise"),
        ({"learning_rate": Span(0, 1e-4, log=True)}, {}, "above 0"),
        ({"learning_rate": Span(-1, 1)}, {}, "learning_rate"),
        ({"activation": Span(0, 1)}, {}, "no number"),
        ({"activation": ("tanh", "thin")}, {}, "thin"),
        ({"gamma": (0.9,)}, {}, "one value"),
        ({"gamma": (0.9, 0.99)}, {"gamma": 0.9}, "both given and searched"),
    ],
)
def test_what_cannot_be_searched_is_refused(over, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        make_request("CartPole-v0", "dqn", over, **settings)


def test_values_on_the_command_line():
    assert searched("gamma=0.9,0.99") == ("gamma", (0.9, 0.99))
    assert searched("learning_rate=1e-5:1e-2:log") == ("learning_rate", {"low": 1e-5, "high": 1e-2, "log": True})
    for text in ("gamma", "gamma=", "gamma=1:2:linear", "gamma=a:2"):
        with pytest.raises(Exception, match="is not"):
            searched(text)


def test_every_method_names_settings_that_it_has():
    from iqrl.methods.registry import METHODS

    for name, method in METHODS.items():
        if method.observations != "images":
            make_request("CartPole-v0", name)
