# ruff: noqa: E501
"""Inputs that nobody would give on purpose, and what must come of them.

A command ends with an exit code and, unless that is 0, one sentence on stderr: short, no traceback, no mistake of
iqrl's own; what it refuses leaves nothing behind. A case that is marked as nonsense must be refused. Cases are made
from a seed, so each can be made again. Short in the tests, long in `scripts/soak`.
"""

import contextlib
import functools
import io
import json
import os
import random
import shutil
import sys
import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from iqrl import plugins
from iqrl.cli.main import build_parser, main
from iqrl.errors import RunFailed
from iqrl.files import write_json
from iqrl.make_run import groups_for
from iqrl.settings import settings_of, types_of

LONGEST = 500
HUGE = int("9" * 400)
DEEP = "[" * 5000
TEXTS = (
    "", " ", "0", "-1", "1e300", "9" * 400, "nan", "inf", "-inf", "é", "γ", "\x1b[31mred", "a" * 300, "../..", "/dev/null/x",
    "/proc/x", "None", "[]", "{}", "true", "os:getpid", "os:abort", ":", "a:b:c", "no_such:thing", "%s%n", "\udc80", "-",
    "1,000", "0x10", "１２", "x" * 100_000, "\0", "a\nb", "--out", "'; rm", "<script>", "[x](javascript:alert(1))", "1/0", "0/0",
    "CartPole-v9", "ALE/Nothing-v5", "dqnn", "1e-400", "--", "=", "a=b=c", "1 2", "/", ".", "..", "~", "con", "\u202e",
    "gymnasium:CartPole-v1", "gymnasium:make", "numpy:zeros", "__main__:x", "iqrl.cli.main:main", "a" * 5000 + ":b",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, HUGE, -HUGE, 2**31, 2**63, 1e300, -1e300, 0.5, float("nan"), float("inf"), "", "text",
    "x" * 2000, [], [[]], {}, {"a": 1}, [1], [None], ["a"], [[1], 2], {"a": {"b": []}}, "os:getpid", [HUGE], [1e300],
    "\x1b[31m", "é", "../../x", "a" * 300, ["paper", 3], [True],
)  # fmt: skip


@dataclass
class Case:
    kind: str
    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    nonsense: bool = False
    """whether it must be refused"""
    directory: str = ""
    """one of the originals, which is there too"""
    edit: Callable[[Path], None] = lambda folder: None
    draws: bool = False
    """whether a report is really written, which takes a second"""


# Command lines

COMMANDS = (
    "train", "resume", "evaluate", "watch", "plot", "demo", "interference", "explain", "cost", "study list", "study run",
    "study status", "study export", "study choose", "report", "paper", "list", "check", "study", "",
)  # fmt: skip
FLAGS = (
    "--out", "--config", "--method", "--preset", "--steps", "--seeds", "--period", "--hidden", "--gamma", "--buffer-size",
    "--device", "--json", "--episodes", "--seed", "--epsilon", "--drop", "--trust", "--set", "--part", "--workers",
    "--executor", "--address", "--over", "--by", "--reuse", "--updates", "--matrix", "--dir", "--beside", "--variant",
    "--batch-size", "--contexts", "--learning-rate", "--n-step", "--max-episode-steps", "--update-every",
)  # fmt: skip
BAD_FLAGS = (
    ("--steps", ("", "many", "-5", "0", "1e300", "9" * 400, "nan", "1.5")), ("--hidden", ("1e300", "0", "a", "-1", "")),
    ("--gamma", ("2", "nan", "inf", "-1", "high", "")), ("--batch-size", ("2147483648", "2147483647", "0", "1e300")),
    ("--buffer-size", ("0", "{}", "1e300", "2147483647")), ("--method", ("", "iqq", ":", "os:getpid", "x" * 300)),
    ("--preset", ("", "3", "papr")), ("--seeds", ("0", "2147483648", "x", "2147483647")), ("--seed", ("-1", "1e10")),
    ("--learning-rate", ("nan", "-1", "1e300")), ("--n-step", ("0", "1e12")), ("--period", ("0", "9" * 30)),
    ("--config", ("", "none.toml", "/dev/null/x", "a" * 300)), ("--out", ("", "/dev/null", "/proc/iqrl", "a" * 300)),
    ("--max-episode-steps", ("0", "-1", "1e300")), ("--activation", ("", "sigmoid")), ("--device", ("warp",)),
    ("--update-every", ("0", "7")), ("--measure-every", ("1e300", "-1")), ("--sampling", ("", "none")),
)  # fmt: skip


def command_line(chance: random.Random) -> Case:
    """Words at random."""
    words = chance.choice(COMMANDS).split()
    for _ in range(chance.randrange(0, 5)):
        words.append(chance.choice(FLAGS) if chance.random() < 0.5 else chance.choice(TEXTS))
    if words == ["study", "list"]:
        words.append("nothing")  # all of them would take a second
    if words[:2] == ["study", "run"] or words[:1] == ["demo"]:
        words += ["--steps", "many"]  # none of them is to run for hours
    return Case("command line", words)


def bad_flag(chance: random.Random) -> Case:
    """One value of one flag that cannot be right."""
    flag, values = chance.choice(BAD_FLAGS)
    return Case("flag", ["train", "CartPole-v0", "--method", "iq", f"{flag}={chance.choice(values)}"], nonsense=True)


# Files of settings


def toml(value: Any) -> str:
    if value is None:
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
    return str(value)


def does_not_fit(value: Any, hint: Any) -> bool:
    """Whether a value can be no value of a setting, whatever its range."""
    options = typing.get_args(hint) if typing.get_origin(hint) is not tuple else (hint,)
    kinds = [each for each in (*options, hint) if each in (int, float, bool, str)]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and abs(value) < 1e30:
        return bool not in kinds and not set(kinds) & {int, float} and typing.get_origin(hint) is not tuple
    return isinstance(value, (dict, float)) or is_number


def config_file(chance: random.Random) -> Case:
    if chance.random() < 0.1:
        text = chance.choice(
            (DEEP, "a = " + DEEP, "=", "a = 1\na = 2", "\0", "[a", "[[runs]]", "a = '''", "é = 1", "x=" + "9" * 5000)
        )
        return Case("config", ["train", "CartPole-v0", "--config", "c.toml"], {"c.toml": text.encode()}, nonsense=True)
    if chance.random() < 0.1:
        text = chance.choice(
            (DEEP, "[]", "3", "{", '{"config": 3}', '{"config": {}}', '{"config": {"task": [], "method": 1}}')
        )
        return Case("config", ["train", "--config", "c.json"], {"c.json": text.encode()}, nonsense=True)
    groups = groups_for()
    name = chance.choice([*settings_of(groups), "task", "method", "preset", "nothing"])
    value, hint = chance.choice(VALUES), types_of(groups).get(name, str)
    nonsense = does_not_fit(value, hint) or (name == "nothing" and value is not None and not isinstance(value, dict))
    text = f"{name} = {toml(value)}\n"
    task = [] if name == "task" else ["CartPole-v0"]
    return Case("config", ["train", *task, "--config", "c.toml"], {"c.toml": text.encode("utf-8", "replace")}, nonsense)


# Directories


def mutate(content: Any, chance: random.Random) -> None:
    """One value somewhere in a tree of dictionaries and lists is another one, or is gone."""
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                collect(node[key])

    collect(content)
    node, key = chance.choice(places)
    what = chance.random()
    if what < 0.15:
        del node[key]
    elif what < 0.25 and isinstance(node, dict):
        node[str(chance.choice(TEXTS))[:100]] = chance.choice(VALUES)
    else:
        node[key] = chance.choice(VALUES)


def edited_json(
    chance: random.Random, kind: str, name: str, file: str, sealed_as: str, commands: tuple[str, ...]
) -> Case:
    """A file of a directory with one value changed; half of them with a checksum that is right."""
    seed, again = chance.randrange(2**31), chance.random() < 0.5

    def edit(folder: Path) -> None:
        path = folder / file
        content = json.loads(path.read_text())
        marks = [content.pop(mark, None) for mark in ("format", "checksum")]
        mutate(content, random.Random(seed))
        if again and marks:
            write_json(path, sealed_as, content)
        else:
            path.write_text(json.dumps(content), errors="replace")

    draws = chance.random() < 0.1
    return Case(kind, chance.choice(commands).split(), directory=name, edit=edit, draws=draws)


READ_RUN = (
    "plot run",
    "explain run",
    "list --dir .",
    "check run",
    "interference run",
    "resume run",
    "evaluate run",
    "watch run --out a.gif --longest 3",
    "cost run",
)
READ_STUDY = (
    "study status study", "study export study --out out", "check study", "study choose study --over gamma --out c.toml",
    "report study --out page",
)  # fmt: skip
READ_EXPORT = (
    "study export export --out out", "check export", "study choose export --over gamma --out c.toml",
    "report export --out page",
)  # fmt: skip


def run_json(chance: random.Random) -> Case:
    return edited_json(chance, "run.json", "run", "run.json", "run", READ_RUN)


def study_json(chance: random.Random) -> Case:
    return edited_json(chance, "study.json", "study", "study.json", "study", READ_STUDY)


def manifest(chance: random.Random) -> Case:
    return edited_json(chance, "manifest.json", "export", "manifest.json", "manifest", READ_EXPORT)


STUDY: dict[str, Any] = {
    "title": "t", "about": "a", "charts": ["return"], "analyses": [], "settings": {"seeds": 2, "steps": 400},
    "runs": [{"task": "CartPole-v0", "method": ["dqn", "iq"], "gamma": [0.9, 0.99], "hidden": [64], "variant": "v"}],
}  # fmt: skip


def study_file(chance: random.Random) -> Case:
    content = json.loads(json.dumps(STUDY))
    mutate(content, chance)
    runs = content.pop("runs", [])
    text = "".join(f"{json.dumps(name)} = {toml(value)}\n" for name, value in content.items())
    if isinstance(runs, list) and all(isinstance(block, dict) for block in runs):
        for block in runs:
            text += "[[runs]]\n" + "".join(f"{json.dumps(name)} = {toml(value)}\n" for name, value in block.items())
    else:
        text = f"runs = {toml(runs)}\n" + text
    return Case("study file", ["study", "list", "s.toml"], {"s.toml": text.encode("utf-8", "replace")})


BAD_STUDIES = (
    "analyses = [[]]", "charts = [3]", "title = 3", "variant = [1]", "method = []", "preset = 3", "hidden = [[64], 64]",
    "seeds = " + "9" * 400, "gamma = [0.9, 'x']", "steps = [100, []]", "runs = 3", "beside = []",
)  # fmt: skip


def bad_study(chance: random.Random) -> Case:
    line = chance.choice(BAD_STUDIES)
    top = line.split()[0] in ("analyses", "charts", "title", "runs", "beside")
    block = '[[runs]]\ntask = "CartPole-v0"\nmethod = "dqn"\n'
    text = (
        f"{line}\n{'' if line.startswith('runs') else block}"
        if top
        else f"{block}{line}\n".replace('method = "dqn"\nmethod', "method")
    )
    return Case("study file", ["study", "run", "s.toml", "--out", "o"], {"s.toml": text.encode()}, nonsense=True)


# Plug-ins

TASK = """
import sys
import gymnasium, numpy as np, jax.numpy as jnp
from gymnasium.spaces import Box, Discrete, Dict, MultiDiscrete
import iqrl
nan = float("nan")
inf = float("inf")
fields = dict(
    name="t", actions=2, low=(0.0,), high=(5.0,), time_limit=9, num_reset_uniforms=0, num_step_uniforms=0,
    reset=lambda inputs: jnp.int32(0),
    step=lambda place, action, inputs: (jnp.clip(place + action, 0, 5), jnp.float32(1), place == 5),
    observe=lambda place: place[None].astype(jnp.float32),
)
"""
RECORD_CHANGES = (
    "name=None", "name=3", "name=''", "low=None", "low=()", "low=(nan,)", "low=(inf,)", "low=('a',)", "low=(9.0,)", "low=3",
    "low=((0.0,),)", "high=None", "high=(nan,)", "high=(1.0, 2.0)", "actions=0", "actions=-1", "actions=None", "actions=1.5",
    "actions=10**400", "actions=True", "actions='2'", "time_limit=None", "time_limit=0", "time_limit=nan", "time_limit=-3",
    "num_reset_uniforms=None", "num_reset_uniforms=-1", "reset=None", "reset=3", "reset=lambda: 0", "reset=sys.exit",
    "reset=lambda inputs: sys.exit(0)", "step=None", "step=lambda *a: None", "step=lambda *a: 1 / 0", "observe=None",
    "step=lambda p, a, i: (p, 'x', p == 5)", "step=lambda p, a, i: (p, jnp.float32(1), 1)", "step=lambda p, a, i: (p, p == 5)",
    "step=lambda p, a, i: (p, jnp.complex64(1j), p == 5)", "step=lambda p, a, i: (p, jnp.ones(2), p == 5)",
    "observe=lambda place: place", "observe=lambda place: 'x'", "observe=lambda place: sys.exit(0)",
    "num_step_uniforms=2**40", "step=lambda p, a, i: (p.astype(float), jnp.float32(1), p == 5)",
)  # fmt: skip
MODULES = (
    "syntax error", "import sys; sys.exit(0)", "raise SystemExit", "1 / 0", "t = None", "t = 3", "t = sys", "t = [1]",
    "raise KeyboardInterrupt2", "def t(): sys.exit(0)", "def t(a, b): pass", "def t(): return None", "class t: pass",
    "def t(): raise ValueError('x' * 100_000)", "def t(): raise ValueError('a\\nb')", "import no_such_module_anywhere",
    "class E(Exception):\n    def __str__(self): 1 / 0\nraise E()", "t = iqrl.TaskEntry(3)", "t = iqrl.TaskEntry(None, None)",
    "t = iqrl.TaskEntry(lambda given: None, (int,))", "t = iqrl.TaskEntry(lambda given: 1 / 0, ())", "raise RecursionError",
    "def t(): return t()", "t = iqrl.Task", "t = iqrl.train", "t = lambda *a: a", "t = iqrl.TaskEntry(lambda g: 3, 5)",
)  # fmt: skip
ENVIRONMENT = """
class t(gymnasium.Env):
    observation_space, action_space = Box(-1.0, 1.0, (2,), np.float32), Discrete(2)
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}
    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, True, {}
"""
ENVIRONMENT_CHANGES = (
    "    action_space = None", "    observation_space = None", "    del action_space, observation_space",
    "    action_space = Discrete(2, start=1)", "    action_space = MultiDiscrete([2, 2])", "    observation_space = Dict({})",
    "    observation_space = Box(-1.0, 1.0, (2, 3), np.float32)", "    observation_space = Box(-1.0, 1.0, (0,), np.float32)",
    "    observation_space = Box(-1.0, 1.0, (), np.float32)", "    observation_space = Box(0, 9, (3, 3, 3), np.int64)",
    "    action_space = 3", "    observation_space = 'x'", "    reset = None", "    step = 3", "    def reset(self): return 0, {}",
    "    def __init__(self): raise ValueError", "    def __init__(self): sys.exit(0)", "    def __init__(self, a): pass",
    "    def close(self): 1 / 0\n    def step(self, a): return 3", "    def reset(self, **k): return [[1], [1, 2]], {}",
    "    def reset(self, **k): return 'x', {}", "    def reset(self, **k): return None, {}", "    def reset(self, **k): return {}",
    "    def reset(self, **k): return np.full(2, nan, np.float32), {}", "    def reset(self, **k): sys.exit(0)",
    *(
        f"    def step(self, a): return np.zeros(2, np.float32), {reward}, False, True, {{}}"
        for reward in ("'1'", "None", "nan", "inf", "[1.0]", "np.ones(2)", "1j", "{}", "[[1], [1, 2]]", "10**400")
    ),
    *(
        f"    def step(self, a): return {obs}, 1.0, False, True, {{}}"
        for obs in ("None", "'x'", "[[1], [1, 2]]", "np.zeros(3)", "np.full(2, nan)", "1j", "[1j, 2]", "{}", "['a', 'b']")
    ),
    "    def step(self, a): return 1, 2", "    def step(self, a): 1 / 0", "    def step(self, a): sys.exit(0)",
    "    def step(self, a): raise ValueError('x' * 100_000)",
)  # fmt: skip


def plugin(chance: random.Random) -> Case:
    """A module of the user's own in which one thing is wrong."""
    what = chance.randrange(3)
    if what == 0:
        body = f"fields.update(dict({chance.choice(RECORD_CHANGES)}))\nt = iqrl.Task(**fields)"
    elif what == 1:
        body = chance.choice(MODULES)
    else:
        body = ENVIRONMENT + chance.choice(ENVIRONMENT_CHANGES)
    name = f"fuzzed_{chance.randrange(10**9)}"
    arguments = ["train", f"{name}:t", "--method", "dqn", "--steps", "100"]
    return Case("plug-in", arguments, {f"{name}.py": f"{TASK}\n{body}\n".encode()}, nonsense=True)


def bad_method(chance: random.Random) -> Case:
    body = chance.choice((
        "m = 3", "m = None", "m = iqrl.Method(*[None] * 4)", "import sys; sys.exit(0)", "m = iqrl.METHODS",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: None)",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: 1 / 0)",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: sys.exit(0))",
        "m = iqrl.Method(name='m', summary='', paper='', build=3)",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: 1, settings=3)",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: 1, settings=(int,))",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: 1, defaults={'gamma': 'x'})",
        "m = iqrl.Method(name='m', summary='', paper='', build=lambda run, task: 1, fixed={'nothing': 1})",
    ))  # fmt: skip
    name = f"fuzzed_{chance.randrange(10**9)}"
    files = {f"{name}.py": f"{TASK}\n{body}\n".encode()}
    return Case("plug-in", ["train", "CartPole-v0", "--method", f"{name}:m", "--steps", "100"], files, nonsense=True)


KINDS: tuple[tuple[Callable[[random.Random], Case], int], ...] = (
    (command_line, 20), (bad_flag, 15), (config_file, 25), (run_json, 15), (study_json, 8), (manifest, 8),
    (study_file, 10), (bad_study, 5), (plugin, 10), (bad_method, 2),
)  # fmt: skip
"""with how often each comes"""


# Running them


def run_case(case: Case, originals: Path, folder: Path) -> str:
    """accepted or refused; raises AssertionError for what must not be."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    if case.directory:
        shutil.copytree(originals / case.directory, folder / case.directory)
        case.edit(folder / case.directory)
    before = listing(folder)
    code, err = run_command(case.arguments)
    said = [line for line in err.splitlines() if line.startswith("iqrl: ")]
    assert code in (0, 1, 2), f"exit code {code}"
    assert "Traceback" not in err, err[-2000:]
    assert "a mistake in iqrl" not in err, err[-2000:]
    if code == 0:
        assert not case.nonsense, "nonsense is accepted"
        return "accepted"
    assert said, f"no sentence: {err!r}"
    assert len(said[-1]) < LONGEST, f"{len(said[-1])} characters"
    assert "\x1b" not in err
    if code == 2:
        assert err.count("\n") == 1, f"more than a sentence: {err!r}"
        assert listing(folder) == before, "something is left behind"
    return "refused"


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts)


def run_command(arguments: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as error:
            code = 0 if error.code in (0, None) and ("usage" in out.getvalue() or "iqrl " in out.getvalue()) else 99
    return code, err.getvalue()


DRAWING = ("iqrl.experiments.report.write.write_report", "iqrl.experiments.report.figures.curves.plot_curves")
build_parser_once = functools.cache(lambda groups: build_parser(groups))


def stop_here(*given: Any, **named: Any) -> Any:
    raise RunFailed("everything was accepted")


@contextlib.contextmanager
def nothing_compiled(folder: Path, draws: bool = False):
    """Commands go as far as they go without compiling and training, in a directory of their own."""
    here, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    handlers = {name: mock.patch(name, stop_here) for name in (
        "iqrl.training.loop.compile_driver", "iqrl.training.evaluation.play", "iqrl.diagnostics.analysis.cost.split_wallclock",
        "iqrl.diagnostics.analysis.cost.count_pieces", "iqrl.experiments.executors.local.LocalExecutor.submit",
        "iqrl.experiments.executors.ray_cluster._import_ray", *DRAWING,
    )}  # fmt: skip
    import signal

    kept = signal.getsignal(signal.SIGINT)
    os.chdir(folder)
    try:
        with contextlib.ExitStack() as stack:
            for name, handler in handlers.items():
                if not (draws and name in DRAWING):
                    stack.enter_context(handler)
            # Half of the time would go into building the same parsers again.
            stack.enter_context(mock.patch("argparse._", str))
            stack.enter_context(mock.patch("iqrl.cli.main.build_parser", build_parser_once))
            yield
    finally:
        os.chdir(here)
        signal.signal(signal.SIGINT, kept)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name.startswith("fuzzed_"):
                del sys.modules[name]


def fuzz(originals: Path, folder: Path, count: int, seed: int, keep_going: bool = False) -> tuple[Counter, list[str]]:
    """So many cases; what came of them by kind, and what should not have."""
    outcomes, failures = Counter(), []
    makers, weights = zip(*KINDS, strict=True)
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        case = chance.choices(makers, weights)[0](chance)
        place = folder / str(number)
        place.mkdir()
        plugins._trusted.clear()
        try:
            with nothing_compiled(place, case.draws), np.errstate(all="ignore"):
                outcomes[case.kind, run_case(case, originals, place)] += 1
        except Exception as error:
            shown = str(error)[:1500] or type(error).__name__
            failures.append(f"seed {seed}, case {number} ({case.kind}): {str(case.arguments)[:300]}: {shown}")
            if not keep_going:
                break
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return outcomes, failures
