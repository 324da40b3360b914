"""Callbacks: evaluation on the way, the best model, early stop, files; the same for `learn` and for `train`."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import iqrl
from iqrl.callbacks import Evaluate, SaveEvery, StopAt, StopWithoutProgress, Track, means_of
from iqrl.errors import BadInput
from iqrl.training.loop import Progress, evaluation_rows
from iqrl.training.run_directory import NO_EVALUATIONS

RUN = {"hidden": (8,), "period": 100, "epsilon_decay": 100, "seeds": 2}


@pytest.fixture(scope="module")
def plain():
    return iqrl.train("CartPole-v1", "local-q", steps=600, **RUN)


@pytest.fixture
def evaluated(monkeypatch):
    """Evaluations that give what they are told, in turn; without playing."""

    def give(*means):
        rest = list(means)
        around = np.array([[-1], [1]])
        play = lambda result, episodes, seed: np.full((2, episodes), rest.pop(0)) + around
        monkeypatch.setattr("iqrl.model.evaluate", play)

    return give


def test_train_and_learn_call_the_same_callbacks_and_learn_the_same(plain, tmp_path):
    seen = []
    callbacks = [
        Evaluate(every=300, episodes=1, keep_best=tmp_path / "best.iqrl"),
        lambda model, progress: seen.append((progress.step, model.num_timesteps, progress.metrics["step"].to_list())),
    ]
    result = iqrl.train("CartPole-v1", "local-q", steps=600, callback=callbacks, out=tmp_path / "run", **RUN)
    assert result.metrics.equals(plain.metrics)
    assert seen == [(step, step, [step, step]) for step in range(100, 700, 100)]
    table = pl.read_parquet(tmp_path / "run" / "evaluations.parquet")
    assert table.select("seed", "step", "episodes").rows() == [(0, 300, 1), (1, 300, 1), (0, 600, 1), (1, 600, 1)]

    model = iqrl.LocalQ("CartPole-v1", **RUN).learn(600, callbacks)
    assert model.evaluations.equals(table)
    assert model.metrics.equals(plain.metrics)
    # The evaluation is that of the model at its step, in an environment of its own.
    np.testing.assert_array_equal(table["return"][-2:].to_numpy(), iqrl.evaluate(plain, 1, seed=1_000_000)[:, 0])


def test_the_best_model_is_that_of_the_best_mean(evaluated, tmp_path):
    evaluated(5.0, 9.0, 9.0, 7.0)
    path = tmp_path / "best.iqrl"
    path.write_bytes(b"of another run")
    model = iqrl.LocalQ("CartPole-v1", **RUN).learn(400, Evaluate(every=100, episodes=3, keep_best=path))
    assert model.evaluations.filter(pl.col("step") == 200).rows() == [(0, 200, 8, 8, 8, 3), (1, 200, 10, 10, 10, 3)]
    best = iqrl.load(path)
    assert (best.num_timesteps, len(best.agents)) == (200, 2)

    whole = iqrl.load(model.save(tmp_path / "whole.iqrl", learning=True))
    assert whole.evaluations.equals(model.evaluations)
    evaluated(8.0, 10.0)
    whole.learn(100, Evaluate(every=100, keep_best=path))
    assert iqrl.load(path).num_timesteps == 200
    whole.learn(100, Evaluate(every=100, keep_best=path))
    assert iqrl.load(path).num_timesteps == 600


@pytest.mark.parametrize(
    ("rule", "step", "reason"),
    [
        (StopAt(9), 200, "the return of the evaluation reached 9, and 9 was asked for"),
        (StopWithoutProgress(2), 400, "the return of the evaluation was no better than 9 the last 2 times"),
        (StopAt(1, by="training"), 100, "the return of the training episodes reached"),
        (lambda model, progress: progress.step < 300, 300, "a callback asked for it"),
        (lambda model, progress: "enough" if progress.step == 300 else None, 300, "enough"),
    ],
)
def test_early_stop(evaluated, rule, step, reason):
    evaluated(5.0, 9.0, 9.0, 7.0, 1.0)
    model = iqrl.LocalQ("CartPole-v1", **RUN)
    model.learn(500, [rule, Evaluate(every=100)])  # a rule may stand before the evaluations that it looks at
    assert model.num_timesteps == step
    assert model.stopped.startswith(reason)


class Stub:
    """As much of a model as rules look at."""

    def __init__(self, returns, evaluations=()):
        steps = np.repeat(np.arange(1, len(returns) + 1) * 100, 2)
        self.metrics = pl.DataFrame({"seed": [0, 1] * len(returns), "step": steps, "return": np.ravel(returns)})
        run = iqrl.resolve("CartPole-v1", "dqn", seeds=2)
        rows = [evaluation_rows(run, step, np.full((2, 1), value)) for step, value in evaluations]
        self.evaluations = pl.concat([NO_EVALUATIONS, *rows])


def progress_at(step, began=0, metrics=NO_EVALUATIONS):
    return Progress(step, 1000, np.zeros(2), {}, 100.0, 1.0, began, metrics)


NAN = np.nan


@pytest.mark.parametrize(
    ("rule", "returns", "stops"),
    [
        (StopAt(5), [[1, 2], [4, 6]], True),
        (StopAt(5), [[9, 9], [4, 5]], False),
        (StopAt(5), [[1, 1], [NAN, 5]], True),
        (StopAt(5), [[9, 9], [NAN, NAN]], False),
        (StopWithoutProgress(2), [[1, 1], [3, 3], [2, 2], [3, 3]], True),
        (StopWithoutProgress(2), [[1, 1], [3, 3], [2, 2], [3, 4]], False),
        (StopWithoutProgress(2), [[3, 3], [2, 2]], False),
        (StopWithoutProgress(2), [[3, 3], [NAN, NAN], [2, 2]], False),
    ],
)
def test_rules_by_training_returns(rule, returns, stops):
    """A period in which no episode ended is not counted."""
    assert bool(rule(Stub(returns), progress_at(100 * len(returns)))) == stops


def test_a_rule_by_evaluations_looks_at_those_of_this_step():
    model = Stub([[9, 9]] * 3, evaluations=[(100, 7)])
    assert StopAt(5, by="evaluation")(model, progress_at(100))
    assert not StopAt(5, by="evaluation")(model, progress_at(300))


@pytest.mark.parametrize(("every", "steps"), [(100, [100, 200, 300]), (150, [200, 300]), (250, [300]), (400, [])])
def test_what_is_due_is_due_at_the_first_end_of_a_period(every, steps):
    saved = []
    model = SimpleNamespace(save=lambda path, learning: saved.append((path.name, learning)))
    for step in (100, 200, 300):
        SaveEvery(every, "a-{step}.iqrl", learning=True)(model, progress_at(step, began=step - 100))
    assert saved == [(f"a-{step}.iqrl", True) for step in steps]


def test_a_callback_that_fails_saves_first(plain, tmp_path):
    def callback(model, progress):
        model.save(tmp_path / "on_the_way.iqrl")
        if progress.step == 300:
            raise ArithmeticError("mine")

    with pytest.raises(ArithmeticError, match="mine"):
        iqrl.train("CartPole-v1", "local-q", steps=600, callback=callback, out=tmp_path / "run", **RUN)
    assert iqrl.load(tmp_path / "run").step == 300
    assert iqrl.load(tmp_path / "on_the_way.iqrl").num_timesteps == 300
    assert iqrl.resume(tmp_path / "run").metrics.equals(plain.metrics)


def test_a_tracker_gets_the_means_and_each_seed(evaluated):
    logged = {}

    class Mine:
        def log(self, step, values):
            logged[step] = values

    evaluated(4.0)
    model = iqrl.LocalQ("CartPole-v1", **RUN).learn(200, Evaluate(every=200), tracker=Mine())
    assert list(logged) == [100, 200]
    assert "evaluation" not in logged[100]
    assert {name: logged[200][name] for name in logged[200] if name.startswith("eval")} == {
        "evaluation": 4.0, "evaluation/seed_0": 3.0, "evaluation/seed_1": 5.0,
    }  # fmt: skip
    assert logged[200]["return"] == pytest.approx(model.metrics["return"][-2:].mean())
    assert logged[200]["epsilon"] == pytest.approx(model.metrics["epsilon"][-1])
    assert not {"seed", "step"} & logged[200].keys()


def test_what_is_not_a_number_is_not_tracked():
    rows = {"seed": [0, 1], "return": [NAN, 3.0], "loss": [NAN, NAN], "occupancy": [[0.1], [0.2]]}
    assert means_of(pl.DataFrame(rows)) == {"return": 3.0, "return/seed_1": 3.0}
    assert means_of(pl.DataFrame({"seed": [0], "return": [NAN]})) == {}


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda model: model.learn(10, callback=3), "callback must be a function of model and progress, or a list"),
        (lambda model: model.learn(10, callback=[print, 3]), "callback must be a function of model and progress"),
        (lambda model: model.learn(10, tracker=3), r"tracker must be a name or an object with log\(step, values\)"),
        (lambda model: model.learn(10, tracker="tensorbord"), "unknown tracker 'tensorbord'; did you mean tensorboard"),
        (lambda model: Evaluate(every=0), "every must be a whole number of at least 1, got 0"),
        (lambda model: SaveEvery(1.5, "a"), "steps must be a whole number of at least 1, got 1.5"),
        (lambda model: StopAt("475"), "value must be a number, got '475'"),
        (lambda model: StopAt(475, by="eval"), "by must be evaluation or training, got 'eval'"),
        (lambda model: StopWithoutProgress(3, by="eval"), "by must be evaluation or training, got 'eval'"),
        (lambda model: model.add_evaluation(np.zeros((2, 1))), "evaluations are kept of a model that learns"),
    ],
)
def test_misuse_is_a_sentence(use, words):
    with pytest.raises(BadInput, match=words):
        use(iqrl.LocalQ("CartPole-v1", **RUN))


def test_tracking_is_a_callback_too():
    assert callable(Track(None))
    assert iqrl.callbacks.Evaluate is Evaluate
