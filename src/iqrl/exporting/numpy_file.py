"""An agent as one Python file that needs NumPy alone."""

from __future__ import annotations

import base64
import pprint
import textwrap
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete

from iqrl.envs.spaces import SMALLEST, channels_first, describe_space, is_image
from iqrl.exporting.primitives import sides, translation_of
from iqrl.exporting.program import Program, Step, Value
from iqrl.exporting.subject import MARK, Subject

FEW = 8
"""numbers that are written as such, and not packed"""


def numpy_source(subject: Subject, program: Program) -> str:
    """The text of the file."""
    named = [value for value in program.constants if not _is_scalar(value)]
    packed = [value for value in named if value.constant is not None and value.constant.size > FEW]
    helpers = dict.fromkeys(translation_of(step).helper for step in program.steps)
    parts = [
        _header(subject, program),
        _imports(program),
        _settings(subject.settings),
        _functions(subject, program),
        _observations(subject),
        _actions(subject),
        *(helper.strip() for helper in helpers if helper),
        _computation(program),
        _weights(named, packed),
    ]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _header(subject: Subject, program: Program) -> str:
    lines = [
        f"{subject.title}, {MARK} {subject.version} after {subject.steps:,} steps.",
        "",
        "This file needs NumPy and nothing else. Weights are at its end.",
        "",
        f"    predict({_given(program, '')})   the greedy action",
        f"    q_values({_given(program, '')})  a value for each of the {subject.task.actions} actions",
    ]
    if "context" in program.outputs:
        lines.append(f"    context({_given(program, '')})   the context, whose head acts")
    lines += ["", _what_is_seen(subject)]
    if len(program.inputs) > 1:
        lines.append(
            "Contexts depend on the episode: first is the observation that it began with, score the sum of its rewards "
            "so far."
        )
    wrapped = [part for line in lines for part in (textwrap.wrap(line, 118, drop_whitespace=False) or [""])]
    text = "\n".join(wrapped).replace("\\", "\\\\").replace('"', "'")
    return f'"""{text}\n"""'


def _settings(settings: dict[str, Any]) -> str:
    """All settings of the run, as many to a line as there is room for."""
    lines = ["   "]
    for name in ("task", "method", *(name for name in settings if name not in ("task", "method"))):
        item = f" {name!r}: {settings[name]!r},"
        if len(lines[-1]) + len(item) > 120:
            lines.append("   ")
        lines[-1] += item
    return "\n".join(["SETTINGS = {", *lines, "}"])


def _what_is_seen(subject: Subject) -> str:
    space = subject.observation_space
    if subject.sees_arrays:
        return f"An observation has shape {subject.observation_shape}; several are an array [n, ...]."
    return f"An observation is one of the environment's {type(space).__name__} space; several are a list."


def _imports(program: Program) -> str:
    needs_math = any(step.primitive == "erf" for step in program.steps)
    return "import base64\n" + ("import math\n" if needs_math else "") + "\nimport numpy as np"


# What is called

EXTRAS = {"first": "first=None", "score": "score=0.0"}


def _given(program: Program, obs: str = "obs") -> str:
    """The arguments of a function of the file; without a name for the observations, as a reader sees them."""
    others = [EXTRAS[value.name] if obs else value.name for value in program.inputs[1:]]
    return ", ".join([obs or "obs", *others])


def _functions(subject: Subject, program: Program) -> str:
    given, passed = _given(program), ", ".join(["obs", *(f"{v.name}={v.name}" for v in program.inputs[1:])])
    texts = [
        f'def predict({given}):\n    """The greedy action for one observation, or one each for several."""\n'
        f"    numbers = q_values({passed}).argmax(axis=-1)\n    return {_decoded(subject)}",
        f'def q_values({given}):\n    """[{subject.task.actions}] for one observation, [n, {subject.task.actions}] '
        f'for several."""\n{_called(program, 0)}',
    ]
    if "context" in program.outputs:
        texts.append(
            f'def context({given}):\n    """The number of the context of each observation."""\n{_called(program, 1)}'
        )
    return "\n\n\n".join(texts)


def _called(program: Program, output: int) -> str:
    lines, passed = ["rows, one = _rows(obs)"], ["rows"]
    for value in program.inputs[1:]:
        if value.name == "first":
            lines.append("first = np.broadcast_to(rows if first is None else _rows(first)[0], rows.shape)")
        else:
            lines.append("score = np.broadcast_to(np.float32(score), len(rows))")
        passed.append(value.name)
    call = f"_compute({', '.join(passed)})" + (f"[{output}]" if len(program.outputs) > 1 else "")
    lines += [f"found = {call}", "return found[0] if one else found"]
    return textwrap.indent("\n".join(lines), "    ")


def _decoded(subject: Subject) -> str:
    space = subject.action_space
    if isinstance(space, MultiDiscrete | MultiBinary):
        return "_action(numbers)"
    if isinstance(space, Discrete) and space.start != 0:
        return f"numbers + {int(space.start)}"
    return "numbers"


# Spaces of the environment


def _observations(subject: Subject) -> str:
    space, size = subject.observation_space, subject.task.obs_size
    if not subject.sees_arrays:
        described = pprint.pformat(describe_space(space), width=110, sort_dicts=False, compact=True)
        encode = "_encode" if subject.task.image else "_flatten"
        text = FLATTEN.format(space=described, shape=getattr(space, "shape", None), encode=encode)
        return text + (IMAGES_FIRST.format(smallest=SMALLEST) if subject.task.image else "")
    turned = "\n    several = np.moveaxis(several, 1, -1)  # channels last"
    turn = turned if space is not None and is_image(space) and channels_first(space) else ""
    return ROWS.format(shape=subject.observation_shape, size=size, turn=turn)


ROWS = '''SHAPE = {shape}


def _rows(obs):
    """Observations as [n, {size}], and whether it was one alone."""
    obs = np.asarray(obs, np.float32)
    one = obs.shape == SHAPE
    if not one and obs.shape[1:] != SHAPE:
        raise ValueError(f"an observation has shape {{SHAPE}}, several are (n, ...), got shape {{obs.shape}}.")
    several = obs[None] if one else obs{turn}
    return several.reshape(len(several), {size}), one'''

FLATTEN = '''SPACE = {space}


def _rows(obs):
    """Observations as [n, numbers], and whether it was one alone."""
    shape = {shape}
    one = np.shape(obs) == shape if shape is not None else not isinstance(obs, list)
    rows = [{encode}(SPACE, each) for each in ([obs] if one else obs)]
    return np.stack(rows).astype(np.float32), one


def _flatten(space, obs):
    """The numbers of an observation in a row; what is counted becomes zeros and a one."""
    kind = space["kind"]
    if kind == "Discrete":
        return np.arange(space["n"]) == obs - space["start"]
    if kind == "MultiDiscrete":
        each = zip(np.ravel(space["nvec"]), np.ravel(obs) - np.ravel(space["start"]))
        return np.concatenate([np.arange(n) == number for n, number in each])
    if kind == "Tuple":
        return np.concatenate([_flatten(part, each) for part, each in zip(space["spaces"], obs)])
    if kind == "Dict":
        return np.concatenate([_flatten(part, obs[name]) for name, part in space["spaces"]])
    return np.ravel(obs)'''

IMAGES_FIRST = '''


def _encode(space, obs):
    """The numbers in a row: images with the channels of all, then the other parts."""
    images, others = [], []
    for part, each in _parts(space, obs):
        shape = part.get("shape", ())
        if not part.get("bytes") or len(shape) not in (2, 3):
            others.append(_flatten(part, each))
            continue
        first = len(shape) == 3 and shape[0] <= 4 < min(shape[1:])
        image = np.moveaxis(each, 0, -1) if first else np.reshape(each, (*shape, 1)[:3])
        if min(image.shape[:2]) < {smallest}:
            others.append(np.ravel(each))
        else:
            images.append(image)
    return np.concatenate([np.concatenate(images, axis=-1).ravel(), *others])


def _parts(space, obs):
    """What a Tuple or Dict consists of."""
    if space["kind"] == "Tuple":
        return [found for part, each in zip(space["spaces"], obs) for found in _parts(part, each)]
    if space["kind"] == "Dict":
        return [found for name, part in space["spaces"] for found in _parts(part, obs[name])]
    return [(space, obs)]'''


def _actions(subject: Subject) -> str:
    space: Any = subject.action_space
    if not isinstance(space, MultiDiscrete | MultiBinary):
        return ""
    sizes = np.full(space.shape, 2) if isinstance(space, MultiBinary) else space.nvec
    starts = np.zeros_like(sizes) if isinstance(space, MultiBinary) else space.start
    return (
        'def _action(numbers):\n    """The combination that has this number."""\n'
        f"    each = np.stack(np.unravel_index(numbers, {tuple(map(int, sizes.ravel()))}), axis=-1)\n"
        f"    return (each + {list(map(int, starts.ravel()))}).reshape(np.shape(numbers) + {tuple(space.shape)})"
    )


# The computation


def _computation(program: Program) -> str:
    shown = {"q_values": "Q values", "context": "contexts"}
    what = " and ".join(f"{shown[name]} {_text(value.shape)}" for name, value in program.outputs.items())
    lines = [f"def _compute({', '.join(value.name for value in program.inputs)}):", f'    """{what}."""']
    if any("n" in map(str, step.output.shape) for step in program.steps if step.primitive in ("reshape", "repeat")):
        lines.append("    n = len(obs)")
    place = ""
    for step in program.steps:
        if step.place != place:
            lines.append(f"    # {step.place}" if step.place else "    #")
            place = step.place
        lines.append(f"    {step.output.name} = {expression(step)}  # {_text(step.output.shape)}")
    lines.append(f"    return {', '.join(_reference(value, False) for value in program.outputs.values())}")
    return "\n".join(lines)


def expression(step: Step) -> str:
    typed = step.primitive in ("select_n", "concatenate", "repeat")  # plain numbers would not be 32 bits there
    return translation_of(step).numpy(step, [_reference(value, typed) for value in step.inputs])


def _text(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _is_scalar(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 1


def _reference(value: Value, typed: bool) -> str:
    if value.constant is None:
        return value.name
    if not _is_scalar(value):
        return value.name.upper()
    number = value.constant.item() if value.constant.dtype != np.float32 else str(value.constant.ravel()[0])
    number = {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(str(number), str(number))
    if typed and value.constant.dtype != np.bool_:
        return f"np.{value.constant.dtype}({number})"
    return f"({number})" if number.startswith("-") else number


# Weights


def _weights(named: list[Value], packed: list[Value]) -> str:
    lines = [
        f"{value.name.upper()} = np.array({_listed(value)}, np.{_dtype(value)})  # {_text(value.shape)}"
        for value in named
        if value not in packed
    ]
    if packed:
        lines += [UNPACK]
    for value in packed:
        lines.append(
            f'{value.name.upper()} = _unpack("{_dtype(value)}", {sides(value.shape)}, """\n{_base64(value)}""")'
        )
    return "\n".join(lines)


UNPACK = (
    '''

def _unpack(dtype, shape, text):
    """An array, of which the text has the bytes in base64, lowest byte first."""
    return np.frombuffer(base64.b64decode(text), np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(shape)


'''.rstrip("\n")
    + "\n\n"
)


def _dtype(value: Value) -> str:
    return "bool_" if value.dtype == np.bool_ else str(value.dtype)


def _listed(value: Value) -> str:
    assert value.constant is not None
    text = np.array2string(value.constant, separator=", ", floatmode="unique", max_line_width=10**6)
    return " ".join(text.split()).replace("inf", "np.inf").replace("nan", "np.nan")


def _base64(value: Value) -> str:
    assert value.constant is not None
    array = value.constant.astype(value.dtype.newbyteorder("<"))
    return "\n".join(textwrap.wrap(base64.b64encode(array.tobytes()).decode(), 120))
