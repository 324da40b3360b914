"""What each operation of JAX is in NumPy and in ONNX: one table for both.

For NumPy an operation is the text of an expression; a few stand on a function that is written into the file. For ONNX
it is nodes added to a graph, of which the name of the last one's output is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from iqrl.errors import BadInput
from iqrl.exporting.program import Step, Value


class Graph(Protocol):
    """The graph of an ONNX model that is being made."""

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str: ...

    def name(self, value: Value) -> str: ...

    def numbers(self, values: Any, dtype: Any = np.int64) -> str: ...

    def shape(self, sides: Any) -> str: ...

    def sizes(self, sides: Any) -> str: ...

    def cast(self, name: str, dtype: np.dtype) -> str: ...


class Translation(NamedTuple):
    numpy: Callable[[Step, list[str]], str]
    """(step, its inputs as text) -> an expression"""
    onnx: Callable[[Graph, Step, list[str]], str]
    """(graph, step, the names of its inputs) -> the name of the output"""
    helper: str = ""
    """source of a function that the expression calls"""


class CannotExport(BadInput):
    def __init__(self, what: str):
        super().__init__(
            f"the agent's network has {what}, which cannot be exported; dense layers, convolutions, activations, "
            f"normalisation, local features, contexts and value distributions can."
        )


def translation_of(step: Step) -> Translation:
    if step.primitive not in TABLE:
        raise CannotExport(f"the operation {step.primitive}")
    return TABLE[step.primitive]


def side(length: Any) -> str:
    return str(length)


def sides(shape: Any) -> str:
    """
    >>> sides((2, 3)), sides((4,))
    ('(2, 3)', '(4,)')
    """
    return f"({', '.join(map(side, shape))}{',' if len(shape) == 1 else ''})"


# Operations number by number


def each(expression: str, *operations: str) -> Translation:
    """`operations`: of ONNX, each on the output of the one before it."""

    def onnx(graph: Graph, step: Step, names: list[str]) -> str:
        found = graph.add(operations[0], *names)
        for operation in operations[1:]:
            found = graph.add(operation, found)
        return found

    return Translation(lambda step, texts: expression.format(*texts), onnx)


def _square(graph: Graph, step: Step, names: list[str]) -> str:
    return graph.add("Mul", names[0], names[0])


def _logical(text: str, operation: str) -> Translation:
    def refuse_numbers(step: Step) -> None:
        if step.output.dtype != np.bool_:
            raise CannotExport(f"the operation {step.primitive} on bits of numbers")

    def numpy(step: Step, texts: list[str]) -> str:
        refuse_numbers(step)
        return text.format(*texts)

    def onnx(graph: Graph, step: Step, names: list[str]) -> str:
        refuse_numbers(step)
        return graph.add(operation, *names)

    return Translation(numpy, onnx)


def _unsigned(text: str, operation: str, **attributes: Any) -> Translation:
    """On the bits of whole numbers from 0."""

    def numpy(step: Step, texts: list[str]) -> str:
        if step.output.dtype.kind != "u":
            raise CannotExport(f"the operation {step.primitive} on numbers that may be negative")
        return text.format(*texts)

    def onnx(graph: Graph, step: Step, names: list[str]) -> str:
        numpy(step, names)
        return graph.add(operation, *names, **attributes)

    return Translation(numpy, onnx)


def _power(graph: Graph, step: Step, names: list[str]) -> str:
    return graph.add("Pow", names[0], graph.numbers(step.params["y"], step.output.dtype))


def _log1p(graph: Graph, step: Step, names: list[str]) -> str:
    return graph.add("Log", graph.add("Add", names[0], graph.numbers(1, step.output.dtype)))


def _expm1(graph: Graph, step: Step, names: list[str]) -> str:
    return graph.add("Sub", graph.add("Exp", names[0]), graph.numbers(1, step.output.dtype))


def _refuse_many(step: Step) -> None:
    if step.inputs[0].dtype != np.bool_ or len(step.inputs) != 3:
        raise CannotExport("a choice among more than two")


def _select_numpy(step: Step, texts: list[str]) -> str:
    _refuse_many(step)
    return "np.where({0}, {2}, {1})".format(*texts)


def _select_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    _refuse_many(step)
    return graph.add("Where", names[0], names[2], names[1])


def _clamp(graph: Graph, step: Step, names: list[str]) -> str:
    low, value, high = names
    return graph.add("Min", graph.add("Max", value, low), high)


# Shapes


def _slice_numpy(step: Step, texts: list[str]) -> str:
    params = step.params
    strides = params["strides"] or (1,) * len(params["start_indices"])
    shape = step.inputs[0].shape
    parts = []
    for begin, end, stride, length in zip(
        params["start_indices"], params["limit_indices"], strides, shape, strict=True
    ):
        first = "" if begin == 0 else side(begin)
        last = "" if end == length else side(end)
        parts.append(f"{first}:{last}" + (f":{stride}" if stride != 1 else ""))
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return f"{texts[0]}[{', '.join(parts)}]"


def _slice_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    params, shape = step.params, step.inputs[0].shape
    strides = params["strides"] or (1,) * len(shape)
    every = zip(params["start_indices"], params["limit_indices"], strides, shape, strict=True)
    cut = [(axis, *part) for axis, part in enumerate(every) if (part[0], part[1], part[2]) != (0, part[3], 1)]
    if not cut:
        return names[0]
    columns = [graph.numbers([part[i] for part in cut]) for i in (1, 2, 0, 3)]
    return graph.add("Slice", names[0], *columns)


def _pad_widths(step: Step) -> list[tuple[int, int]]:
    widths = step.params["padding_config"]
    if any(low < 0 or high < 0 or inside for low, high, inside in widths):
        raise CannotExport("padding that cuts off or spreads")
    return [(low, high) for low, high, _ in widths]


def _pad_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    low, high = zip(*_pad_widths(step), strict=True)
    return graph.add("Pad", names[0], graph.numbers([*low, *high]), names[1])


# Sums, products


def _reduce(text: str, operation: str) -> Translation:
    def onnx(graph: Graph, step: Step, names: list[str]) -> str:
        dtype, axes = step.output.dtype, graph.numbers(step.params["axes"])
        if dtype.kind not in "bu":
            return graph.add(operation, names[0], axes, keepdims=0)
        # Runtimes reduce neither of these: in 64 bits, and then what 32 bits would hold of it.
        found = graph.add(operation, graph.cast(names[0], np.dtype(np.int64)), axes, keepdims=0)
        return graph.cast(graph.add("Mod", found, graph.numbers(2**32)), dtype)

    def numpy(step: Step, texts: list[str]) -> str:
        # NumPy would add whole numbers in 64 bits.
        bits = f", dtype=np.{step.output.dtype}" if text in ("sum", "prod") and step.output.dtype.kind in "iu" else ""
        return f"{texts[0]}.{text}(axis={_axes(step)}{bits})"

    return Translation(numpy, onnx)


def _axes(step: Step) -> str:
    axes = step.params["axes"]
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def _place(text: str, operation: str) -> Translation:
    def onnx(graph: Graph, step: Step, names: list[str]) -> str:
        found = graph.add(operation, names[0], axis=step.params["axes"][0], keepdims=0)
        return graph.cast(found, step.output.dtype)

    return Translation(
        lambda step, texts: f"{texts[0]}.{text}(axis={_axes(step)}).astype(np.{step.output.dtype})", onnx
    )


def _letters(step: Step) -> str:
    """A product as the indices of its sum, such as ab,bc->ac."""
    (left_sum, right_sum), (left_batch, right_batch) = step.params["dimension_numbers"]
    left, right = (len(value.shape) for value in step.inputs)
    names = [chr(ord("a") + i) for i in range(left)]
    others = [chr(ord("a") + left + i) for i in range(right)]
    for mine, its in zip((*left_sum, *left_batch), (*right_sum, *right_batch), strict=True):
        others[its] = names[mine]
    free = [names[i] for i in range(left) if i not in (*left_sum, *left_batch)]
    its_free = [others[i] for i in range(right) if i not in (*right_sum, *right_batch)]
    return f"{''.join(names)},{''.join(others)}->{''.join([*(names[i] for i in left_batch), *free, *its_free])}"


def _is_plain(step: Step) -> bool:
    """A matrix, or a stack of them, times a matrix."""
    (left_sum, right_sum), batches = step.params["dimension_numbers"]
    left, right = step.inputs
    return (
        not any(batches) and len(right.shape) == 2 and tuple(right_sum) == (0,)
        and tuple(left_sum) == (len(left.shape) - 1,)
    )  # fmt: skip


def _dot_numpy(step: Step, texts: list[str]) -> str:
    if _is_plain(step):
        return f"{texts[0]} @ {texts[1]}"
    (left_sum, right_sum), batches = step.params["dimension_numbers"]
    if any(batches):
        return f'np.einsum("{_letters(step)}", {texts[0]}, {texts[1]})'
    return f"np.tensordot({texts[0]}, {texts[1]}, axes=({list(left_sum)}, {list(right_sum)}))"


def _dot_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    return graph.add("MatMul", *names) if _is_plain(step) else graph.add("Einsum", *names, equation=_letters(step))


def _taken(step: Step) -> tuple[int, list[int]]:
    """The axis along which parts are taken by number, and the order of the result's axes; other reads are refused."""
    numbers, table = step.params["dimension_numbers"], step.inputs[0].shape
    axis, *others = numbers.start_index_map
    if (
        others or tuple(numbers.collapsed_slice_dims) != (axis,) or numbers.operand_batching_dims
        or tuple(step.params["slice_sizes"]) != (*table[:axis], 1, *table[axis + 1 :])
    ):  # fmt: skip
        raise CannotExport("an indexed read other than along one axis")
    rows = len(step.inputs[1].shape) - 1
    of_table = iter((*range(axis), *range(axis + rows, rows + len(table) - 1)))
    of_rows = iter(range(axis, axis + rows))
    axes = range(rows + len(table) - 1)
    return axis, [next(of_table if each in numbers.offset_dims else of_rows) for each in axes]


def _gather_numpy(step: Step, texts: list[str]) -> str:
    axis, order = _taken(step)
    taken = f"{texts[0]}[{':, ' * axis}{texts[1]}[..., 0]]"
    return taken if order == sorted(order) else f"np.transpose({taken}, {order})"


def _gather_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    axis, order = _taken(step)
    taken = graph.add("Gather", names[0], graph.add("Squeeze", names[1], graph.numbers([-1])), axis=axis)
    return taken if order == sorted(order) else graph.add("Transpose", taken, perm=order)


# Convolutions

CONVOLVE = '''
def _convolve(images, kernels, strides, padding, dilation, groups):
    """[n, channels, ...] with [outputs, channels / groups, ...] -> [n, outputs, ...]."""
    images = np.pad(images, ((0, 0), (0, 0), *padding))
    window = [(size - 1) * each + 1 for size, each in zip(kernels.shape[2:], dilation)]
    axes = tuple(range(2, images.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(images, window, axes)
    steps = [slice(None, None, each) for each in (1, 1, *strides, *dilation)]
    windows = windows[tuple(steps)]
    summed = ([1, *range(images.ndim, windows.ndim)], list(range(1, kernels.ndim)))
    parts = zip(np.split(windows, groups, axis=1), np.split(kernels, groups))
    return np.concatenate([np.moveaxis(np.tensordot(w, k, summed), -1, 1) for w, k in parts], axis=1)
'''


class Convolution(NamedTuple):
    """The orders of axes that bring images to [n, channels, ...], kernels to [outputs, channels, ...], and back."""

    images: tuple[int, ...]
    kernels: tuple[int, ...]
    back: tuple[int, ...]
    strides: list[int]
    padding: list[tuple[int, int]]
    dilation: list[int]
    groups: int


def _convolution(step: Step) -> Convolution:
    params = step.params
    numbers = params["dimension_numbers"]
    if params["batch_group_count"] != 1 or any(each != 1 for each in params["lhs_dilation"]):
        raise CannotExport("a transposed convolution")
    if any(low < 0 or high < 0 for low, high in params["padding"]):
        raise CannotExport("a convolution with negative padding")
    return Convolution(
        images=tuple(numbers.lhs_spec),
        kernels=tuple(numbers.rhs_spec),
        back=tuple(np.argsort(numbers.out_spec).tolist()),
        strides=list(params["window_strides"]),
        padding=list(params["padding"]),
        dilation=list(params["rhs_dilation"]),
        groups=params["feature_group_count"],
    )


def _convolution_numpy(step: Step, texts: list[str]) -> str:
    its = _convolution(step)
    images, kernels = (f"np.transpose({text}, {order})" for text, order in zip(texts, its[:2], strict=True))
    rest = f"{its.strides}, {its.padding}, {its.dilation}, {its.groups}"
    return f"np.transpose(_convolve({images}, {kernels}, {rest}), {its.back})"


def _convolution_onnx(graph: Graph, step: Step, names: list[str]) -> str:
    its = _convolution(step)
    images, kernels = (
        graph.add("Transpose", name, perm=list(order)) for name, order in zip(names, its[:2], strict=True)
    )
    low, high = zip(*its.padding, strict=True)
    found = graph.add(
        "Conv", images, kernels, strides=its.strides, pads=[*low, *high], dilations=its.dilation, group=its.groups
    )
    return graph.add("Transpose", found, perm=list(its.back))


ERF = """
def _erf(values):
    return np.vectorize(math.erf, otypes=[np.float32])(values)
"""

TABLE: dict[str, Translation] = {
    # number by number
    "abs": each("np.abs({0})", "Abs"),
    "add": each("{0} + {1}", "Add"),
    "and": _logical("{0} & {1}", "And"),
    "ceil": each("np.ceil({0})", "Ceil"),
    "clamp": Translation(lambda step, texts: "np.clip({1}, {0}, {2})".format(*texts), _clamp),
    "convert_element_type": Translation(
        lambda step, texts: f"{texts[0]}.astype(np.{step.output.dtype})",
        lambda graph, step, names: graph.cast(names[0], step.output.dtype),
    ),
    "cos": each("np.cos({0})", "Cos"),
    "div": each("{0} / {1}", "Div"),
    "eq": each("{0} == {1}", "Equal"),
    "erf": each("_erf({0})", "Erf")._replace(helper=ERF),
    "exp": each("np.exp({0})", "Exp"),
    "expm1": Translation(lambda step, texts: f"np.expm1({texts[0]})", _expm1),
    "floor": each("np.floor({0})", "Floor"),
    "ge": each("{0} >= {1}", "GreaterOrEqual"),
    "gt": each("{0} > {1}", "Greater"),
    "integer_pow": Translation(lambda step, texts: f"{texts[0]} ** {step.params['y']}", _power),
    "le": each("{0} <= {1}", "LessOrEqual"),
    "log": each("np.log({0})", "Log"),
    "log1p": Translation(lambda step, texts: f"np.log1p({texts[0]})", _log1p),
    "logistic": each("1 / (1 + np.exp(-{0}))", "Sigmoid"),
    "lt": each("{0} < {1}", "Less"),
    "max": each("np.maximum({0}, {1})", "Max"),
    "min": each("np.minimum({0}, {1})", "Min"),
    "mul": each("{0} * {1}", "Mul"),
    "ne": each("{0} != {1}", "Equal", "Not"),
    "neg": each("-{0}", "Neg"),
    "not": _logical("~{0}", "Not"),
    "or": _logical("{0} | {1}", "Or"),
    "pow": each("{0} ** {1}", "Pow"),
    "rsqrt": each("1 / np.sqrt({0})", "Sqrt", "Reciprocal"),
    "select_n": Translation(_select_numpy, _select_onnx),
    "rem": each("np.fmod({0}, {1})", "Mod"),
    "shift_right_logical": _unsigned("{0} >> {1}", "BitShift", direction="RIGHT"),
    "sign": each("np.sign({0})", "Sign"),
    "sin": each("np.sin({0})", "Sin"),
    "sqrt": each("np.sqrt({0})", "Sqrt"),
    "square": Translation(lambda step, texts: f"np.square({texts[0]})", _square),
    "sub": each("{0} - {1}", "Sub"),
    "tanh": each("np.tanh({0})", "Tanh"),
    "xor": _unsigned("{0} ^ {1}", "BitwiseXor"),
    # shapes
    "concatenate": Translation(
        lambda step, texts: f"np.concatenate([{', '.join(texts)}], axis={step.params['dimension']})",
        lambda graph, step, names: graph.add("Concat", *names, axis=step.params["dimension"]),
    ),
    "gather": Translation(_gather_numpy, _gather_onnx),
    "pad": Translation(
        lambda step, texts: f"np.pad({texts[0]}, {_pad_widths(step)}, constant_values={texts[1]})", _pad_onnx
    ),
    "repeat": Translation(
        lambda step, texts: f"np.broadcast_to({texts[0]}, {sides(step.output.shape)})",
        lambda graph, step, names: graph.add("Expand", names[0], graph.sizes(step.output.shape)),
    ),
    "reshape": Translation(
        lambda step, texts: f"{texts[0]}.reshape{sides(step.output.shape)}",
        lambda graph, step, names: graph.add("Reshape", names[0], graph.shape(step.output.shape)),
    ),
    "rev": Translation(
        lambda step, texts: f"np.flip({texts[0]}, {tuple(step.params['dimensions'])})",
        lambda graph, step, names: graph.add(
            "Slice", names[0], *(graph.numbers([value] * len(step.params["dimensions"])) for value in (-1, -(2**31))),
            graph.numbers(step.params["dimensions"]), graph.numbers([-1] * len(step.params["dimensions"])),
        ),
    ),
    "slice": Translation(_slice_numpy, _slice_onnx),
    "transpose": Translation(
        lambda step, texts: f"{texts[0]}.transpose{tuple(step.params['permutation'])}",
        lambda graph, step, names: graph.add("Transpose", names[0], perm=list(step.params["permutation"])),
    ),
    # over axes
    "argmax": _place("argmax", "ArgMax"),
    "argmin": _place("argmin", "ArgMin"),
    "conv_general_dilated": Translation(_convolution_numpy, _convolution_onnx, CONVOLVE),
    "dot_general": Translation(_dot_numpy, _dot_onnx),
    "reduce_and": _reduce("all", "ReduceMin"),
    "reduce_max": _reduce("max", "ReduceMax"),
    "reduce_min": _reduce("min", "ReduceMin"),
    "reduce_or": _reduce("any", "ReduceMax"),
    "reduce_prod": _reduce("prod", "ReduceProd"),
    "reduce_sum": _reduce("sum", "ReduceSum"),
}  # fmt: skip
