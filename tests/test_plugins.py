"""A method and a task of the user's own with settings of their own, which are settings like all others."""

import dataclasses
import json

import jax.numpy as jnp
import pytest
from records import env_inputs

import iqrl
from iqrl.cli.main import main
from iqrl.core.losses import Regulariser
from iqrl.core.schedules import constant
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import groups_for, read_run, resolve
from iqrl.methods.base import q_learner
from iqrl.methods.iq import ContextSettings, skm_contexts
from iqrl.methods.registry import build_agent
from iqrl.settings import settings_of


class EchoSettings(iqrl.Settings):
    """echoes"""

    echo_weight: float = iqrl.setting(0.25, "weight of the echo", minimum=0, maximum=1)
    echo_delays: tuple[int, ...] = iqrl.setting((1, 2), "steps until the echo", minimum=1)

    def check(self):
        if self.echo_weight == 1 and len(self.echo_delays) > 1:
            raise BadInput("an echo of weight 1 has one delay.")


def build(run, task):
    echo = Regulariser("echo", constant(run.echo_weight), lambda inputs: jnp.float32(len(run.echo_delays)))
    return q_learner(run, task, regularisers=(echo,))


echo = iqrl.Method(name="echo", summary="DQN with an echo", paper="none", build=build, settings=(EchoSettings,))
clustered = iqrl.Method(
    name="clustered",
    summary="heads without distillation, with settings of the library",
    paper="none",
    build=lambda run, task: q_learner(run, task, division=skm_contexts(run, task)),
    settings=iqrl.METHODS["iq-no-distillation"].settings,
)
same_name = iqrl.Method(
    name="same",
    summary="a setting that is there already",
    paper="none",
    build=build,
    settings=(type("Own", (iqrl.Settings,), {"__annotations__": {"gamma": float}, "gamma": iqrl.setting(0.5, "γ")}),),
)


class CorridorSettings(iqrl.Settings):
    """corridors"""

    corridor_length: int = iqrl.setting(6, "cells of the corridor", minimum=2)


def make_corridor(given):
    def step(place, action, inputs):
        place = jnp.clip(place + jnp.where(action == 1, 1, -1), 0, given.corridor_length - 1)
        return place, jnp.float32(-1), place == given.corridor_length - 1

    return iqrl.Task(
        name="corridor",
        actions=2,
        low=(0.0,),
        high=(float(given.corridor_length),),
        time_limit=30,
        reset=lambda inputs: jnp.int32(0),
        step=step,
        observe=lambda place: place[None].astype(jnp.float32),
        num_reset_uniforms=0,
    )


corridor = iqrl.TaskEntry(make_corridor, (CorridorSettings,))
ECHO, CLUSTERED, CORRIDOR = (f"{__name__}:{name}" for name in ("echo", "clustered", "corridor"))
SMALL = {"steps": 200, "period": 100, "seeds": 1, "learning_starts": 50, "target_period": 50}


def test_settings_of_ones_own_are_keywords():
    run = resolve(CORRIDOR, ECHO, echo_weight=0.5, echo_delays=[3], corridor_length=9)
    assert (run.echo_weight, run.echo_delays, run.corridor_length) == (0.5, (3,), 9)
    assert resolve(CORRIDOR, ECHO).corridor_length == 6
    agent = build_agent(run, make_task(run))
    assert agent.report(1)["echo_weight"] == 0.5
    assert make_task(run).high == (9.0,)
    place, _, ended = make_task(run).step(jnp.int32(7), jnp.int32(1), env_inputs())
    assert (int(place), bool(ended)) == (8, True)


@pytest.mark.parametrize(
    ("task", "method", "settings", "words"),
    [
        (CORRIDOR, ECHO, {"echo_weight": 2}, "echo_weight must be at most 1, got 2"),
        (CORRIDOR, ECHO, {"echo_delays": (1, 0)}, "echo_delays must be at least 1, got 0"),
        (CORRIDOR, ECHO, {"corridor_length": 1}, "corridor_length must be at least 2, got 1"),
        (CORRIDOR, ECHO, {"corridor_length": 2.5}, "corridor_length must be a whole number"),
        (CORRIDOR, ECHO, {"echo_wieght": 0.5}, "unknown setting 'echo_wieght'; did you mean echo_weight"),
        (CORRIDOR, ECHO, {"echo_weight": 1}, "an echo of weight 1 has one delay"),
        (CORRIDOR, ECHO, {"srnn_beta": 0.5}, "has no sparse representations; srnn_beta does not apply"),
        (CORRIDOR, ECHO, {"torques": 3}, "torques is a setting of Pendulum-v0; it does not apply"),
        ("CartPole-v0", ECHO, {"corridor_length": 7}, "unknown setting 'corridor_length'"),
        (CORRIDOR, "dqn", {"echo_weight": 0.5}, "unknown setting 'echo_weight'"),
        (CORRIDOR, f"{__name__}:same_name", {}, "two groups of settings both have gamma"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(task, method, settings, words):
    with pytest.raises(BadInput, match=words) as refused:
        resolve(task, method, **settings)
    assert "\n" not in str(refused.value)


def test_identity_follows_settings_of_ones_own():
    of = lambda **settings: resolve(CORRIDOR, ECHO, **settings).identity
    assert of() == of(echo_weight=0.25, corridor_length=6), "what is at its default is left out"
    assert len({of(), of(echo_weight=0.5), of(echo_delays=(1,)), of(corridor_length=7)}) == 4


def test_they_are_in_run_json_and_a_run_goes_on_with_them(tmp_path):
    settings = {"echo_weight": 0.5, "echo_delays": (3,), "corridor_length": 9}
    whole = iqrl.train(CORRIDOR, ECHO, **SMALL, **settings)
    half = SMALL | {"steps": 100, "epsilon_decay": 20}
    iqrl.train(CORRIDOR, ECHO, **half, **settings, out=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {name: content["config"][name] for name in settings} == settings | {"echo_delays": [3]}
    resumed = iqrl.resume(tmp_path / "run", steps=200)
    assert dataclasses.asdict(resumed.run) == dataclasses.asdict(whole.run)
    assert resumed.metrics.equals(whole.metrics)
    loaded = iqrl.load(tmp_path / "run")
    assert loaded.task.high == (9.0,)
    # The same command finds it, another does not.
    iqrl.train(CORRIDOR, ECHO, **SMALL, **settings, out=tmp_path / "run")
    with pytest.raises(BadInput, match="holds another run"):
        iqrl.train(CORRIDOR, ECHO, **SMALL, **settings | {"echo_weight": 0.75}, out=tmp_path / "run")


def test_reading_a_run_does_not_load_the_users_file(monkeypatch):
    run = resolve(CORRIDOR, ECHO, echo_weight=0.5)
    config = json.loads(json.dumps(run.to_dict()))

    def refuse(name):
        raise AssertionError(f"{name} was loaded")

    monkeypatch.setattr("iqrl.methods.registry.load_attribute", refuse)
    monkeypatch.setattr("iqrl.envs.registry.load_attribute", refuse)
    again = read_run(config)
    assert again.to_dict() == run.to_dict()
    with pytest.raises(BadInput, match="gamma must be at most 1"):
        read_run(config | {"gamma": 2.0})


def test_groups_of_the_library_keep_their_checks_and_properties(tmp_path):
    """A method of the user's own may use the settings of the library's methods."""
    result = iqrl.train("CartPole-v0", CLUSTERED, **SMALL, contexts=2, out=tmp_path / "run")
    again = iqrl.load(tmp_path / "run")
    assert again.run.k == result.run.k == 2
    assert again.agent.contexts.count == 2
    assert ContextSettings in type(again.run).__mro__
    with pytest.raises(BadInput, match="contexts must be at least 1"):
        read_run(again.run.to_dict() | {"contexts": 0})


def test_they_are_flags_and_keys_of_a_file(tmp_path, capsys):
    assert {"echo_weight", "corridor_length"} <= settings_of(groups_for(CORRIDOR, ECHO)).keys()
    assert "echo_weight" not in settings_of(groups_for())
    (tmp_path / "own.toml").write_text(
        f'task = "{CORRIDOR}"\nmethod = "{ECHO}"\n[lengths]\nsteps = 200\nperiod = 100\nseeds = 1\n'
        f"learning_starts = 50\n[echo]\necho_weight = 0.5\n"
    )
    out = tmp_path / "run"
    flags = ["--config", str(tmp_path / "own.toml"), "--corridor-length", "9", "--echo-delays", "3", "--out", str(out)]
    assert main(["train", *flags, "--json"]) == 0
    capsys.readouterr()
    config = json.loads((out / "run.json").read_text())["config"]
    assert (config["echo_weight"], config["echo_delays"], config["corridor_length"]) == (0.5, [3], 9)
    assert main(["train", *flags, "--echo-weight", "7"]) == 2
    assert "echo_weight must be at most 1, got 7" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", CORRIDOR, "--method", ECHO, "--help"])
    assert "weight of the echo (default: 0.25)" in " ".join(capsys.readouterr().out.split())
