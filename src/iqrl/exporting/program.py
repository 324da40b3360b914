"""An agent's greedy Q-function as a short list of array operations.

JAX traces the function that the agent itself computes, so there is no second description of any network. What does not
depend on the observation is computed here and becomes a constant; what is not needed is left out. The number of
observations is a symbol, n, so the program takes any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

from iqrl.core.agent import QLearner
from iqrl.core.types import ContextInputs
from iqrl.plugins import PACKAGE

Shape = tuple[Any, ...]
"""whole numbers, and n"""


@dataclass(eq=False)
class Value:
    """An array of the program: an input, a constant, or what a step computes."""

    name: str
    shape: Shape
    dtype: np.dtype
    constant: np.ndarray | None = None


class Step(NamedTuple):
    primitive: str
    """of JAX"""
    inputs: list[Value]
    output: Value
    params: dict[str, Any]
    place: str
    """the function of the library that it comes from"""


@dataclass
class Program:
    inputs: list[Value]
    """those of `INPUTS` that are used; the observations always are"""
    steps: list[Step]
    outputs: dict[str, Value]
    """q_values [n, A]; context [n], where there are several"""

    @property
    def constants(self) -> list[Value]:
        """The weights and other numbers that the steps use."""
        used = [*(value for step in self.steps for value in step.inputs), *self.outputs.values()]
        return list(dict.fromkeys(value for value in used if value.constant is not None))


INPUTS = ("obs", "first", "score")
"""observations [n, d]; those that the episodes began with [n, d]; sums of rewards so far [n]"""


def trace(agent: QLearner, state: Any, size: int) -> Program:
    """The program of one seed's agent. `size`: of an observation."""
    (n,) = jax.export.symbolic_shape("n")
    rows = jax.ShapeDtypeStruct((n, size), np.float32)
    seen = ContextInputs(obs=rows, initial_obs=rows, score=jax.ShapeDtypeStruct((n,), np.float32))  # ty: ignore
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    values_of = jax.vmap(agent.q_values, in_axes=(None, 0))
    closed = jax.make_jaxpr(values_of)(state, seen)
    tracer = _Tracer()
    known = [tracer.known(np.asarray(leaf), _name_of(path)) for path, leaf in leaves]
    inputs = [Value("obs", (n, size), _FLOAT), Value("first", (n, size), _FLOAT), Value("score", (n,), _FLOAT)]
    q, context = tracer.run(closed.jaxpr, closed.consts, [*known, *inputs], "")
    outputs = {"q_values": tracer.whole(q, closed.jaxpr.outvars[0].aval.shape, "")}
    if context.constant is None:
        outputs["context"] = context
    return _needed(inputs, tracer.steps, outputs)


_FLOAT = np.dtype(np.float32)


def _name_of(path: Sequence[Any]) -> str:
    """
    >>> _name_of(jax.tree_util.tree_flatten_with_path({"trunk": ({"w": 1},)})[0][0][0])
    'trunk_0_w'
    """
    words = re.findall(r"\w+", jax.tree_util.keystr(tuple(path)).replace(".params", "").replace(".average", ""))
    return "_".join(words) or "number"


def _needed(inputs: list[Value], steps: list[Step], outputs: dict[str, Value]) -> Program:
    """Without the steps that the outputs do not depend on; values get their names."""
    used, kept = set(outputs.values()), []
    for step in reversed(steps):
        if step.output in used:
            kept.append(step)
            used.update(step.inputs)
    program = Program([value for value in inputs if value.name == "obs" or value in used], kept[::-1], outputs)
    for number, step in enumerate(program.steps):
        step.output.name = f"v{number}"
    names: dict[str, int] = {}
    for value in program.constants:
        names[value.name] = names.get(value.name, 0) + 1
        value.name += f"_{names[value.name]}" if names[value.name] > 1 else ""
    return program


# Reading a jaxpr

INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
           "custom_vjp_call": "call_jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr"}  # fmt: skip
"""calls, and where the jaxpr of what they call is"""
SAME = ("stop_gradient", "copy", "copy_p", "optimization_barrier")
"""what gives back what it gets"""
ELEMENTWISE = (
    "abs", "add", "and", "ceil", "clamp", "convert_element_type", "cos", "div", "eq", "erf", "exp", "expm1", "floor",
    "ge", "gt", "integer_pow", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "not", "or",
    "pow", "rem", "rsqrt", "select_n", "shift_right_logical", "sign", "sin", "sqrt", "square", "sub", "tanh", "xor",
)  # fmt: skip
"""operations for whose inputs sides of length 1 are enough, as NumPy and ONNX have it"""


@dataclass
class _Tracer:
    steps: list[Step] = field(default_factory=list)

    def known(self, array: np.ndarray, name: str) -> Value:
        return Value(name, array.shape, array.dtype, array)

    def run(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Value], place: str) -> list[Value]:
        """The values of the outputs. Their shapes may have sides of length 1 in place of longer ones."""
        values: dict[Any, Value] = dict(zip(jaxpr.invars, given, strict=True))
        values |= {var: self.known(np.asarray(c), "number") for var, c in zip(jaxpr.constvars, consts, strict=True)}
        read = lambda v: self.known(np.asarray(v.val, v.aval.dtype), "number") if isinstance(v, Literal) else values[v]
        for eqn in jaxpr.eqns:
            found = self._equation(eqn, list(map(read, eqn.invars)), place or _place_of(eqn))
            values |= dict(zip(eqn.outvars, found, strict=True))
        return list(map(read, jaxpr.outvars))

    def _equation(self, eqn: Any, given: list[Value], place: str) -> list[Value]:
        name = eqn.primitive.name
        if name in INLINED:
            called = eqn.params[INLINED[name]]
            return self.run(getattr(called, "jaxpr", called), getattr(called, "consts", ()), given, place)
        if name in SAME:
            return given
        if name == "broadcast_in_dim":
            return [self._broadcast(eqn, *given, place)]
        shapes = [var.aval.shape for var in eqn.invars]
        if all(value.constant is not None for value in given):
            return self._compute(eqn, given, shapes)
        if name == "select_n" and (chosen := _the_same_everywhere(given[0])) is not None:
            return [given[1 + chosen]]
        if name in ELEMENTWISE:
            return [self._step(name, given, _together(given), eqn.outvars[0].aval.dtype, eqn.params, place)]
        full = [self.whole(value, shape, place) for value, shape in zip(given, shapes, strict=True)]
        if name in RESHAPES or (name in REDUCTIONS and _of_ones(full[0], eqn.params["axes"])):
            return [self._reshape(full[0], eqn.outvars[0].aval.shape, place)]
        if name == "split":
            return self._split(full[0], eqn, place)
        return [self._step(name, full, var.aval.shape, var.aval.dtype, eqn.params, place) for var in eqn.outvars]

    def _step(self, name: str, given: list[Value], shape: Shape, dtype: Any, params: dict, place: str) -> Value:
        output = Value("", tuple(shape), np.dtype(dtype))
        self.steps.append(Step(name, given, output, params, place))
        return output

    def _compute(self, eqn: Any, given: list[Value], shapes: list[Shape]) -> list[Value]:
        """What depends on no observation. Numbers that only change their places keep their name."""
        arrays = [np.broadcast_to(_array(value), shape) for value, shape in zip(given, shapes, strict=True)]
        found = eqn.primitive.bind(*map(jax.numpy.asarray, arrays), **eqn.params)
        sources = [value.name for value in given if value.name != "number"]
        name = sources[0] if sources else "number"
        if sources and eqn.primitive.name not in MOVES and not name.startswith(COMPUTED):
            name = COMPUTED + name
        return [self.known(np.asarray(each), name) for each in (found if eqn.primitive.multiple_results else [found])]

    def _broadcast(self, eqn: Any, given: Value, *others: Any) -> Value:
        """Sides of length 1 where the array is repeated; `whole` repeats it where that is needed."""
        shape = [1] * len(eqn.params["shape"])
        for side, axis in zip(given.shape, eqn.params["broadcast_dimensions"], strict=True):
            shape[axis] = side
        return self._reshape(given, tuple(shape), others[-1])

    def _reshape(self, given: Value, shape: Shape, place: str) -> Value:
        if given.shape == tuple(shape):
            return given
        if given.constant is not None:
            return self.known(given.constant.reshape(shape), given.name)
        return self._step("reshape", [given], shape, given.dtype, {}, place)

    def _split(self, given: Value, eqn: Any, place: str) -> list[Value]:
        axis, start, parts = eqn.params["axis"], 0, []
        for size in eqn.params["sizes"]:
            begin, end = [0] * len(given.shape), list(given.shape)
            begin[axis], end[axis] = start, start + size
            params = {"start_indices": begin, "limit_indices": end, "strides": None}
            shape = (*given.shape[:axis], size, *given.shape[axis + 1 :])
            parts.append(self._step("slice", [given], shape, given.dtype, params, place))
            start += size
        return parts

    def whole(self, value: Value, shape: Shape, place: str) -> Value:
        """The value with all its numbers."""
        if value.shape == tuple(shape):
            return value
        if value.constant is not None and all(isinstance(side, int) for side in shape):
            return self.known(np.broadcast_to(value.constant, shape), value.name)
        return self._step("repeat", [value], shape, value.dtype, {}, place)


RESHAPES = ("reshape", "squeeze", "expand_dims")
MOVES = (*RESHAPES, "transpose", "slice")
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")
COMPUTED = "computed_from_"


def _the_same_everywhere(value: Value) -> int | None:
    """The one number of a constant."""
    return int(value.constant.item()) if value.constant is not None and value.constant.size == 1 else None


def _of_ones(value: Value, axes: Sequence[int]) -> bool:
    return all(_is_one(value.shape[axis]) for axis in axes)


def _array(value: Value) -> np.ndarray:
    assert value.constant is not None
    return value.constant


def _together(given: Sequence[Value]) -> Shape:
    """The shape of an operation number by number."""
    longest = max(len(value.shape) for value in given)
    padded = [(1,) * (longest - len(value.shape)) + value.shape for value in given]
    pick: Callable[..., Any] = lambda *sides: next((side for side in sides if not _is_one(side)), 1)
    return tuple(pick(*sides) for sides in zip(*padded, strict=True))


def _is_one(side: Any) -> bool:
    return isinstance(side, int) and side == 1


def _place_of(eqn: Any) -> str:
    """The innermost function of this library that made the operation; for a comment."""
    frames = getattr(getattr(eqn.source_info, "traceback", None), "frames", ())
    for frame in frames:
        name = frame.function_name.rpartition(".")[2]
        if frame.file_name.startswith(PACKAGE) and not name.startswith("<"):
            return name
    return ""
